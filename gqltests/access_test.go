package gqltests_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

// token is what tests look at of a token.
type token struct {
	ID, Name, Role, IssuedBy                    string
	AllSites                                    bool
	SiteIDs                                     []string
	MachineID, BmcMacAddress                    string
	CreatedAt, ExpiresAt, RevokedAt, LastUsedAt string
}

func (b *bundle) tokens(t *testing.T, as string) []token {
	t.Helper()
	var out struct {
		Tokens struct {
			TotalCount int
			Edges      []struct{ Node token }
		}
	}
	b.mustAs(t, as, `{ tokens(orderBy: {field: NAME}) { totalCount edges { node {
		id name role issuedBy allSites siteIds machineId bmcMacAddress createdAt expiresAt revokedAt lastUsedAt } } } }`, nil, &out)
	tokens := []token{}
	for _, edge := range out.Tokens.Edges {
		tokens = append(tokens, edge.Node)
	}
	require.Len(t, tokens, out.Tokens.TotalCount)
	return tokens
}

func names(tokens []token) []string {
	out := []string{}
	for _, t := range tokens {
		out = append(out, t.Name)
	}
	return out
}

func TestTokensAreIssuedForAllSitesNamedSitesAndAgents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.createSite(t, "one"), b.createSite(t, "two")
	m := b.report(t, one, readyMac, "node", inventory(t, "composed/r760_9nvme.json"))
	const issue = `mutation($input: IssueTokenInput!) { issueToken(input: $input) { token {
		id name role allSites siteIds machineId bmcMacAddress expiresAt revokedAt issuedBy lastUsedAt } } }`
	for name, input := range map[string]variables{
		"all":            {"role": "VIEWER"},
		"named":          {"role": "OPERATOR", "siteIds": []string{two, one}, "expiresIn": "30d"},
		"by_machine":     {"role": "AGENT", "machineId": m.ID},
		"before_machine": {"role": "AGENT", "siteId": two, "bmcMacAddress": "0200.0000.00AA", "expiresIn": "3650d"},
	} {
		a := b.do(t, b.admin, issue, variables{"input": merged(input, variables{"name": name})})
		require.Empty(t, a.Errors, "%s", a.raw)
		golden(t, "access/issued_"+name, a.raw)
	}
	require.Equal(t, []string{"all", "before_machine", "by_machine", "first-admin", "named"}, names(b.tokens(t, b.admin)))
}

func TestASecretIsStoredNowhere(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.warm(t)
	_, keyed := h.issue(t, variables{"name": "keyed", "role": "ADMIN", "idempotencyKey": "k"})
	h.mustAs(t, keyed, `mutation($input: CreateSiteInput!) { createSite(input: $input) { site { id } } }`,
		variables{"input": variables{"name": "third", "idempotencyKey": "k"}}, nil)
	conn := h.sql(t)
	var dump strings.Builder
	for _, table := range tables(t, conn) {
		var content string
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT coalesce(string_agg(t::text, E'\\n'), '') FROM "+table+" t").Scan(&content))
		dump.WriteString(content)
	}
	for _, secret := range []string{h.admin, h.siteAdmin, h.viewer, h.agent, h.expired, h.revoked, keyed} {
		hash := sha256.Sum256([]byte(secret))
		require.Contains(t, dump.String(), hex.EncodeToString(hash[:]), "the dump has what is stored of a secret")
		require.NotContains(t, dump.String(), secret)
		require.NotContains(t, dump.String(), strings.TrimPrefix(secret, "fgt_"))
		require.NotContains(t, dump.String(), hex.EncodeToString([]byte(secret)))
	}
}

func TestATokenEndsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	secret := b.issueToken(t, variables{"name": "short", "role": "VIEWER", "expiresIn": "2s"})
	var out struct{ Viewer struct{ ExpiresAt time.Time } }
	b.mustAs(t, secret, `{ viewer { expiresAt } }`, nil, &out)
	require.Eventually(t, func() bool {
		a := b.do(t, secret, `{ viewer { name } }`, nil)
		if a.Status != 401 {
			return false
		}
		require.Equal(t, "TOKEN_EXPIRED", a.Errors[0].Extensions.Reason)
		return true
	}, 30*time.Second, 20*time.Millisecond)
	require.False(t, time.Now().Before(out.Viewer.ExpiresAt))
}

