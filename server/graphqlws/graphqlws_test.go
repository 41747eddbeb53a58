package graphqlws_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/goleak"

	"fleetgraph/server/graphqlws"
)

// bundle is a transport whose operations do what their query says.
type bundle struct {
	transport *graphqlws.Transport
	url       string

	mu      sync.Mutex
	alive   map[string]bool // queries that run
	expires *time.Time
	revoked error
	changed chan struct{}
}

// Queries of the tests.
const (
	once    = "once"    // one answer
	echo    = "echo"    // its variables
	refuse  = "refuse"  // an error
	forever = "forever" // no answer, no end
	flood   = "flood"   // answers of 64 KiB without end
	count   = "count"   // answers 1, 2, 3, … of variable n
	paced   = "paced"   // the same, one a millisecond
	stopped = "stopped" // no end of its own: another process goes on
)

func setup(t *testing.T, limits graphqlws.Limits) *bundle {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	b := &bundle{alive: map[string]bool{}, changed: make(chan struct{})}
	b.transport = graphqlws.New(graphqlws.Config{
		Peer: func(r *http.Request) graphqlws.Peer {
			return graphqlws.Peer{Name: r.Header.Get("X-Peer"), Known: r.Header.Get("X-Known") != ""}
		},
		Answer: func(w http.ResponseWriter, _ *http.Request, status int, why error) {
			http.Error(w, why.Error(), status)
		},
		Open: b.open, Run: b.run,
		Check:  func(context.Context, []byte) gqlerror.List { return nil },
		Refuse: func(context.Context, int) gqlerror.List { return gqlerror.List{gqlerror.Errorf("too many")} },
		Limits: limits, Logger: slog.New(slog.DiscardHandler), Origins: []string{"https://console.example"},
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.transport.Do(w, r, nil) }))
	b.url = "ws" + strings.TrimPrefix(server.URL, "http")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		defer cancel()
		b.transport.Stop(ctx)
		server.Close()
		require.NoError(t, goleak.Find(leaks), "what a connection started has ended with it")
	})
	return b
}

func (b *bundle) open(_ context.Context, payload map[string]any) (*graphqlws.Session, error) {
	if payload["token"] == "unknown for now" {
		return nil, fmt.Errorf("%w: the database does not answer", graphqlws.ErrTryAgain)
	}
	if payload["token"] == "wrong" {
		return nil, errors.New("the token is wrong")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return &graphqlws.Session{As: func(ctx context.Context) context.Context { return ctx }, Expires: b.expires, Check: b.check, Changed: b.changes, Close: func() {}}, nil
}

func (b *bundle) check(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.revoked
}

func (b *bundle) changes() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *bundle) revoke(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revoked = err
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *bundle) run(ctx context.Context, _ graphql.GraphExecutor, params *graphql.RawParams, emit func([]byte) error) (gqlerror.List, error) {
	b.mark(params.OperationName, true)
	defer b.mark(params.OperationName, false)
	switch params.Query {
	case once:
		return nil, emit([]byte(`{"data":1}`))
	case echo:
		answer, err := json.Marshal(map[string]any{"data": params.Variables})
		if err != nil {
			return nil, err
		}
		return nil, emit(answer)
	case refuse:
		return gqlerror.List{gqlerror.Errorf("refused")}, nil
	case flood:
		answer := []byte(`{"data":"` + strings.Repeat("x", 64<<10) + `"}`)
		for {
			if err := emit(answer); err != nil {
				return nil, err
			}
		}
	case count, paced:
		n, _ := params.Variables["n"].(json.Number).Int64()
		for i := range n {
			if params.Query == paced {
				<-time.After(time.Millisecond)
			}
			if err := emit(fmt.Appendf(nil, `{"data":%d}`, i+1)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	case stopped:
		return nil, errors.New("the process stops")
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (b *bundle) mark(name string, alive bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alive[name] = alive
}

func (b *bundle) runs(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.alive[name]
}

// client is one end of a socket that says what it is told.
type client struct{ *websocket.Conn }

func (b *bundle) dial(t *testing.T, protocols ...string) client {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: protocols}
	conn, response, err := dialer.DialContext(t.Context(), b.url, nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	t.Cleanup(func() { _ = conn.Close() })
	return client{conn}
}

// refused is the answer to a handshake that opens no socket.
func (b *bundle) refused(t *testing.T, header http.Header) (status int, body string) {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{graphqlws.Subprotocol}}
	_, response, err := dialer.DialContext(t.Context(), b.url, header)
	require.ErrorIs(t, err, websocket.ErrBadHandshake)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, errors.Join(err, response.Body.Close()))
	return response.StatusCode, string(text)
}

// connect is a socket that has been let in.
func (b *bundle) connect(t *testing.T) client {
	t.Helper()
	c := b.dial(t, graphqlws.Subprotocol)
	c.say(t, `{"type":"connection_init"}`)
	c.hears(t, `{"type":"connection_ack"}`)
	return c
}

func (c client) say(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, c.WriteMessage(websocket.TextMessage, []byte(text)))
}

func (c client) subscribe(t *testing.T, id, query, more string) {
	t.Helper()
	c.say(t, fmt.Sprintf(`{"type":"subscribe","id":%q,"payload":{"query":%q,"operationName":%q%s}}`, id, query, id, more))
}

func (c client) hears(t *testing.T, want string) {
	t.Helper()
	_, text, err := c.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, want, string(text))
}

