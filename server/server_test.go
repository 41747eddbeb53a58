package server

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"fleetgraph/graph"
	"fleetgraph/internal/testdb"
	"fleetgraph/migrate"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m, migrate.ApplyURL)) }

// running is a server on a database of its own.
type running struct {
	output     string // what it printed while it started
	url, token string
	stop       context.CancelFunc
	done       chan error
}

func start(t *testing.T, cfg Config) running {
	t.Helper()
	var output bytes.Buffer
	cfg.Listen, cfg.Output, cfg.Logger = "127.0.0.1:0", &output, slog.New(slog.DiscardHandler)
	if cfg.DatabaseURL == "" {
		cfg.DatabaseURL = testdb.New(t)
	}
	s, err := New(t.Context(), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := running{output: output.String(), url: strings.TrimSuffix(consoleURL(s.Addr()), "/"), stop: cancel, done: make(chan error, 1)}
	if match := regexp.MustCompile(`#token=(\S+)`).FindStringSubmatch(output.String()); match != nil {
		r.token = match[1]
	}
	go func() { r.done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-r.done)
		http.DefaultClient.CloseIdleConnections()
	})
	return r
}

func (r running) query(t *testing.T, query string, into any) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/graphql", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NotContains(t, string(content), `"errors"`)
	require.NoError(t, json.Unmarshal(content, into))
}

// firstQuery is what GraphiQL opens with.
func firstQuery(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "web", "graphiql", "src", "queries.js"))
	require.NoError(t, err)
	match := regexp.MustCompile("(?s)firstQuery = `(.*?)`").FindSubmatch(source)
	require.NotNil(t, match)
	return string(match[1])
}

func TestFirstQueryOfGraphiQLIsValid(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutableSchema(graph.Config{}).Schema()
	_, errs := gqlparser.LoadQueryWithRules(schema, firstQuery(t), rules.NewDefaultRules())
	require.Empty(t, errs)
}

func TestDemoShowsEveryStandingOfAMachine(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	r := start(t, Config{DatabaseURL: url, Demo: true})
	var got struct {
		Data struct {
			Machines struct {
				TotalCount int
				Edges      []struct {
					Node struct {
						Name, State, SubState string
						HealthAlerts          struct{ Edges []any }
					}
				}
			}
		}
	}
	r.query(t, firstQuery(t), &got)
	standing := map[string]string{}
	for _, edge := range got.Data.Machines.Edges {
		n := edge.Node
		standing[n.Name] = fmt.Sprintf("%s %s %d", n.State, n.SubState, len(n.HealthAlerts.Edges))
	}
	require.Len(t, standing, got.Data.Machines.TotalCount)
	require.Equal(t, "BOM_VALIDATING WAITING_FOR_SKU_ASSIGNMENT 0", standing["gpu-03-lost-a-gpu"])
	require.Equal(t, "BOM_VALIDATING SKU_VERIFICATION_FAILED 1", standing["gpu-04-lost-a-drive"])
	delete(standing, "gpu-03-lost-a-gpu")
	delete(standing, "gpu-04-lost-a-drive")
	for name, s := range standing {
		require.Equal(t, "READY  0", s, name)
	}

	count := got.Data.Machines.TotalCount
	again := start(t, Config{DatabaseURL: url, Demo: true})
	require.Empty(t, again.token, "there are tokens")
	again.token = r.token
	again.query(t, firstQuery(t), &got)
	require.Equal(t, count, got.Data.Machines.TotalCount)
}

func TestStopLetsRequestsEnd(t *testing.T) {
	t.Parallel()
	r := start(t, Config{})
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	body := `{"query":"{viewer{name}}"}`
	_, err = fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", r.token, len(body))
	require.NoError(t, err)
	reader := bufio.NewReader(conn)
	line, err := reader.ReadString('\n') // sent when the handler begins to read
	require.NoError(t, err)
	require.Contains(t, line, "100 Continue")
	_, err = reader.ReadString('\n')
	require.NoError(t, err)

	r.stop()
	require.Eventually(t, func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, 5*time.Second, 5*time.Millisecond, "new connections are refused")
	_, err = io.WriteString(conn, body)
	require.NoError(t, err)
	response, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"data":{"viewer":{"name":"first-admin"}}}`, string(content))
}

func TestTokenFileIsWrittenBeforeTheTokenCounts(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	cfg := Config{DatabaseURL: url, Listen: "127.0.0.1:0", Output: io.Discard, Logger: slog.New(slog.DiscardHandler)}
	cfg.AdminTokenFile = filepath.Join(blocked, "token") // its directory is a file
	_, err := New(t.Context(), cfg)
	require.ErrorContains(t, err, "admin token file")

	path := filepath.Join(t.TempDir(), "new", "token")
	r := start(t, Config{DatabaseURL: url, AdminTokenFile: path})
	require.NotEmpty(t, r.token, "the failed start has used nothing up")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, r.token+"\n", string(content))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestALaterStartOffersToSignInOnATerminalOnly(t *testing.T) {
	t.Parallel()
	cfg := Config{DatabaseURL: testdb.New(t), AdminTokenFile: filepath.Join(t.TempDir(), "token")}
	first := start(t, cfg)
	require.NotEmpty(t, first.token)
	kept := start(t, cfg)
	require.Equal(t, "Open: "+kept.url+"/\nAdmin token: in "+cfg.AdminTokenFile+"\n", kept.output)
	cfg.Terminal = true
	read := start(t, cfg)
	require.Equal(t, "Sign in: "+read.url+"/#token="+first.token+"\nAdmin token: in "+cfg.AdminTokenFile+"\n", read.output)

	// A token of another database is not offered.
	require.NoError(t, writeSecret(cfg.AdminTokenFile, "fgt_of-another-database"))
	other := start(t, cfg)
	require.Equal(t, "Open: "+other.url+"/\nThere is no admin token of this database in "+cfg.AdminTokenFile+": it had tokens before.\n", other.output)
}

func TestListenOnAnAddressInUse(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	_, err = New(t.Context(), Config{Listen: listener.Addr().String(), Logger: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "address already in use")
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	probe := func(url string) (int, health) {
		db, err := sql.Open("pgx", url)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		r := &readiness{db: db, logger: slog.New(slog.DiscardHandler)}
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		var h health
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &h))
		return w.Code, h
	}
	status, h := probe(testdb.New(t))
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ok", h.Status)
	require.Equal(t, h.Schema.Latest, h.Schema.Version)
	status, h = probe(testdb.Empty(t))
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "SCHEMA_BEHIND", h.Reason)
	status, h = probe("postgres://user:hunter2@127.0.0.1:1/none")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "DATABASE_UNREACHABLE", h.Reason)
	require.NotContains(t, h.Message, "hunter2")
}

func TestConsoleURL(t *testing.T) {
	t.Parallel()
	for address, url := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080/",
		"[::1]:80":       "http://[::1]:80/",
		"0.0.0.0:81":     "http://127.0.0.1:81/",
		"[::]:82":        "http://localhost:82/",
		"10.1.2.3:83":    "http://10.1.2.3:83/",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", address)
		require.NoError(t, err)
		require.Equal(t, url, consoleURL(tcp))
		require.Equal(t, strings.HasPrefix(address, "127.") || strings.HasPrefix(address, "[::1]"), isLoopback(tcp), address)
	}
}
