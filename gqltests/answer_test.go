package gqltests_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"fleetgraph/server"
	"fleetgraph/server/graphqlws"
)

// hall has machines whose inventories have about so many bytes.
func (b *bundle) hall(t *testing.T, machines, bytes int) (siteID string, first machine) {
	t.Helper()
	siteID = b.createSite(t, "lab")
	var document map[string]any
	require.NoError(t, json.Unmarshal(inventory(t, "composed/xe9680_8gpu.json"), &document))
	document["comment"] = strings.Repeat("x", bytes)
	text, err := json.Marshal(document)
	require.NoError(t, err)
	for i := range machines {
		m := b.report(t, siteID, fmt.Sprintf("02:00:00:00:00:%02x", i), fmt.Sprintf("node-%d", i), text)
		if i == 0 {
			first = m
		}
	}
	return siteID, first
}

// documents asks for the inventory of each machine under so many names.
func documents(names int) string {
	var fields strings.Builder
	for i := range names {
		fmt.Fprintf(&fields, "a%d: inventoryDocument ", i)
	}
	return "{ machines(first: 200) { nodes { id " + fields.String() + "} } }"
}

// roomy are limits under which a document may ask for more than an answer may have.
func roomy(answer int64) server.Config {
	return server.Config{
		Logger: slog.New(slog.DiscardHandler), Limits: server.Limits{AnswerBytes: answer, Complexity: 1 << 30},
	}
}

//nolint:tparallel // one after the other: they share a server
func TestAnAnswerIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	b := setupWith(t, roomy(1<<20))
	siteID, m := b.hall(t, 10, 20<<10)

	var out struct {
		Machines struct {
			Nodes []struct{ A0, A1 json.RawMessage }
		}
	}
	b.must(t, documents(3), nil, &out)
	require.Len(t, out.Machines.Nodes, 10)

	tooLarge := func(t *testing.T, f fault) {
		t.Helper()
		require.Equal(t, []string{"RESOURCE_EXHAUSTED", "ANSWER_TOO_LARGE"}, []string{f.Extensions.Code, f.Extensions.Reason})
		require.InDelta(t, 1<<20, f.Extensions.Details["limit"], 0)
	}
	t.Run("over HTTP", func(t *testing.T) {
		a := b.do(t, b.admin, documents(150), nil)
		require.Len(t, a.Errors, 1)
		require.Less(t, len(a.raw), 1000, "in place of the answer, and not beside it")
		tooLarge(t, a.Errors[0])
	})
	t.Run("over a socket", func(t *testing.T) {
		s := b.connect(t, b.admin)
		s.subscribe(t, "1", documents(150), nil)
		var got struct{ Errors []fault }
		message := s.next(t)
		require.Less(t, len(message.Payload), 1000)
		require.NoError(t, json.Unmarshal(message.Payload, &got))
		tooLarge(t, got.Errors[0])
	})
	t.Run("as a stream", func(t *testing.T) {
		var got struct{ Errors []fault }
		require.NoError(t, json.Unmarshal([]byte(b.stream(t, b.admin, documents(150), nil).next(t).data), &got))
		tooLarge(t, got.Errors[0])
	})
	t.Run("of an event", func(t *testing.T) {
		s := b.connect(t, b.admin)
		s.subscribe(t, "1", `subscription($id: ID!) { machine(id: $id) { ... on MachineSnapshot { machine { site `+documents(150)+` } } } }`, variables{"id": m.ID})
		tooLarge(t, s.refused(t, "1"))
	})
	t.Run("of a mutation, which is carried out", func(t *testing.T) {
		f := b.refused(t, b.admin, `mutation($a: CreateSiteInput!, $b: CreateSiteInput!) {
			one: createSite(input: $a) { site { id } } two: updateSite(input: {siteId: "`+siteID+`", description: "new"}) { site `+documents(150)+` }
			three: createSite(input: $b) { site { id } } }`, variables{"a": variables{"name": "one"}, "b": variables{"name": "three"}})
		tooLarge(t, f)
		require.Equal(t, 3, b.count(t, `SELECT count(*) FROM sites`))
	})
}

