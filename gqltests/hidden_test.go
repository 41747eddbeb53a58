package gqltests_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

// idPaths are the places for ids within an input type, as errors name them: the first
// element of a list stands for all. Filters are left out: what they name is not looked
// up, and TestEveryFilterHidesTheOtherSite goes through them.
func (b *bundle) idPaths(t *testing.T, inputType string) []string {
	t.Helper()
	found := []string{}
	for _, field := range b.inputFields(t, inputType) {
		path := field.Name
		if field.Type.isList() {
			path += ".0"
		}
		switch of := field.Type.base(); {
		case of.Name == "ID":
			found = append(found, path)
		case of.Kind == "INPUT_OBJECT" && !strings.HasSuffix(of.Name, "WhereInput"):
			for _, inner := range b.idPaths(t, of.Name) {
				found = append(found, path+"."+inner)
			}
		}
	}
	return found
}

// foreign are the ids of what the other site has, by their prefix.
func (h *hall) foreign(t *testing.T) map[string]string {
	t.Helper()
	var happened struct{ Transitions struct{ Nodes []object } }
	h.must(t, `query($site: ID!) { transitions(first: 1, where: {siteId: $site, subjectType: MACHINE}) { nodes { id } } }`, variables{"site": h.there.id}, &happened)
	return map[string]string{
		fleet.PrefixSite: h.there.id, fleet.PrefixSku: h.there.sku, fleet.PrefixMachine: h.there.ready.ID, fleet.PrefixHealthAlert: h.there.alert,
		fleet.PrefixExpected: h.there.expected, fleet.PrefixWork: h.there.work, fleet.PrefixToken: h.there.token, fleet.PrefixTransition: happened.Transitions.Nodes[0].ID,
	}
}

// requireUntold checks that an answer tells nothing of the other site but the id that
// was sent.
func requireUntold(t *testing.T, foreign map[string]string, a answer, sent string) {
	t.Helper()
	text := strings.ReplaceAll(string(a.raw), sent, "")
	require.NotContains(t, text, "there")
	for _, id := range foreign {
		require.NotContains(t, text, id)
	}
}

// TestEveryIDOfAnInputHidesTheOtherSite goes through the schema: whatever id a mutation
// takes, of the other site's objects it says that there are none.
func TestEveryIDOfAnInputHidesTheOtherSite(t *testing.T) {
	t.Parallel()
	h := newFullHall(t)
	h.warm(t)
	foreign := h.foreign(t)
	content := h.fingerprint(t)
	before := content()
	// Batches say of each item what is wrong, in the details of one error.
	batched := map[string]variables{
		"updateExpectedMachines updates.0.expectedMachineId": {"updates": []any{variables{"expectedMachineId": h.there.expected, "patch": variables{}}}},
	}
	checked := 0
	for _, m := range mutations(t, h) {
		for _, path := range h.idPaths(t, m.inputType()) {
			caller := h.siteAdmin
			if m.as != "" {
				caller = m.as
			}
			checked++
			if change, ok := batched[m.name+" "+path]; ok {
				a := h.do(t, caller, m.document(), variables{"input": merged(m.input, change)})
				require.Len(t, a.Errors, 1, "%s %s: %s", m.name, path, a.raw)
				require.Equal(t, "BATCH_INVALID", a.Errors[0].Extensions.Reason)
				require.Contains(t, string(a.raw), `"EXPECTED_MACHINE_NOT_FOUND"`)
				requireUntold(t, foreign, a, h.there.expected)
				continue
			}
			i := slices.IndexFunc(m.references, func(r reference) bool { return r.field == path })
			require.GreaterOrEqual(t, i, 0, "%s takes an id at %s, of which the table says nothing", m.name, path)
			r := m.references[i]
			base := m.input
			if r.base != nil {
				base = r.base
			}
			a := h.do(t, caller, m.document(), variables{"input": merged(base, r.set(r.foreign))})
			require.Len(t, a.Errors, 1, "%s %s: %s", m.name, path, a.raw)
			require.Equal(t, []string{"NOT_FOUND", r.reason, path}, []string{a.Errors[0].Extensions.Code, a.Errors[0].Extensions.Reason, a.Errors[0].Extensions.Field}, "%s", m.name)
			requireUntold(t, foreign, a, r.foreign)
			// An id of another kind is refused by its form, before anything is looked up.
			for prefix, id := range foreign {
				if prefix == r.prefix {
					continue
				}
				a := h.do(t, caller, m.document(), variables{"input": merged(base, r.set(id))})
				require.Len(t, a.Errors, 1)
				require.Equal(t, []string{"ID_INVALID", path}, []string{a.Errors[0].Extensions.Reason, a.Errors[0].Extensions.Field}, "%s", m.name)
				requireUntold(t, foreign, a, id)
			}
		}
	}
	require.GreaterOrEqual(t, checked, 29)
	require.Equal(t, before, content())
}