func TestARevokedTokenIsRefusedAtOnceAndRevokingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, secret := b.issue(t, variables{"name": "gone", "role": "ADMIN"})
	b.mustAs(t, secret, `{ viewer { name } }`, nil, nil)
	var first, second struct{ RevokeToken struct{ Token token } }
	b.must(t, revokeToken, variables{"input": variables{"tokenId": id}}, &first)
	require.NotEmpty(t, first.RevokeToken.Token.RevokedAt)
	a := b.do(t, secret, `{ viewer { name } }`, nil)
	require.Equal(t, 401, a.Status)
	require.Equal(t, "TOKEN_REVOKED", a.Errors[0].Extensions.Reason)

	content := b.fingerprint(t)
	before := content()
	b.must(t, revokeToken, variables{"input": variables{"tokenId": id}}, &second)
	require.Equal(t, first, second)
	require.Equal(t, before, content())
	history := b.history(t, id)
	require.Equal(t, []string{"TOKEN_ISSUED", "TOKEN_REVOKED"}, causes(history))
}

func TestATokenMayRevokeItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, secret := b.issue(t, variables{"name": "self", "role": "ADMIN"})
	b.mustAs(t, secret, revokeToken, variables{"input": variables{"tokenId": id}}, nil)
	require.Equal(t, 401, b.do(t, secret, `{ viewer { name } }`, nil).Status)
}

// event is what tests look at of a history entry.
type event struct {
	Sequence                                  int
	FromState, ToState, Cause, Actor, Message string
	SubjectID, SiteID                         string
	Details                                   map[string]any
}

// history is all that happened to an object.
func (b *bundle) history(t *testing.T, subjectID string) []event {
	t.Helper()
	var out struct {
		Transitions struct{ Edges []struct{ Node event } }
	}
	b.must(t, `query($id: String!) { transitions(first: 200, where: {subjectId: $id}, orderBy: {field: SEQUENCE}) { edges { node {
		sequence fromState toState cause actor message subjectId siteId details } } } }`, variables{"id": subjectID}, &out)
	events := []event{}
	for i, edge := range out.Transitions.Edges {
		require.Equal(t, i+1, edge.Node.Sequence, "a history has no gap")
		events = append(events, edge.Node)
	}
	return events
}

func causes(events []event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.Cause)
	}
	return out
}

