package server

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

func TestEachLimitLetsPassWhatIsWithinIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits             Limits
		within, beyond     string
		variables, further string
		reason             string
		limit, actual      float64 // 0 for an actual that is not known
	}{
		"bytes":       {limits: Limits{DocumentBytes: 20}, within: "{viewer{name}}      ", beyond: "{viewer{name}}       ", reason: "DOCUMENT_TOO_LARGE", limit: 20, actual: 21},
		"tokens":      {limits: Limits{DocumentTokens: 6}, within: "{viewer{name}}", beyond: "{viewer{name role}}", reason: "DOCUMENT_TOO_LARGE", limit: 6},
		"nodes":       {limits: Limits{DocumentTokens: 30}, within: "{viewer{...a}} fragment a on Viewer{" + strings.Repeat("name ", 10) + "}", beyond: "{viewer{...a ...a ...a}} fragment a on Viewer{" + strings.Repeat("name ", 10) + "}", reason: "DOCUMENT_TOO_LARGE", limit: 30, actual: 34},
		"definitions": {limits: Limits{Definitions: 2}, within: "{viewer{...a}} fragment a on Viewer{name}", beyond: "{viewer{...a}} fragment a on Viewer{...b} fragment b on Viewer{name}", reason: "TOO_MANY_DEFINITIONS", limit: 2, actual: 3},
		"depth":       {limits: Limits{Depth: 2}, within: "{...on Query{viewer{...on Viewer{name}}}}", beyond: "{viewer{...a}} fragment a on Viewer{sites{id}}", reason: "DOCUMENT_TOO_DEEP", limit: 2, actual: 3},
		"root fields": {limits: Limits{RootFields: 2}, within: "{viewer{name} __typename}", beyond: "{viewer{name} ...a} fragment a on Query{__typename a:__typename}", reason: "TOO_MANY_ROOT_FIELDS", limit: 2, actual: 3},
		"aliases":     {limits: Limits{Aliases: 2}, within: "{a:viewer{b:name name}}", beyond: "{viewer{...a} a:viewer{...a}} fragment a on Viewer{b:name}", reason: "TOO_MANY_ALIASES", limit: 2, actual: 3},
		"directives":  {limits: Limits{Directives: 1}, within: "{viewer{name @skip(if:false)}}", beyond: "{viewer{...a @skip(if:false)}} fragment a on Viewer{name @skip(if:false)}", reason: "TOO_MANY_DIRECTIVES", limit: 1, actual: 2},
		"complexity":  {limits: Limits{Complexity: 22}, within: "{viewer{sites{name id}}}", beyond: "{viewer{sites{name id} name}}", reason: "TOO_COMPLEX", limit: 22, actual: 23},
		"literal":     {limits: Limits{ValueDepth: 2}, within: `{explainSku(machineId:"a"){distance}}`, beyond: "{machines(where:{and:[{name:null}]}){totalCount}}", reason: "VALUE_TOO_DEEP", limit: 2, actual: 3},
		"variables":   {limits: Limits{ValueDepth: 2}, within: "{viewer{name}}", variables: `{"a":[[1]]}`, beyond: "{viewer{name}}", further: `{"a":[[[]]]}`, reason: "VALUE_TOO_DEEP", limit: 2, actual: 3},
		"values":      {limits: Limits{VariableValues: 10}, within: "{viewer{name}}", variables: `{"a":[1,2,3]}`, beyond: "{viewer{name}}", further: `{"a":[1,2,3,4,5,6,7]}`, reason: "TOO_MANY_VALUES", limit: 10, actual: 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.limits, nil)
			require.Empty(t, b.run(t, c.within, c.variables).Errors)
			for range 2 { // what was refused once is not remembered as known
				got := b.run(t, c.beyond, c.further)
				got.requireError(t, "RESOURCE_EXHAUSTED", c.reason, "")
				details := got.Errors[0].Extensions["details"].(map[string]any)
				require.InDelta(t, c.limit, details["limit"], 0, got.body)
				if c.actual > 0 {
					require.InDelta(t, c.actual, details["actual"], 0, got.body)
				}
			}
		})
	}
}

func TestComplexityMultipliesByPagesAndLists(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{Complexity: 300_000}, nil)
	for query, want := range map[string]float64{
		"{viewer{name}}":           2,
		"{viewer{name name}}":      3,
		"{viewer{sites{name id}}}": 1 + 1 + 10*2,
		"{viewer{...a} a:viewer{...a}} fragment a on Viewer{name role}":                                          2 * 3,
		"{viewer{...on Viewer{...a}}} fragment a on Viewer{name}":                                                2,
		"{viewer{name @skip(if:true)}}":                                                                          2,
		"query($n:Int){explainSku(machineId:\"a\",first:$n){distance}}":                                          1 + 7,
		`{explainSku(machineId:"a"){distance}}`:                                                                  1 + 3, // the argument's default
		`{explainSku(machineId:"a",first:4){distance}}`:                                                          1 + 4,
		`{explainSku(machineId:"a",first:2000){distance}}`:                                                       1 + 200,
		`{explainSku(machineId:"a",first:null){distance}}`:                                                       1 + 50,
		"query($i:[ID!]!){viewer{name @include(if:true)} a:__typename ...b} fragment b on Query{x:viewer{name}}": 0, // $i is not used
	} {
		got := b.send(t, http.MethodPost, "/graphql", withVariables(query, `{"n":7,"i":["a"]}`), map[string]string{costHeader: "1"})
		if want == 0 {
			require.NotEmpty(t, got.Errors)
			continue
		}
		require.Equal(t, map[string]any{"complexity": want, "limit": 300_000.0}, got.Extensions["cost"], query+got.body)
	}
}