// TestWhatIsTooLargeIsNotMadeFirst counts what is allocated, so it runs beside no other
// test.
//
//nolint:paralleltest // see above
func TestWhatIsTooLargeIsNotMadeFirst(t *testing.T) {
	const most = 1 << 20
	b := setupWith(t, roomy(most))
	b.hall(t, 20, 30<<10)
	within, beyond := documents(1), documents(190) // 0.8 MB, and 150
	b.must(t, within, nil, nil)
	allocated := func(document string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b.do(t, b.admin, document, nil)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(within)
	allocated(beyond) // what is made once: the document is known
	small, large := allocated(within), allocated(beyond)
	t.Logf("within %d kB, beyond %d kB", small>>10, large>>10)
	require.Less(t, large, 2*small, "some 150 times as much was asked for")
}

// TestTheAnswersOfOneTokenAreBoundedTogether has a reader stand still in front of many
// answers.
func TestTheAnswersOfOneTokenAreBoundedTogether(t *testing.T) {
	t.Parallel()
	cfg := roomy(4 << 20)
	cfg.Callers = server.CallerLimits{AnswerBytes: 8 << 20}
	cfg.Sockets = graphqlws.Limits{WriteTimeout: patience}
	b := setupWith(t, cfg)
	b.hall(t, 10, 20<<10)
	greedy := b.issueToken(t, variables{"name": "greedy", "role": "VIEWER"})
	s := b.connect(t, greedy)
	tcp, ok := s.NetConn().(*net.TCPConn)
	require.True(t, ok)
	require.NoError(t, tcp.SetReadBuffer(64<<10)) // else the network takes an answer or two
	operations := 0
	require.Eventually(t, func() bool {
		for range 4 { // the network may still take some
			s.subscribe(t, strconv.Itoa(operations), documents(12), nil) // 3.4 MB
			operations++
		}
		a := b.do(t, greedy, documents(12), nil)
		return len(a.Errors) == 1 && a.Errors[0].Extensions.Reason == "TOO_MANY_ANSWERS"
	}, polling, tick, "what waits for the reader counts")
	b.mustAs(t, greedy, `{ viewer { name } }`, nil, nil)
	b.must(t, documents(12), nil, nil)

	answered, refused := 0, 0
	for ended := 0; ended < operations; {
		m := s.next(t)
		switch {
		case m.Type != "next":
			ended++
			if m.Type == "error" {
				require.Contains(t, string(m.Payload), "TOO_MANY_ANSWERS")
				refused++
			}
		case strings.Contains(string(m.Payload[:min(len(m.Payload), 1000)]), "TOO_MANY_ANSWERS"):
			refused++
		default:
			answered++
		}
	}
	require.Equal(t, operations, answered+refused)
	require.GreaterOrEqual(t, answered, 2)
	require.GreaterOrEqual(t, refused, 1)
	b.mustAs(t, greedy, documents(12), nil, nil)
}

func TestAReaderOfOneAnswerThatLeavesGivesItsShareBack(t *testing.T) {
	t.Parallel()
	cfg := roomy(4 << 20)
	cfg.Callers = server.CallerLimits{AnswerBytes: 4 << 20}
	b := setupWith(t, cfg)
	b.hall(t, 10, 20<<10)
	for range 5 {
		s := b.connect(t, b.admin)
		s.subscribe(t, "1", documents(12), nil)
		require.NoError(t, s.WriteControl(websocket.CloseMessage, nil, time.Now().Add(patience)))
		require.NoError(t, s.Close())
	}
	require.Eventually(t, func() bool { return len(b.do(t, b.admin, documents(12), nil).Errors) == 0 }, polling, tick)
}

func TestInventoriesUnderManyNamesAreRefusedUnread(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.createSite(t, "lab")
	require.Zero(t, b.statements.during(func() {
		require.Equal(t, "TOO_COMPLEX", b.refused(t, b.admin, documents(199), nil).Extensions.Reason)
	})-b.statements.during(func() { b.refused(t, b.admin, `{ nothing }`, nil) }), "no more than the look-up of the token")
	b.must(t, documents(1), nil, nil)
	b.must(t, `{ machines(first: 200) { nodes { inventory { machineType } } } transitions(first: 200) { nodes { details } } }`, nil, nil)
}

// open asks for a stream of the site "lab", which may be refused, and leaves it.
func (b *bundle) open(t *testing.T, token string) asked {
	t.Helper()
	body := strings.NewReader(`{"query":"subscription { siteEvents(site: \"lab\") { cursor } }"}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/graphql", body)
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: b.http.Transport}).Do(request)
	require.NoError(t, err)
	start := make([]byte, 1000)
	n, err := response.Body.Read(start)
	if !errors.Is(err, io.EOF) {
		require.NoError(t, err)
	}
	require.NoError(t, response.Body.Close())
	return asked{response.StatusCode, response.Header, string(start[:n])}
}

func TestATokenHasSoManyStreams(t *testing.T) {
	t.Parallel()
	b := setupWith(t, server.Config{Logger: slog.New(slog.DiscardHandler), Callers: server.CallerLimits{Streams: 2}})
	b.createSite(t, "lab")
	viewer := b.issueToken(t, variables{"name": "viewer", "role": "VIEWER"})
	first := b.connect(t, viewer)
	b.stream(t, viewer, followSite, variables{"site": "lab"}).next(t)

	second := b.dial(t, nil)
	second.send(t, variables{"type": "connection_init", "payload": variables{"authorization": "Bearer " + viewer}})
	code, reason := second.closed(t)
	require.Equal(t, 1013, code)
	require.Contains(t, reason, "as many streams as it may")
	refused := b.open(t, viewer)
	require.Equal(t, http.StatusTooManyRequests, refused.status)
	require.Equal(t, "1", refused.header.Get("Retry-After"))
	require.Contains(t, refused.body, "TOO_MANY_STREAMS")

	b.connect(t, b.admin)
	require.NoError(t, first.Close())
	require.Eventually(t, func() bool { return b.open(t, viewer).status == http.StatusOK }, polling, tick)
}