// rootField is a field of Query with its arguments.
type rootField struct {
	Name string
	Args []inputField
	Type typeRef
}

func (b *bundle) rootFields(t *testing.T) []rootField {
	t.Helper()
	var out struct {
		Type struct{ Fields []rootField } `json:"__type"`
	}
	b.must(t, `{ __type(name: "Query") { fields { name type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }
		args { name defaultValue type { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } }`, nil, &out)
	require.NotEmpty(t, out.Type.Fields)
	return out.Type.Fields
}

// ask is a query of a root field with arguments, each of which is a variable.
func (f rootField) ask(args variables) string {
	declared, given := []string{}, []string{}
	for _, arg := range f.Args {
		if _, ok := args[arg.Name]; ok {
			declared = append(declared, "$"+arg.Name+": "+arg.Type.text())
			given = append(given, arg.Name+": $"+arg.Name)
		}
	}
	selection := ""
	switch kind := f.Type.base().Kind; kind {
	case "OBJECT", "INTERFACE", "UNION":
		selection = " { __typename }"
	}
	return "query(" + strings.Join(declared, ", ") + ") { it: " + f.Name + "(" + strings.Join(given, ", ") + ")" + selection + " }"
}

// text is a type as a document names it.
func (r typeRef) text() string {
	switch r.Kind {
	case "NON_NULL":
		return r.OfType.text() + "!"
	case "LIST":
		return "[" + r.OfType.text() + "]"
	default:
		return r.Name
	}
}

// TestEveryRootQueryHidesTheOtherSite goes through the schema: whatever id or name of
// the other site a query is given, it finds nothing.
func TestEveryRootQueryHidesTheOtherSite(t *testing.T) {
	t.Parallel()
	h := newFullHall(t)
	foreign := h.foreign(t)
	callers := []string{h.viewer, h.siteOperator, h.siteAdmin, h.agent}
	known := map[string]variables{
		"previewSkuReplace": {"components": h.generate(t, h.here.ready.ID)},
		"explainSelection":  {"context": "DISCOVERY"},
		"validationTest":    {"version": nvmeVersion},
	}
	texts := map[string][]string{
		"name": {"there-ready", "spare", "there"}, "bmcMacAddress": {readyMac, "02:00:00:00:00:41"}, "serialNumber": {"TEST0001"}, "testId": {"forge_NvmeCheck"},
	}
	ids, names := 0, 0
	for _, field := range h.rootFields(t) {
		for _, arg := range field.Args {
			switch {
			case arg.Type.base().Name == "ID":
				for _, id := range foreign {
					var value any = id
					if arg.Type.isList() {
						value = []any{id}
					}
					for _, caller := range callers {
						args := merged(variables{arg.Name: value}, known[field.Name])
						a := h.do(t, caller, field.ask(args), args)
						requireNothing(t, field.Name, a)
						requireUntold(t, foreign, a, id)
						ids++
					}
				}
			case arg.Name == "site":
				for other, values := range texts {
					if !slices.ContainsFunc(field.Args, func(a inputField) bool { return a.Name == other }) {
						continue
					}
					for _, value := range values {
						for _, caller := range callers {
							args := merged(variables{"site": "there", other: value}, known[field.Name])
							a := h.do(t, caller, field.ask(args), args)
							require.JSONEq(t, `{"data": {"it": null}}`, string(a.raw), field.Name)
							names++
						}
					}
				}
			}
		}
	}
	require.Greater(t, ids, 100)
	require.GreaterOrEqual(t, names, 40)
}

