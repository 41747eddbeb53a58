package graphqlws

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Limits bound a connection. Zero means the default.
type Limits struct {
	InitTimeout   time.Duration // from the handshake to connection_init
	PingInterval  time.Duration // between two pings of the server
	PongTimeout   time.Duration // for an answer to a ping
	WriteTimeout  time.Duration // for a message to find space among those that wait, and for a write
	CheckInterval time.Duration // between two looks whether the session still stands
	MessageBytes  int64         // of a client's message
	QueuedBytes   int           // of messages that wait for a slow reader
	Operations    int           // alive at once on a connection
	Connections   int           // of the process
}

// DefaultLimits are the limits that zero stands for.
func DefaultLimits() Limits {
	return Limits{
		InitTimeout: 5 * time.Second, PingInterval: 15 * time.Second, PongTimeout: 15 * time.Second,
		WriteTimeout: 10 * time.Second, CheckInterval: 30 * time.Second,
		MessageBytes: 8 << 20, QueuedBytes: 1 << 20, Operations: 100, Connections: 20_000,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		InitTimeout: cmp.Or(l.InitTimeout, d.InitTimeout), PingInterval: cmp.Or(l.PingInterval, d.PingInterval),
		PongTimeout: cmp.Or(l.PongTimeout, d.PongTimeout), WriteTimeout: cmp.Or(l.WriteTimeout, d.WriteTimeout),
		CheckInterval: cmp.Or(l.CheckInterval, d.CheckInterval), MessageBytes: cmp.Or(l.MessageBytes, d.MessageBytes),
		QueuedBytes: cmp.Or(l.QueuedBytes, d.QueuedBytes), Operations: cmp.Or(l.Operations, d.Operations),
		Connections: cmp.Or(l.Connections, d.Connections),
	}
}

// Session is what a connection was let in as.
type Session struct {
	// As puts the caller into the context of an operation.
	As func(context.Context) context.Context
	// Expires is when the session ends by itself; nil for never.
	Expires *time.Time
	// Check returns an error when the session no longer stands. It is asked now and then.
	Check func(context.Context) error
	// Changed returns a channel that is closed when Check should be asked at once.
	Changed func() <-chan struct{}
	// Close ends what the session holds.
	Close func()
}

// ErrTryAgain is the error of a session that cannot be opened now, and may be later.
var ErrTryAgain = errors.New("try again later")

// Config is what the transport is made from.
type Config struct {
	// Open lets a connection in by the payload of its connection_init, nil without one;
	// its error refuses it: for now where that is ErrTryAgain.
	Open func(ctx context.Context, payload map[string]any) (*Session, error)
	// Run runs an operation: each answer, as JSON, goes to emit. refused is what the
	// operation was refused with or broken off for; err, without a message to the client,
	// that it has no end here.
	Run func(ctx context.Context, exec graphql.GraphExecutor, params *graphql.RawParams, emit func([]byte) error) (refused gqlerror.List, err error)
	// Check refuses the payload of a subscribe before it is read.
	Check func(ctx context.Context, payload []byte) gqlerror.List
	// Refuse is the error of an operation beyond the limit of a connection.
	Refuse func(ctx context.Context, limit int) gqlerror.List
	// Origins are the origins of pages, beside the server's own, from which browsers may
	// connect.
	Origins []string
	Limits  Limits
	Logger  *slog.Logger
}

// Transport is the gqlgen transport.
type Transport struct {
	config   Config
	upgrader websocket.Upgrader

	mu          sync.Mutex
	connections map[*connection]struct{}
	stopping    bool
	once        sync.Once
	empty       chan struct{} // closed when stopping and the last connection is gone
}

var _ graphql.Transport = (*Transport)(nil)

// New returns a transport.
func New(config Config) *Transport {
	config.Limits = config.Limits.withDefaults()
	t := &Transport{config: config, connections: map[*connection]struct{}{}, empty: make(chan struct{})}
	t.upgrader = websocket.Upgrader{
		HandshakeTimeout: config.Limits.WriteTimeout,
		Subprotocols:     []string{Subprotocol},
		WriteBufferPool:  &sync.Pool{},
		WriteBufferSize:  4 << 10,
		CheckOrigin:      t.ofAllowedOrigin,
		Error: func(w http.ResponseWriter, _ *http.Request, status int, reason error) {
			http.Error(w, reason.Error(), status)
		},
	}
	return t
}

// Limits are the bounds in effect.
func (t *Transport) Limits() Limits { return t.config.Limits }

// ofAllowedOrigin lets in what is no browser's, what comes from a page of the server
// itself, and what the configuration names.
func (t *Transport) ofAllowedOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(t.config.Origins, origin) {
		return true
	}
	page, err := url.Parse(origin)
	return err == nil && strings.EqualFold(page.Host, r.Host)
}

// Supports tells whether a request wants a WebSocket.
func Supports(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// Supports is gqlgen's question whether a request is for this transport.
func (t *Transport) Supports(r *http.Request) bool { return Supports(r) }

// Do serves a connection until it ends.
func (t *Transport) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	taken := &hijacker{ResponseWriter: w}
	socket, err := t.upgrader.Upgrade(taken, r, nil)
	if err != nil {
		return // answered
	}
	c := newConnection(t, exec, socket, taken.wire)
	if !t.add(c) {
		c.out.finish(closing{codeTryAgain, "No more connections now"}, false)
	}
	defer t.remove(c)
	c.serve(r.Context())
}

// add counts a connection, unless there are too many.
func (t *Transport) add(c *connection) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.connections[c] = struct{}{}
	return !t.stopping && len(t.connections) <= t.config.Limits.Connections
}

func (t *Transport) remove(c *connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.connections, c)
	t.emptied()
}

// emptied tells Stop that there is no connection left.
func (t *Transport) emptied() {
	if t.stopping && len(t.connections) == 0 {
		t.once.Do(func() { close(t.empty) })
	}
}

// Open is how many connections there are, and how many operations live on them.
func (t *Transport) Open() (connections, operations int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.connections {
		operations += c.alive()
	}
	return len(t.connections), operations
}

// Stop closes all connections with 1001 when their operations have ended, and what is
// left at once when ctx ends. It returns when there are none. Before it, the sources
// of subscriptions are told to end.
func (t *Transport) Stop(ctx context.Context) {
	t.mu.Lock()
	t.stopping = true
	left := make([]*connection, 0, len(t.connections))
	for c := range t.connections {
		left = append(left, c)
	}
	t.emptied()
	t.mu.Unlock()
	for _, c := range left {
		c.leave()
	}
	select {
	case <-t.empty:
		return
	case <-ctx.Done():
	}
	for _, c := range left {
		c.abandon()
	}
	<-t.empty
}
