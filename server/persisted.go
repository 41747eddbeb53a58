package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/fleet"
)

// persistedKey is the request extension of a persisted query.
const persistedKey = "persistedQuery"

// The answer to a hash that is not known is the only one whose code is not of the
// closed list: clients know it by this code and this message, and send the text.
const (
	codePersistedQueryNotFound    = fleet.Code("PERSISTED_QUERY_NOT_FOUND")
	messagePersistedQueryNotFound = "PersistedQueryNotFound"
)

// persistedQueries is a gqlgen extension for automatic persisted queries: a request
// may have the SHA-256 of a document in place of the document, once somebody has sent
// both. What is kept is text that was valid and within the limits; whoever uses it is
// checked as if they had sent it.
type persistedQueries struct{ texts graphql.Cache[string] }

var (
	_ graphql.OperationParameterMutator = persistedQueries{}
	_ graphql.OperationContextMutator   = persistedQueries{}
)

// ExtensionName is the extension's name for gqlgen.
func (persistedQueries) ExtensionName() string { return "PersistedQueries" }

// Validate is gqlgen's check of the extension against a schema.
func (persistedQueries) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationParameters finds the text of a request that has its hash only.
func (p persistedQueries) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	given, ok := params.Extensions[persistedKey]
	if !ok {
		if params.Query == "" {
			return gqlerror.Wrap(queryMissing())
		}
		return nil
	}
	hash, refused := persistedHash(given)
	if refused != nil {
		return gqlerror.Wrap(refused)
	}
	if params.Query == "" {
		if params.Query, ok = p.texts.Get(ctx, hash); !ok {
			return gqlerror.Wrap(&fleet.Error{
				Code: codePersistedQueryNotFound, Reason: string(codePersistedQueryNotFound), Message: messagePersistedQueryNotFound,
			})
		}
		return nil
	}
	if sum := sha256.Sum256([]byte(params.Query)); hex.EncodeToString(sum[:]) != hash {
		return gqlerror.Wrap(fleet.Invalid("extensions.persistedQuery.sha256Hash", "PERSISTED_QUERY_MISMATCH", "this is not the hash of the query"))
	}
	return nil
}

// MutateOperationContext keeps the text of an operation that came with its hash.
func (p persistedQueries) MutateOperationContext(ctx context.Context, op *graphql.OperationContext) *gqlerror.Error {
	if given, ok := op.Extensions[persistedKey]; ok {
		if hash, refused := persistedHash(given); refused == nil {
			p.texts.Add(ctx, hash, op.RawQuery)
		}
	}
	return nil
}

// persistedHash reads the extension.
func persistedHash(given any) (hash string, refused *fleet.Error) {
	object, _ := given.(map[string]any)
	if version, _ := numberText(object["version"]); version != "1" {
		return "", fleet.Invalid("extensions.persistedQuery.version", "PERSISTED_QUERY_INVALID", "the version of persisted queries is 1")
	}
	hash, _ = object["sha256Hash"].(string)
	if sum, err := hex.DecodeString(hash); err != nil || len(sum) != sha256.Size || hash != strings.ToLower(hash) {
		return "", fleet.Invalid("extensions.persistedQuery.sha256Hash", "PERSISTED_QUERY_INVALID", "the hash is a SHA-256 in lower-case hexadecimal")
	}
	return hash, nil
}
