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
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/graph"
	"fleetgraph/server/graphqlws"
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

// graphHandler is the graph over HTTP, and what of it has to be stopped.
type graphHandler struct {
	http.Handler
	sockets *graphqlws.Transport
}

// newGraphHandler serves the graph to callers who are signed in: introspection is
// on, and validation makes suggestions.
func newGraphHandler(root graph.ResolverRoot, joined *sessions, cfg Config, p presenter) (*graphHandler, error) {
	schema := graph.NewExecutableSchema(graph.Config{Resolvers: root})
	limits := cfg.Limits.withDefaults()
	running, err := newOperations(schema.Schema(), p, limits.OperationTimeout)
	if err != nil {
		return nil, err
	}
	sockets := graphqlws.New(graphqlws.Config{
		Open: joined.open,
		Run: func(ctx context.Context, exec graphql.GraphExecutor, params *graphql.RawParams, emit func([]byte) error) (gqlerror.List, error) {
			if refused := joined.allow(ctx); refused != nil {
				return running.errors(ctx, refused), nil
			}
			return running.run(ctx, exec, params, false, emit)
		},
		Refuse:  running.tooMany,
		Origins: cfg.Origins,
		Limits:  cfg.Sockets,
		Logger:  cfg.Logger,
	})
	answers := httpTransport{schema: schema.Schema(), bodyBytes: limits.BodyBytes, timeout: limits.OperationTimeout}
	h := handler.New(schema)
	h.AddTransport(sockets)
	h.AddTransport(streamTransport{
		http: answers, operations: running, sessions: joined,
		patience: sockets.Limits().WriteTimeout, again: sockets.Limits().CheckInterval,
	})
	h.AddTransport(answers)
	h.SetQueryCache(documentCache{lru.New[*ast.QueryDocument](cachedDocuments)})
	h.SetParserTokenLimit(limits.DocumentTokens)
	h.SetValidationRulesFn(validationRules)
	h.SetErrorPresenter(p.present)
	h.SetRecoverFunc(p.recovered)
	h.Use(extension.Introspection{})
	h.Use(strictVariables{schema.Schema()})
	h.Use(audit{schema.Schema(), limits.DocumentTokens, p.logger})
	return &graphHandler{h, sockets}, nil
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
