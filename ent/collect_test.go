package ent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/fleet"
)

// hall makes two sites with SKUs and machines: 3 SKUs at each, of which the first has
// 7 machines, the second 2, the third none.
func hall(t *testing.T, w *world) (sites []*ent.Site) {
	t.Helper()
	for range 2 {
		site := w.site(t)
		sites = append(sites, site)
		for _, n := range []int{7, 2, 0} {
			sku := w.sku(t, site)
			for range n {
				w.machine(t, site, sku)
			}
		}
	}
	return sites
}

func TestAliasesAndFragmentsAnswerAsThePlainNamesDo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	hall(t, w)
	plain := w.data(t, `{sites {totalCount edges {cursor node {id name machines(first: 3) {totalCount edges {cursor node {name sku {name}}} pageInfo {hasNextPage endCursor}}}}}}`, nil)
	statements := len(w.sql.take())
	w.data(t, `{sites {totalCount edges {cursor node {id name machines(first: 3) {totalCount edges {cursor node {name sku {name}}} pageInfo {hasNextPage endCursor}}}}}}`, nil)
	statements = len(w.sql.take())
	for name, document := range map[string]string{
		"every field under an alias": `{s: sites {t: totalCount e: edges {c: cursor n: node {i: id a: name m: machines(first: 3) {t: totalCount e: edges {c: cursor n: node {a: name k: sku {a: name}}} p: pageInfo {h: hasNextPage c: endCursor}}}}}}`,
		"one field under several aliases, each with a part": `{s: sites {t: totalCount e: edges {c: cursor n: node {i: id}} e2: edges {n2: node {a: name} n3: node {
			m: machines(first: 3) {t: totalCount e: edges {c: cursor}  e2: edges {n: node {a: name}} p2: pageInfo {c: endCursor}}
			m2: machines(first: 3) {e: edges {n: node {k: sku {id}} n2: node {k: sku {a: name} k2: sku {d: description}}} p: pageInfo {h: hasNextPage}}}}}}`,
		"fragments named and inline": `query {s: sites {...C ... on SiteConnection {t: totalCount}}}
			fragment C on SiteConnection {e: edges {... on SiteEdge {c: cursor n: node {...N ... on Site {a: name}}}}}
			fragment N on Node {i: id ... on Site {m: machines(first: 3) {...M}}}
			fragment M on MachineConnection {t: totalCount ... {e: edges {c: cursor n: node {... on Machine {a: name} ... on Node {... on Machine {k: sku {... on Node {... on Sku {a: name}}}}}}} p: pageInfo {h: hasNextPage ... on PageInfo {c: endCursor}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w.sql.take()
			got := w.data(t, document, nil)
			require.Len(t, w.sql.take(), statements)
			require.Equal(t, at(t, plain, "sites.totalCount"), at(t, got, "s.t"))
			edges := at(t, plain, "sites.edges").([]any)
			require.Len(t, at(t, got, "s.e"), len(edges))
			for i := range edges {
				p, g := fmt.Sprintf("sites.edges.%d.", i), fmt.Sprintf("s.e.%d.", i)
				require.Equal(t, at(t, plain, p+"cursor"), at(t, got, g+"c"))
				require.Equal(t, at(t, plain, p+"node.id"), at(t, got, g+"n.i"))
				second, third := g+"n.", g+"n."
				if strings.HasPrefix(name, "one field") {
					second, third = fmt.Sprintf("s.e2.%d.n2.", i), fmt.Sprintf("s.e2.%d.n3.", i)
				}
				require.Equal(t, at(t, plain, p+"node.name"), at(t, got, second+"a"))
				machines := at(t, got, third+"m")
				require.Equal(t, at(t, plain, p+"node.machines.totalCount"), at(t, machines, "t"))
				require.Equal(t, column(t, plain, p+"node.machines.edges", "cursor"), column(t, machines, "e", "c"))
				if strings.HasPrefix(name, "one field") {
					other := at(t, got, third+"m2")
					require.Equal(t, column(t, plain, p+"node.machines.edges", "node.name"), column(t, machines, "e2", "n.a"))
					require.Equal(t, column(t, plain, p+"node.machines.edges", "node.sku.name"), column(t, other, "e", "n2.k.a"))
					require.Equal(t, []any{"kind", "kind", "kind"}, column(t, other, "e", "n2.k2.d"))
					require.Equal(t, at(t, plain, p+"node.machines.pageInfo.hasNextPage"), at(t, other, "p.h"))
					require.Equal(t, at(t, plain, p+"node.machines.pageInfo.endCursor"), at(t, machines, "p2.c"))
					continue
				}
				require.Equal(t, column(t, plain, p+"node.machines.edges", "node.name"), column(t, machines, "e", "n.a"))
				require.Equal(t, column(t, plain, p+"node.machines.edges", "node.sku.name"), column(t, machines, "e", "n.k.a"))
				require.Equal(t, at(t, plain, p+"node.machines.pageInfo.hasNextPage"), at(t, machines, "p.h"))
				require.Equal(t, at(t, plain, p+"node.machines.pageInfo.endCursor"), at(t, machines, "p.c"))
			}
		})
	}
}

func TestOneConnectionWithDifferentArgumentsIsSeveralPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	hall(t, w)
	data := w.data(t, `query($n: Int) {sites(first: 1) {
		a: edges {node {machines(first: 2) {nodes {name}}}}
		b: edges {node {machines(first: $n, orderBy: {field: NAME, direction: DESC}) {nodes {name}}}}
		nodes {
			two: machines(last: 2) {totalCount nodes {name}}
			some: machines(where: {serialNumber: "s1"}, orderBy: {field: NAME}) {totalCount nodes {serialNumber}}
			none: machines(where: {name: "absent"}) {totalCount nodes {id} pageInfo {hasNextPage}}
			all: machines {totalCount}
		}
	}}`, map[string]any{"n": 3})
	names := column(t, w.data(t, `{sites(first: 1) {nodes {machines {nodes {name}}}}}`, nil), "sites.nodes.0.machines.nodes", "name")
	require.Equal(t, names[:2], column(t, data, "sites.a.0.node.machines.nodes", "name"))
	require.Equal(t, []any{names[8], names[7], names[6]}, column(t, data, "sites.b.0.node.machines.nodes", "name"))
	require.Equal(t, names[7:], column(t, data, "sites.nodes.0.two.nodes", "name"))
	require.EqualValues(t, 9, at(t, data, "sites.nodes.0.two.totalCount"))
	serials := column(t, data, "sites.nodes.0.some.nodes", "serialNumber")
	require.NotEmpty(t, serials)
	require.EqualValues(t, len(serials), at(t, data, "sites.nodes.0.some.totalCount"))
	for _, s := range serials {
		require.Equal(t, "s1", s)
	}
	require.EqualValues(t, 0, at(t, data, "sites.nodes.0.none.totalCount"))
	require.Empty(t, at(t, data, "sites.nodes.0.none.nodes"))
	require.Equal(t, false, at(t, data, "sites.nodes.0.none.pageInfo.hasNextPage"))
	require.EqualValues(t, 9, at(t, data, "sites.nodes.0.all.totalCount"))
}

func TestTheNumberOfStatementsDoesNotDependOnTheNumberOfRows(t *testing.T) {
	t.Parallel()
	documents := map[string]int{
		`{machines {nodes {name}}}`: 1,
		`{machines {totalCount}}`:   1,
		`{machines {totalCount nodes {name site {name} k: sku {name} sku {description}}}}`:                          4,
		`{skus {nodes {name machineCount}}}`:                                                                        2,
		`{skus {e: edges {n: node {c: machineCount machineCount machines {totalCount nodes {name site {name}}}}}}}`: 5,
		`{sites {nodes {skus(first: 2, where: {hasMachines: true}, orderBy: {field: NAME}) {totalCount pageInfo {hasNextPage} e: edges {n: node {name m: machines(last: 2) {t: totalCount p: pageInfo {hasPreviousPage} x: edges {y: node {name z: site {name}}}}}}}}}}`: 6,
		`{machines {nodes {skuComparison {match} lastVerification {at}}}}`: 2,
	}
	counts := map[string][]int{}
	for _, rows := range []int{1, 50} {
		w := setup(t)
		for range rows {
			site := w.site(t)
			w.machine(t, site, w.sku(t, site))
		}
		for document := range documents {
			w.sql.take()
			w.data(t, document, nil)
			counts[document] = append(counts[document], len(w.sql.take()))
		}
	}
	for document, want := range documents {
		require.Equal(t, []int{want, want}, counts[document], document)
	}
}

func TestAStatementReadsNoColumnThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	w.machine(t, site, w.sku(t, site))
	for _, c := range []struct {
		document string
		columns  [][]string
	}{
		{`{machines {nodes {name}}}`, [][]string{{"id", "name"}}},
		{`{machines {edges {cursor}}}`, [][]string{{"id"}}},
		{`{machines(orderBy: {field: UPDATED_AT}) {pageInfo {endCursor}}}`, [][]string{{"id", "updated_at"}}},
		{`{machines {nodes {lastVerification {at}}}}`, [][]string{{"id", "last_verified_at", "last_verification_match"}}},
		{`{machines {nodes {id site {name}}}}`, [][]string{{"id", "site_id"}, {"id", "name"}}},
		{`{machines {nodes {__typename bmcMacAddress skuId}}}`, [][]string{{"id", "bmc_mac_address", "sku_id"}}},
	} {
		w.sql.take()
		w.data(t, c.document, nil)
		statements := w.sql.take()
		require.Len(t, statements, len(c.columns), c.document)
		for i, statement := range statements {
			list, _, _ := strings.Cut(strings.TrimPrefix(statement, "SELECT "), " FROM ")
			var got []string
			for _, column := range strings.Split(list, ", ") {
				_, name, _ := strings.Cut(column, ".")
				got = append(got, strings.Trim(name, `"`))
			}
			require.ElementsMatch(t, c.columns[i], got, c.document)
		}
	}
}

