package gqltests_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// place is a site with one of everything.
type place struct {
	id, name  string
	ready     machine // has sku
	waiting   machine // matches no SKU
	sku       string
	spare     string // a SKU that no machine has
	deletable string // another
	token     string // id of a viewer's token bound to the site

	fresh, free, taken, gone, working string // ids of machines that have sku; taken is allocated, working waits for an inventory
	alert                             string // id of an alert on free
	work, worker                      string // id of what is wanted of working, and its agent's secret
	expected                          string // an expected machine
	surplus                           string // another
	job, item                         string // a job that nobody works on, and its item
	unverified, disabled, enabled     string // tests of the catalog
}

// hall is a server with two sites that hold the same, and a caller of each role,
// the admin apart bound to the first site.
type hall struct {
	*bundle
	here, there                              place
	siteAdmin, siteOperator, viewer, agent   string // secrets
	allOperator, allViewer, expired, revoked string
}

const (
	readyMac   = "02:00:00:00:00:01"
	waitingMac = "02:00:00:00:00:02"
)

func newHall(t *testing.T) *hall {
	t.Helper()
	h := &hall{bundle: setup(t)}
	h.here, h.there = h.newPlace(t, "here"), h.newPlace(t, "there")
	here := []string{h.here.id}
	h.siteAdmin = h.issueToken(t, variables{"name": "site-admin", "role": "ADMIN", "siteIds": here})
	h.siteOperator = h.issueToken(t, variables{"name": "site-operator", "role": "OPERATOR", "siteIds": here})
	h.viewer = h.issueToken(t, variables{"name": "site-viewer", "role": "VIEWER", "siteIds": here})
	h.agent = h.issueToken(t, variables{"name": "agent", "role": "AGENT", "machineId": h.here.ready.ID})
	h.allOperator = h.issueToken(t, variables{"name": "operator", "role": "OPERATOR"})
	h.allViewer = h.issueToken(t, variables{"name": "viewer", "role": "VIEWER"})
	h.expired = h.issueToken(t, variables{"name": "expired", "role": "ADMIN", "expiresIn": "1ns"})
	var id string
	id, h.revoked = h.issue(t, variables{"name": "revoked", "role": "ADMIN"})
	h.must(t, revokeToken, variables{"input": variables{"tokenId": id}}, nil)
	return h
}

// newFullHall is a hall whose places also have machines to allocate, to release, to
// delete, and one whose host is wanted something of.
func newFullHall(t *testing.T) *hall {
	t.Helper()
	h := newHall(t)
	for _, p := range []*place{&h.here, &h.there} {
		h.fill(t, p)
	}
	return h
}

func (h *hall) fill(t *testing.T, p *place) {
	t.Helper()
	p.fresh, p.free, p.taken, p.gone = h.twin(t, *p, 3), h.twin(t, *p, 4), h.twin(t, *p, 5), h.twin(t, *p, 6)
	h.called(t, allocateMachine, variables{"machineId": p.taken, "allocationName": "tenant"})
	p.alert = h.warn(t, p.free)
	p.working = h.twin(t, *p, 7)
	require.Equal(t, "UPDATING_INVENTORY", h.called(t, verifySku, variables{"machineId": p.working}).SubState)
	p.work = h.openWork(t, p.working)
	p.worker = h.issueToken(t, variables{"name": p.name + "-worker", "role": "AGENT", "machineId": p.working})
	p.job, p.item = h.park(t, *p)
	p.unverified, p.disabled, p.enabled = h.test(t, p.id, "forge_RaytracingVk"), h.test(t, p.id, "forge_FioSSD"), h.test(t, p.id, "forge_NvmeCheck")
}

func (h *hall) newPlace(t *testing.T, name string) place {
	t.Helper()
	p := place{id: h.createSite(t, name), name: name}
	p.ready = h.report(t, p.id, readyMac, name+"-ready", inventory(t, "composed/r760_9nvme.json"))
	p.sku = h.createSku(t, p.id, p.ready.ID, "dell.r760.storage.1")
	p.ready = h.report(t, p.id, readyMac, name+"-ready", inventory(t, "composed/r760_9nvme.json"))
	require.Equal(t, "READY", p.ready.State)
	p.waiting = h.report(t, p.id, waitingMac, name+"-waiting", inventory(t, "composed/xe9680_8gpu.json"))
	require.Equal(t, "WAITING_FOR_SKU_ASSIGNMENT", p.waiting.SubState)
	p.spare = h.newSku(t, p.id, "spare", ofChassis(h.generate(t, p.waiting.ID), "Spare"))
	p.deletable = h.newSku(t, p.id, "deletable", ofChassis(h.generate(t, p.waiting.ID), "Deletable"))
	p.expected, p.surplus = h.newExpected(t, p.id, "02:00:00:00:00:41"), h.newExpected(t, p.id, "02:00:00:00:00:42")
	p.token, _ = h.issue(t, variables{"name": name + "-viewer", "role": "VIEWER", "siteIds": []string{p.id}})
	return p
}

// twin reports a machine of the same hardware as the one that is ready.
func (h *hall) twin(t *testing.T, p place, n int) string {
	t.Helper()
	m := h.report(t, p.id, fmt.Sprintf("02:00:00:00:00:f%d", n), fmt.Sprint(p.name, "-twin-", n), inventory(t, "composed/r760_9nvme.json"))
	require.Equal(t, "READY", m.State)
	return m.ID
}

