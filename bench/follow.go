package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"

	"fleetgraph/fleet"
	"fleetgraph/internal/pgembed"
	"fleetgraph/services/events"
)

const (
	followers   = 1000
	changeRate  = 200 // a second, of one machine
	followQuery = `subscription($id: ID!) { machine(id: $id) {
		... on MachineSnapshot { cursor }
		... on MachineChange { cursor transition { sequence cause message occurredAt } machine { name state subState } } } }`
	// heavyQuery fills the buffers of a reader that stands still.
	heavyQuery = `subscription($id: ID!) { machine(id: $id) {
		... on MachineSnapshot { cursor }
		... on MachineChange { cursor machine { inventoryDocument } } } }`
	inventoryFile = "server/demo/inventories/composed/xe9680_8gpu.json"
)

// benchFollow has a thousand followers of one machine get 200 changes a second, first
// alone, then beside one that stops reading. Each must get each change once, in order.
func benchFollow(ctx context.Context, length time.Duration) (_ []Row, err error) {
	dir, err := os.MkdirTemp("", "fleetgraph-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { // Postgres' own user passes through
		return nil, err
	}
	postgres, err := pgembed.Start(ctx, pgembed.Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, postgres.Stop(context.WithoutCancel(ctx))) }()
	ours, stop, err := startServer(ctx, postgres.URL(), dir, &counter{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	w, err := newWriter(ctx, postgres.URL(), ours)
	if err != nil {
		return nil, err
	}

	alone, err := w.round(ctx, ours, length, false)
	if err != nil {
		return nil, err
	}
	beside, err := w.round(ctx, ours, length, true)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d followers of one machine, %d changes a second for %s", followers, changeRate, length)
	return []Row{
		{Name: what + ": delivered", Figure: alone.delivered, Unit: "events/s, each once and in order"},
		{Name: what + ": from change to follower, p50", Figure: alone.p50, Unit: "ms"},
		{Name: what + ": from change to follower, p99", Figure: alone.p99, Unit: "ms"},
		{Name: "the same beside one that stops reading: p99", Figure: beside.p99, Unit: "ms", Ratio: beside.p99 / alone.p99, Beside: "alone", Want: "about 1"},
		{Name: "the same: the one was cut off after", Figure: beside.cut.Seconds(), Unit: "s (its limit is 10)"},
	}, nil
}

// writer makes changes of one machine, in a process of its own: among a thousand
// followers' goroutines its turn would come too seldom.
type writer struct {
	Database, Site, Machine string
	Sequence, Changes       int // the last number, how many more
}

// newWriter makes the machine.
func newWriter(ctx context.Context, url string, ours target) (*writer, error) {
	w := &writer{Database: url}
	inventory, err := os.ReadFile(inventoryFile)
	if err != nil {
		return nil, err
	}
	var site struct {
		Data struct {
			CreateSite struct{ Site struct{ ID string } }
		}
	}
	if err := ours.mutate(ctx, `mutation($input: CreateSiteInput!) { createSite(input: $input) { site { id } } }`, map[string]any{"name": "followed"}, &site); err != nil {
		return nil, err
	}
	w.Site = site.Data.CreateSite.Site.ID
	var machine struct {
		Data struct {
			ReportInventory struct{ Machine struct{ ID string } }
		}
	}
	if err := ours.mutate(ctx, `mutation($input: ReportInventoryInput!) { reportInventory(input: $input) { machine { id } } }`, map[string]any{
		"siteId": w.Site, "bmcMacAddress": "02:00:00:00:00:01", "inventory": json.RawMessage(inventory),
	}, &machine); err != nil {
		return nil, err
	}
	w.Machine = machine.Data.ReportInventory.Machine.ID
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	err = conn.QueryRow(ctx, `SELECT max(sequence) FROM transitions WHERE subject_id = $1`, w.Machine).Scan(&w.Sequence)
	return w, errors.Join(err, conn.Close(ctx))
}

// writerVariable tells a child process what to write.
const writerVariable = "FLEETGRAPH_BENCH_WRITER"

// start starts the process, whose end Wait tells.
func (w *writer) start(ctx context.Context) (*exec.Cmd, error) {
	task, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, binary)
	command.Env, command.Stderr = append(os.Environ(), writerVariable+"="+string(task)), os.Stderr
	return command, command.Start()
}

// changeSQL is a change in one statement, with the hint that a process gives which has
// committed one.
const changeSQL = `
WITH change AS (
	INSERT INTO transitions (id, site_id, subject_type, subject_id, machine_id, sequence, cause, actor, message, occurred_at)
	VALUES ($1, $2, 'MACHINE', $3, $3, $4, 'BENCH', 'bench', 'a change like others', $5)
)
SELECT pg_notify($6, '')`

// write is what the child process does.
func write(ctx context.Context, task string) error {
	var w writer
	if err := json.Unmarshal([]byte(task), &w); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, w.Database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	pace := rate.NewLimiter(changeRate, changeRate/10) // it catches up when it was held up
	for i := range w.Changes {
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, changeSQL, fleet.NewID(fleet.PrefixTransition), w.Site, w.Machine, w.Sequence+i+1, time.Now(), events.Channel); err != nil {
			return err
		}
	}
	return nil
}

