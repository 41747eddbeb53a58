package server

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// flood is a request that would cost the server far more than its caller.
type flood struct {
	body         string
	code, reason string
}

// inTime is how long a test lets a refusal take: the race detector costs up to ten
// times, and other tests run beside. BenchmarkFloods has the figures, which are about
// 20 ms at most.
const inTime = 500 * time.Millisecond

func repeated(n int, part func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(part(i))
	}
	return b.String()
}

func always(part string) func(int) string { return func(int) string { return part } }

func numbered(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

// document is a request of a document without variables.
func document(text string) string {
	body, _ := json.Marshal(map[string]string{"query": text}) // of two strings
	return string(body)
}

func withVariables(text, variables string) string {
	return strings.TrimSuffix(document(text), "}") + `,"variables":` + variables + "}"
}

// bomb is k fragments, each of which uses the next one twice.
func bomb(k int) string {
	return "{machines{nodes{...f0}}}" + repeated(k, func(i int) string {
		return fmt.Sprintf(" fragment f%d on Machine{...f%d ...f%d}", i, i+1, i+1)
	}) + fmt.Sprintf(" fragment f%d on Machine{id}", k)
}

// overlapping is n fragments of one field each in one place, of n selections that
// validation compares with each other.
func overlapping(n int) string {
	return "{machines{nodes{" + repeated(n, numbered("...f%d ")) + "}}}" +
		repeated(n, numbered(" fragment f%d on Machine{id site{id name}}"))
}

func floods() map[string]flood {
	const exhausted = "RESOURCE_EXHAUSTED"
	deep := func(n int) string { return strings.Repeat("{a", n) + strings.Repeat("}", n) }
	lists := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat("{not:", n) + "{}" + strings.Repeat("}", n) }
	const filtered = `query($w:MachineWhereInput){machines(where:$w){totalCount}}`
	out := map[string]flood{
		"10 000 aliases":                       {document("{viewer{" + repeated(10_000, numbered("a%d:name ")) + "}}"), exhausted, "DOCUMENT_TOO_LARGE"},
		"3000 aliases":                         {document("{viewer{" + repeated(3000, numbered("a%d:name ")) + "}}"), exhausted, "TOO_MANY_ALIASES"},
		"3000 aliases of a root field":         {document("{" + repeated(3000, numbered("a%d:__typename ")) + "}"), exhausted, "TOO_MANY_ROOT_FIELDS"},
		"one field 9000 times":                 {document("{viewer{" + repeated(9000, always("name ")) + "}}"), exhausted, "TOO_MANY_REPETITIONS"},
		"one field 1000 times, with arguments": {document("{machines{nodes{" + repeated(1000, always("healthAlerts(first:1){totalCount}")) + "}}}"), exhausted, "TOO_MANY_REPETITIONS"},
		"one object twice in itself, 10 deep": {
			document("{machines{nodes{" + twice(10) + "}}}"), exhausted, "TOO_MANY_REPETITIONS",
		},
		"10 000 directives":                 {document("{viewer{name" + repeated(10_000, always(" @skip(if:true)")) + "}}"), exhausted, "DOCUMENT_TOO_LARGE"},
		"1200 directives":                   {document("{viewer{name" + repeated(1200, always(" @skip(if:true)")) + "}}"), exhausted, "TOO_MANY_DIRECTIVES"},
		"4000 directives that do not exist": {document("{viewer{name" + repeated(4000, always(" @a")) + "}}"), exhausted, "TOO_MANY_DIRECTIVES"},
		"99 fragments in one place":         {document(overlapping(99)), exhausted, "TOO_MANY_REPETITIONS"},
		"1000 fragments":                    {document("{viewer{...f0}}" + repeated(900, func(i int) string { return fmt.Sprintf(" fragment f%d on Viewer{...f%d}", i, i+1) })), exhausted, "TOO_MANY_DEFINITIONS"},
		"a fragment in itself":              {document("{viewer{...a}} fragment a on Viewer{name ...a}"), "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED"},
		"a cycle of 99 fragments": {
			document("{viewer{...f0}}" + repeated(99, func(i int) string {
				return fmt.Sprintf(" fragment f%d on Viewer{...f%d ...f%d}", i, (i+1)%99, (i+2)%99)
			})),
			"INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED",
		},
		"fields 10 000 deep":                 {document(deep(10_000)), exhausted, "DOCUMENT_TOO_DEEP"},
		"fields 3000 deep":                   {document(deep(3000)), exhausted, "DOCUMENT_TOO_DEEP"},
		"fields 900 deep":                    {document(deep(900)), exhausted, "DOCUMENT_TOO_DEEP"},
		"lists 10 000 deep in a literal":     {document("{machines(where:" + lists(10_000) + "){totalCount}}"), exhausted, "DOCUMENT_TOO_DEEP"},
		"objects 10 000 deep in a literal":   {document("{machines(where:" + objects(10_000) + "){totalCount}}"), exhausted, "DOCUMENT_TOO_DEEP"},
		"objects 900 deep in a literal":      {document("{machines(where:" + objects(900) + "){totalCount}}"), exhausted, "VALUE_TOO_DEEP"},
		"a type 10 000 deep":                 {document("query($a:" + lists(10_000) + "){viewer{name}}"), exhausted, "DOCUMENT_TOO_DEEP"},
		"lists 10 000 deep in a variable":    {withVariables(filtered, `{"w":`+lists(10_000)+`}`), exhausted, "VALUE_TOO_DEEP"},
		"objects 9000 deep in a variable":    {withVariables(filtered, `{"w":`+strings.Repeat(`{"not":`, 9000)+"{}"+strings.Repeat("}", 9000)+`}`), exhausted, "VALUE_TOO_DEEP"},
		"a million lists in a variable":      {withVariables(filtered, `{"w":{"or":[`+strings.Repeat("[],", 1_000_000)+`[]]}}`), exhausted, "TOO_MANY_VALUES"},
		"4 MB of numbers in a variable":      {withVariables(filtered, `{"w":[`+strings.Repeat("1,", 2_000_000)+`1]}`), exhausted, "TOO_MANY_VALUES"},
		"a body of 10 MB":                    {document("{viewer{name}}#" + strings.Repeat("x", 10_000_000)), exhausted, "REQUEST_TOO_LARGE"},
		"a comment of 4 MB":                  {document("{viewer{name}}#" + strings.Repeat("x", 4_000_000)), exhausted, "DOCUMENT_TOO_LARGE"},
		"100 000 comments":                   {document("{viewer{name}}" + strings.Repeat("#\n", 100_000)), exhausted, "DOCUMENT_TOO_LARGE"},
		"a string of 1 MB":                   {document(`{machine(site:"` + strings.Repeat("x", 1_000_000) + `",name:"a"){id}}`), exhausted, "DOCUMENT_TOO_LARGE"},
		"a name of 250 kB":                   {document("{" + strings.Repeat("x", 250_000) + "}"), "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED"},
		"3000 operations":                    {document(repeated(3000, numbered("query q%d{a} "))), exhausted, "DOCUMENT_TOO_LARGE"},
		"1500 operations":                    {document(repeated(1500, numbered("query q%d{a} "))), exhausted, "TOO_MANY_DEFINITIONS"},
		"operations that share a large part": {document(repeated(90, numbered("query q%d{...f} ")) + `fragment f on Query{machines(where:{nameIn:[` + strings.Repeat(`"a"`, 500) + "]}){totalCount}}"), exhausted, "DOCUMENT_TOO_LARGE"},
		"9000 fields that do not exist":      {document("{viewer{" + repeated(9000, numbered("n%d ")) + "}}"), "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED"},
		"2000 arguments that do not exist":   {document("{machines(" + repeated(2000, numbered("n%d:1 ")) + "){totalCount}}"), "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED"},
		"pages of pages":                     {document("{sites(first:200){nodes{machines(first:200){nodes{transitions(first:200){nodes{id}}}}}}}"), exhausted, "TOO_COMPLEX"},
		"pages of pages in fragments": {
			document("{machines(first:200){nodes{...f0}}}" + repeated(3, func(i int) string {
				return fmt.Sprintf(" fragment f%d on Machine{site{machines(first:200){nodes{...f%d}}}}", i, i+1)
			}) + " fragment f3 on Machine{id}"),
			exhausted, "TOO_COMPLEX",
		},
		"5000 conditions in one filter": {withVariables(filtered, `{"w":{"and":[`+strings.Repeat(`{"nameIn":[`+strings.Repeat(`"a",`, 499)+`"b"]},`, 10)+`{"name":"c"}]}}`), "INVALID_ARGUMENT", "WHERE_TOO_LARGE"},
		"10 000 filters in a filter":    {withVariables(filtered, `{"w":{"or":[`+strings.Repeat(`{"name":"a"},`, 10_000)+`{}]}}`), exhausted, "TOO_MANY_VALUES"},
		"one filter in 20 places": {
			withVariables(`query($w:MachineWhereInput){`+repeated(20, numbered("a%d:machines(where:$w){totalCount} "))+"}", `{"w":{"nameIn":[`+strings.Repeat(`"a",`, 499)+`"a"]}}`),
			exhausted, "TOO_COMPLEX",
		},
		"a list of requests": {"[" + strings.Repeat(`{"query":"{viewer{name}}"},`, 10_000) + `{}]`, "INVALID_ARGUMENT", "BATCHING_UNSUPPORTED"},
	}
	for _, k := range []int{20, 40, 60} {
		out[fmt.Sprintf("2^%d uses of a fragment", k)] = flood{document(bomb(k)), exhausted, "DOCUMENT_TOO_LARGE"}
	}
	return out
}

