package server

import (
	"log/slog"
	"net/http"

	"fleetgraph/server/graphiql"
)

// graphPath is where the graph is.
const graphPath = "/graphql"

// face is the parts of the HTTP face, each behind whoever may use it.
type face struct{ graph, ready, metrics, jobs http.Handler }

// routes puts the parts together.
func routes(logger *slog.Logger, proxies Proxies, f face) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle(graphPath, f.graph)
	mux.HandleFunc("GET /healthz", alive)
	mux.Handle("GET /readyz", f.ready)
	mux.Handle("GET /metrics", f.metrics)
	mux.Handle(jobsPath, f.jobs)
	mux.Handle(jobsPath+"/", f.jobs)
	if err := graphiql.Register(mux); err != nil {
		return nil, err
	}
	zipped, err := compressed(mux)
	if err != nil {
		return nil, err
	}
	return logged(logger, proxies, secured(zipped)), nil
}

// secured sets the headers that keep a browser from doing more with an answer than
// it should. A page that needs more sets its own policy over this one.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
