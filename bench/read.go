package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"fleetgraph/internal/pgembed"
	"fleetgraph/server"
)

const (
	readers   = 8   // connections that ask at once
	pageSize  = 100 // machines of one answer
	readQuery = `{ machines(first: 100, orderBy: {field: NAME}) { edges { node {
		id name state subState skuName site { name }
		sku { name description schemaVersion components {
			chassis { vendor model architecture } cpus { vendor model threadCount count } gpus { vendor model totalMemory count }
			storage { model count minSizeMb maxSizeMb pciPatterns } memory { memoryType capacityMb count } tpm { vendor version } } }
		healthAlerts(first: 5) { edges { node { alertId message inAlertSince } } } } } } }`
)

// readSQL answers readQuery by hand, in one statement: the limit of what Postgres
// and the network allow.
const readSQL = `
SELECT json_build_object('data', json_build_object('machines', json_build_object('edges', coalesce(json_agg(json_build_object('node', json_build_object(
  'id', m.id, 'name', m.name, 'state', m.state, 'subState', m.sub_state, 'skuName', m.sku_name, 'site', json_build_object('name', s.name),
  'sku', CASE WHEN k.id IS NULL THEN NULL ELSE json_build_object('name', k.name, 'description', k.description, 'schemaVersion', k.schema_version,
    'components', json_build_object(
      'chassis', k.components->'chassis',
      'cpus', (SELECT coalesce(json_agg(json_build_object('vendor', c->'vendor', 'model', c->'model', 'threadCount', c->'thread_count', 'count', c->'count')), '[]') FROM jsonb_array_elements(k.components->'cpus') c),
      'gpus', (SELECT coalesce(json_agg(json_build_object('vendor', g->'vendor', 'model', g->'model', 'totalMemory', g->'total_memory', 'count', g->'count')), '[]') FROM jsonb_array_elements(k.components->'gpus') g),
      'storage', (SELECT coalesce(json_agg(json_build_object('model', d->'model', 'count', d->'count', 'minSizeMb', d->'min_size_mb', 'maxSizeMb', d->'max_size_mb', 'pciPatterns', d->'pci_patterns')), '[]') FROM jsonb_array_elements(k.components->'storage') d),
      'memory', (SELECT coalesce(json_agg(json_build_object('memoryType', r->'memory_type', 'capacityMb', r->'capacity_mb', 'count', r->'count')), '[]') FROM jsonb_array_elements(k.components->'memory') r),
      'tpm', k.components->'tpm')) END,
  'healthAlerts', json_build_object('edges', (SELECT coalesce(json_agg(json_build_object('node', json_build_object('alertId', a.alert_id, 'message', a.message,
      'inAlertSince', to_char(a.in_alert_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))), '[]')
    FROM (SELECT * FROM health_alerts a WHERE a.machine_id = m.id ORDER BY a.id LIMIT 5) a))
)) ORDER BY m.name, m.id), '[]'))))
FROM (SELECT * FROM machines ORDER BY name, id LIMIT 100) m
JOIN sites s ON s.id = m.site_id LEFT JOIN skus k ON k.id = m.sku_id`

// benchRead reads a page of machines over HTTP: from the server, and from a handler
// of one hand-written statement on the same Postgres and rows. It returns the
// version of Postgres beside the rows.
func benchRead(ctx context.Context, length time.Duration, rounds int) (_ []Row, version string, err error) {
	dir, err := os.MkdirTemp("", "fleetgraph-bench-")
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { // Postgres' own user passes through
		return nil, "", err
	}
	postgres, err := pgembed.Start(ctx, pgembed.Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, postgres.Stop(context.WithoutCancel(ctx))) }()
	pool, err := pgxpool.New(ctx, postgres.URL())
	if err != nil {
		return nil, "", err
	}
	defer pool.Close()

	statements := &counter{}
	ours, stop, err := startServer(ctx, postgres.URL(), dir, statements)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := pool.QueryRow(ctx, "SHOW server_version").Scan(&version); err != nil {
		return nil, "", err
	}
	theirs, stopHand, err := startHandWritten(ctx, pool)
	if err != nil {
		return nil, "", err
	}
	defer stopHand()

	var rows []Row
	for _, scale := range []int{1, 10, 100} {
		if err := fill(ctx, pool, scale*pageSize*10); err != nil {
			return nil, "", err
		}
		scaled, err := readAt(ctx, scale, ours, theirs, statements, length, rounds)
		if err != nil {
			return nil, "", err
		}
		rows = append(rows, scaled...)
	}
	return rows, version, nil
}

