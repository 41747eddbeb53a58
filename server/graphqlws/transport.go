package graphqlws

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
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
	Strangers     int           // of these, the ones that have no session yet and whose peer is not known
	Unopened      int           // of one peer, without a session yet
}

// DefaultLimits are the limits that zero stands for.
func DefaultLimits() Limits {
	return Limits{
		InitTimeout: 5 * time.Second, PingInterval: 15 * time.Second, PongTimeout: 15 * time.Second,
		WriteTimeout: 10 * time.Second, CheckInterval: 30 * time.Second,
		MessageBytes: 8 << 20, QueuedBytes: 1 << 20, Operations: 100,
		Connections: 20_000, Strangers: 4000, Unopened: 1000,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		InitTimeout: cmp.Or(l.InitTimeout, d.InitTimeout), PingInterval: cmp.Or(l.PingInterval, d.PingInterval),
		PongTimeout: cmp.Or(l.PongTimeout, d.PongTimeout), WriteTimeout: cmp.Or(l.WriteTimeout, d.WriteTimeout),
		CheckInterval: cmp.Or(l.CheckInterval, d.CheckInterval), MessageBytes: cmp.Or(l.MessageBytes, d.MessageBytes),
		QueuedBytes: cmp.Or(l.QueuedBytes, d.QueuedBytes), Operations: cmp.Or(l.Operations, d.Operations),
		Connections: cmp.Or(l.Connections, d.Connections), Strangers: cmp.Or(l.Strangers, d.Strangers), Unopened: cmp.Or(l.Unopened, d.Unopened),
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

// Why a request gets no WebSocket.
var (
	ErrStopping  = errors.New("the server is stopping")
	ErrFull      = errors.New("the server has as many WebSockets as it may")
	ErrOrigin    = errors.New("a page of this origin may not open a WebSocket here")
	ErrHandshake = errors.New("the request is no handshake of a WebSocket")
)

// Config is what the transport is made from.
type Config struct {
	// Peer is who asks for a WebSocket.
	Peer func(r *http.Request) Peer
	// Answer answers a request that gets no WebSocket, for one of the errors above.
	Answer func(w http.ResponseWriter, r *http.Request, status int, why error)
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
	// connect, as ParseOrigins returns them.
	Origins []string
	Limits  Limits
	Logger  *slog.Logger
}

// Transport is the gqlgen transport.
type Transport struct {
	config   Config
	upgrader websocket.Upgrader
	lobby    *lobby

	mu          sync.Mutex
	connections map[*connection]struct{}
}

var _ graphql.Transport = (*Transport)(nil)

// New returns a transport.
func New(config Config) *Transport {
	config.Limits = config.Limits.withDefaults()
	t := &Transport{config: config, lobby: newLobby(config.Limits), connections: map[*connection]struct{}{}}
	t.upgrader = websocket.Upgrader{
		HandshakeTimeout: config.Limits.WriteTimeout,
		Subprotocols:     []string{Subprotocol},
		WriteBufferPool:  &sync.Pool{},
		WriteBufferSize:  4 << 10,
		CheckOrigin:      t.ofAllowedOrigin,
		Error: func(w http.ResponseWriter, r *http.Request, status int, _ error) {
			why := ErrHandshake
			if status == http.StatusForbidden {
				why = ErrOrigin
			}
			config.Answer(w, r, status, why)
		},
	}
	return t
}

// Limits are the bounds in effect.
func (t *Transport) Limits() Limits { return t.config.Limits }

// Supports tells whether a request wants a WebSocket.
func Supports(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// Supports is gqlgen's question whether a request is for this transport.
func (t *Transport) Supports(r *http.Request) bool { return Supports(r) }

// Do serves a connection until it ends.
func (t *Transport) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	place, refused := t.lobby.enter(t.config.Peer(r))
	if refused != nil {
		t.config.Answer(w, r, http.StatusServiceUnavailable, refused)
		return
	}
	defer place.leave()
	taken := &hijacker{ResponseWriter: w}
	socket, err := t.upgrader.Upgrade(taken, r, nil)
	if err != nil {
		return // answered
	}
	c := newConnection(t, exec, socket, taken.wire, place)
	t.add(c)
	defer t.remove(c)
	if t.lobby.closing() { // before it was among those that Stop closes
		c.leave()
	}
	c.serve(r.Context())
}

func (t *Transport) add(c *connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.connections[c] = struct{}{}
}

func (t *Transport) remove(c *connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.connections, c)
}

// all are the connections that there are.
func (t *Transport) all() []*connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.connections))
}

// Open is how many connections there are, and how many operations live on them.
func (t *Transport) Open() (connections, operations int) {
	all := t.all()
	for _, c := range all {
		operations += c.alive()
	}
	return len(all), operations
}

// Stop closes all connections with 1001 when their operations have ended, and what is
// left at once when ctx ends. It returns when there are none. Before it, the sources
// of subscriptions are told to end.
func (t *Transport) Stop(ctx context.Context) {
	empty := t.lobby.close()
	for _, c := range t.all() {
		c.leave()
	}
	select {
	case <-empty:
		return
	case <-ctx.Done():
	}
	for _, c := range t.all() {
		c.abandon()
	}
	<-empty
}