// mutate runs a mutation and decodes its answer.
func (t target) mutate(ctx context.Context, document string, input map[string]any, out any) error {
	var err error
	if t.body, err = json.Marshal(map[string]any{"query": document, "variables": map[string]any{"input": input}}); err != nil {
		return err
	}
	answer, err := t.ask(ctx)
	if err != nil {
		return err
	}
	if bytes.Contains(answer, []byte(`"errors"`)) {
		return fmt.Errorf("refused: %.300s", answer)
	}
	return json.Unmarshal(answer, out)
}

// figures are those of one round.
type figures struct {
	delivered, p50, p99 float64
	cut                 time.Duration
}

func (w *writer) round(ctx context.Context, ours target, length time.Duration, stalled bool) (f figures, err error) {
	w.Changes = int(length.Seconds() * changeRate)
	readers := make([]*reader, followers)
	for i := range readers {
		if readers[i], err = follow(ctx, ours, w.Machine, followQuery); err != nil {
			return f, err
		}
		defer readers[i].close()
	}
	cut := make(chan time.Duration, 1)
	if stalled {
		still, err := follow(ctx, ours, w.Machine, heavyQuery)
		if err != nil {
			return f, err
		}
		defer still.close()
		go func() { cut <- still.untilCut() }()
	}
	var all sync.WaitGroup
	failed := make(chan error, followers)
	for _, r := range readers {
		all.Go(func() {
			if err := r.read(w.Sequence+1, w.Sequence+w.Changes); err != nil {
				failed <- err
			}
		})
	}
	start := time.Now()
	writing, err := w.start(ctx)
	if err != nil {
		return f, err
	}
	if err := writing.Wait(); err != nil {
		return f, fmt.Errorf("the writer: %w", err)
	}
	all.Wait()
	took := time.Since(start)
	close(failed)
	if err := <-failed; err != nil {
		return f, err
	}
	if stalled {
		f.cut = <-cut
	}
	var delays []time.Duration
	for _, r := range readers {
		delays = append(delays, r.delays...)
	}
	slices.Sort(delays)
	w.Sequence += w.Changes
	f.delivered = float64(followers*w.Changes) / took.Seconds()
	f.p50, f.p99 = milliseconds(delays[len(delays)/2]), milliseconds(delays[len(delays)*99/100])
	return f, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// reader is one follower's end of a socket.
type reader struct {
	*websocket.Conn
	delays []time.Duration
}

func follow(ctx context.Context, ours target, machine, query string) (*reader, error) {
	dialer := websocket.Dialer{
		Subprotocols: []string{"graphql-transport-ws"}, HandshakeTimeout: 10 * time.Second, ReadBufferSize: 8 << 10, WriteBufferSize: 1 << 10,
	}
	conn, response, err := dialer.DialContext(ctx, strings.Replace(ours.url, "http", "ws", 1), http.Header{"Authorization": {"Bearer " + ours.token}})
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	r := &reader{Conn: conn}
	if err := errors.Join(
		r.WriteJSON(map[string]any{"type": "connection_init"}),
		r.WriteJSON(map[string]any{"type": "subscribe", "id": "1", "payload": map[string]any{"query": query, "variables": map[string]any{"id": machine}}}),
	); err != nil {
		return nil, err
	}
	for range 2 { // the acknowledgement, the snapshot
		if _, _, err := r.ReadMessage(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *reader) close() { _ = r.Conn.Close() }

// read takes the changes from one number to another, each once and in order.
func (r *reader) read(first, last int) error {
	for want := first; want <= last; {
		_, text, err := r.ReadMessage()
		if err != nil {
			return fmt.Errorf("waiting for change %d: %w", want, err)
		}
		got := after(text, `"sequence":`, ",")
		if got == "" {
			if err := r.WriteMessage(websocket.TextMessage, []byte(`{"type":"pong"}`)); err != nil {
				return err
			}
			continue
		}
		if n, err := strconv.Atoi(got); err != nil || n != want {
			return fmt.Errorf("change %s came where %d was to come", got, want)
		}
		if want%8 == 0 {
			at, err := time.Parse(time.RFC3339Nano, after(text, `"occurredAt":"`, `"`))
			if err != nil {
				return err
			}
			r.delays = append(r.delays, time.Since(at))
		}
		want++
	}
	return nil
}

// after is what stands in text between two marks.
func after(text []byte, mark, end string) string {
	_, rest, _ := bytes.Cut(text, []byte(mark))
	value, _, _ := bytes.Cut(rest, []byte(end))
	return string(value)
}

// untilCut reads nothing more and returns after how long the server gave up.
func (r *reader) untilCut() time.Duration {
	start := time.Now()
	if tcp, ok := r.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range tick.C { // a write to a connection that is gone fails
		if err := r.WriteMessage(websocket.TextMessage, []byte(`{"type":"pong"}`)); err != nil || time.Since(start) > 5*time.Minute {
			break
		}
	}
	return time.Since(start)
}
