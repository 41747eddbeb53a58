package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/testdb"
)

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	db, err := pgdb.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, statement := range statements {
		_, err := db.Pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
}

func TestMetricsAreThereInTheTextFormat(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	execute(t, url,
		`INSERT INTO sites (id, name, bom_validation, machine_validation, created_at, updated_at)
			VALUES ('site_1', 'hall "A"', '{}', '{}', now(), now())`,
		`INSERT INTO skus (id, name, device_type, schema_version, components, match_key, site_id, created_at, updated_at)
			VALUES ('sku_1', 'dell.r760.gpu.1', E'with a \\ and\na line', 5, '{}', '', 'site_1', now(), now())`,
		`INSERT INTO machines (id, name, bmc_mac_address, kind, state, site_id, sku_id, sku_name, state_changed_at, created_at, updated_at) VALUES
			('machine_1', 'a', '02:00:00:00:00:01', 'HOST', 'READY', 'site_1', 'sku_1', 'dell.r760.gpu.1', now() - interval '1 hour', now(), now()),
			('machine_2', 'b', '02:00:00:00:00:02', 'HOST', 'READY', 'site_1', NULL, NULL, now() - interval '2 hours', now(), now())`)
	first := start(t, Config{DatabaseURL: url})
	second := start(t, Config{DatabaseURL: url})
	for _, r := range []running{first, second} { // every process tells the same
		got := r.send(t, http.MethodGet, "/metrics", "", nil)
		require.Equal(t, http.StatusOK, got.status)
		require.Contains(t, got.header.Get("Content-Type"), "text/plain; version=0.0.4")
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
		for _, line := range []string{
			"# TYPE carbide_hosts_by_sku_count gauge\n",
			`carbide_hosts_by_sku_count{device_type="with a \\ and\na line",fresh="true",site="hall \"A\"",sku="dell.r760.gpu.1"} 1` + "\n",
			`carbide_hosts_by_sku_count{device_type="unknown",fresh="true",site="hall \"A\"",sku="unknown"} 1` + "\n",
			`carbide_machines_per_state{fresh="true",site="hall \"A\"",state="ready",substate=""} 2` + "\n",
			`fleetgraph_machines_oldest_in_state_seconds{site="hall \"A\"",state="ready",substate=""} 72`,
			"\nfleetgraph_database_connections_max ",
			"# TYPE fleetgraph_database_connection_waits_total counter\n",
			"go_goroutines ",
			"process_start_time_seconds ",
		} {
			require.Contains(t, got.body, line)
		}
		require.NotContains(t, got.body, "expected_machines_sku_count", "there are none")
	}
	require.Equal(t, http.StatusMethodNotAllowed, first.send(t, http.MethodPost, "/metrics", "", nil).status)
}

func TestMetricsOfTheProcessOutliveTheDatabase(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	r := start(t, Config{DatabaseURL: url})
	execute(t, url, "ALTER TABLE machines RENAME TO engines")
	got := r.send(t, http.MethodGet, "/metrics", "", nil)
	require.Equal(t, http.StatusOK, got.status)
	require.Contains(t, got.body, "go_goroutines ")
	require.NotContains(t, got.body, "carbide_")
	require.NotContains(t, got.body, "engines")
	execute(t, url, "ALTER TABLE engines RENAME TO machines")
}