func TestASiteBoundAdminSeesAndIssuesTokensWithinItsSitesOnly(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	both, _ := h.issue(t, variables{"name": "both", "role": "VIEWER", "siteIds": []string{h.here.id, h.there.id}})
	own := []string{"agent", "here-viewer", "site-admin", "site-operator", "site-viewer"}
	require.Equal(t, own, names(h.tokens(t, h.siteAdmin)))
	require.Len(t, h.tokens(t, h.admin), len(own)+7)
	for _, id := range []string{both, h.there.token, fleet.NewID(fleet.PrefixToken)} {
		a := h.do(t, h.siteAdmin, `query($id: ID!) { node(id: $id) { id } nodes(ids: [$id]) { id } }`, variables{"id": id})
		require.JSONEq(t, `{"data": {"node": null, "nodes": [null]}}`, string(a.raw))
		fault := h.refused(t, h.siteAdmin, revokeToken, variables{"input": variables{"tokenId": id}})
		require.Equal(t, "TOKEN_NOT_FOUND", fault.Extensions.Reason)
	}
	for _, name := range []string{"both", "there-viewer", "first-admin"} {
		var out struct{ Tokens struct{ TotalCount int } }
		h.mustAs(t, h.siteAdmin, `query($name: String!) { tokens(where: {name: $name}) { totalCount } }`, variables{"name": name}, &out)
		require.Zero(t, out.Tokens.TotalCount, name)
	}

	const issue = `mutation($input: IssueTokenInput!) { issueToken(input: $input) { token { id issuedBy siteIds } secret } }`
	for reason, change := range map[string]variables{
		"SITES_TOO_WIDE": {"siteIds": nil},
		"SITE_NOT_FOUND": {"siteIds": []string{h.here.id, h.there.id}},
	} {
		input := merged(variables{"name": "wide", "role": "ADMIN"}, change)
		require.Equal(t, reason, h.refused(t, h.siteAdmin, issue, variables{"input": input}).Extensions.Reason)
	}
	for _, role := range []string{"VIEWER", "OPERATOR", "ADMIN"} {
		var out struct {
			IssueToken struct {
				Token  token
				Secret string
			}
		}
		h.mustAs(t, h.siteAdmin, issue, variables{"input": variables{"name": "narrow", "role": role, "siteIds": []string{h.here.id}}}, &out)
		require.Equal(t, "site-admin", out.IssueToken.Token.IssuedBy)
		var sites struct{ Sites struct{ TotalCount int } }
		h.mustAs(t, out.IssueToken.Secret, `{ sites { totalCount } }`, nil, &sites)
		require.Equal(t, 1, sites.Sites.TotalCount)
	}
	for _, caller := range []string{h.viewer, h.allViewer, h.siteOperator, h.allOperator, h.agent} {
		fault := h.refused(t, caller, `{ tokens { totalCount } }`, nil)
		require.Equal(t, "PERMISSION_DENIED", fault.Extensions.Code)
		require.Equal(t, "ROLE_TOO_SMALL", fault.Extensions.Reason)
		a := h.do(t, caller, `query($id: ID!) { node(id: $id) { id } }`, variables{"id": h.here.token})
		require.JSONEq(t, `{"data": {"node": null}}`, string(a.raw))
	}
}

func TestTheViewerIsWhoeverCalls(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	early := h.issueToken(t, variables{"name": "early", "role": "AGENT", "siteId": h.there.id, "bmcMacAddress": "02:00:00:00:00:99"})
	for name, secret := range map[string]string{
		"first_admin": h.admin, "site_admin": h.siteAdmin, "operator": h.siteOperator, "viewer": h.viewer, "all_viewer": h.allViewer,
		"agent": h.agent, "agent_before_its_machine": early,
	} {
		a := h.do(t, secret, `{ viewer { tokenId name role allSites sites { name machines { totalCount } } machine { name site { name } } expiresAt } }`, nil)
		require.Empty(t, a.Errors, "%s", a.raw)
		golden(t, "access/viewer_"+name, a.raw)
	}
}

// connections lists the root fields that return connections.
func (b *bundle) connections(t *testing.T) []string {
	t.Helper()
	var out struct {
		Type struct {
			Fields []struct {
				Name string
				Type typeRef
			}
		} `json:"__type"`
	}
	b.must(t, `{ __type(name: "Query") { fields { name type { kind name ofType { kind name } } } } }`, nil, &out)
	fields := []string{}
	for _, f := range out.Type.Fields {
		if strings.HasSuffix(f.Type.base().Name, "Connection") {
			fields = append(fields, f.Name)
		}
	}
	require.Subset(t, fields, []string{"sites", "skus", "machines", "healthAlerts", "transitions", "tokens"})
	return fields
}

// object is a node with the site that it belongs to.
type object struct{ ID, SiteID string }

// listed returns what a caller finds in a root connection.
func (b *bundle) listed(t *testing.T, as, field string) []object {
	t.Helper()
	siteID := "siteId"
	switch field {
	case "sites":
		siteID = "siteId: id"
	case "tokens":
		siteID = ""
	}
	a := b.do(t, as, "{ "+field+" (first: 200) { totalCount edges { node { id "+siteID+" } } } }", nil)
	require.Empty(t, a.Errors, "%s", a.raw)
	var page struct {
		TotalCount int
		Edges      []struct{ Node object }
	}
	require.NoError(t, json.Unmarshal(a.Data[field], &page))
	objects := []object{}
	for _, edge := range page.Edges {
		objects = append(objects, edge.Node)
	}
	require.Len(t, objects, page.TotalCount, field)
	return objects
}

