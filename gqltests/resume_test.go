package gqltests_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"fleetgraph/internal/pgembed"
)

// cutter hands connections on to a server, and cuts each of them after a random time
// while it has cuts left.
type cutter struct {
	listener net.Listener
	target   string
	longest  time.Duration
	left     atomic.Int64
	mu       sync.Mutex
	open     map[net.Conn]struct{}
	all      sync.WaitGroup
}

// newCutter listens until the test ends.
func newCutter(t *testing.T, target string, cuts int64, longest time.Duration) *cutter {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutter{listener: listener, target: target, longest: longest, open: map[net.Conn]struct{}{}}
	c.left.Store(cuts)
	c.all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			c.all.Go(func() { c.hand(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		c.mu.Lock()
		for conn := range c.open {
			_ = conn.Close()
		}
		c.mu.Unlock()
		c.all.Wait()
	})
	return c
}

func (c *cutter) hand(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", c.target) //nolint:noctx // as long as its client
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	c.mu.Lock()
	c.open[client] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, client)
	}()
	if c.left.Add(-1) >= 0 {
		cut := time.AfterFunc(rand.N(c.longest), func() { //nolint:gosec // a moment, no secret
			for _, conn := range []net.Conn{client, server} {
				if tcp, ok := conn.(*net.TCPConn); ok {
					_ = tcp.SetLinger(0) // what is under way is lost
				}
				_ = conn.Close()
			}
		})
		defer cut.Stop()
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(server, client)
	_ = server.Close()
	back.Wait()
}

// resuming follows a stream over any number of connections, each behind the last
// cursor that came.
type resuming struct {
	urls     func() string
	token    string
	document string
	vars     variables
	// got is called with each answer's data and returns its cursor.
	got func(data json.RawMessage) (cursor string)
}

// run follows until ctx ends.
func (r *resuming) run(ctx context.Context) {
	var after any
	for ctx.Err() == nil {
		conn := r.connect(ctx, after)
		if conn == nil {
			pause(ctx, 20*time.Millisecond)
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		for {
			var m message
			if conn.ReadJSON(&m) != nil || m.Type == "error" || m.Type == "complete" {
				break
			}
			var answer struct{ Data json.RawMessage }
			if m.Type == "next" && json.Unmarshal(m.Payload, &answer) == nil {
				after = r.got(answer.Data)
			}
		}
		stop()
		_ = conn.Close()
	}
}

// connect subscribes; nil where that fails.
func (r *resuming) connect(ctx context.Context, after any) *websocket.Conn {
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, HandshakeTimeout: 5 * time.Second}
	conn, response, err := dialer.DialContext(ctx, strings.Replace(r.urls(), "http", "ws", 1)+"/graphql", http.Header{"Authorization": {"Bearer " + r.token}})
	if err != nil {
		return nil
	}
	_ = response.Body.Close()
	vars := variables{"after": after}
	for name, value := range r.vars {
		vars[name] = value
	}
	for _, m := range []any{
		variables{"type": "connection_init"},
		variables{"type": "subscribe", "id": "1", "payload": variables{"query": r.document, "variables": vars}},
	} {
		if conn.WriteJSON(m) != nil {
			_ = conn.Close()
			return nil
		}
	}
	return conn
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// trace is what a follower got of one machine's history: each number once, in order.
type trace struct {
	mu    sync.Mutex
	first int
	last  int
	fault string
}

// machine reads events of followMachine.
func (tr *trace) machine(data json.RawMessage) string {
	var e machineEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return ""
	}
	if e.Machine.Transition != nil {
		tr.number(e.Machine.Transition.Sequence)
	}
	return e.Machine.Cursor
}

func (tr *trace) number(n int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.first == 0 {
		tr.first, tr.last = n, n
		return
	}
	if n != tr.last+1 && tr.fault == "" {
		tr.fault = "after " + strconv.Itoa(tr.last) + " came " + strconv.Itoa(n)
	}
	tr.last = n
}

func (tr *trace) at() (last int, fault string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.last, tr.fault
}

// site reads events of followSite for those of one machine.
func (tr *trace) site(machineID string) func(json.RawMessage) string {
	return func(data json.RawMessage) string {
		var e siteEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return ""
		}
		if e.SiteEvents.Transition != nil && e.SiteEvents.Transition.SubjectID == machineID {
			tr.number(e.SiteEvents.Transition.Sequence)
		}
		return e.SiteEvents.Cursor
	}
}

// TestAStreamThatIsCutAThousandTimesIsExact cuts connections of eight followers at a
// thousand random moments while the machine that they follow changes without pause.
func TestAStreamThatIsCutAThousandTimesIsExact(t *testing.T) {
	t.Parallel()
	b := setup(t)
	siteID := b.createSite(t, "lab")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", inventory(t, "composed/xe9680_8gpu.json"))
	const cuts, followers = 1000, 8
	proxy := newCutter(t, strings.TrimPrefix(b.url, "http://"), cuts, 60*time.Millisecond)
	through := func() string { return "http://" + proxy.listener.Addr().String() }

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	traces := make([]*trace, followers)
	var following sync.WaitGroup
	for i := range traces {
		tr := &trace{}
		traces[i] = tr
		r := &resuming{urls: through, token: b.admin, document: followMachine, vars: variables{"id": m.ID}, got: tr.machine}
		if i%2 == 1 {
			r = &resuming{urls: through, token: b.admin, document: followSite, vars: variables{"site": "lab"}, got: tr.site(m.ID)}
		}
		following.Go(func() { r.run(ctx) })
	}
	changing, stop := context.WithCancel(ctx)
	var changes sync.WaitGroup
	changes.Go(func() {
		for changing.Err() == nil {
			b.toggle(changing, m.ID)
		}
	})
	require.Eventually(t, func() bool { return proxy.left.Load() < 0 }, 5*time.Minute, tick)
	for _, tr := range traces { // one may have begun after the last cut
		require.Eventually(t, func() bool { at, _ := tr.at(); return at > 0 }, patience, tick)
	}
	stop()
	changes.Wait()
	last := b.lastChange(t, m.ID)
	for _, tr := range traces {
		require.Eventually(t, func() bool { at, fault := tr.at(); return at == last || fault != "" }, patience, tick)
		_, fault := tr.at()
		require.Empty(t, fault)
	}
	cancel()
	following.Wait()
	t.Logf("%d changes over %d cuts", last, cuts)
}