func TestAFieldResolvedInCodeFindsWhatItDeclaredToNeed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	w.machine(t, site, w.sku(t, site))
	w.machine(t, site, nil)
	for _, document := range []string{
		`{machines {nodes {skuComparison {match} lastVerification {match}}}}`,
		`{machines {nodes {sku {name} skuComparison {match} lastVerification {match}}}}`,
		`{machines {nodes {skuComparison {match} s: sku {name} lastVerification {match}}}}`,
	} {
		data := w.data(t, document, nil)
		require.Equal(t, true, at(t, data, "machines.nodes.0.skuComparison.match"), document)
		require.Nil(t, at(t, data, "machines.nodes.1.skuComparison"), document)
		require.Equal(t, []any{true, true}, column(t, data, "machines.nodes", "lastVerification.match"), document)
	}
}

func TestNestedTotalsAndCountsHonourTheirFilters(t *testing.T) {
	t.Parallel()
	w := setup(t)
	sites := hall(t, w)
	data := w.data(t, `{sites {nodes {name t: machines(where: {hasSkuWith: [{name: "sku-002"}]}, first: 1) {totalCount nodes {name}} skus {nodes {name machineCount machines(first: 1) {totalCount}}}}}}`, nil)
	require.Equal(t, []any{float64(7), float64(0)}, column(t, data, "sites.nodes", "t.totalCount"))
	for s := range sites {
		list := fmt.Sprintf("sites.nodes.%d.skus.nodes", s)
		require.Equal(t, []any{7.0, 2.0, 0.0}, column(t, data, list, "machineCount"))
		require.Equal(t, []any{7.0, 2.0, 0.0}, column(t, data, list, "machines.totalCount"))
	}
}

