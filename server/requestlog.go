package server

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"fleetgraph/fleet"
	"fleetgraph/internal/telemetry"
	"fleetgraph/services/access"
)

// maxLoggedName bounds an operation's name in the log: it is the caller's text.
const maxLoggedName = 100

// note is what the layers below say of a request for its line in the log.
type note struct {
	mu        sync.Mutex
	caller    string
	operation string
	kind      string
	errors    int
	code      fleet.Code // of the first error
}

type noteKey struct{}

func noteOf(ctx context.Context) *note {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		return n
	}
	return &note{} // nobody listens
}

func noteCaller(ctx context.Context, c *access.Caller) {
	n := noteOf(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.caller = c.Name
}

func noteOperation(ctx context.Context, op *graphql.OperationContext) {
	if op.Operation == nil {
		return
	}
	n := noteOf(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kind = string(op.Operation.Operation)
	n.operation = op.Operation.Name[:min(len(op.Operation.Name), maxLoggedName)]
}

func noteError(ctx context.Context, err *fleet.Error) {
	n := noteOf(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.errors++; n.errors == 1 {
		n.code = err.Code
	}
}

// logged gives every request a trace id, taken from a traceparent header where the
// caller sent one, and writes a line when it has ended: at debug level for files,
// probes and looks at jobs. It never logs a header, a body or a query string.
func logged(logger *slog.Logger, proxies Proxies, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		trace, ok := telemetry.ParseTraceparent(r.Header.Get("Traceparent"))
		if !ok {
			trace = telemetry.NewTraceID()
		}
		n := &note{}
		ctx := context.WithValue(telemetry.WithTraceID(proxies.withAddress(r.Context(), r), trace), noteKey{}, n)
		w.Header().Set("Trace-Id", trace)
		answer := &statusWriter{ResponseWriter: w}
		defer func() {
			if value := recover(); value != nil {
				logger.ErrorContext(ctx, "panic", slog.Any("err", value), slog.String("stack", string(debug.Stack())))
				if answer.status == 0 {
					writeError(answer, http.StatusInternalServerError, concealed(ctx))
				}
			}
			n.log(ctx, logger, r, answer.status, time.Since(start))
		}()
		next.ServeHTTP(answer, r.WithContext(ctx))
	})
}

// notedOperation gives an operation of a stream its own line in the log, which ended
// writes.
func notedOperation(ctx context.Context, logger *slog.Logger) (_ context.Context, ended func()) {
	start, n := time.Now(), &note{}
	if caller, ok := access.From(ctx); ok {
		n.caller = caller.Name
	}
	ctx = context.WithValue(ctx, noteKey{}, n)
	return ctx, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		logger.LogAttrs(ctx, slog.LevelInfo, "operation", append(n.attrs(), slog.Duration("took", time.Since(start)))...)
	}
}

// attrs are what is known of the operation.
func (n *note) attrs() (attrs []slog.Attr) {
	if n.kind != "" {
		attrs = append(attrs, slog.String("operation_type", n.kind), slog.String("operation", n.operation))
	}
	if n.caller != "" {
		attrs = append(attrs, slog.String("caller", n.caller))
	}
	if n.errors > 0 {
		attrs = append(attrs, slog.Int("errors", n.errors), slog.String("code", string(n.code)))
	}
	return attrs
}

func (n *note) log(ctx context.Context, logger *slog.Logger, r *http.Request, status int, took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	level := slog.LevelDebug
	if r.URL.Path == graphPath || changesJobs(r) {
		level = slog.LevelInfo
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int("status", status), slog.Duration("took", took),
	}
	logger.LogAttrs(ctx, level, "request", append(attrs, n.attrs()...)...)
}

// statusWriter remembers the status. Unwrap keeps http.ResponseController working.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
