package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"go.uber.org/goleak"

	"fleetgraph/graph"
	"fleetgraph/internal/pgembed"
)

// binary is the program under test, built once. It is a variable because the
// testing package offers no way to hand a value from TestMain to a test.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fleetgraph-cmd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "fleetgraph")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintln(os.Stderr, err, string(output))
		return 1
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// output is what a process has written so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// process is a running `fleetgraph serve`.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	url            string
	exited         chan struct{}
}

func serve(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{stdout: &output{}, stderr: &output{}, exited: make(chan struct{})}
	p.cmd = exec.CommandContext(context.Background(), binary, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		// Asked to stop, it has its Postgres stop, which writes where t removes.
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.exited:
		case <-time.After(time.Minute):
			_ = p.cmd.Process.Kill()
			<-p.exited
		}
		if t.Failed() {
			t.Log(p.stdout, p.stderr)
		}
	})
	address := regexp.MustCompile(`http://[^/\s]+/`)
	require.Eventually(t, func() bool {
		p.url = address.FindString(p.stdout.String())
		return p.url != "" || p.hasExited()
	}, time.Minute, 10*time.Millisecond)
	require.NotEmpty(t, p.url, p.stderr)
	return p
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// terminate stops the process and returns its exit code.
func (p *process) terminate(t *testing.T) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	<-p.exited
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) token() string {
	match := regexp.MustCompile(`#token=(\S+)`).FindStringSubmatch(p.stdout.String())
	if match == nil {
		return ""
	}
	return match[1]
}

func (p *process) get(t *testing.T, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, nil)
	require.NoError(t, err)
	return do(t, request)
}

func (p *process) query(t *testing.T, token, query string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"graphql", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	status, content := do(t, request)
	require.Equal(t, http.StatusOK, status, content)
	return content
}

func do(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(content)
}

// dataDir is a directory that Postgres' account can reach.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) //nolint:gosec // the account passes through
	return filepath.Join(dir, "data")
}

func postmaster(t *testing.T, dir string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	require.NoError(t, err)
	return pid
}