// The pages that no resolver of the stubs answers.
func TestComplexityOfConnections(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{Complexity: 1}, nil)
	for query, want := range map[string]float64{
		"{machines{nodes{id}}}":                                               1 + 50*2,
		"{machines(first:3){nodes{id} totalCount}}":                           1 + 3*3,
		"{machines(last:3){edges{node{id}}}}":                                 1 + 3*3,
		"{machines(first:999){totalCount}}":                                   1 + 200,
		"query($n:Int=4){machines(first:$n){totalCount}}":                     1 + 4,
		"query($m:Int){machines(first:$m){totalCount}}":                       1 + 50,
		"{machines(first:2){nodes{site{skus(first:3){totalCount}}}}}":         1 + 2*(1+1+1+3),
		`query($i:[ID!]!){nodes(ids:$i){id}}`:                                 1 + 3,
		`{nodes(ids:["a","b"]){id}}`:                                          1 + 2,
		`{machines(first:0,where:{nameIn:["a","b"]}){totalCount}}`:            1 + 50*4,
		`query($w:MachineWhereInput){machines(first:0,where:$w){totalCount}}`: 1 + 50*4,
	} {
		got := b.run(t, query, `{"i":["a","b","c"],"w":{"nameIn":["a","b"]}}`)
		got.requireError(t, "RESOURCE_EXHAUSTED", "TOO_COMPLEX", "")
		require.Equal(t, map[string]any{"limit": 1.0, "actual": want}, got.Errors[0].Extensions["details"], query)
	}
}

func TestTheCostIsToldToWhoAsks(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	require.NotContains(t, b.run(t, "{viewer{name}}", "").body, "extensions")
	got := b.send(t, http.MethodPost, "/graphql", `{"query":"{viewer{name}}","extensions":{"cost":true}}`, nil)
	require.JSONEq(t, `{"data":{"viewer":{"name":"tester"}},"extensions":{"cost":{"complexity":2,"limit":500000}}}`, got.body)
}

func TestGraphiQLsIntrospectionIsWithinTheLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	query, err := os.ReadFile("testdata/introspection.graphql")
	require.NoError(t, err)
	got := b.send(t, http.MethodPost, "/graphql", document(string(query)), map[string]string{costHeader: "1"})
	require.Empty(t, got.Errors)
	t.Log(got.Extensions)
	require.NotEmpty(t, got.Data["__schema"].(map[string]any)["types"])
}

func TestIntrospectionCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	b := newBenchWith(t, Config{HideSchema: true}, nil)
	for _, query := range []string{"{__schema{queryType{name}}}", `{a:__type(name:"Site"){name}}`, "{...a} fragment a on Query{__schema{queryType{name}}}"} {
		got := b.run(t, query, "")
		got.requireError(t, "PERMISSION_DENIED", "INTROSPECTION_DISABLED", "")
		require.NotContains(t, got.body, "Query")
	}
	require.Empty(t, b.run(t, "{viewer{__typename name}}", "").Errors)
}

func TestSuggestionsGoWithIntrospection(t *testing.T) {
	t.Parallel()
	for _, introspection := range []bool{true, false} {
		b := newBenchWith(t, Config{HideSchema: !introspection}, nil)
		for query, meant := range map[string]string{
			"{viewer{nam}}":                                 "name",
			"{machines(wher:{}){totalCount}}":               "where",
			"{machines(where:{nam:1}){totalCount}}":         "name",
			"{viewer{...a}} fragment a on Viewers{name}":    "Viewer",
			"{machines(orderBy:{field:NAMES}){totalCount}}": "NAME",
			"{viewer}": "viewer { ... }",
		} {
			got := b.run(t, query, "")
			got.requireErrorReason(t, "GRAPHQL_VALIDATION_FAILED")
			require.Equal(t, introspection, strings.Contains(got.body, "id you mean"), got.body)
			require.Equal(t, introspection, strings.Contains(strings.SplitN(got.body+"ou mean", "ou mean", 2)[1], meant), got.body)
		}
		many := b.run(t, "{viewer{"+repeated(maxRefusals+1, numbered("name%d "))+"}}", "")
		require.NotContains(t, many.body, "id you mean")
		require.Len(t, many.Errors, maxRefusals)
	}
}

func (a answer) requireErrorReason(t *testing.T, reason string) {
	t.Helper()
	require.NotEmpty(t, a.Errors, a.body)
	require.Equal(t, reason, a.Errors[0].Extensions["reason"], a.body)
}

// A document's size is that of the document written out: the measurer counts without
// writing it out, which a small one shows to be the same.
func TestFragmentsCountAsIfWrittenOut(t *testing.T) {
	t.Parallel()
	for k := range 6 {
		short := parse(t, bomb(k))
		long := parse(t, "{machines{nodes{"+strings.Repeat("id ", 1<<k)+"}}}")
		a, b := newMeasurer(short), newMeasurer(long)
		got, want := a.operation(short.Operations[0]), b.operation(long.Operations[0])
		require.Equal(t, want.depth, got.depth)
		require.Equal(t, want.nodes+1<<(k+1)-1, got.nodes) // the uses of fragments
	}
	saturating := parse(t, bomb(90))
	require.Equal(t, saturated, newMeasurer(saturating).operation(saturating.Operations[0]).nodes)
}

func parse(t *testing.T, text string) *ast.QueryDocument {
	t.Helper()
	document, err := parser.ParseQuery(&ast.Source{Input: text})
	require.NoError(t, err)
	return document
}
