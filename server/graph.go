package server

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/graph"
	"fleetgraph/server/graphqlws"
)

// The caches of texts. A text that carries its data as literals is long and never
// comes again: it is not kept. A parsed document takes up to 100 times its text.
func documentCacheSize() cacheSize {
	return cacheSize{entries: 1000, bytes: 1 << 20, longest: 16 << 10}
}

func persistedCacheSize() cacheSize {
	return cacheSize{entries: 1000, bytes: 4 << 20, longest: 64 << 10}
}

// graphHandler is the graph over HTTP, and what of it has to be stopped.
type graphHandler struct {
	http.Handler
	sockets *graphqlws.Transport
}

// newGraphHandler serves the graph to callers who are signed in. What holds for an
// operation is in gqlgen's extensions and hooks, and not in a transport.
func newGraphHandler(root graph.ResolverRoot, joined *sessions, cfg Config, p presenter) (*graphHandler, error) {
	schema := graph.NewExecutableSchema(graph.Config{Resolvers: root})
	limits, introspection := cfg.Limits.withDefaults(), !cfg.HideSchema
	refusing := refuser{schema.Schema(), introspection}
	callers := cfg.Callers.withDefaults()
	bounded := newAnswers(p, limits.AnswerBytes, callers.AnswerBytes)
	running, err := newOperations(refusing, bounded, limits.OperationTimeout)
	if err != nil {
		return nil, err
	}
	sockets := graphqlws.New(graphqlws.Config{
		Peer: peerOf, Answer: noSocket,
		Open: joined.open,
		Run: func(ctx context.Context, exec graphql.GraphExecutor, params *graphql.RawParams, emit func([]byte) error) (gqlerror.List, error) {
			if refused := joined.allow(ctx); refused != nil {
				return running.errors(ctx, refused), nil
			}
			return running.run(ctx, exec, params, false, emit)
		},
		Check:   running.checking(limits),
		Refuse:  running.tooMany,
		Origins: cfg.Origins,
		Limits:  cfg.Sockets,
		Logger:  cfg.Logger,
	})
	answers := httpTransport{refuser: refusing, limits: limits, answers: bounded}
	documents := newTextCache(documentCacheSize(), func(text string, _ *ast.QueryDocument) int { return len(text) })
	texts := newTextCache(persistedCacheSize(), func(_, text string) int { return len(text) })
	h := handler.New(schema)
	h.AddTransport(sockets)
	h.AddTransport(streamTransport{
		http: answers, operations: running, sessions: joined,
		patience: sockets.Limits().WriteTimeout, again: sockets.Limits().CheckInterval,
		streams: new(atomic.Int64), most: int64(sockets.Limits().Connections),
	})
	h.AddTransport(answers)
	h.SetQueryCache(documents)
	h.SetParserTokenLimit(limits.DocumentTokens)
	h.SetValidationRulesFn(validationRules)
	h.SetDisableSuggestion(true) // see refuser
	h.SetErrorPresenter(p.present)
	h.SetRecoverFunc(p.recovered)
	if introspection {
		h.Use(extension.Introspection{})
	}
	h.Use(persistedQueries{texts}) // first of all, it finds the document
	h.Use(documentLimits{schema.Schema(), limits, introspection, documents})
	h.Use(strictVariables{schema.Schema()})
	h.Use(complexityLimit{limits.Complexity})
	h.Use(audit{schema.Schema(), limits.DocumentTokens, p.logger})
	return &graphHandler{h, sockets}, nil
}