// lastChange is the number of a machine's last change.
func (b *bundle) lastChange(t *testing.T, machineID string) (last int) {
	t.Helper()
	require.NoError(t, b.sql(t).QueryRow(t.Context(), `SELECT max(sequence) FROM transitions WHERE subject_id = $1`, machineID).Scan(&last))
	return last
}

// toggle raises an alert of a machine and clears it; what fails is tried by the next
// one.
func (b *bundle) toggle(ctx context.Context, machineID string) {
	var raised struct {
		Data struct {
			RaiseHealthAlert struct{ HealthAlert struct{ ID string } }
		}
	}
	if !b.try(ctx, raiseAlert, variables{"machineId": machineID, "alertId": "Fan", "source": "monitor", "message": "slow", "classifications": []string{}}, &raised) {
		pause(ctx, 20*time.Millisecond)
		return
	}
	b.try(ctx, clearAlert, variables{"healthAlertId": raised.Data.RaiseHealthAlert.HealthAlert.ID}, &struct{}{})
}

// try sends a mutation and tells whether it was answered without errors.
func (b *bundle) try(ctx context.Context, document string, input variables, out any) bool {
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables{"input": input}})
	if err != nil {
		return false
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+b.admin)
	response, err := b.http.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return err == nil && !bytes.Contains(data, []byte(`"errors"`)) && json.Unmarshal(data, out) == nil
}

// TestAStreamIsExactWhateverIsKilled has followers go on while server processes are
// killed with -9 and Postgres is restarted, under a machine that changes without pause.
func TestAStreamIsExactWhateverIsKilled(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "fg-") //nolint:usetesting // its path has to be short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o711)) //nolint:gosec // Postgres' own user passes through
	binary := filepath.Join(dir, "fleetgraph")
	text, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/fleetgraph").CombinedOutput()
	require.NoError(t, err, "%s", text)
	background := context.WithoutCancel(t.Context())
	start := func() *pgembed.Server {
		t.Helper()
		postgres, err := pgembed.Start(background, pgembed.Config{DataDir: filepath.Join(dir, "data"), Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		return postgres
	}
	postgres := start()
	t.Cleanup(func() { require.NoError(t, postgres.Stop(background)) })
	tokenFile := filepath.Join(dir, "token")
	b := &bundle{database: postgres.URL(), http: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}}}
	t.Cleanup(b.http.CloseIdleConnections)
	var mu sync.Mutex
	processes := []*process{startProcess(t, binary, b.database, tokenFile), startProcess(t, binary, b.database, filepath.Join(dir, "none"))}
	pick := func() string {
		mu.Lock()
		defer mu.Unlock()
		return processes[rand.IntN(len(processes))].url //nolint:gosec // no secret
	}
	secret, err := os.ReadFile(tokenFile)
	require.NoError(t, err)
	b.url, b.admin = pick(), strings.TrimSpace(string(secret))
	siteID := b.createSite(t, "lab")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", inventory(t, "composed/xe9680_8gpu.json"))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	traces := make([]*trace, 4)
	var following, changes sync.WaitGroup
	for i := range traces {
		tr := &trace{}
		traces[i] = tr
		r := &resuming{urls: pick, token: b.admin, document: followMachine, vars: variables{"id": m.ID}, got: tr.machine}
		if i%2 == 1 {
			r = &resuming{urls: pick, token: b.admin, document: followSite, vars: variables{"site": "lab"}, got: tr.site(m.ID)}
		}
		following.Go(func() { r.run(ctx) })
	}
	changing, stop := context.WithCancel(ctx)
	changes.Go(func() {
		for changing.Err() == nil {
			either := *b
			either.url = pick()
			either.toggle(changing, m.ID)
		}
	})
	// progress waits until every follower has got some more.
	progress := func() {
		t.Helper()
		for _, tr := range traces {
			before, _ := tr.at()
			require.Eventually(t, func() bool { at, fault := tr.at(); return at > before+10 || fault != "" }, time.Minute, tick)
		}
	}
	progress()
	for round := range 6 {
		if round == 2 || round == 4 {
			require.NoError(t, postgres.Stop(background))
			postgres = start()
			progress()
			continue
		}
		victim := round % 2
		processes[victim].kill()
		fresh := startProcess(t, binary, b.database, filepath.Join(dir, "none"))
		mu.Lock()
		processes[victim] = fresh
		mu.Unlock()
		progress()
	}
	stop()
	changes.Wait()
	last := b.lastChange(t, m.ID)
	for _, tr := range traces {
		require.Eventually(t, func() bool { at, fault := tr.at(); return at == last || fault != "" }, time.Minute, tick)
		_, fault := tr.at()
		require.Empty(t, fault)
	}
	cancel()
	following.Wait()
	t.Logf("%d changes", last)
}
