package server

import (
	"context"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/vektah/gqlparser/v2/ast"

	"fleetgraph/graph"
)

// Defaults of Limits.
const (
	defaultBodyBytes        = 8 << 20 // an inventory is up to 1 MB, a batch of SKUs more
	defaultDocumentTokens   = 10_000  // GraphiQL's introspection query has 300
	defaultOperationTimeout = 30 * time.Second
)

// The query cache holds parsed documents by their text. A text that carries its
// data as literals is long and never comes again: it is not kept.
const (
	cachedDocuments     = 1000
	cachedDocumentBytes = 16 << 10
)

// Limits are what one request may use. Zero means the default.
type Limits struct {
	BodyBytes        int64         // of a request: 8 MiB
	DocumentTokens   int           // of a document: 10 000
	OperationTimeout time.Duration // from the last byte of the request to the answer: 30 s
}

func (l Limits) withDefaults() Limits {
	if l.BodyBytes == 0 {
		l.BodyBytes = defaultBodyBytes
	}
	if l.DocumentTokens == 0 {
		l.DocumentTokens = defaultDocumentTokens
	}
	if l.OperationTimeout == 0 {
		l.OperationTimeout = defaultOperationTimeout
	}
	return l
}

// newGraphHandler serves the graph to callers who are signed in: introspection is
// on, and validation makes suggestions.
func newGraphHandler(root graph.ResolverRoot, limits Limits, p presenter) http.Handler {
	schema := graph.NewExecutableSchema(graph.Config{Resolvers: root})
	limits = limits.withDefaults()
	h := handler.New(schema)
	h.AddTransport(httpTransport{schema: schema.Schema(), bodyBytes: limits.BodyBytes, timeout: limits.OperationTimeout})
	h.SetQueryCache(documentCache{lru.New[*ast.QueryDocument](cachedDocuments)})
	h.SetParserTokenLimit(limits.DocumentTokens)
	h.SetValidationRulesFn(validationRules)
	h.SetErrorPresenter(p.present)
	h.SetRecoverFunc(p.recovered)
	h.Use(extension.Introspection{})
	h.Use(strictVariables{schema.Schema()})
	h.Use(audit{schema.Schema(), limits.DocumentTokens, p.logger})
	return h
}

// documentCache keeps short documents only, which bounds its memory.
type documentCache struct {
	graphql.Cache[*ast.QueryDocument]
}

func (c documentCache) Add(ctx context.Context, text string, document *ast.QueryDocument) {
	if len(text) <= cachedDocumentBytes {
		c.Cache.Add(ctx, text, document)
	}
}
