package server

import (
	"net/http"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/vektah/gqlparser/v2/ast"

	"fleetgraph/graph"
)

// The caches of texts. A text that carries its data as literals is long and never
// comes again: it is not kept. A parsed document takes up to 100 times its text.
func documentCacheSize() cacheSize {
	return cacheSize{entries: 1000, bytes: 1 << 20, longest: 16 << 10}
}

func persistedCacheSize() cacheSize {
	return cacheSize{entries: 1000, bytes: 4 << 20, longest: 64 << 10}
}

// newGraphHandler serves the graph to callers who are signed in. What holds for an
// operation is in gqlgen's extensions and hooks, and not in a transport.
func newGraphHandler(root graph.ResolverRoot, settings graphSettings, p presenter) http.Handler {
	schema := graph.NewExecutableSchema(graph.Config{Resolvers: root})
	limits := settings.limits.withDefaults()
	documents := newTextCache(documentCacheSize(), func(text string, _ *ast.QueryDocument) int { return len(text) })
	texts := newTextCache(persistedCacheSize(), func(_, text string) int { return len(text) })
	h := handler.New(schema)
	h.AddTransport(httpTransport{refuser: refuser{schema.Schema(), settings.introspection}, limits: limits})
	h.SetQueryCache(documents)
	h.SetParserTokenLimit(limits.DocumentTokens)
	h.SetValidationRulesFn(validationRules)
	h.SetDisableSuggestion(true) // see refuser
	h.SetErrorPresenter(p.present)
	h.SetRecoverFunc(p.recovered)
	if settings.introspection {
		h.Use(extension.Introspection{})
	}
	h.Use(persistedQueries{texts}) // first of all, it finds the document
	h.Use(documentLimits{schema.Schema(), limits, settings.introspection, documents})
	h.Use(strictVariables{schema.Schema()})
	h.Use(complexityLimit{limits.Complexity})
	return h
}

// graphSettings are what an operator decides of the graph.
type graphSettings struct {
	limits        Limits
	introspection bool // and suggestions of names in errors
}
