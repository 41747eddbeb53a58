package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/testdb"
	"fleetgraph/migrate"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the golden files anew")
	os.Exit(testdb.Main(m, migrate.ApplyURL))
}

// outcome is what a run of the command line left.
type outcome struct {
	code           int
	stdout, stderr string
}

// surroundings are those of a run in a test: an empty configuration folder, no
// terminal, a clock that stands.
type surroundings struct {
	env   map[string]string
	stdin string
}

func setup(t *testing.T) *surroundings {
	t.Helper()
	return &surroundings{env: map[string]string{"XDG_CONFIG_HOME": t.TempDir()}}
}

func (s *surroundings) run(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, process{
		stdin:  strings.NewReader(s.stdin),
		stdout: &stdout,
		stderr: &stderr,
		getenv: func(key string) string { return s.env[key] },
		now:    func() time.Time { return time.Date(2026, 9, 20, 8, 15, 30, 123456000, time.UTC) },
	})
	return outcome{code, stdout.String(), stderr.String()}
}

// golden compares got with the file of this name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// call is one operation that a test server received.
type call struct {
	Operation string                     `json:"operationName"`
	Variables map[string]json.RawMessage `json:"variables"`
	Token     string                     `json:"-"`
}

// serve starts a server that answers every operation by answer, and makes it
// the server of s.
func (s *surroundings) serve(t *testing.T, answer func(w http.ResponseWriter, c call)) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c call
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.Token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		answer(w, c)
	}))
	t.Cleanup(server.Close)
	s.env["FLEETGRAPH_URL"] = server.URL
}

func reply(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/graphql-response+json")
	_, _ = w.Write([]byte(body))
}

const viewerReply = `{"data":{"viewer":{"tokenId":"token_1","name":"ops","role":"ADMIN","allSites":true,"sites":[],"machine":null,"expiresAt":null}}}`