func TestMetricsAreForThisMachineAndForViewersOfAllSites(t *testing.T) {
	t.Parallel()
	r := start(t, Config{})
	site := r.createSite(t, "here")
	viewer, bound := r.issue(t, "VIEWER", ""), r.issue(t, "ADMIN", site)
	proxied := func(then func(*http.Request)) func(*http.Request) {
		return func(q *http.Request) {
			q.Header.Set("X-Forwarded-For", "127.0.0.1")
			if then != nil {
				then(q)
			}
		}
	}
	require.Equal(t, http.StatusOK, r.send(t, http.MethodGet, "/metrics", "", nil).status)
	require.Equal(t, http.StatusOK, r.send(t, http.MethodHead, "/metrics", "", nil).status)
	for name, c := range map[string]struct {
		prepare      func(*http.Request)
		status       int
		code, reason string
	}{
		"forwarded":            {func(q *http.Request) { q.Header.Set("Forwarded", "for=127.0.0.1") }, 401, "UNAUTHENTICATED", "TOKEN_MISSING"},
		"x-forwarded-for":      {proxied(nil), 401, "UNAUTHENTICATED", "TOKEN_MISSING"},
		"x-real-ip, and empty": {func(q *http.Request) { q.Header["X-Real-IP"] = []string{""} }, 401, "UNAUTHENTICATED", "TOKEN_MISSING"},
		"one of two is empty":  {func(q *http.Request) { q.Header["X-Forwarded-For"] = []string{"", "192.0.2.1"} }, 401, "UNAUTHENTICATED", "TOKEN_MISSING"},
		"name of another":      {func(q *http.Request) { q.Host = "example.com" }, 401, "UNAUTHENTICATED", "TOKEN_MISSING"},
		"unknown token":        {proxied(withBearer("fgt_none")), 401, "UNAUTHENTICATED", "TOKEN_INVALID"},
		"password":             {proxied(withBasic(viewer)), 401, "UNAUTHENTICATED", "TOKEN_MISSING"},
		"bound to a site":      {proxied(withBearer(bound)), 403, "PERMISSION_DENIED", "SITES_TOO_NARROW"},
		"viewer":               {proxied(withBearer(viewer)), 200, "", ""},
		"admin":                {proxied(withBearer(r.token)), 200, "", ""},
	} {
		got := r.send(t, http.MethodGet, "/metrics", "", c.prepare)
		require.Equal(t, c.status, got.status, name)
		if c.status == http.StatusOK {
			require.Contains(t, got.body, "go_goroutines ", name)
			continue
		}
		got.requireError(t, c.code, c.reason, "")
		require.NotContains(t, got.body, "go_goroutines ")
		if c.status == http.StatusUnauthorized {
			require.Equal(t, `Bearer realm="fleetgraph"`, got.header.Get("WWW-Authenticate"), name)
		}
	}
}

func TestWhoIsLocal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, host string
		local      bool
	}{
		{"127.0.0.1:4000", "127.0.0.1:8080", true},
		{"127.0.0.1:4000", "localhost", true},
		{"127.8.0.1:4000", "127.0.0.2:8080", true},
		{"[::1]:4000", "[::1]:8080", true},
		{"[::1]:4000", "[::1]", true},
		{"[::ffff:127.0.0.1]:4000", "localhost:8080", true},
		{"10.0.0.1:4000", "127.0.0.1:8080", false},
		{"10.0.0.1:4000", "localhost", false},
		{"[fe80::1%eth0]:4000", "localhost", false},
		{"127.0.0.1:4000", "10.0.0.1:8080", false},
		{"127.0.0.1:4000", "127.0.0.1.example.com", false},
		{"127.0.0.1:4000", "", false},
		{"@", "localhost", false}, // a Unix socket
	} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil)
		r.RemoteAddr, r.Host = c.from, c.host
		require.Equal(t, c.local, fromHere(r), c)
	}
}

func TestScrapesDoNotLoadTheDatabase(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	db, err := pgdb.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &fleetCollector{pool: db.Pool, logger: slog.New(slog.DiscardHandler), now: func() time.Time { return now }}
	const insert = "INSERT INTO river_job (kind, args, max_attempts) VALUES ('a.b', '{}', 1)"
	counted := func() int64 {
		figures, err := c.figures()
		require.NoError(t, err)
		if len(figures.Jobs) == 0 {
			return 0
		}
		return figures.Jobs[0].Count
	}
	execute(t, url, insert)
	require.Equal(t, int64(1), counted())
	execute(t, url, insert)
	now = now.Add(censusFor - time.Nanosecond)
	require.Equal(t, int64(1), counted())
	now = now.Add(time.Nanosecond)
	require.Equal(t, int64(2), counted())

	execute(t, url, "ALTER TABLE river_job RENAME TO mislaid")
	now = now.Add(censusFor)
	_, err = c.figures()
	require.Error(t, err)
	execute(t, url, "ALTER TABLE mislaid RENAME TO river_job")
	_, err = c.figures()
	require.Error(t, err, "a failure is kept too")
	now = now.Add(censusFor)
	require.Equal(t, int64(2), counted())

	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE machines")
	require.NoError(t, err)
	now = now.Add(censusFor)
	_, err = c.figures()
	require.ErrorIs(t, err, context.DeadlineExceeded, "a database that does not answer is waited for briefly")
	require.NoError(t, tx.Rollback(t.Context()))
}
