package ent_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
)

// orders are all orders of machines, as a client writes them.
var orders = []string{
	"", "{field: NAME}", "{field: NAME, direction: DESC}", "{field: CREATED_AT}", "{field: CREATED_AT, direction: DESC}",
	"{field: UPDATED_AT}", "{field: UPDATED_AT, direction: DESC}", "{field: STATE_CHANGED_AT}", "{field: STATE_CHANGED_AT, direction: DESC}",
}

func orderBy(order string) string {
	if order == "" {
		return ""
	}
	return ", orderBy: " + order
}

func TestPagesOfAnyOrderAndDirectionGiveEachRowOnceWhileRowsComeAndGo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	random := rand.New(rand.NewPCG(1, 2))
	var stable []string
	for range 23 {
		stable = append(stable, w.machine(t, site, nil).ID)
	}
	slices.Sort(stable)
	for _, order := range orders {
		for _, forward := range []bool{true, false} {
			t.Run(fmt.Sprintf("order %s forward %t", order, forward), func(t *testing.T) {
				var seen []string
				var passing []*ent.Machine
				cursor := "null"
				for page := 0; ; page++ {
					require.Less(t, page, 100)
					size := 1 + random.IntN(6)
					document := fmt.Sprintf(`{machines(first: %d, after: %s%s) {nodes {id} pageInfo {hasNextPage endCursor}}}`, size, cursor, orderBy(order))
					more, next := "hasNextPage", "endCursor"
					if !forward {
						document = fmt.Sprintf(`{machines(last: %d, before: %s%s) {nodes {id} pageInfo {hasPreviousPage startCursor}}}`, size, cursor, orderBy(order))
						more, next = "hasPreviousPage", "startCursor"
					}
					data := w.data(t, document, nil)
					ids := column(t, data, "machines.nodes", "id")
					require.LessOrEqual(t, len(ids), size)
					for _, id := range ids {
						seen = append(seen, id.(string))
					}
					if at(t, data, "machines.pageInfo."+more) == false {
						break
					}
					cursor = fmt.Sprintf("%q", at(t, data, "machines.pageInfo."+next))
					// Rows come, and rows go, among them those that a cursor points at.
					passing = append(passing, w.machine(t, site, nil))
					if len(passing) > 2 {
						i := random.IntN(len(passing))
						w.Machine.DeleteOne(passing[i]).ExecX(t.Context())
						passing = slices.Delete(passing, i, i+1)
					}
				}
				for _, p := range passing {
					w.Machine.DeleteOne(p).ExecX(t.Context())
				}
				counted := map[string]int{}
				for _, id := range seen {
					counted[id]++
					require.Equal(t, 1, counted[id], "a row appeared twice")
				}
				var found []string
				for id := range counted {
					if slices.Contains(stable, id) {
						found = append(found, id)
					}
				}
				slices.Sort(found)
				require.Equal(t, stable, found)
			})
		}
	}
}

func TestNestedPagesInEveryOrderAreThoseOfTheUnpagedSet(t *testing.T) {
	t.Parallel()
	w := setup(t)
	owner, empty := w.site(t), w.site(t)
	other := w.site(t)
	for i := range 17 {
		w.machine(t, owner, nil)
		if i%3 == 0 {
			w.machine(t, other, nil)
		}
	}
	for _, order := range orders {
		all := w.data(t, fmt.Sprintf(`{sites {nodes {id machines(first: 200%s) {edges {cursor node {id name}}}}}}`, orderBy(order)), nil)
		for s, site := range []*ent.Site{owner, empty, other} {
			path := fmt.Sprintf("sites.nodes.%d.machines.edges", s)
			whole := column(t, all, path, "node.id")
			cursors := column(t, all, path, "cursor")
			require.Equal(t, w.Machine.Query().Where(machine.SiteID(site.ID)).CountX(t.Context()), len(whole))
			for i := range whole {
				for _, c := range []struct {
					args     string
					from, to int
				}{
					{fmt.Sprintf("first: 3, after: %q", cursors[i]), i + 1, min(i+4, len(whole))},
					{fmt.Sprintf("last: 3, before: %q", cursors[i]), max(i-3, 0), i},
					{fmt.Sprintf("first: 3, before: %q", cursors[i]), 0, min(3, i)},
					{fmt.Sprintf("last: 3, after: %q", cursors[i]), max(len(whole)-3, i+1), len(whole)},
					{fmt.Sprintf("last: 2, after: %q, before: %q", cursors[0], cursors[i]), max(i-2, 1), max(i, 1)},
				} {
					if i == 0 && strings.HasPrefix(c.args, "last: 2") {
						continue
					}
					nested := w.data(t, fmt.Sprintf(`{sites {nodes {id machines(%s%s) {nodes {id} pageInfo {hasNextPage hasPreviousPage}}}}}`, c.args, orderBy(order)), nil)
					single := w.data(t, fmt.Sprintf(`{node(id: %q) {... on Site {machines(%s%s) {nodes {id} pageInfo {hasNextPage hasPreviousPage}}}}}`, site.ID, c.args, orderBy(order)), nil)
					for _, got := range []any{at(t, nested, fmt.Sprintf("sites.nodes.%d.machines", s)), at(t, single, "node.machines")} {
						require.Equal(t, append([]any{}, whole[c.from:c.to]...), column(t, got, "nodes", "id"), "%s %s", order, c.args)
						require.Equal(t, c.to < len(whole), at(t, got, "pageInfo.hasNextPage"), "%s %s", order, c.args)
						require.Equal(t, c.from > 0, at(t, got, "pageInfo.hasPreviousPage"), "%s %s", order, c.args)
					}
				}
				if order != "" && i > 3 {
					break
				}
			}
		}
	}
}

