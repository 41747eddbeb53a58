package gqltests_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// page is a page of machines with everything that a list shows, three connections
// deep. Each selection below costs statements by its depth only.
const page = `query($first: Int!) { machines(first: $first, orderBy: {field: NAME}) { totalCount pageInfo { hasNextPage endCursor } edges { cursor node {
	id name kind state subState skuName bmcMacAddress lastVerification { at match } skuComparison { match }
	inventory { machineType gpus { name } }
	site { name skus(first: 3) { totalCount nodes { name } } }
	sku { name components {` + componentFields + `} machineCount machines(first: 2, orderBy: {field: NAME}) { totalCount edges { node { name } } } }
	alerts: healthAlerts(first: 5, where: {alertId: "SkuValidation"}) { n: totalCount e: edges { node { message machine { name } } } }
	none: healthAlerts(where: {alertId: "Other"}) { totalCount nodes { message } }
	transitions(last: 2, orderBy: {field: SEQUENCE}) { pageInfo { hasPreviousPage } nodes { cause sequence } }
} } } }`

func TestStatementsDependOnTheDepthOfAQueryNotOnItsRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	whole := inventory(t, "composed/r760_9nvme.json")
	for i := range 60 {
		name := fmt.Sprintf("node-%02d", i)
		m := b.report(t, site, fmt.Sprintf("02:00:00:00:00:%02x", i), name, whole)
		if i == 0 {
			b.createSku(t, site, m.ID, "dell.r760.storage.1")
			b.report(t, site, "02:00:00:00:00:00", name, whole)
		}
		if i%3 == 0 {
			b.report(t, site, fmt.Sprintf("02:00:00:00:00:%02x", i), name, without(t, whole, 3))
		}
	}
	cost := func(first int) int64 {
		var out struct {
			Machines struct {
				TotalCount int
				Edges      []struct{ Node struct{ Name string } }
			}
		}
		n := b.statements.during(func() { b.must(t, page, variables{"first": first}, &out) })
		require.Equal(t, 60, out.Machines.TotalCount)
		require.Len(t, out.Machines.Edges, first)
		return n
	}
	cost(1) // the first use of a token is recorded
	one := cost(1)
	require.Equal(t, one, cost(10))
	require.Equal(t, one, cost(50))
	require.LessOrEqual(t, one, int64(25))
	a := b.do(t, b.admin, page, variables{"first": 2})
	require.Empty(t, a.Errors, "%s", a.raw)
	golden(t, "statements/page", a.raw)
}