func isAlive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestServeStartsStopsAndStartsAgain(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	tokenFile := filepath.Join(filepath.Dir(dir), "admin-token")
	args := []string{"--data-dir", dir, "--admin-token-file", tokenFile}

	first := serve(t, nil, args...)
	token := first.token()
	require.NotEmpty(t, token)
	require.NotContains(t, first.stderr.String(), token, "a token is never logged")
	stored, err := os.ReadFile(tokenFile)
	require.NoError(t, err)
	require.Equal(t, token+"\n", string(stored))
	status, body := first.get(t, "healthz")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status":"ok"}`, body)
	status, body = first.get(t, "readyz")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"pending":0`)
	require.Contains(t, first.query(t, token, `mutation{createSite(input:{name:"hall-1"}){site{name}}}`), `"hall-1"`)
	postgres := postmaster(t, dir)
	require.Zero(t, first.terminate(t))
	require.False(t, isAlive(postgres), "Postgres has stopped before the process")
	require.NotContains(t, first.stderr.String(), token)

	second := serve(t, nil, args...)
	require.Empty(t, second.token())
	require.Eventually(t, func() bool { return strings.Contains(second.stdout.String(), tokenFile) }, time.Minute, 10*time.Millisecond)
	require.JSONEq(t, `{"data":{"site":{"name":"hall-1"}}}`, second.query(t, token, `{site(name:"hall-1"){name}}`))
	postgres = postmaster(t, dir)
	require.NoError(t, second.cmd.Process.Kill())
	<-second.exited
	require.Eventually(t, func() bool { return !isAlive(postgres) }, 20*time.Second, 10*time.Millisecond)

	third := serve(t, nil, args...)
	require.JSONEq(t, `{"data":{"site":{"name":"hall-1"}}}`, third.query(t, token, `{site(name:"hall-1"){name}}`))
	other := run(t, nil, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir)
	require.Equal(t, exitFailed, other.code)
	require.Contains(t, other.stderr, "in use by another server")
	require.Zero(t, third.terminate(t))
}

func TestServeEndsWhenItsPostgresDies(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := serve(t, nil, "--data-dir", dir)
	require.NoError(t, syscall.Kill(postmaster(t, dir), syscall.SIGKILL))
	<-p.exited
	require.Equal(t, exitFailed, p.cmd.ProcessState.ExitCode())
	require.Contains(t, p.stderr.String(), "own Postgres has ended by itself")
}

func TestSeveralServersShareADatabase(t *testing.T) {
	t.Parallel()
	postgres, err := pgembed.Start(t.Context(), pgembed.Config{DataDir: dataDir(t), NoFsync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, postgres.Stop(context.Background())) })
	env := []string{"FLEETGRAPH_DATABASE_URL=" + postgres.URL(), "FLEETGRAPH_DEMO=true"}

	var processes [3]*process
	var wait sync.WaitGroup
	for i := range processes {
		wait.Go(func() { processes[i] = serve(t, env) })
	}
	wait.Wait()
	token := ""
	for _, p := range processes {
		if p.token() != "" {
			require.Empty(t, token, "one of them issues the first token")
			token = p.token()
		}
	}
	require.NotEmpty(t, token)
	for _, p := range processes {
		require.JSONEq(t, `{"data":{"sites":{"totalCount":1}}}`, p.query(t, token, "{sites{totalCount}}"))
		require.Zero(t, p.terminate(t))
	}
	select {
	case <-postgres.Done():
		require.Fail(t, "Postgres is not theirs to stop")
	default:
	}
	got := run(t, env, "migrate")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, " 0 applied now, 0 pending")
}

type result struct {
	code           int
	stdout, stderr string
}

func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func TestUsageErrorsExitWithTwo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  string
		args []string
		text string
	}{
		"unknown command":     {"", []string{"srve"}, `"srve" is not a command`},
		"unknown flag":        {"", []string{"serve", "--port", "1"}, "unknown flag: --port"},
		"stray argument":      {"", []string{"serve", "now"}, `"now" is not a command or an argument`},
		"bad address":         {"", []string{"serve", "--listen", "8080"}, "--listen"},
		"bad level":           {"", []string{"serve", "--log-level", "loud"}, "log level"},
		"bad environment":     {"FLEETGRAPH_DEMO=maybe", []string{"serve"}, "FLEETGRAPH_DEMO"},
		"no rate":             {"", []string{"serve", "--rate-limit", "-5"}, "--rate-limit: -5 is not a limit"},
		"a rate of nothing":   {"", []string{"serve", "--rate-limit", "NaN"}, "--rate-limit"},
		"a rate without end":  {"FLEETGRAPH_RATE_LIMIT=inf", []string{"serve"}, "--rate-limit"},
		"no burst":            {"", []string{"serve", "--rate-burst", "0"}, "--rate-burst"},
		"a negative burst":    {"", []string{"serve", "--rate-burst", "-1"}, "--rate-burst"},
		"negative failures":   {"", []string{"serve", "--auth-failure-limit", "-1"}, "--auth-failure-limit"},
		"negative SKU limit":  {"", []string{"serve", "--sku-steps", "-1"}, "--sku-steps"},
		"all origins":         {"", []string{"serve", "--allow-origin", "*"}, "--allow-origin"},
		"a page as an origin": {"FLEETGRAPH_ALLOW_ORIGIN=https://console.example.com,https://console.example.com/app", []string{"serve"}, "--allow-origin"},
		"a proxy by name":     {"", []string{"serve", "--trusted-proxy", "proxy.example.com"}, "--trusted-proxy"},
		"no database to move": {"FLEETGRAPH_DATABASE_URL=", []string{"migrate"}, "--database-url"},
	} {
		got := run(t, []string{c.env}, c.args...)
		require.Equal(t, exitUsage, got.code, name)
		require.Contains(t, got.stderr, c.text, name)
		require.Empty(t, got.stdout, name)
	}
}

func TestUnreachableDatabaseExitsWithOneAndHidesThePassword(t *testing.T) {
	t.Parallel()
	got := run(t, []string{"FLEETGRAPH_DATABASE_URL=postgres://user:hunter2@127.0.0.1:1/none"}, "serve", "--listen", "127.0.0.1:0")
	require.Equal(t, exitFailed, got.code)
	require.NotContains(t, got.stderr, "hunter2")
}

func TestSchemaIsCompleteAndTheSameEachTime(t *testing.T) {
	t.Parallel()
	got := run(t, nil, "schema")
	require.Zero(t, got.code)
	require.Equal(t, got.stdout, run(t, nil, "schema").stdout)
	require.NotContains(t, got.stdout, "@go")
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: got.stdout})
	require.NoError(t, err)
	served := graph.NewExecutableSchema(graph.Config{}).Schema()
	require.Equal(t, outline(served), outline(schema))
	committed, err := os.ReadFile("../../schema.graphql")
	require.NoError(t, err)
	require.Equal(t, string(committed), got.stdout, "make generate rewrites schema.graphql")
}

// outline lists what a schema has, each with its type and description.
func outline(schema *ast.Schema) []string {
	var lines []string
	for name, d := range schema.Types {
		lines = append(lines, fmt.Sprintln(name, d.Kind, d.Interfaces, d.Types, words(d.Description)))
		for _, f := range d.Fields {
			deprecated := f.Directives.ForName("deprecated") != nil
			lines = append(lines, fmt.Sprintln(name, f.Name, f.Type, f.DefaultValue, deprecated, words(f.Description)))
			for _, a := range f.Arguments {
				lines = append(lines, fmt.Sprintln(name, f.Name, a.Name, a.Type, a.DefaultValue, words(a.Description)))
			}
		}
		for _, v := range d.EnumValues {
			lines = append(lines, fmt.Sprintln(name, v.Name, words(v.Description)))
		}
	}
	slices.Sort(lines)
	return lines
}

// words are a text's, without the white space that printing may change.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestVersionNamesTheProgram(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `^fleetgraph \S+.* go1\.`, run(t, nil, "version").stdout)
}

func TestALimitIsAFlagOrAVariableAndNeverNone(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--limit-depth", "0"}, {"--limit-complexity", "-1"}, {"--limit-operation-time", "0s"}, {"--limit-aliases", "many"}} {
		output, err := exec.CommandContext(t.Context(), binary, append([]string{"serve"}, args...)...).CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, exitUsage, exit.ExitCode(), "%s", output)
		require.Contains(t, string(output), args[0])
	}
	p := serve(t, []string{"FLEETGRAPH_LIMIT_DEPTH=2", "FLEETGRAPH_HIDE_SCHEMA=true"}, "--data-dir", dataDir(t))
	token := regexp.MustCompile(`#token=(\S+)`).FindStringSubmatch(p.stdout.String())[1]
	for query, reason := range map[string]string{"{viewer{sites{id}}}": "DOCUMENT_TOO_DEEP", "{__type(name:%22Site%22){name}}": "INTROSPECTION_DISABLED", "{__typename}": ""} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"graphql?query="+query, nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		content, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Contains(t, string(content), reason)
		require.Equal(t, reason != "", strings.Contains(string(content), "errors"), "%s", content)
	}
}
