package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"fleetgraph/graph"
)

// What a refusal may allocate: copies of the body, which is read twice into buffers that double; for each
// byte of as much of it as can be a document, which is parsed, what its syntax takes;
// and what every request does.
const (
	perBodyByte     = 12
	perDocumentByte = 240
	parsedAtMost    = 64 << 10 // 10 000 tokens of the shortest names
	perRequest      = 256 << 10
)

// allocated is how many bytes the handler allocates for a body, on average.
func allocated(handler http.Handler, body string) int {
	const runs = 4
	serve := func() {
		request := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body)) //nolint:noctx // of no test in particular
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer good")
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
	serve() // what is made once
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		serve()
	}
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) / runs
}

// It does not run beside other tests: what they allocate would be in its own.
func TestARefusalAllocatesInProportion(t *testing.T) { //nolint:paralleltest // see above
	handler := newBenchHandler(t, Config{}, nil, io.Discard)
	for name, f := range floods() {
		got := allocated(handler, f.body)
		most := perRequest + perBodyByte*len(f.body) + perDocumentByte*min(len(f.body), parsedAtMost)
		require.LessOrEqual(t, got, most, "%s: a body of %d bytes", name, len(f.body))
	}
}

// TestAFloodThatGrowsCostsItsBytes has each flood four times as large as one that is
// beyond a limit.
func TestAFloodThatGrowsCostsItsBytes(t *testing.T) { //nolint:paralleltest // see above
	handler := newBenchHandler(t, Config{}, nil, io.Discard)
	const filtered = `query($w:MachineWhereInput){machines(where:$w){totalCount}}`
	for name, of := range map[string]func(n int) string{
		"aliases":              func(n int) string { return document("{viewer{" + repeated(n, numbered("a%d:name ")) + "}}") },
		"directives":           func(n int) string { return document("{viewer{name" + repeated(n, always(" @skip(if:true)")) + "}}") },
		"fields":               func(n int) string { return document("{viewer{" + repeated(n, numbered("n%d ")) + "}}") },
		"fields within fields": func(n int) string { return document(strings.Repeat("{a", n) + strings.Repeat("}", n)) },
		"fragments": func(n int) string {
			return document("{viewer{...f0}}" + repeated(n, numbered(" fragment f%d on Viewer{name}")))
		},
		"a literal": func(n int) string {
			return document("{machines(where:" + strings.Repeat("{not:", n) + "{}" + strings.Repeat("}", n) + "){id}}")
		},
		"a string":   func(n int) string { return document(`{machine(site:"` + strings.Repeat("x", 30*n) + `"){id}}`) },
		"variables":  func(n int) string { return withVariables(filtered, `{"w":[`+strings.Repeat("1,", 50*n)+`1]}`) },
		"operations": func(n int) string { return document(repeated(n, numbered("query q%d{a} "))) },
	} {
		small, large := of(12_000), of(48_000)
		more := allocated(handler, large) - allocated(handler, small)
		require.LessOrEqual(t, more, perBodyByte*(len(large)-len(small))+perRequest, "%s: %d bytes more", name, len(large)-len(small))
	}
}

func TestFaultsThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutableSchema(graph.Config{}).Schema()
	rules := validationRules()
	for _, text := range []string{
		"{viewer{" + repeated(9000, numbered("n%d ")) + "}}",
		"{machines(" + repeated(2000, numbered("n%d:1 ")) + "){totalCount}}",
		"{viewer{" + repeated(2000, numbered("...f%d ")) + "}}",
		"query(" + repeated(1000, numbered("$v%d:None ")) + "){viewer{name}}",
	} {
		doc, err := parser.ParseQuery(&ast.Source{Input: text})
		require.NoError(t, err)
		found := validator.ValidateWithRules(schema, doc, rules)
		require.NotEmpty(t, found)
		require.LessOrEqual(t, len(found), (maxRefusals+1)*len(rules.GetInner()))
		require.LessOrEqual(t, len(found), 3*(maxRefusals+1), "%.100s", text)
	}
}