func TestABoundCallerSeesAllOfItsSitesAndNothingOfOthers(t *testing.T) {
	t.Parallel()
	h := newFullHall(t)
	for _, p := range []place{h.here, h.there} { // each site has an alert
		h.report(t, p.id, readyMac, p.ready.Name, without(t, inventory(t, "composed/r760_9nvme.json"), 3))
	}
	// What happened to tokens is told to those who may see tokens.
	var ofTokens struct{ Transitions struct{ Nodes []object } }
	h.must(t, `{ transitions(first: 200, where: {subjectType: TOKEN}) { nodes { id siteId } } }`, nil, &ofTokens)
	require.NotEmpty(t, ofTokens.Transitions.Nodes)
	for _, caller := range []string{h.viewer, h.siteOperator, h.siteAdmin} {
		visible := func(o object) bool {
			return o.SiteID == h.here.id && (caller == h.siteAdmin || !slices.Contains(ofTokens.Transitions.Nodes, o))
		}
		for _, field := range h.connections(t) {
			if field == "tokens" {
				continue // admins only, by another rule
			}
			all := h.listed(t, h.admin, field)
			own := slices.DeleteFunc(slices.Clone(all), func(o object) bool { return !visible(o) })
			require.NotEmpty(t, own)
			require.Less(t, len(own), len(all))
			require.Equal(t, own, h.listed(t, caller, field), field)
			for _, o := range all {
				var out struct {
					Node  *object
					Nodes []*object
				}
				h.mustAs(t, caller, `query($id: ID!) { node(id: $id) { id } nodes(ids: [$id, "x"]) { id } }`, variables{"id": o.ID}, &out)
				require.Equal(t, visible(o), out.Node != nil, o.ID)
				require.Len(t, out.Nodes, 2)
				require.Equal(t, visible(o), out.Nodes[0] != nil, o.ID)
				require.Nil(t, out.Nodes[1])
			}
		}
		const look = `query($site: String!, $sku: String!, $machine: String!, $mac: String!) {
			site(name: $site) { name } sku(site: $site, name: $sku) { name }
			machine(site: $site, name: $machine) { name }
			byMac: machine(site: $site, bmcMacAddress: $mac) { name }
			bySerial: machine(site: $site, serialNumber: "TEST0001") { name } }`
		found := h.do(t, caller, look, variables{"site": "there", "sku": "spare", "machine": "there-ready", "mac": readyMac})
		require.JSONEq(t, `{"data": {"site": null, "sku": null, "machine": null, "byMac": null, "bySerial": null}}`, string(found.raw))
		absent := h.do(t, caller, look, variables{"site": "nowhere", "sku": "spare", "machine": "there-ready", "mac": readyMac})
		require.Equal(t, string(absent.raw), string(found.raw))

		for _, where := range []string{
			`sites(where: {name: "there"})`, `sites(where: {hasMachinesWith: {name: "there-ready"}})`,
			`sites(where: {hasSkusWith: {siteId: "THERE"}})`, `sites(where: {hasTransitionsWith: {siteId: "THERE"}})`,
			`machines(where: {siteId: "THERE"})`, `machines(where: {hasSiteWith: {name: "there"}})`, `machines(where: {name: "there-ready"})`,
			`machines(where: {hasSkuWith: {siteId: "THERE"}})`, `machines(where: {hasSkuWith: {hasSiteWith: {name: "there"}}})`,
			`machines(where: {hasHealthAlertsWith: {siteId: "THERE"}})`, `machines(where: {or: [{hasSiteWith: {name: "there"}}, {siteId: "THERE"}]})`,
			`skus(where: {hasSiteWith: {name: "there"}})`, `skus(where: {hasMachinesWith: {name: "there-ready"}})`,
			`healthAlerts(where: {hasMachineWith: {name: "there-ready"}})`, `healthAlerts(where: {hasSiteWith: {name: "there"}})`,
			`transitions(where: {hasMachineWith: {name: "there-ready"}})`, `transitions(where: {hasSiteWith: {name: "there"}})`, `transitions(where: {subjectId: "MACHINE"})`,
		} {
			where = strings.NewReplacer("THERE", h.there.id, "MACHINE", h.there.ready.ID).Replace(where)
			a := h.do(t, caller, "{ it: "+where+" { totalCount edges { node { id } } } }", nil)
			require.JSONEq(t, `{"data": {"it": {"totalCount": 0, "edges": []}}}`, string(a.raw), where)
		}
		var inverse struct{ Machines struct{ TotalCount int } }
		h.mustAs(t, caller, `{ machines(where: {not: {hasSiteWith: {name: "there"}}}) { totalCount } }`, nil, &inverse)
		require.Equal(t, 7, inverse.Machines.TotalCount)
	}

	nested := `query { sites(first: 10) { totalCount edges { node { name
		machines(orderBy: {field: NAME}) { totalCount edges { node { name site { name } sku { name machineCount machines { totalCount edges { node { name } } } }
			healthAlerts { totalCount edges { node { site { name } machine { name } } } } transitions { totalCount } } } }
		skus(orderBy: {field: NAME}) { totalCount edges { node { name site { name } machineCount machines { totalCount } } } }
		healthAlerts { totalCount edges { node { machine { name sku { name } } } } } } } } }`
	a := h.do(t, h.viewer, nested, nil)
	require.Empty(t, a.Errors, "%s", a.raw)
	require.NotContains(t, string(a.raw), "there")
	golden(t, "access/nested", a.raw)
}

