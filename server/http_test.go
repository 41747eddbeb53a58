package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/ent"
	"fleetgraph/fleet"
	"fleetgraph/graph"
	"fleetgraph/services/access"
)

// stubRoot answers the few fields that the tests ask for.
type stubRoot struct {
	graph.ResolverRoot
	query    graph.QueryResolver
	mutation graph.MutationResolver
}

func (r stubRoot) Query() graph.QueryResolver       { return r.query }
func (r stubRoot) Mutation() graph.MutationResolver { return r.mutation }

type stubQuery struct {
	graph.QueryResolver
	viewer func(context.Context) (*graph.Viewer, error)
}

func (q stubQuery) Viewer(ctx context.Context) (*graph.Viewer, error) { return q.viewer(ctx) }

func (q stubQuery) Site(context.Context, string) (*ent.Site, error) {
	return nil, fleet.Missing("name", "SITE_NOT_FOUND", "no such site").WithDetails(map[string]any{"count": 0})
}

func (q stubQuery) ExplainSku(context.Context, string, *int) ([]*graph.SkuCandidate, error) {
	return []*graph.SkuCandidate{}, nil
}

type stubMutation struct{ graph.MutationResolver }

func (stubMutation) CreateSite(context.Context, graph.CreateSiteInput) (*graph.CreateSitePayload, error) {
	return nil, errors.New("not reached by the tests")
}

type stubAuth struct{}

func (stubAuth) Authenticate(_ context.Context, secret string) (*access.Caller, error) {
	switch secret {
	case "good":
		return &access.Caller{Name: "tester", Role: fleet.RoleAdmin, AllSites: true}, nil
	case "broken":
		return nil, errors.New("password=hunter2 leaked into an error")
	default:
		return nil, &fleet.Error{Code: fleet.Unauthenticated, Reason: "TOKEN_INVALID", Message: "the bearer token is not known"}
	}
}

func (stubAuth) Recheck(context.Context, *access.Caller) error { return nil }

// lockedBuffer is a log that a test reads while the server writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// bench is the HTTP face over stubs, on a real listener.
type bench struct {
	url string
	log *lockedBuffer
}

func newBench(t *testing.T, limits Limits, viewer func(context.Context) (*graph.Viewer, error)) bench {
	t.Helper()
	return newBenchWith(t, Config{Limits: limits}, viewer)
}

func newBenchWith(t *testing.T, cfg Config, viewer func(context.Context) (*graph.Viewer, error)) bench {
	t.Helper()
	log := &lockedBuffer{}
	server := httptest.NewServer(newBenchHandler(t, cfg, viewer, log))
	t.Cleanup(server.Close)
	return bench{url: server.URL, log: log}
}

func newBenchHandler(tb testing.TB, cfg Config, viewer func(context.Context) (*graph.Viewer, error), log io.Writer) http.Handler {
	tb.Helper()
	if viewer == nil {
		viewer = func(context.Context) (*graph.Viewer, error) { return &graph.Viewer{Name: "tester"}, nil }
	}
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := presenter{logger}
	root := stubRoot{query: stubQuery{viewer: viewer}, mutation: stubMutation{}}
	ready := http.HandlerFunc(alive)
	cfg.Logger = logger
	answers, err := newGraphHandler(root, &sessions{}, cfg, p)
	require.NoError(tb, err)
	handler, err := routes(logger, nil, face{graph: signedIn(stubAuth{}, p, answers), ready: ready, metrics: ready, jobs: ready})
	require.NoError(tb, err)
	return handler
}

type answer struct {
	status     int
	header     http.Header
	body       string
	Data       map[string]any
	Extensions map[string]any
	Errors     []struct {
		Message    string
		Path       []any
		Locations  []map[string]int
		Extensions map[string]any
	}
}

func (b bench) send(t *testing.T, method, path, body string, header map[string]string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer good")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		if value == "" {
			request.Header.Del(name)
			continue
		}
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	out := answer{status: response.StatusCode, header: response.Header, body: string(content)}
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		require.NoError(t, json.Unmarshal(content, &out), string(content))
	}
	return out
}

// run posts one operation.
func (b bench) run(t *testing.T, query string, variables string) answer {
	t.Helper()
	text, err := json.Marshal(query)
	require.NoError(t, err)
	body := `{"query":` + string(text)
	if variables != "" {
		body += `,"variables":` + variables
	}
	return b.send(t, http.MethodPost, "/graphql", body+"}", nil)
}

