package graphqlws_test

import (
	"encoding/binary"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"fleetgraph/server/graphqlws"
)

// handshake is the status of the answer to one; what it opens is closed with the test.
func (b *bundle) handshake(t *testing.T, header http.Header) (status int) {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{graphqlws.Subprotocol}}
	conn, response, err := dialer.DialContext(t.Context(), b.url, header)
	require.NotNil(t, response, "%v", err)
	require.NoError(t, response.Body.Close())
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return response.StatusCode
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestBeyondTheLimitThereIsNoConnection(t *testing.T) {
	b := setup(t, graphqlws.Limits{Connections: 3})
	for range 3 {
		b.connect(t)
	}
	for range 20 {
		status, why := b.refused(t, nil)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, why, "as many")
		open, _ := b.transport.Open()
		require.Equal(t, 3, open)
	}
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestStrangersDoNotTakeThePlacesOfOthers(t *testing.T) {
	b := setup(t, graphqlws.Limits{Connections: 100, Strangers: 4, Unopened: 3, InitTimeout: time.Minute})
	from := func(peer string) http.Header { return http.Header{"X-Peer": {peer}} }
	const in, full = http.StatusSwitchingProtocols, http.StatusServiceUnavailable
	for range 3 {
		require.Equal(t, in, b.handshake(t, from("a")))
	}
	require.Equal(t, full, b.handshake(t, from("a")), "one address has its places")
	require.Equal(t, in, b.handshake(t, from("b")))
	require.Equal(t, full, b.handshake(t, from("c")), "and all strangers have theirs")
	known := from("d")
	known.Set("X-Known", "1")
	for range 3 {
		require.Equal(t, in, b.handshake(t, known))
	}
	require.Equal(t, full, b.handshake(t, known), "who is known has places of their own")
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestWhoIsLetInGivesTheStrangersPlaceBack(t *testing.T) {
	b := setup(t, graphqlws.Limits{Strangers: 1, Unopened: 1})
	for range 10 {
		b.connect(t)
	}
	open, _ := b.transport.Open()
	require.Equal(t, 10, open)
	left := b.dial(t, graphqlws.Subprotocol)
	require.Equal(t, http.StatusServiceUnavailable, b.handshake(t, nil))
	require.NoError(t, left.Close())
	require.Eventually(t, func() bool { return b.handshake(t, nil) == http.StatusSwitchingProtocols }, 10*time.Second, time.Millisecond)
}

// TestALengthBeyondAnyIsClosedLikeOneThatIsTooLong has lengths that are no numbers of
// 63 bits.
//
//nolint:paralleltest // looks for goroutines that are left behind
func TestALengthBeyondAnyIsClosedLikeOneThatIsTooLong(t *testing.T) {
	for _, length := range []uint64{1<<63 - 1, 1 << 63, 1<<64 - 1} {
		t.Run(strconv.FormatUint(length, 10), func(t *testing.T) {
			c := setup(t, graphqlws.Limits{}).connect(t)
			frame := binary.BigEndian.AppendUint64([]byte{0x81, 0xff}, length)
			_, err := c.NetConn().Write(append(frame, 0, 0, 0, 0, '{'))
			require.NoError(t, err)
			code, _ := c.closed(t)
			require.Equal(t, websocket.CloseMessageTooBig, code)
		})
	}
}

//nolint:paralleltest // looks for goroutines that are left behind
func TestReasonsAreInTheWordsOfTheProtocol(t *testing.T) {
	b := setup(t, graphqlws.Limits{})
	for text, want := range map[string]string{
		`{"type":"subscribe","id":1}`: `Invalid message: "id" is of the wrong type`,
		`{"type":[]}`:                 `Invalid message: "type" is of the wrong type`,
		`{`:                           "Invalid message: not JSON",
		`{"type":"ping"}]`:            "Invalid message: not JSON",
		`[]`:                          "Invalid message: not a JSON object",
		`{"type":"subscribe","id":"1","payload":{"query":7}}`:                  "Invalid payload of subscribe",
		`{"type":"subscribe","id":"1","payload":{"query":"","variables":"x"}}`: "Invalid payload of subscribe",
	} {
		c := b.connect(t)
		c.say(t, text)
		_, reason := c.closed(t)
		require.Equal(t, want, reason, text)
	}
}

// TestALargeAnswerIsHeldUntilItIsWritten has an operation end when its answer has
// left, not when it waits: who runs it knows what is held.
//
//nolint:paralleltest // looks for goroutines that are left behind
func TestALargeAnswerIsHeldUntilItIsWritten(t *testing.T) {
	b := setup(t, graphqlws.Limits{QueuedBytes: 1 << 20, WriteTimeout: 10 * time.Second})
	c := b.connect(t)
	large := `,"variables":{"x":"` + strings.Repeat("x", 4<<20) + `"}`
	for i := range 3 {
		c.subscribe(t, strconv.Itoa(i), echo, large)
	}
	running := func() (n int) {
		for i := range 3 {
			if b.runs(strconv.Itoa(i)) {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return running() == 3 }, 10*time.Second, time.Millisecond)
	require.Never(t, func() bool { return running() < 3 }, 300*time.Millisecond, 10*time.Millisecond)
	c.say(t, `{"type":"complete","id":"2"}`) // one that waits for its turn, or is being written
	for got := 0; got < 2; {
		_, data, err := c.ReadMessage()
		require.NoError(t, err)
		if strings.HasSuffix(string(data), `"type":"complete"}`) {
			got++
		}
	}
	require.Eventually(t, func() bool { return running() == 0 }, 10*time.Second, time.Millisecond)
}

// TestALargeAnswerIsLetGoWithItsConnection has the reader leave without reading it.
//
//nolint:paralleltest // looks for goroutines that are left behind
func TestALargeAnswerIsLetGoWithItsConnection(t *testing.T) {
	b := setup(t, graphqlws.Limits{QueuedBytes: 1 << 20, WriteTimeout: 500 * time.Millisecond})
	for name, end := range map[string]func(client){
		"it goes":          func(c client) { _ = c.NetConn().Close() },
		"it stands still":  func(client) {},
		"its session ends": func(client) { b.revoke(errors.New("revoked")) },
	} {
		c := b.connect(t)
		c.subscribe(t, name, echo, `,"variables":{"x":"`+strings.Repeat("x", 7<<20)+`"}`)
		require.Eventually(t, func() bool { return b.runs(name) }, 10*time.Second, time.Millisecond, name)
		end(c)
		require.Eventually(t, func() bool { return !b.runs(name) }, 10*time.Second, time.Millisecond, name)
		b.revoke(nil)
	}
}