func TestQueriesByAHiddenIDAnswerAsForAnUnknownOne(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	components := h.generate(t, h.here.ready.ID)
	for _, c := range []struct{ document, prefix, foreign, reason, field string }{
		{`query($id: ID!) { generateSku(machineId: $id) { name } }`, fleet.PrefixMachine, h.there.ready.ID, "MACHINE_NOT_FOUND", "machineId"},
		{`query($id: ID!) { explainSku(machineId: $id) { match } }`, fleet.PrefixMachine, h.there.ready.ID, "MACHINE_NOT_FOUND", "machineId"},
		{`query($id: ID!, $c: SkuComponentsInput!) { previewSkuReplace(skuId: $id, components: $c) { duplicateOf { name } } }`, fleet.PrefixSku, h.there.sku, "SKU_NOT_FOUND", "skuId"},
	} {
		vars := func(id string) variables {
			if c.prefix == fleet.PrefixSku {
				return variables{"id": id, "c": components}
			}
			return variables{"id": id}
		}
		unknown := fleet.NewID(c.prefix)
		hidden, absent := h.do(t, h.viewer, c.document, vars(c.foreign)), h.do(t, h.viewer, c.document, vars(unknown))
		require.Equal(t, strings.ReplaceAll(string(absent.raw), unknown, "ID"), strings.ReplaceAll(string(hidden.raw), c.foreign, "ID"))
		require.Equal(t, []string{"NOT_FOUND", c.reason, c.field},
			[]string{hidden.Errors[0].Extensions.Code, hidden.Errors[0].Extensions.Reason, hidden.Errors[0].Extensions.Field})
		for _, malformed := range []string{"", "x", fleet.NewID(fleet.PrefixSite)} {
			fault := h.refused(t, h.viewer, c.document, vars(malformed))
			require.Equal(t, []string{"INVALID_ARGUMENT", "ID_INVALID", c.field}, []string{fault.Extensions.Code, fault.Extensions.Reason, fault.Extensions.Field})
		}
	}
}

