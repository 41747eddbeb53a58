package graphqlws

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
)

// closeGrace is how long the peer may take to answer a close.
const closeGrace = 2 * time.Second

// maxOpening is how many bytes a message may have before there is a session: nobody
// knows yet who sends it.
const maxOpening = 64 << 10

// maxReason is how many bytes the reason of a close may have (RFC 6455, 5.5).
const maxReason = 123

// connection is one WebSocket. Its reader is the goroutine of its request; its writer
// another; each operation has one.
type connection struct {
	transport *Transport
	exec      graphql.GraphExecutor
	limits    Limits
	logger    *slog.Logger
	socket    *websocket.Conn
	wire      *wire
	out       *outbox
	place     *place

	session *Session // set by the reader before the acknowledgement
	cancel  context.CancelFunc
	opened  chan struct{} // closed when there is a session
	running sync.WaitGroup

	mu         sync.Mutex
	operations map[string]*running
	leaving    bool // to be closed when no operation is left
}

func newConnection(t *Transport, exec graphql.GraphExecutor, socket *websocket.Conn, w *wire, p *place) *connection {
	return &connection{
		transport: t, exec: exec, limits: t.config.Limits, logger: t.config.Logger,
		socket: socket, wire: w, place: p, out: newOutbox(t.config.Limits.QueuedBytes),
		opened: make(chan struct{}), operations: map[string]*running{},
	}
}

// serve reads until the connection ends, and returns when nothing of it is left.
func (c *connection) serve(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() { c.write(ctx) })
	writer.Go(func() { (&watch{connection: c, opened: c.opened}).run(ctx) })
	c.read(ctx)
	c.cancel()
	c.running.Wait()
	c.out.finish(closing{codeGoingAway, ""}, true) // where nothing else has ended the writer
	writer.Wait()
	_ = c.socket.Close()
	if c.session != nil && c.session.Close != nil {
		c.session.Close()
	}
}

// close ends the connection with a code, instead of whatever waits. What is running
// ends.
func (c *connection) close(ctx context.Context, code int, reason string) {
	c.logger.InfoContext(ctx, "websocket closed", slog.Int("close_code", code), slog.String("reason", reason))
	cut := min(len(reason), maxReason)
	for cut < len(reason) && !utf8.RuneStart(reason[cut]) {
		cut--
	}
	c.out.finish(closing{code, reason[:cut]}, true)
	c.cancel()
}

// read handles what the client sends, until the connection has ended.
func (c *connection) read(ctx context.Context) {
	c.socket.SetReadLimit(min(c.limits.MessageBytes, maxOpening))
	deadline := time.Now().Add(c.limits.InitTimeout)
	_ = c.socket.SetReadDeadline(deadline)
	alive := func() {
		if c.session != nil && !c.out.finishing() {
			_ = c.socket.SetReadDeadline(time.Now().Add(c.limits.PingInterval + c.limits.PongTimeout))
		}
	}
	// gorilla's own handlers write from here, with a deadline of a second, which would be
	// that of a write of the writer's that is under way.
	c.socket.SetPingHandler(func(data string) error {
		alive()
		_, _ = c.out.tryPut(outgoing{kind: websocket.PongMessage, data: []byte(data)}) // who has this much to read needs no pong
		return nil
	})
	c.socket.SetCloseHandler(func(code int, _ string) error {
		c.out.finish(closing{code, ""}, true)
		return nil
	})
	if c.socket.Subprotocol() != Subprotocol {
		c.close(ctx, codeBadSubprotocol, "Subprotocol not acceptable")
	}
	for {
		kind, data, err := c.socket.ReadMessage()
		if err != nil {
			c.lost(ctx, err)
			return
		}
		if c.out.finishing() {
			continue // until the peer has answered the close
		}
		alive()
		if kind != websocket.TextMessage {
			c.close(ctx, codeBadRequest, "Messages are text")
			continue
		}
		if !utf8.Valid(data) { // which gorilla leaves to its users
			c.close(ctx, codeNotUTF8, "Text is UTF-8")
			continue
		}
		c.handle(ctx, data)
		alive()
	}
}

// lost is the end of reading.
func (c *connection) lost(ctx context.Context, err error) {
	var timeout net.Error
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
		// gorilla has sent this close itself but where the length is beyond 2^63. The peer
		// sees it once the rest of its message is taken.
		c.close(ctx, codeTooLong, "The message is too long")
		_ = c.socket.SetReadDeadline(time.Now().Add(closeGrace))
		_, _ = io.Copy(io.Discard, c.socket.NetConn())
	case c.out.finishing() || !errors.As(err, &timeout) || !timeout.Timeout():
	case c.session == nil:
		c.close(ctx, codeInitTimeout, "Connection initialisation timeout")
	default:
		c.close(ctx, codeTerminated, "No answer to ping")
	}
}