// closed reads until the server has closed, and returns its code and reason.
func (c client) closed(t *testing.T) (code int, reason string) {
	t.Helper()
	for {
		_, _, err := c.ReadMessage()
		if err == nil {
			continue
		}
		var end *websocket.CloseError
		require.ErrorAs(t, err, &end)
		return end.Code, end.Text
	}
}

func (c client) closedWith(t *testing.T, want int) {
	t.Helper()
	code, reason := c.closed(t)
	require.Equal(t, want, code, reason)
	require.NotEmpty(t, reason)
}

//nolint:paralleltest // each looks for goroutines that are left behind
func TestWhatTheProtocolForbidsClosesWithItsCode(t *testing.T) {
	init := `{"type":"connection_init"}`
	live := `{"type":"subscribe","id":"1","payload":{"query":"forever"}}`
	for name, c := range map[string]struct {
		say  []string
		code int
	}{
		"a message before connection_init":            {[]string{live}, 4401},
		"a second connection_init":                    {[]string{init, init}, 4429},
		"a connection_init that is refused":           {[]string{`{"type":"connection_init","payload":{"token":"wrong"}}`}, 4403},
		"a connection_init that cannot be judged now": {[]string{`{"type":"connection_init","payload":{"token":"unknown for now"}}`}, 1013},
		"a connection_init whose payload is a list":   {[]string{`{"type":"connection_init","payload":[]}`}, 4400},
		"a live id again":                             {[]string{init, live, live}, 4409},
		"a message that is no JSON":                   {[]string{init, `{`}, 4400},
		"a message that is JSON and something more":   {[]string{init, `{"type":"ping"} {}`}, 4400},
		"a message that is a list":                    {[]string{init, `[]`}, 4400},
		"a message that is null":                      {[]string{init, `null`}, 4400},
		"a message without a type":                    {[]string{init, `{}`}, 4400},
		"a message of an unknown type":                {[]string{init, `{"type":"start","id":"1"}`}, 4400},
		"a message of the server's":                   {[]string{init, `{"type":"connection_ack"}`}, 4400},
		"a type in other letters":                     {[]string{init, `{"Type":"ping"}`}, 4400},
		"a query in other letters":                    {[]string{init, `{"type":"subscribe","id":"1","payload":{"Query":"once"}}`}, 4400},
		"a text that is no UTF-8":                     {[]string{init, "{\"type\":\"ping\",\"payload\":{\"x\":\"\xff\"}}"}, 1007},
		"a live id that is long":                      {[]string{init, `{"type":"subscribe","id":"` + strings.Repeat("é", 500) + `","payload":{"query":"forever"}}`, `{"type":"subscribe","id":"` + strings.Repeat("é", 500) + `","payload":{"query":"forever"}}`}, 4409},
		"a type that is a number":                     {[]string{init, `{"type":1}`}, 4400},
		"a subscribe without id":                      {[]string{init, `{"type":"subscribe","payload":{"query":"once"}}`}, 4400},
		"a subscribe with an empty id":                {[]string{init, `{"type":"subscribe","id":"","payload":{"query":"once"}}`}, 4400},
		"a subscribe whose id is a number":            {[]string{init, `{"type":"subscribe","id":1,"payload":{"query":"once"}}`}, 4400},
		"a subscribe without payload":                 {[]string{init, `{"type":"subscribe","id":"1"}`}, 4400},
		"a subscribe without query":                   {[]string{init, `{"type":"subscribe","id":"1","payload":{}}`}, 4400},
		"a subscribe whose variables are a list":      {[]string{init, `{"type":"subscribe","id":"1","payload":{"query":"once","variables":[]}}`}, 4400},
		"a complete without id":                       {[]string{init, `{"type":"complete"}`}, 4400},
		"a ping whose payload is a text":              {[]string{init, `{"type":"ping","payload":"x"}`}, 4400},
	} {
		t.Run(name, func(t *testing.T) {
			connection := setup(t, graphqlws.Limits{}).dial(t, graphqlws.Subprotocol)
			for _, text := range c.say {
				connection.say(t, text)
			}
			connection.closedWith(t, c.code)
		})
	}
	t.Run("a binary message", func(t *testing.T) {
		connection := setup(t, graphqlws.Limits{}).connect(t)
		require.NoError(t, connection.WriteMessage(websocket.BinaryMessage, []byte(`{"type":"ping"}`)))
		connection.closedWith(t, 4400)
	})
	t.Run("no sub-protocol", func(t *testing.T) { setup(t, graphqlws.Limits{}).dial(t).closedWith(t, 4406) })
	t.Run("another sub-protocol", func(t *testing.T) { setup(t, graphqlws.Limits{}).dial(t, "graphql-ws").closedWith(t, 4406) })
	t.Run("no connection_init in time", func(t *testing.T) {
		setup(t, graphqlws.Limits{InitTimeout: 20 * time.Millisecond}).dial(t, graphqlws.Subprotocol).closedWith(t, 4408)
	})
	t.Run("a message that is too long", func(t *testing.T) {
		connection := setup(t, graphqlws.Limits{MessageBytes: 1000}).connect(t)
		connection.say(t, `{"type":"ping","payload":{"x":"`+strings.Repeat("x", 1000)+`"}}`)
		code, _ := connection.closed(t)
		require.Equal(t, websocket.CloseMessageTooBig, code)
	})
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestOperationsAreAnswered(t *testing.T) {
	c := setup(t, graphqlws.Limits{}).connect(t)
	c.subscribe(t, "1", once, "")
	c.hears(t, `{"id":"1","type":"next","payload":{"data":1}}`)
	c.hears(t, `{"id":"1","type":"complete"}`)
	c.subscribe(t, "1", echo, `,"variables":{"n":12345678901234567890}`) // the id is free again
	c.hears(t, `{"id":"1","type":"next","payload":{"data":{"n":12345678901234567890}}}`)
	c.hears(t, `{"id":"1","type":"complete"}`)
	c.subscribe(t, `a"b`, refuse, "")
	c.hears(t, `{"id":"a\"b","type":"error","payload":[{"message":"refused"}]}`)
	c.say(t, `{"type":"ping"}`) // no complete came behind the error
	c.hears(t, `{"type":"pong"}`)
	c.say(t, `{"type":"ping","payload":{"at":1}}`)
	c.hears(t, `{"type":"pong","payload":{"at":1}}`)
	c.say(t, `{"type":"pong"}`)
	c.say(t, `{"type":"complete","id":"nobody's"}`)
	c.say(t, `{"type":"ping","payload":null}`)
	c.hears(t, `{"type":"pong","payload":null}`)
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestAnOperationEndsWithItsCompleteOrItsConnection(t *testing.T) {
	b := setup(t, graphqlws.Limits{})
	c := b.connect(t)
	ended := func(name string) {
		t.Helper()
		require.Eventually(t, func() bool { return !b.runs(name) }, 10*time.Second, time.Millisecond)
	}
	c.subscribe(t, "1", forever, "")
	c.subscribe(t, "2", forever, "")
	require.Eventually(t, func() bool { return b.runs("1") && b.runs("2") }, 10*time.Second, time.Millisecond)
	c.say(t, `{"type":"complete","id":"1"}`)
	ended("1")
	require.True(t, b.runs("2"))
	c.subscribe(t, "1", once, "") // and nothing of the first comes
	c.hears(t, `{"id":"1","type":"next","payload":{"data":1}}`)
	c.hears(t, `{"id":"1","type":"complete"}`)
	require.NoError(t, c.NetConn().Close())
	ended("2")
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestFiftyOperationsUnderAQuickPing(t *testing.T) {
	b := setup(t, graphqlws.Limits{PingInterval: 10 * time.Millisecond, PongTimeout: 5 * time.Second})
	c := b.connect(t)
	const operations, answers = 50, 200
	for i := range operations {
		c.subscribe(t, strconv.Itoa(i), paced, fmt.Sprintf(`,"variables":{"n":%d}`, answers))
	}
	got, done, pings := map[string]int{}, 0, 0
	for done < operations {
		var m struct {
			ID, Type string
			Payload  struct{ Data int }
		}
		require.NoError(t, c.ReadJSON(&m))
		switch m.Type {
		case "ping":
			c.say(t, `{"type":"pong"}`)
			if len(got) == operations && done == 0 {
				pings++
			}
		case "next":
			got[m.ID]++
			require.Equal(t, got[m.ID], m.Payload.Data)
		case "complete":
			require.Equal(t, answers, got[m.ID])
			done++
		}
	}
	require.GreaterOrEqual(t, pings, 3, "while all of them ran")
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestAPeerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	b := setup(t, graphqlws.Limits{PingInterval: 20 * time.Millisecond, PongTimeout: 20 * time.Millisecond})
	c := b.connect(t)
	c.subscribe(t, "1", forever, "")
	c.closedWith(t, 4499)
	require.Eventually(t, func() bool { return !b.runs("1") }, 10*time.Second, time.Millisecond)
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestAReaderThatStandsStillIsCutOff(t *testing.T) {
	b := setup(t, graphqlws.Limits{WriteTimeout: 100 * time.Millisecond, QueuedBytes: 256 << 10})
	c := b.connect(t)
	c.subscribe(t, "1", flood, "")
	require.Eventually(t, func() bool { return b.runs("1") }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return !b.runs("1") }, 10*time.Second, time.Millisecond)
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestAReaderThatPausesAndPingsIsNotCutOff(t *testing.T) {
	b := setup(t, graphqlws.Limits{WriteTimeout: 10 * time.Second, QueuedBytes: 256 << 10})
	c := b.connect(t)
	c.subscribe(t, "1", flood, "")
	require.Eventually(t, func() bool { return b.runs("1") }, 10*time.Second, time.Millisecond)
	for range 3 { // while the writer's write is under way
		require.NoError(t, c.WriteControl(websocket.PingMessage, []byte("x"), time.Now().Add(time.Second)))
		require.Never(t, func() bool { return !b.runs("1") }, 700*time.Millisecond, 10*time.Millisecond)
	}
	for range 100 {
		_, _, err := c.ReadMessage()
		require.NoError(t, err)
	}
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestControlFramesAreAnswered(t *testing.T) {
	b := setup(t, graphqlws.Limits{})
	c := b.connect(t)
	heard := make(chan string, 1)
	c.SetPongHandler(func(data string) error { heard <- data; return nil })
	require.NoError(t, c.WriteControl(websocket.PingMessage, []byte("are you there"), time.Now().Add(time.Second)))
	c.say(t, `{"type":"ping"}`)
	c.hears(t, `{"type":"pong"}`)
	require.Equal(t, "are you there", <-heard)
	c.subscribe(t, "1", forever, "")
	require.NoError(t, c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4000, "bye"), time.Now().Add(time.Second)))
	code, _ := c.closed(t)
	require.Equal(t, 4000, code)
	require.Eventually(t, func() bool { return !b.runs("1") }, 10*time.Second, time.Millisecond)
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestTheTokenOfASessionIsWatched(t *testing.T) {
	t.Run("its time ends", func(t *testing.T) {
		b := setup(t, graphqlws.Limits{})
		at := time.Now().Add(300 * time.Millisecond)
		b.expires = &at
		c := b.connect(t)
		c.subscribe(t, "1", forever, "")
		c.closedWith(t, 4401)
		require.WithinDuration(t, at, time.Now(), 5*time.Second)
		require.False(t, time.Now().Before(at))
	})
	t.Run("it is revoked", func(t *testing.T) {
		b := setup(t, graphqlws.Limits{})
		c := b.connect(t)
		c.subscribe(t, "1", forever, "")
		b.revoke(nil) // something else happened to it
		c.say(t, `{"type":"ping"}`)
		c.hears(t, `{"type":"pong"}`)
		b.revoke(errors.New("the bearer token was revoked"))
		c.closedWith(t, 4403)
	})
	t.Run("it is looked at now and then", func(t *testing.T) {
		b := setup(t, graphqlws.Limits{CheckInterval: 20 * time.Millisecond})
		c := b.connect(t)
		b.mu.Lock()
		b.revoked = errors.New("the bearer token was revoked")
		b.mu.Unlock()
		c.closedWith(t, 4403)
	})
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestAConnectionHasABoundOfOperations(t *testing.T) {
	c := setup(t, graphqlws.Limits{Operations: 2}).connect(t)
	c.subscribe(t, "1", forever, "")
	c.subscribe(t, "2", forever, "")
	c.subscribe(t, "3", once, "")
	c.hears(t, `{"id":"3","type":"error","payload":[{"message":"too many"}]}`)
	c.say(t, `{"type":"complete","id":"1"}`)
	c.subscribe(t, "3", once, "")
	c.hears(t, `{"id":"3","type":"next","payload":{"data":1}}`)
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestAStopClosesBehindTheLastEvent(t *testing.T) {
	b := setup(t, graphqlws.Limits{})
	idle, busy := b.connect(t), b.connect(t)
	busy.subscribe(t, "2", stopped, "")
	busy.subscribe(t, "1", count, `,"variables":{"n":1000}`)
	busy.hears(t, `{"id":"1","type":"next","payload":{"data":1}}`)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		b.transport.Stop(ctx)
	}()
	for i := range 999 {
		busy.hears(t, fmt.Sprintf(`{"id":"1","type":"next","payload":{"data":%d}}`, i+2))
	}
	busy.hears(t, `{"id":"1","type":"complete"}`)
	busy.closedWith(t, 1001)
	idle.closedWith(t, 1001)
	<-stop
	status, why := b.refused(t, nil)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, why, "stopping")
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestAStopWaitsForNobodyForever(t *testing.T) {
	b := setup(t, graphqlws.Limits{})
	c := b.connect(t)
	c.subscribe(t, "1", forever, "")
	require.Eventually(t, func() bool { return b.runs("1") }, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	b.transport.Stop(ctx)
	require.Less(t, time.Since(start), 5*time.Second)
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	b := setup(t, graphqlws.Limits{})
	for origin, want := range map[string]int{
		"":                                     http.StatusSwitchingProtocols,
		"http" + b.url[2:]:                     http.StatusSwitchingProtocols,
		"https://console.example":              http.StatusSwitchingProtocols,
		"https://evil.example":                 http.StatusForbidden,
		"null":                                 http.StatusForbidden,
		"https://console.example.evil.example": http.StatusForbidden,
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		dialer := websocket.Dialer{Subprotocols: []string{graphqlws.Subprotocol}}
		conn, response, err := dialer.DialContext(t.Context(), b.url, header)
		require.NotNil(t, response, "%s: %v", origin, err)
		require.Equal(t, want, response.StatusCode, origin)
		_ = response.Body.Close()
		if err == nil {
			require.NoError(t, conn.Close())
		}
	}
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestThousandsThatComeAndGoLeaveNothing(t *testing.T) {
	b := setup(t, graphqlws.Limits{InitTimeout: 200 * time.Millisecond})
	for range 10 {
		c := b.connect(t)
		for i := range 100 {
			c.subscribe(t, strconv.Itoa(i), forever, "")
			c.say(t, fmt.Sprintf(`{"type":"complete","id":"%d"}`, i))
		}
		c.say(t, `{"type":"ping"}`)
		c.hears(t, `{"type":"pong"}`)
		require.NoError(t, c.Close())
	}
	for range 1000 { // half open: they never say a word, or vanish
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.url, "ws://"))
		require.NoError(t, err)
		_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestWhoIsNotLetInCannotSendMuch(t *testing.T) {
	b := setup(t, graphqlws.Limits{})
	long := `{"type":"ping","payload":{"a":"` + strings.Repeat("x", 100<<10) + `"}}`
	c := b.dial(t, graphqlws.Subprotocol)
	c.say(t, long)
	code, _ := c.closed(t)
	require.Equal(t, 1009, code)

	c = b.connect(t)
	c.say(t, long)
	c.hears(t, strings.Replace(long, "ping", "pong", 1))
}

// TestASessionThatEndsIsNotServedWhatWaits has a reader pause until its time is over,
// with much waiting for it.
//
//nolint:paralleltest // looks for goroutines that are left behind
func TestASessionThatEndsIsNotServedWhatWaits(t *testing.T) {
	const events = 1_000_000
	b := setup(t, graphqlws.Limits{WriteTimeout: 10 * time.Second, QueuedBytes: 64 << 20})
	at := time.Now().Add(2 * time.Second)
	b.expires = &at
	c := b.connect(t)
	c.subscribe(t, "1", count, fmt.Sprintf(`,"variables":{"n":%d}`, events))
	require.Eventually(t, func() bool { return time.Now().After(at.Add(200 * time.Millisecond)) }, 10*time.Second, 10*time.Millisecond)
	got := 0
	for {
		_, _, err := c.ReadMessage()
		if err == nil {
			got++
			continue
		}
		var end *websocket.CloseError
		require.ErrorAs(t, err, &end)
		require.Equal(t, 4401, end.Code)
		break
	}
	require.Less(t, got, events/2, "what the network held already, and no more")
}