func TestWhatWasNotLoadedAheadIsReadWhenAskedFor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	sites := hall(t, w)
	ctx := t.Context()
	site := w.Site.GetX(ctx, sites[0].ID)
	page, err := site.Machines(ctx, nil, nil, nil, nil, nil, nil)
	require.NoError(t, err)
	require.Len(t, page.Edges, 9)
	require.Equal(t, 9, page.TotalCount)
	sku, err := page.Nodes()[0].Sku(ctx)
	require.NoError(t, err)
	count, err := sku.MachineCount(ctx)
	require.NoError(t, err)
	require.Equal(t, 7, count)
	alone := w.machine(t, sites[0], nil)
	none, err := alone.Sku(ctx)
	require.NoError(t, err)
	require.Nil(t, none)
	alert := w.HealthAlert.Create().SetSiteID(site.ID).SetMachineID(alone.ID).SetAlertID("a").SetSource("s").SetMessage("m").
		SetClassifications([]string{}).SaveX(ctx)
	owner, err := alert.Machine(ctx)
	require.NoError(t, err)
	require.Equal(t, alone.ID, owner.ID)
}

func TestNodeTellsTheTypeByTheIdAndIsNullForWhatItCannotFind(t *testing.T) {
	t.Parallel()
	w := setup(t)
	sites := hall(t, w)
	m := w.Machine.Query().Order(machine.ByName()).FirstX(t.Context())
	record := w.IdempotencyRecord.Create().SetCaller("c").SetMutation("m").SetKey("k").SetInputHash([]byte{1}).SaveX(t.Context())
	ids := []any{sites[0].ID, m.ID, "", "nonsense", fleet.NewID(fleet.PrefixMachine), record.ID, "machine_", "other_01h455vb4pex5vsknk084sn02q", m.ID, "machine_\x00"}
	w.sql.take()
	data := w.data(t, `query($ids: [ID!]!) {n: nodes(ids: $ids) {__typename i: id ... on Machine {name s: site {name}} ... on Site {name machines(first: 1) {totalCount}}}}`, map[string]any{"ids": ids})
	require.Len(t, w.sql.take(), 4)
	got := at(t, data, "n").([]any)
	require.Len(t, got, len(ids))
	require.Equal(t, map[string]any{"__typename": "Site", "i": sites[0].ID, "name": sites[0].Name, "machines": map[string]any{"totalCount": 9.0}}, got[0])
	require.Equal(t, map[string]any{"__typename": "Machine", "i": m.ID, "name": m.Name, "s": map[string]any{"name": sites[0].Name}}, got[1])
	require.Equal(t, got[1], got[8])
	for i, id := range ids {
		one := w.data(t, `query($id: ID!) {node(id: $id) {i: id}}`, map[string]any{"id": id})
		if i == 0 || i == 1 || i == 8 {
			require.Equal(t, id, at(t, one, "node.i"))
			continue
		}
		require.Nil(t, at(t, one, "node"), id)
		require.Nil(t, got[i], id)
	}
	many := make([]string, 201)
	refused := w.refused(t, `query($ids: [ID!]!) {nodes(ids: $ids) {id}}`, map[string]any{"ids": many})
	require.Equal(t, map[string]string{"code": "INVALID_ARGUMENT", "field": "ids", "reason": "PAGE_SIZE_INVALID"}, texts(refused))
}