// requireNothing checks that a query found nothing, or said that there is no such thing.
func requireNothing(t *testing.T, name string, a answer) {
	t.Helper()
	if len(a.Errors) > 0 {
		require.Contains(t, []string{"NOT_FOUND", "INVALID_ARGUMENT", "PERMISSION_DENIED"}, a.Errors[0].Extensions.Code, "%s: %s", name, a.raw)
		require.NotContains(t, []string{"GRAPHQL_VALIDATION_FAILED"}, a.Errors[0].Extensions.Reason, "%s: %s", name, a.raw)
		return
	}
	require.Contains(t, []string{"null", "[null]", "[]"}, string(a.Data["it"]), "%s: %s", name, a.raw)
}

// TestEveryFilterHidesTheOtherSite filters each list by each of its own fields with
// what the other site has: what is found is always the caller's own.
func TestEveryFilterHidesTheOtherSite(t *testing.T) {
	t.Parallel()
	h := newFullHall(t)
	values := append(slices.Sorted(maps.Values(h.foreign(t))), "there", "there-ready", "spare")
	filters := 0
	for _, field := range h.connections(t) {
		caller := h.viewer
		if field == "tokens" {
			caller = h.siteAdmin
		}
		own := map[string]bool{}
		for _, o := range h.listed(t, caller, field) {
			own[o.ID] = true
		}
		i := slices.IndexFunc(h.rootFields(t), func(f rootField) bool { return f.Name == field })
		root := h.rootFields(t)[i]
		j := slices.IndexFunc(root.Args, func(a inputField) bool { return a.Name == "where" })
		require.GreaterOrEqual(t, j, 0, field)
		for _, where := range h.inputFields(t, root.Args[j].Type.base().Name) {
			of := where.Type.base().Name
			if of != "ID" && of != "String" || where.Type.isList() {
				continue
			}
			for _, value := range values {
				a := h.do(t, caller, fmt.Sprintf(`query($v: %s) { it: %s(first: 200, where: {%s: $v}) { totalCount edges { node { id } } } }`, of, field, where.Name), variables{"v": value})
				filters++
				if len(a.Errors) > 0 { // an id of another kind
					require.Equal(t, "INVALID_ARGUMENT", a.Errors[0].Extensions.Code, "%s", a.raw)
					continue
				}
				var page struct {
					TotalCount int
					Edges      []struct{ Node object }
				}
				require.NoError(t, json.Unmarshal(a.Data["it"], &page))
				require.Len(t, page.Edges, page.TotalCount)
				for _, edge := range page.Edges {
					require.True(t, own[edge.Node.ID], "%s by %s", field, where.Name)
				}
				if exact := value != "spare" && !strings.HasPrefix(value, "there"); exact && isEquality(where.Name) {
					require.Zero(t, page.TotalCount, "%s by %s", field, where.Name)
				}
			}
		}
	}
	require.Greater(t, filters, 500)
}

// isEquality tells whether a filter is for a value itself: its name has no operator.
func isEquality(name string) bool {
	for _, operator := range []string{"NEQ", "GT", "GTE", "LT", "LTE", "In", "Contains", "ContainsFold", "EqualFold", "HasPrefix", "HasSuffix"} {
		if strings.HasSuffix(name, operator) {
			return false
		}
	}
	return true
}