// test returns the id of a site's test of the catalog.
func (b *bundle) test(t *testing.T, siteID, testID string) (id string) {
	t.Helper()
	require.NoError(t, b.sql(t).QueryRow(t.Context(), `SELECT id FROM validation_tests WHERE site_id = $1 AND test_id = $2`, siteID, testID).Scan(&id))
	return id
}

// warn raises an alert that prevents nothing, and returns its id.
func (b *bundle) warn(t *testing.T, machineID string) string {
	t.Helper()
	var out struct {
		RaiseHealthAlert struct{ HealthAlert struct{ ID string } }
	}
	b.must(t, raiseAlert, variables{"input": variables{"machineId": machineID, "alertId": "Dust", "message": "some"}}, &out)
	return out.RaiseHealthAlert.HealthAlert.ID
}

// openWork is the id of what is wanted of a machine's host.
func (b *bundle) openWork(t *testing.T, machineID string) string {
	t.Helper()
	var out struct {
		Node struct{ Work []struct{ ID string } }
	}
	b.must(t, `query($id: ID!) { node(id: $id) { ... on Machine { work { id } } } }`, variables{"id": machineID}, &out)
	require.Len(t, out.Node.Work, 1)
	return out.Node.Work[0].ID
}

const (
	createSku   = `mutation($input: CreateSkuInput!) { createSku(input: $input) { sku { id name } } }`
	replaceSku  = `mutation($input: ReplaceSkuInput!) { replaceSku(input: $input) { sku { id revision deviceType description schemaVersion } } }`
	revokeToken = `mutation($input: RevokeTokenInput!) { revokeToken(input: $input) { token { id revokedAt } } }`
)

// newSku creates a SKU and returns its id.
func (b *bundle) newSku(t *testing.T, siteID, name string, components map[string]any) string {
	t.Helper()
	var out struct {
		CreateSku struct{ Sku struct{ ID string } }
	}
	b.must(t, createSku, variables{"input": variables{"siteId": siteID, "name": name, "components": components}}, &out)
	b.settle(t)
	return out.CreateSku.Sku.ID
}

// newExpected registers an expected machine and returns its id.
func (b *bundle) newExpected(t *testing.T, siteID, mac string) string {
	t.Helper()
	var out struct {
		CreateExpectedMachine struct{ ExpectedMachine struct{ ID string } }
	}
	b.must(t, createExpected, variables{"input": variables{"siteId": siteID, "expectedMachine": variables{"bmcMacAddress": mac}}}, &out)
	return out.CreateExpectedMachine.ExpectedMachine.ID
}

// issue issues a token and returns its id and its secret.
func (b *bundle) issue(t *testing.T, input variables) (id, secret string) {
	t.Helper()
	var out struct {
		IssueToken struct {
			Token  struct{ ID string }
			Secret string
		}
	}
	b.must(t, `mutation($input: IssueTokenInput!) { issueToken(input: $input) { token { id } secret } }`, variables{"input": input}, &out)
	return out.IssueToken.Token.ID, out.IssueToken.Secret
}

// ofChassis is a copy of components with another chassis model: other hardware.
func ofChassis(components map[string]any, model string) map[string]any {
	chassis, _ := components["chassis"].(map[string]any)
	return merged(components, variables{"chassis": map[string]any(merged(chassis, variables{"model": model}))})
}

// merged is a copy of base with other fields.
func merged(base, other map[string]any) variables {
	out := maps.Clone(base)
	maps.Copy(out, other)
	return out
}

// lacking is a copy of base without a field.
func lacking(base map[string]any, field string) variables {
	out := maps.Clone(base)
	delete(out, field)
	return out
}

// edited is a JSON document after edit.
func edited(t *testing.T, document json.RawMessage, edit func(inventory map[string]any)) json.RawMessage {
	t.Helper()
	var inventory map[string]any
	require.NoError(t, json.Unmarshal(document, &inventory))
	edit(inventory)
	out, err := json.Marshal(inventory)
	require.NoError(t, err)
	return out
}

// sql connects to the server's database.
func (b *bundle) sql(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.database)
	require.NoError(t, err)
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, conn.Close(ctx)) })
	return conn
}

// tables lists the tables of the product, without the job queue's, which change by
// themselves.
func tables(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'river_%' ORDER BY 1`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, names, "machines")
	return names
}

// fingerprint returns a function that tells the content of every table apart from
// any other content. When a token was last used does not count, nor a change's place in
// the feed, which it gets by itself.
func (b *bundle) fingerprint(t *testing.T) func() string {
	t.Helper()
	conn := b.sql(t)
	parts := []string{}
	for _, table := range tables(t, conn) {
		row := "t::text"
		switch table {
		case "tokens":
			row = "(to_jsonb(t) - 'last_used_at')::text"
		case "transitions":
			row = "(to_jsonb(t) - 'position')::text"
		}
		parts = append(parts, "SELECT '"+table+" ' || count(*) || ' ' || coalesce(md5(string_agg("+row+", ',' ORDER BY "+row+")), '') AS line FROM "+
			pgx.Identifier{table}.Sanitize()+" t")
	}
	query := "SELECT string_agg(line, E'\\n') FROM (" + strings.Join(parts, " UNION ALL ") + ") lines"
	return func() string {
		t.Helper()
		var content string
		require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&content))
		return content
	}
}

// count counts the rows of a query.
func (b *bundle) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	conn := b.sql(t)
	var n int
	require.NoError(t, conn.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}