func TestOneRowIsPagedByALimitAndManyByAWindow(t *testing.T) {
	t.Parallel()
	w := setup(t)
	sites := hall(t, w)
	w.sql.take()
	w.data(t, fmt.Sprintf(`{node(id: %q) {... on Site {machines(first: 1) {nodes {sku {machines(first: 1) {nodes {id}}}}}}}}`, sites[0].ID), nil)
	statements := w.sql.take()
	require.Len(t, statements, 4)
	require.Contains(t, statements[1], "LIMIT 2")
	require.Contains(t, statements[3], "ROW_NUMBER()")
	require.Contains(t, statements[3], `ORDER BY "machines"."sku_id", "machines"."page_row"`)
}

func TestWhatAnInterceptorHidesIsNowhereCountedOrShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	site := w.site(t)
	sku := w.sku(t, site)
	hidden, shown := w.machine(t, site, sku), w.machine(t, site, sku)
	w.Machine.Intercept(ent.TraverseFunc(func(_ context.Context, q ent.Query) error {
		q.(*ent.MachineQuery).Where(machine.IDNEQ(hidden.ID))
		return nil
	}))
	data := w.data(t, fmt.Sprintf(`{
		node(id: %q) {id} nodes(ids: [%[1]q, %[2]q]) {id}
		machines {totalCount nodes {id}}
		skus {nodes {machineCount machines(first: 1) {totalCount nodes {id} pageInfo {hasNextPage}}}}
	}`, hidden.ID, shown.ID), nil)
	require.Nil(t, at(t, data, "node"))
	require.Equal(t, []any{nil, map[string]any{"id": shown.ID}}, at(t, data, "nodes"))
	one := map[string]any{"totalCount": 1.0, "nodes": []any{map[string]any{"id": shown.ID}}}
	require.Equal(t, one, at(t, data, "machines"))
	one["pageInfo"] = map[string]any{"hasNextPage": false}
	require.Equal(t, map[string]any{"machineCount": 1.0, "machines": one}, at(t, data, "skus.nodes.0"))
}
