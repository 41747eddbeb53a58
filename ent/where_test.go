package ent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

// nested wraps a filter of machines in filters until it is depth deep.
func nested(depth int, wrap string) string {
	filter := `{name: "m-003"}`
	for i := 1; i < depth; i++ {
		switch {
		case wrap != "hasWith":
			filter = "{" + wrap + ": " + filter + "}"
		case i%2 == 1:
			filter = "{hasMachinesWith: " + filter + "}"
		default:
			filter = "{hasSiteWith: " + filter + "}"
		}
	}
	return filter
}

func TestFiltersNestEightDeepAndNoDeeper(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	w.machine(t, site, nil)
	for _, wrap := range []string{"not", "and", "or", "hasWith"} {
		ok, deep := 8, 9
		if wrap == "hasWith" {
			// The wrapped filter has to be of machines.
			ok, deep = 7, 9
		}
		w.data(t, `{machines(where: `+nested(ok, wrap)+`) {nodes {id}}}`, nil)
		w.data(t, `{sites {nodes {machines(where: `+nested(ok, wrap)+`) {nodes {id}}}}}`, nil)
		for _, document := range []string{`{machines(where: %) {totalCount}}`, `{sites {nodes {machines(where: %) {totalCount}}}}`} {
			got := w.refused(t, strings.Replace(document, "%", nested(deep, wrap), 1), nil)
			require.Equal(t, map[string]string{"code": "INVALID_ARGUMENT", "field": "where", "reason": "WHERE_TOO_DEEP"}, texts(got), wrap)
		}
	}
}

func TestListsAndTextsOfFiltersAreBounded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, test := range []struct {
		reason string
		where  map[string]any
	}{
		{"WHERE_LIST_TOO_LONG", map[string]any{"nameIn": make([]string, 501)}},
		{"WHERE_TEXT_INVALID", map[string]any{"or": []any{map[string]any{"nameContains": "a\x00b"}}}},
		{"WHERE_EMPTY", map[string]any{"not": map[string]any{}}},
		{"WHERE_EMPTY", map[string]any{"or": []any{map[string]any{}}}},
		{"WHERE_EMPTY", map[string]any{"or": []any{}}},
		{"WHERE_EMPTY", map[string]any{"and": []any{}}},
		{"WHERE_EMPTY", map[string]any{"hasSkuWith": []any{}}},
		{"WHERE_EMPTY", map[string]any{"not": map[string]any{"or": []any{}}}},
		{"WHERE_TEXT_EMPTY", map[string]any{"nameHasPrefix": ""}},
		{"WHERE_TEXT_EMPTY", map[string]any{"nameHasSuffix": ""}},
		{"WHERE_TEXT_EMPTY", map[string]any{"nameContains": ""}},
		{"WHERE_TEXT_EMPTY", map[string]any{"nameContainsFold": ""}},
		{"WHERE_TEXT_EMPTY", map[string]any{"nameGTE": ""}},
		{"WHERE_TEXT_EMPTY", map[string]any{"idContainsFold": ""}},
		{"WHERE_TEXT_EMPTY", map[string]any{"name": "a", "nameHasPrefix": ""}},
		{"WHERE_TEXT_EMPTY", map[string]any{"and": []any{map[string]any{"name": "a"}, map[string]any{"nameContains": ""}}}},
		{"WHERE_TEXT_EMPTY", map[string]any{"or": []any{map[string]any{"not": map[string]any{"not": map[string]any{"skuNameHasPrefix": ""}}}}}},
		{"WHERE_TEXT_EMPTY", map[string]any{"hasSiteWith": []any{map[string]any{"nameContains": ""}}}},
	} {
		got := w.refused(t, `query($w: MachineWhereInput) {machines(where: $w) {totalCount}}`, map[string]any{"w": test.where})
		require.Equal(t, map[string]string{"code": "INVALID_ARGUMENT", "field": "where", "reason": test.reason}, texts(got), test.where)
	}
	w.data(t, `query($w: MachineWhereInput) {machines(where: $w) {totalCount}}`, map[string]any{"w": map[string]any{"nameIn": make([]string, 500)}})
	w.data(t, `query($w: MachineWhereInput) {machines(where: $w) {totalCount}}`, map[string]any{"w": map[string]any{"name": "", "nameNEQ": "", "nameEqualFold": ""}})
}

func TestFiltersMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	with := w.machine(t, site, w.sku(t, site))
	without := w.machine(t, site, nil)
	for where, want := range map[string][]any{
		`{}`:                                    {with.ID, without.ID},
		`{idIn: []}`:                            {},
		`{idNotIn: []}`:                         {with.ID, without.ID},
		`{idIn: null}`:                          {with.ID, without.ID},
		`{skuNameIsNil: true}`:                  {without.ID},
		`{skuNameIsNil: false}`:                 {with.ID},
		`{skuNameNotNil: true}`:                 {with.ID},
		`{skuNameNotNil: false}`:                {without.ID},
		`{hasSku: false}`:                       {without.ID},
		`{hasSkuWith: {nameHasPrefix: "sku-"}}`: {with.ID},
		`{not: {hasSkuWith: {name: "other"}}}`:  {with.ID, without.ID},
		`{or: [{id: "x"}, {name: "` + without.Name + `"}]}`: {without.ID},
		`{stateIn: [INGESTING], siteId: "` + site.ID + `"}`: {with.ID, without.ID},
		`{nameContains: "%"}`:                               {},
	} {
		require.Equal(t, want, column(t, w.data(t, `{machines(where: `+where+`) {nodes {id}}}`, nil), "machines.nodes", "id"), where)
		require.Equal(t, want, column(t, w.data(t, `{sites {nodes {machines(where: `+where+`) {nodes {id}}}}}`, nil), "sites.nodes.0.machines.nodes", "id"), where)
	}
	require.Equal(t, string(fleet.StateIngesting), string(with.State))
}

func TestAConditionThatCannotBeReadIsAnErrorOfThatConditionAtAnyDepth(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for document, path := range map[string]string{
		`{machines(where: {createdAtGT: "nonsense"}) {totalCount}}`:                                      "machines.where.createdAtGT",
		`{sites {nodes {machines(where: {createdAtGT: "nonsense"}) {totalCount}}}}`:                      "sites.where.createdAtGT",
		`{sites {nodes {machines(where: {hasSkuWith: {not: {createdAtGT: "nonsense"}}}) {totalCount}}}}`: "sites.where.hasSkuWith[0].not.createdAtGT",
	} {
		_, errs := w.run(t, document, nil)
		require.Len(t, errs, 1)
		require.Equal(t, path, errs[0].Path.String())
	}
}