func TestAnAgentSeesAndReportsItsOwnMachineOnly(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	whole := inventory(t, "composed/r760_9nvme.json")
	twin := h.report(t, h.here.id, "02:00:00:00:00:03", "here-twin", whole)
	require.Equal(t, "READY", twin.State)
	h.report(t, h.here.id, readyMac, "here-ready", without(t, whole, 3))
	h.report(t, h.here.id, "02:00:00:00:00:03", "here-twin", without(t, whole, 3))

	a := h.do(t, h.agent, `{ sites { totalCount edges { node { name description machines { totalCount edges { node { name } } }
			healthAlerts { totalCount edges { node { machine { name } } } } transitions(orderBy: {field: SEQUENCE}) { edges { node { subjectType cause machine { name } } } } } } }
		skus(orderBy: {field: NAME}) { totalCount edges { node { name machineCount machines { totalCount edges { node { name } } } } } }
		machines { totalCount edges { node { name state subState skuName } } }
		own: machine(site: "here", name: "here-ready") { name } other: machine(site: "here", name: "here-twin") { name }
		byMac: machine(site: "here", bmcMacAddress: "02:00:00:00:00:03") { name }
		bySerial: machine(site: "here", serialNumber: "TEST0001") { name }
		healthAlerts { totalCount } transitions { totalCount edges { node { machine { name } } } } }`, nil)
	require.Empty(t, a.Errors, "%s", a.raw)
	golden(t, "access/agent", a.raw)

	for _, id := range []string{twin.ID, h.there.ready.ID, h.there.id, h.there.sku} {
		a := h.do(t, h.agent, `query($id: ID!) { node(id: $id) { id } nodes(ids: [$id]) { id } }`, variables{"id": id})
		require.JSONEq(t, `{"data": {"node": null, "nodes": [null]}}`, string(a.raw), id)
	}
	for _, where := range []string{
		`machines(where: {name: "here-twin"})`, `machines(where: {siteId: "THERE"})`, `machines(where: {hasSiteWith: {name: "there"}})`,
		`sites(where: {hasMachinesWith: {name: "here-twin"}})`, `sites(where: {hasHealthAlertsWith: {machineId: "TWIN"}})`, `sites(where: {hasTransitionsWith: {subjectId: "TWIN"}})`,
		`skus(where: {hasMachinesWith: {name: "here-twin"}})`, `skus(where: {name: "other", hasMachines: true})`,
		`machines(where: {hasSkuWith: {hasMachinesWith: {name: "here-twin"}}})`, `machines(where: {hasSiteWith: {hasMachinesWith: {name: "here-twin"}}})`,
		`transitions(where: {subjectId: "TWIN"})`, `healthAlerts(where: {machineId: "TWIN"})`,
	} {
		where = strings.NewReplacer("THERE", h.there.id, "TWIN", twin.ID).Replace(where)
		a := h.do(t, h.agent, "{ it: "+where+" { totalCount edges { node { id } } } }", nil)
		require.JSONEq(t, `{"data": {"it": {"totalCount": 0, "edges": []}}}`, string(a.raw), where)
	}

	const report = `mutation($input: ReportInventoryInput!) { reportInventory(input: $input) { created machine { name state } } }`
	own := variables{"siteId": h.here.id, "bmcMacAddress": readyMac, "inventory": whole}
	var out struct {
		ReportInventory struct {
			Created bool
			Machine machine
		}
	}
	h.mustAs(t, h.agent, report, variables{"input": own}, &out)
	require.Equal(t, machine{Name: "here-ready", State: "BOM_VALIDATING"}, out.ReportInventory.Machine, "it stays where it failed")
	require.False(t, out.ReportInventory.Created)

	early := h.issueToken(t, variables{"name": "early", "role": "AGENT", "siteId": h.there.id, "bmcMacAddress": "02-00-00-00-00-99"})
	h.mustAs(t, early, report, variables{"input": variables{"siteId": h.there.id, "bmcMacAddress": "02:00:00:00:00:99", "inventory": whole}}, &out)
	require.True(t, out.ReportInventory.Created)
	require.Equal(t, machine{Name: "machine-020000000099", State: "READY"}, out.ReportInventory.Machine)
	var viewer struct{ Viewer struct{ Machine machine } }
	h.mustAs(t, early, `{ viewer { machine { name } } }`, nil, &viewer)
	require.Equal(t, "machine-020000000099", viewer.Viewer.Machine.Name)
}