func readAt(ctx context.Context, scale int, ours, theirs target, statements *counter, length time.Duration, rounds int) ([]Row, error) {
	if err := sameAnswer(ctx, ours, theirs); err != nil {
		return nil, err
	}
	before := statements.n.Load()
	if _, err := ours.ask(ctx); err != nil {
		return nil, err
	}
	each := statements.n.Load() - before
	var own, hand, ratios, allocations []float64
	for range rounds {
		rate, allocated, err := load(ctx, ours, length)
		if err != nil {
			return nil, err
		}
		limit, _, err := load(ctx, theirs, length)
		if err != nil {
			return nil, err
		}
		own, hand = append(own, rate), append(hand, limit)
		ratios, allocations = append(ratios, rate/limit), append(allocations, allocated)
	}
	at := fmt.Sprintf("page of %d machines, %d in all", pageSize, scale*pageSize*10)
	return []Row{
		{Name: at + ": one statement by hand", Figure: median(hand), Unit: "requests/s"},
		{Name: at + ": fleetgraph", Figure: median(own), Unit: "requests/s", Ratio: median(ratios), Beside: "by hand", Want: "0.67 or more"},
		{Name: at + ": fleetgraph, SQL", Figure: float64(each), Unit: "statements a request"},
		{Name: at + ": fleetgraph, memory", Figure: median(allocations), Unit: "allocations a request, its client's included"},
	}, nil
}

// target is something that answers readQuery.
type target struct {
	client *http.Client
	url    string
	token  string
	body   []byte
}

func (t target) ask(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(t.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+t.token)
	response, err := t.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", response.Status, answer)
	}
	return answer, err
}

func newTarget(url, token string) (target, error) {
	body, err := json.Marshal(map[string]string{"query": readQuery})
	return target{
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: readers}},
		url:    url, token: token, body: body,
	}, err
}

// load asks with all readers for a while and returns the rate and the allocations
// of one request.
func load(ctx context.Context, t target, length time.Duration) (perSecond, allocations float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, length+time.Minute)
	defer cancel()
	var asked atomic.Int64
	var failed atomic.Pointer[error]
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for time.Since(start) < length {
				if _, err := t.ask(ctx); err != nil {
					failed.Store(&err)
					return
				}
				asked.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(start).Seconds()
	runtime.ReadMemStats(&after)
	if err := failed.Load(); err != nil {
		return 0, 0, *err
	}
	n := float64(asked.Load())
	return n / took, float64(after.Mallocs-before.Mallocs) / n, nil
}

// sameAnswer makes sure that both give the same JSON.
func sameAnswer(ctx context.Context, a, b target) error {
	var answers [2]any
	for i, t := range []target{a, b} {
		body, err := t.ask(ctx)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(body, &answers[i]); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		return fmt.Errorf("the yardstick gives another answer:\n%.2000v\n%.2000v", answers[0], answers[1])
	}
	return nil
}

func startServer(ctx context.Context, database, dir string, tracer pgx.QueryTracer) (target, func() error, error) {
	file := filepath.Join(dir, "token")
	srv, err := server.New(ctx, server.Config{
		Listen: "127.0.0.1:0", DatabaseURL: database, AdminTokenFile: file,
		Logger: slog.New(slog.DiscardHandler), Output: io.Discard, Tracer: tracer,
	})
	if err != nil {
		return target{}, nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(running) }()
	stop := func() error { cancel(); return <-ended }
	token, err := os.ReadFile(file)
	if err != nil {
		return target{}, nil, errors.Join(err, stop())
	}
	t, err := newTarget("http://"+srv.Addr().String()+"/graphql", strings.TrimSpace(string(token)))
	return t, stop, err
}

func startHandWritten(ctx context.Context, pool *pgxpool.Pool) (target, func(), error) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer []byte
		if err := pool.QueryRow(r.Context(), readSQL).Scan(&answer); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	})
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return target{}, nil, err
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = srv.Serve(listener) }()
	t, err := newTarget("http://"+listener.Addr().String(), "")
	return t, func() { _ = srv.Close(); <-ended }, err
}

// counter counts SQL statements.
type counter struct{ n atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
