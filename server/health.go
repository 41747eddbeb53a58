package server

import (
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"fleetgraph/migrate"
)

const (
	// readyTimeout bounds one look at the database.
	readyTimeout = 2 * time.Second
	// readyFor is how long an answer is given again: the probe needs no token, and
	// must not be a way to load the database.
	readyFor = time.Second
)

// health is the body of a probe's answer. Reason and Message are set when Status is
// not "ok".
type health struct {
	Status  string  `json:"status"`
	Reason  string  `json:"reason,omitempty"`
	Message string  `json:"message,omitempty"`
	Schema  *schema `json:"schema,omitempty"`
}

type schema struct {
	Version int64 `json:"version"`
	Latest  int64 `json:"latest"`
	Pending int   `json:"pending"`
}

// alive answers that the process is up.
func alive(w http.ResponseWriter, _ *http.Request) { writeHealth(w, health{Status: "ok"}) }

// readiness answers whether the process can serve: the database is reachable and
// its schema is current.
type readiness struct {
	db     *sql.DB
	logger *slog.Logger

	mu       sync.Mutex
	last     health
	lastTime time.Time
	stopping bool
}

func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopping:
		writeHealth(w, health{Status: "unavailable", Reason: "STOPPING", Message: "the server is stopping"})
		return
	case time.Since(r.lastTime) >= readyFor:
		r.last, r.lastTime = r.look(req.Context()), time.Now()
	}
	writeHealth(w, r.last)
}

// stop makes every later answer negative.
func (r *readiness) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
}

func (r *readiness) look(ctx context.Context) health {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	state, err := migrate.Status(ctx, r.db)
	if err != nil {
		r.logger.WarnContext(ctx, "not ready", slog.Any("err", err))
		return health{Status: "unavailable", Reason: "DATABASE_UNREACHABLE", Message: "the database does not answer"}
	}
	seen := &schema{Version: state.Version, Latest: state.Latest, Pending: state.Pending}
	if state.Pending > 0 {
		return health{Status: "unavailable", Reason: "SCHEMA_BEHIND", Message: "the database lacks migrations", Schema: seen}
	}
	return health{Status: "ok", Schema: seen}
}

func writeHealth(w http.ResponseWriter, h health) {
	w.Header().Set("Content-Type", typeJSON+"; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if h.Status != "ok" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(h) // the caller may be gone
}
