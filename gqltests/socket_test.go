package gqltests_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
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