// twice is a machine's site with its machines, twice in itself, so many deep.
func twice(depth int) string {
	if depth == 0 {
		return "id"
	}
	inner := "site{id " + strings.TrimPrefix(twice(depth-1), "id") + "}"
	return "id " + inner + " " + inner
}

func (r running) post(t *testing.T, body string) (status int, content []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/graphql", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+r.token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	content, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, content
}

// It does not run beside other tests: their time would be in its own.
func TestFloodsAreRefusedAtOnce(t *testing.T) { //nolint:paralleltest // see above
	r := start(t, Config{})
	for name, f := range floods() {
		t.Run(name, func(t *testing.T) {
			best := time.Hour
			for range 3 { // the machine may be busy with something else
				begin := time.Now()
				_, content := r.post(t, f.body)
				best = min(best, time.Since(begin))
				var got struct {
					Errors []struct{ Extensions struct{ Code, Reason string } }
				}
				require.NoError(t, json.Unmarshal(content, &got), "%s", content)
				require.NotEmpty(t, got.Errors, "%s", content)
				require.Equal(t, []string{f.code, f.reason}, []string{got.Errors[0].Extensions.Code, got.Errors[0].Extensions.Reason}, "%.500s", content)
				require.Less(t, len(content), 64<<10)
			}
			require.Less(t, best, inTime)
			t.Logf("%8.2f ms", float64(best.Microseconds())/1000)
		})
	}
}

// BenchmarkFloods measures the refusals without client and network: time, and memory
// beside the body's bytes.
func BenchmarkFloods(b *testing.B) {
	handler := newBenchHandler(b, Config{}, nil, io.Discard)
	all := floods()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/graphql", strings.NewReader(all[name].body))
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("Authorization", "Bearer good")
				handler.ServeHTTP(httptest.NewRecorder(), request)
			}
			b.ReportMetric(float64(len(all[name].body)), "body-bytes")
		})
	}
}