func TestPageInfoNeedsNoEdgesAndNoCount(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	for range 5 {
		w.machine(t, site, nil)
	}
	edges := w.data(t, `{machines {edges {cursor}}}`, nil)
	cursors := column(t, edges, "machines.edges", "cursor")
	for _, c := range []struct {
		args           string
		next, previous bool
	}{
		{"first: 4", true, false},
		{"first: 5", false, false},
		{"last: 4", false, true},
		{"last: 5", false, false},
		{"first: 0", true, false},
		{"last: 0", false, true},
		{fmt.Sprintf("first: 9, after: %q", cursors[4]), false, true},
		{fmt.Sprintf("last: 9, before: %q", cursors[0]), true, false},
		{fmt.Sprintf("first: 1, after: %q", cursors[1]), true, true},
		{fmt.Sprintf("last: 1, before: %q", cursors[3]), true, true},
	} {
		for _, selection := range []string{"pageInfo {hasNextPage hasPreviousPage}", "i: pageInfo {n: hasNextPage hasNextPage hasPreviousPage} edges {cursor}"} {
			w.sql.take()
			data := w.data(t, fmt.Sprintf(`{m: machines(%s) {%s}}`, c.args, selection), nil)
			info := at(t, data, "m").(map[string]any)["pageInfo"]
			if info == nil {
				info = at(t, data, "m.i")
			}
			require.Equal(t, c.next, at(t, info, "hasNextPage"), c.args)
			require.Equal(t, c.previous, at(t, info, "hasPreviousPage"), c.args)
			for _, statement := range w.sql.take() {
				require.NotContains(t, statement, "COUNT")
			}
		}
	}
}

func TestHasPreviousPageIsFalseWhenWhatPrecededIsGone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	gone := w.machine(t, site, nil)
	w.machine(t, site, nil)
	cursor := at(t, w.data(t, `{machines(first: 1) {pageInfo {endCursor}}}`, nil), "machines.pageInfo.endCursor")
	w.Machine.DeleteOne(gone).ExecX(t.Context())
	data := w.data(t, fmt.Sprintf(`{machines(after: %q) {pageInfo {hasPreviousPage}} sites {nodes {machines(after: %[1]q) {pageInfo {hasPreviousPage}}}}}`, cursor), nil)
	require.Equal(t, false, at(t, data, "machines.pageInfo.hasPreviousPage"))
	require.Equal(t, false, at(t, data, "sites.nodes.0.machines.pageInfo.hasPreviousPage"))
}

