package gqltests_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"fleetgraph/server"
	"fleetgraph/server/graphqlws"
)

// patience is how long a test waits for one message.
const patience = 30 * time.Second

// socket is a client of graphql-transport-ws that sends what it is told, right or
// wrong.
type socket struct {
	*websocket.Conn
}

// message is one message of the protocol.
type message struct {
	Type    string          `json:"type"`
	ID      string          `json:"id,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// dial opens a socket; it is closed with the test.
func (b *bundle) dial(t *testing.T, header http.Header) *socket {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, HandshakeTimeout: patience}
	conn, response, err := dialer.DialContext(t.Context(), strings.Replace(b.url, "http", "ws", 1)+"/graphql", header)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	t.Cleanup(func() { _ = conn.Close() })
	return &socket{conn}
}

// connect opens a socket and lets it in with a token.
func (b *bundle) connect(t *testing.T, token string) *socket {
	t.Helper()
	s := b.dial(t, nil)
	s.send(t, variables{"type": "connection_init", "payload": variables{"Authorization": "Bearer " + token}})
	require.Equal(t, "connection_ack", s.next(t).Type)
	return s
}

func (s *socket) send(t *testing.T, message any) {
	t.Helper()
	require.NoError(t, s.WriteJSON(message))
}

// subscribe starts an operation.
func (s *socket) subscribe(t *testing.T, id, document string, vars variables) {
	t.Helper()
	s.send(t, variables{"type": "subscribe", "id": id, "payload": variables{"query": document, "variables": vars}})
}

// read returns the next message but pings, which it answers.
func (s *socket) read() (m message, err error) {
	if err := s.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return m, err
	}
	for {
		_, data, err := s.ReadMessage()
		if err != nil {
			return m, err
		}
		m = message{}
		if err := json.Unmarshal(data, &m); err != nil {
			return m, err
		}
		if m.Type != "ping" {
			return m, nil
		}
		if err := s.WriteMessage(websocket.TextMessage, []byte(`{"type":"pong"}`)); err != nil {
			return m, err
		}
	}
}

func (s *socket) next(t *testing.T) message {
	t.Helper()
	m, err := s.read()
	require.NoError(t, err)
	return m
}

// data expects the next answer of an operation and decodes it into out.
func (s *socket) data(t *testing.T, id string, out any) {
	t.Helper()
	m := s.next(t)
	require.Equal(t, "next", m.Type, "%s", m.Payload)
	require.Equal(t, id, m.ID)
	var answer struct {
		Data   json.RawMessage
		Errors []fault
	}
	require.NoError(t, json.Unmarshal(m.Payload, &answer))
	require.Empty(t, answer.Errors, "%s", m.Payload)
	require.NoError(t, json.Unmarshal(answer.Data, out), "%s", answer.Data)
}

// refused expects an operation to be refused or broken off with one error.
func (s *socket) refused(t *testing.T, id string) fault {
	t.Helper()
	m := s.next(t)
	require.Equal(t, "error", m.Type, "%s", m.Payload)
	require.Equal(t, id, m.ID)
	var faults []fault
	require.NoError(t, json.Unmarshal(m.Payload, &faults))
	require.Len(t, faults, 1)
	return faults[0]
}

// closed expects the server to close, and returns its code and reason.
func (s *socket) closed(t *testing.T) (code int, reason string) {
	t.Helper()
	m, err := s.read()
	require.Error(t, err, "%+v", m)
	var end *websocket.CloseError
	require.ErrorAs(t, err, &end)
	return end.Code, end.Text
}

// TestATokenThatIsRevokedBeforeTheSessionIsNotLetIn has the token of the upgrade
// revoked before connection_init.
func TestATokenThatIsRevokedBeforeTheSessionIsNotLetIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, secret := b.issue(t, variables{"name": "short-lived", "role": "VIEWER"})
	s := b.dial(t, http.Header{"Authorization": {"Bearer " + secret}})
	b.must(t, revokeToken, variables{"input": variables{"tokenId": id}}, nil)
	s.send(t, variables{"type": "connection_init"})
	require.NoError(t, s.SetReadDeadline(time.Now().Add(patience)))
	_, _, err := s.ReadMessage()
	var end *websocket.CloseError
	require.ErrorAs(t, err, &end)
	require.Equal(t, 4403, end.Code, end.Text)
}

// TestARequestThatGetsNoSocketIsAnsweredLikeAnyOther has the form of errors, and nothing
// of what the server is made of.
func TestARequestThatGetsNoSocketIsAnsweredLikeAnyOther(t *testing.T) {
	t.Parallel()
	b := setupWith(t, server.Config{Logger: slog.New(slog.DiscardHandler), Sockets: graphqlws.Limits{Connections: 1}})
	b.connect(t, b.admin)
	handshake := func(more ...string) http.Header {
		header := http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}, "Sec-Websocket-Protocol": {"graphql-transport-ws"},
		}
		for i := 0; i < len(more); i += 2 {
			header.Set(more[i], more[i+1])
		}
		return header
	}
	full := b.ask(t, http.MethodGet, "/graphql", func(r *http.Request) { r.Header = handshake() })
	require.Equal(t, "1", full.header.Get("Retry-After"))
	empty := setup(t)
	for name, c := range map[string]struct {
		got          asked
		status       int
		code, reason string
	}{
		"too many":       {full, 503, "RESOURCE_EXHAUSTED", "TOO_MANY_SOCKETS"},
		"another origin": {empty.ask(t, http.MethodGet, "/graphql", func(r *http.Request) { r.Header = handshake("Origin", "https://evil.example") }), 403, "PERMISSION_DENIED", "ORIGIN_FOREIGN"},
		"a POST":         {empty.ask(t, http.MethodPost, "/graphql", func(r *http.Request) { r.Header = handshake() }), 405, "INVALID_ARGUMENT", "HANDSHAKE_INVALID"},
		"an old version": {empty.ask(t, http.MethodGet, "/graphql", func(r *http.Request) { r.Header = handshake("Sec-Websocket-Version", "8") }), 400, "INVALID_ARGUMENT", "HANDSHAKE_INVALID"},
		"no key":         {empty.ask(t, http.MethodGet, "/graphql", func(r *http.Request) { r.Header = handshake("Sec-Websocket-Key", "") }), 400, "INVALID_ARGUMENT", "HANDSHAKE_INVALID"},
	} {
		require.Equal(t, c.status, c.got.status, "%s: %s", name, c.got.body)
		require.Equal(t, "application/json; charset=utf-8", c.got.header.Get("Content-Type"), name)
		var a answer
		require.NoError(t, json.Unmarshal([]byte(c.got.body), &a), "%s: %s", name, c.got.body)
		require.Len(t, a.Errors, 1)
		require.Equal(t, []string{c.code, c.reason}, []string{a.Errors[0].Extensions.Code, a.Errors[0].Extensions.Reason}, name)
		for _, internal := range []string{"websocket:", "Upgrader", "gorilla"} {
			require.NotContains(t, c.got.body, internal, name)
		}
	}
}