func (c *connection) handle(ctx context.Context, data []byte) {
	m, err := readMessage(data)
	if err != nil {
		c.close(ctx, codeBadRequest, "Invalid message: "+err.Error())
		return
	}
	switch m.Type {
	case typeInit:
		c.init(ctx, m)
	case typePing:
		if !isObject(m.Payload) {
			c.close(ctx, codeBadRequest, "Invalid payload of ping")
			return
		}
		c.send(ctx, pong(m.Payload))
	case typePong:
		if !isObject(m.Payload) {
			c.close(ctx, codeBadRequest, "Invalid payload of pong")
		}
	case typeSubscribe:
		c.subscribe(ctx, m)
	case typeComplete:
		if m.ID == nil || *m.ID == "" {
			c.close(ctx, codeBadRequest, "Complete without id")
			return
		}
		c.complete(*m.ID)
	default:
		c.close(ctx, codeBadRequest, "Invalid message type "+strconv.Quote(m.Type))
	}
}

// init lets the connection in.
func (c *connection) init(ctx context.Context, m message) {
	if c.session != nil {
		c.close(ctx, codeTooManyInits, "Too many initialisation requests")
		return
	}
	payload, err := object(m.Payload)
	if err != nil {
		c.close(ctx, codeBadRequest, "Invalid payload of connection_init")
		return
	}
	session, err := c.transport.config.Open(ctx, payload)
	if errors.Is(err, ErrTryAgain) {
		c.close(ctx, codeTryAgain, err.Error())
		return
	}
	if err != nil {
		c.close(ctx, codeForbidden, "Forbidden: "+err.Error())
		return
	}
	c.session = session
	c.place.open()
	c.socket.SetReadLimit(c.limits.MessageBytes)
	close(c.opened)
	c.send(ctx, frameAck)
}

// send puts an answer of the protocol itself: the reader waits with it, so that who
// does not read cannot ask for more.
func (c *connection) send(ctx context.Context, frame []byte) {
	if err := c.out.put(ctx, text(frame), c.limits.WriteTimeout); errors.Is(err, errSlow) {
		c.close(ctx, codeTryAgain, "Slow reader")
	}
}

// leave closes the connection when its operations have ended.
func (c *connection) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
	c.leaveWhenIdle()
}

func (c *connection) leaveWhenIdle() {
	if c.leaving && len(c.operations) == 0 {
		c.out.finish(closing{codeGoingAway, "The server is stopping"}, false)
	}
}

// abandon ends the connection now.
func (c *connection) abandon() {
	c.out.finish(closing{codeGoingAway, "The server is stopping"}, true)
	_ = c.wire.Close()
}

// write writes what waits, up to the close.
func (c *connection) write(ctx context.Context) {
	defer c.out.end()
	for range c.out.ready {
		frames, end := c.out.take()
		err := c.batch(frames)
		leave(frames)
		if err != nil {
			c.fail(ctx, err)
			return
		}
		if end != nil {
			c.farewell(*end)
			return
		}
	}
}

// batch writes messages in one go, unless the connection is to be closed instead of
// them.
func (c *connection) batch(frames []outgoing) error {
	if len(frames) == 0 {
		return nil
	}
	for part := range slices.Chunk(frames, 256) {
		if c.out.dropping() {
			return nil
		}
		deadline := time.Now().Add(c.limits.WriteTimeout)
		_ = c.socket.SetWriteDeadline(deadline)
		_ = c.wire.SetWriteDeadline(deadline)
		err := c.wire.batch(func() error {
			for _, frame := range part {
				if err := c.socket.WriteMessage(frame.kind, frame.data); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fail ends the connection after a failed write: what was written in part cannot be
// followed by a close.
func (c *connection) fail(ctx context.Context, err error) {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		c.logger.InfoContext(ctx, "websocket cut off: its reader stands still", slog.Duration("waited", c.limits.WriteTimeout))
	}
	c.out.finish(closing{codeTryAgain, ""}, true)
	_ = c.wire.Close()
}

// farewell sends the close, and leaves the peer the time to answer it: a connection
// that is cut with something unread in it takes the close along.
func (c *connection) farewell(end closing) {
	deadline := time.Now().Add(closeGrace)
	_ = c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(end.code, end.reason), deadline)
	_ = c.socket.SetReadDeadline(deadline)
}