func TestAPageHoldsFiftyUnlessToldOtherwiseAndTwoHundredAtMost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	for range 210 {
		w.machine(t, site, nil)
	}
	data := w.data(t, `{machines {nodes {id}} most: machines(first: 200) {nodes {id}} none: machines(first: 0) {edges {node {id}} totalCount} sites {nodes {machines {nodes {id}} all: machines(last: 200) {nodes {id}}}}}`, nil)
	require.Len(t, at(t, data, "machines.nodes"), 50)
	require.Len(t, at(t, data, "most.nodes"), 200)
	require.Empty(t, at(t, data, "none.edges"))
	require.EqualValues(t, 210, at(t, data, "none.totalCount"))
	require.Len(t, at(t, data, "sites.nodes.0.machines.nodes"), 50)
	require.Len(t, at(t, data, "sites.nodes.0.all.nodes"), 200)
	for _, c := range []struct{ args, field, reason string }{
		{"first: 201", "first", "PAGE_SIZE_INVALID"},
		{"last: 201", "last", "PAGE_SIZE_INVALID"},
		{"first: -1", "first", "PAGE_SIZE_INVALID"},
		{"last: -1", "last", "PAGE_SIZE_INVALID"},
		{"first: 2147483647", "first", "PAGE_SIZE_INVALID"},
		{"first: 1, last: 1", "last", "PAGE_ARGUMENTS_CONFLICT"},
	} {
		for _, document := range []string{`{machines(%s) {nodes {id}}}`, `{sites {nodes {machines(%s) {nodes {id}}}}}`} {
			got := w.refused(t, fmt.Sprintf(document, c.args), nil)
			require.EqualValues(t, map[string]string{"code": "INVALID_ARGUMENT", "field": c.field, "reason": c.reason}, texts(got), c.args)
		}
	}
}

func TestABadCursorIsATypedErrorAtAnyDepth(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	w.machine(t, site, nil)
	w.sku(t, site)
	data := w.data(t, `{machines(orderBy: {field: NAME}) {edges {cursor}} skus(orderBy: {field: NAME}) {edges {cursor}}}`, nil)
	byName := at(t, data, "machines.edges.0.cursor").(string)
	ofSku := at(t, data, "skus.edges.0.cursor").(string)
	cases := map[string]string{
		"": "CURSOR_INVALID", "garbage": "CURSOR_INVALID", "%%%": "CURSOR_INVALID", "\x00": "CURSOR_INVALID",
		byName[:len(byName)-2]: "CURSOR_INVALID", byName + "AAAA": "CURSOR_INVALID", strings.Repeat("A", 100_000): "CURSOR_INVALID",
		"B" + byName[1:]: "CURSOR_INVALID", byName: "CURSOR_FOREIGN", ofSku: "CURSOR_FOREIGN",
	}
	for cursor, reason := range cases {
		for _, argument := range []string{"after", "before"} {
			for _, document := range []string{
				`query($c: Cursor) {machines(%s: $c) {nodes {id}}}`,
				`query($c: Cursor) {machines(%s: $c, orderBy: {field: NAME, direction: DESC}) {nodes {id}}}`,
				`query($c: Cursor) {sites {nodes {machines(%s: $c) {nodes {id}}}}}`,
				`query($c: Cursor) {sites {nodes {skus {nodes {machines(%s: $c, orderBy: {field: UPDATED_AT}) {totalCount}}}}}}`,
			} {
				got := w.refused(t, fmt.Sprintf(document, argument), map[string]any{"c": cursor})
				require.Equal(t, map[string]string{"code": "INVALID_ARGUMENT", "field": argument, "reason": reason}, texts(got), "%q", cursor)
			}
		}
	}
	got := w.refused(t, `{machines(after: 7) {nodes {id}}}`, nil)
	require.Equal(t, map[string]string{"code": "INVALID_ARGUMENT", "field": "after", "reason": "CURSOR_INVALID"}, texts(got))
}

func TestACursorOutlivesItsRowAndKeepsMicroseconds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	when := time.Date(2026, 3, 4, 5, 6, 7, 891_234_000, time.UTC)
	var ids []any
	for i := range 4 {
		m := w.machine(t, site, nil)
		m.Update().SetUpdatedAt(when.Add(time.Duration(i) * time.Microsecond)).ExecX(t.Context())
		ids = append(ids, m.ID)
	}
	data := w.data(t, `{machines(first: 2, orderBy: {field: UPDATED_AT}) {nodes {id} pageInfo {endCursor}}}`, nil)
	require.Equal(t, ids[:2], column(t, data, "machines.nodes", "id"))
	w.Machine.DeleteOneID(ids[1].(string)).ExecX(t.Context())
	data = w.data(t, fmt.Sprintf(`{machines(orderBy: {field: UPDATED_AT}, after: %q) {nodes {id}}}`, at(t, data, "machines.pageInfo.endCursor")), nil)
	require.Equal(t, ids[2:], column(t, data, "machines.nodes", "id"))
}

func texts(extensions map[string]any) map[string]string {
	out := map[string]string{}
	for k, v := range extensions {
		out[k] = fmt.Sprint(v)
	}
	return out
}