func (a answer) requireError(t *testing.T, code, reason, field string) {
	t.Helper()
	require.NotEmpty(t, a.Errors, a.body)
	got := a.Errors[0]
	require.Equal(t, code, got.Extensions["code"], a.body)
	require.Equal(t, reason, got.Extensions["reason"], a.body)
	if field == "" {
		require.NotContains(t, got.Extensions, "field", a.body)
		return
	}
	require.Equal(t, field, got.Extensions["field"], a.body)
}

func TestCallerMustBeSignedIn(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	for name, header := range map[string]string{"no header": "", "another scheme": "Basic Z29vZDo=", "no secret": "Bearer "} {
		got := b.send(t, http.MethodPost, "/graphql", `{"query":"{viewer{name}}"}`, map[string]string{"Authorization": header})
		require.Equal(t, http.StatusUnauthorized, got.status, name)
		require.Contains(t, got.header.Get("WWW-Authenticate"), "Bearer", name)
		got.requireError(t, "UNAUTHENTICATED", "TOKEN_MISSING", "")
	}
	got := b.send(t, http.MethodGet, "/graphql?query={__schema{queryType{name}}}", "", map[string]string{"Authorization": "bearer bad"})
	require.Equal(t, http.StatusUnauthorized, got.status)
	got.requireError(t, "UNAUTHENTICATED", "TOKEN_INVALID", "")
	got = b.send(t, http.MethodPost, "/graphql", `{"query":"{viewer{name}}"}`, map[string]string{"Authorization": "Bearer broken"})
	require.Equal(t, http.StatusInternalServerError, got.status)
	got.requireError(t, "INTERNAL", "INTERNAL", "")
	require.NotContains(t, got.body, "hunter2")
}

func TestQueryByPostAndGet(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	got := b.run(t, "{viewer{name}}", "")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "application/json; charset=utf-8", got.header.Get("Content-Type"))
	require.JSONEq(t, `{"data":{"viewer":{"name":"tester"}}}`, got.body)

	variables := url.QueryEscape(`{"yes":true}`)
	got = b.send(t, http.MethodGet, "/graphql?query="+url.QueryEscape("query($yes:Boolean!){viewer{name @include(if:$yes)}}")+"&variables="+variables, "",
		map[string]string{"Accept": "application/graphql-response+json"})
	require.Equal(t, "application/graphql-response+json; charset=utf-8", got.header.Get("Content-Type"))
	require.JSONEq(t, `{"data":{"viewer":{"name":"tester"}}}`, got.body)
}

func TestIntrospectionForSignedInCallers(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	got := b.run(t, "{__schema{queryType{name}}}", "")
	require.JSONEq(t, `{"data":{"__schema":{"queryType":{"name":"Query"}}}}`, got.body)
}

func TestRequestThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{BodyBytes: 1000}, nil)
	for name, c := range map[string]struct {
		method, path, body    string
		header                map[string]string
		status                int
		code, reason, isField string
	}{
		"mutation by GET": {
			"GET", "/graphql?query=" + url.QueryEscape(`mutation{createSite(input:{name:"a"}){site{id}}}`), "", nil,
			405, "INVALID_ARGUMENT", "METHOD_NOT_ALLOWED", "",
		},
		"PUT":                    {"PUT", "/graphql", "{}", nil, 405, "INVALID_ARGUMENT", "METHOD_NOT_ALLOWED", ""},
		"form":                   {"POST", "/graphql", "query=x", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_UNSUPPORTED", ""},
		"no content type":        {"POST", "/graphql", "{}", map[string]string{"Content-Type": ""}, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_UNSUPPORTED", ""},
		"other charset":          {"POST", "/graphql", "{}", map[string]string{"Content-Type": "application/json; charset=utf-16"}, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_UNSUPPORTED", ""},
		"accepts html only":      {"POST", "/graphql", "{}", map[string]string{"Accept": "text/html"}, 406, "INVALID_ARGUMENT", "NOT_ACCEPTABLE", ""},
		"not JSON":               {"POST", "/graphql", "{secret", nil, 400, "INVALID_ARGUMENT", "REQUEST_MALFORMED", ""},
		"list":                   {"POST", "/graphql", ` [{"query":"{a}"}]`, nil, 400, "INVALID_ARGUMENT", "BATCHING_UNSUPPORTED", ""},
		"two values":             {"POST", "/graphql", `{"query":"{viewer{name}}"}{}`, nil, 400, "INVALID_ARGUMENT", "REQUEST_MALFORMED", ""},
		"no query":               {"POST", "/graphql", "{}", nil, 400, "INVALID_ARGUMENT", "QUERY_MISSING", "query"},
		"query is a number":      {"POST", "/graphql", `{"query":1}`, nil, 400, "INVALID_ARGUMENT", "REQUEST_MALFORMED", "query"},
		"variables are a string": {"POST", "/graphql", `{"query":"{a}","variables":"x"}`, nil, 400, "INVALID_ARGUMENT", "REQUEST_MALFORMED", "variables"},
		"extensions are a list":  {"POST", "/graphql", `{"query":"{a}","extensions":[]}`, nil, 400, "INVALID_ARGUMENT", "REQUEST_MALFORMED", "extensions"},
		"bad variables by GET":   {"GET", "/graphql?query={a}&variables=7", "", nil, 400, "INVALID_ARGUMENT", "REQUEST_MALFORMED", "variables"},
		"too large":              {"POST", "/graphql", `{"query":"` + strings.Repeat("a", 1000) + `"}`, nil, 413, "RESOURCE_EXHAUSTED", "REQUEST_TOO_LARGE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.send(t, c.method, c.path, c.body, c.header)
			require.Equal(t, c.status, got.status, got.body)
			got.requireError(t, c.code, c.reason, c.isField)
			require.NotContains(t, got.body, "secret")
		})
	}
}

func TestStatusOfRefusedDocumentFollowsTheMediaType(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	for accept, status := range map[string]int{
		"":                                  200,
		"*/*":                               200,
		"application/json":                  200,
		"application/graphql-response+json": 400,
		"application/json;q=0.5, application/graphql-response+json":  400,
		"application/graphql-response+json;q=0.1, application/json ": 200,
	} {
		got := b.send(t, http.MethodPost, "/graphql", `{"query":"{nothing}"}`, map[string]string{"Accept": accept})
		require.Equal(t, status, got.status, accept)
		require.NotContains(t, got.body, `"data"`)
		got.requireError(t, "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED", "")
	}
}

func TestOperationTimesOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{OperationTimeout: 20 * time.Millisecond}, func(ctx context.Context) (*graph.Viewer, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	got := b.run(t, "{viewer{name}}", "")
	got.requireError(t, "UNAVAILABLE", "TIMEOUT", "")
}

func TestPanicIsConcealedAndLogged(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, func(context.Context) (*graph.Viewer, error) {
		panic("SELECT password FROM tokens") //nolint:forbidigo // what is tested
	})
	got := b.run(t, "{viewer{name}}", "")
	got.requireError(t, "INTERNAL", "INTERNAL", "")
	require.Equal(t, "internal error", got.Errors[0].Message)
	require.Equal(t, []any{"viewer"}, got.Errors[0].Path)
	require.NotContains(t, got.body, "SELECT")
	require.NotContains(t, got.body, ".go")
	trace := got.Errors[0].Extensions["details"].(map[string]any)["traceId"]
	require.Equal(t, got.header.Get("Trace-Id"), trace)
	require.Contains(t, b.log.String(), "SELECT password")
	require.Contains(t, b.log.String(), "http_test.go") // the stack
}

func TestRequestLogTellsWhoDidWhatAndNoSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	got := b.send(t, http.MethodPost, "/graphql?token=sesame", `{"query":"query Who{viewer{name}}"}`,
		map[string]string{"Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", got.header.Get("Trace-Id"))
	require.Eventually(t, func() bool { return strings.Contains(b.log.String(), `"msg":"request"`) }, time.Second, time.Millisecond)
	log := b.log.String()
	require.Contains(t, log, `"operation":"Who"`)
	require.Contains(t, log, `"operation_type":"query"`)
	require.Contains(t, log, `"caller":"tester"`)
	require.Contains(t, log, `"status":200`)
	require.NotContains(t, log, "good")
	require.NotContains(t, log, "sesame")
}

func TestGraphiQLComesFromThisServerOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	page := b.send(t, http.MethodGet, "/", "", nil)
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.header.Get("Content-Security-Policy"), "default-src 'self'")
	require.NotContains(t, page.body, "http://")
	require.NotContains(t, page.body, "https://")
	script := b.send(t, http.MethodGet, "/graphiql/graphiql.js", "", nil)
	require.Equal(t, http.StatusOK, script.status)
	again := b.send(t, http.MethodGet, "/graphiql/graphiql.js", "", map[string]string{"If-None-Match": script.header.Get("ETag")})
	require.Equal(t, http.StatusNotModified, again.status)
	require.Equal(t, http.StatusNotFound, b.send(t, http.MethodGet, "/graphiql/../../etc/passwd", "", nil).status)
	require.Equal(t, http.StatusOK, b.send(t, http.MethodGet, "/healthz", "", map[string]string{"Authorization": ""}).status)
	options := b.send(t, http.MethodOptions, "/graphql", "", nil)
	require.Equal(t, http.StatusNoContent, options.status)
	require.Empty(t, options.header.Get("Access-Control-Allow-Origin"))
}
