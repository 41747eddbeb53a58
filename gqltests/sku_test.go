package gqltests_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

const (
	createSkus     = `mutation($input: CreateSkusInput!) { createSkus(input: $input) { skus { id name schemaVersion } } }`
	updateMetadata = `mutation($input: UpdateSkuMetadataInput!) { updateSkuMetadata(input: $input) { sku { id revision deviceType description } } }`
	deleteSku      = `mutation($input: DeleteSkuInput!) { deleteSku(input: $input) { deletedSkuId } }`
	assignSku      = `mutation($input: AssignSkuInput!) { assignSku(input: $input) { machine { id name state subState skuName } } }`
	unassignSku    = `mutation($input: UnassignSkuInput!) { unassignSku(input: $input) { machine { id name state subState skuName } } }`
	verifySku      = `mutation($input: VerifyMachineSkuInput!) { verifyMachineSku(input: $input) { machine { id name state subState skuName } } }`
)

// sku is what tests look at of a SKU.
type sku struct {
	ID, Name, Description   string
	DeviceType              *string
	SchemaVersion, Revision int
}

// status is a machine with its verdict and its alerts.
type status struct {
	machine
	LastVerification *struct {
		At    string
		Match bool
	}
	SkuComparison *struct{ Match bool }
	HealthAlerts  struct {
		Edges []struct{ Node struct{ Message string } }
	}
}

func (b *bundle) status(t *testing.T, machineID string) status {
	t.Helper()
	var out struct{ Node status }
	b.must(t, `query($id: ID!) { node(id: $id) { ... on Machine { id name state subState skuName lastVerification { at match } skuComparison { match }
		healthAlerts { edges { node { message } } } } } }`, variables{"id": machineID}, &out)
	require.NotEmpty(t, out.Node.ID)
	return out.Node
}

// called returns what a mutation answers of a machine.
func (b *bundle) called(t *testing.T, document string, input variables) machine {
	t.Helper()
	var out map[string]struct{ Machine machine }
	b.must(t, document, variables{"input": input}, &out)
	for _, payload := range out {
		return payload.Machine
	}
	return machine{}
}

// refusedFor is refused with the code and the reason of the error.
func (b *bundle) refusedFor(t *testing.T, document string, input variables, code, reason string) fault {
	t.Helper()
	got := b.refused(t, b.admin, document, variables{"input": input})
	require.Equal(t, []string{code, reason}, []string{got.Extensions.Code, got.Extensions.Reason}, got.Message)
	return got
}

// lessDrive is a copy of components with one storage group less.
func lessDrive(t *testing.T, components map[string]any) map[string]any {
	t.Helper()
	groups, ok := components["storage"].([]any)
	require.True(t, ok)
	return merged(components, variables{"storage": groups[1:]})
}

func TestSkusAreCreatedAllOrNone(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	components := h.generate(t, h.here.waiting.ID)
	item := func(name, chassis string) variables {
		return variables{"name": name, "components": ofChassis(components, chassis)}
	}
	content := h.fingerprint(t)
	before := content()
	for _, c := range []struct {
		last                   variables
		reason, field, message string
	}{
		{item("d", "A"), "SKU_DUPLICATE", "skus.2.components", "Specified SKU matches SKU with ID: a"},
		{item("d", "Spare"), "SKU_DUPLICATE", "skus.2.components", "Specified SKU matches SKU with ID: spare"},
		{item("spare", "D"), "SKU_NAME_TAKEN", "skus.2.name", "SKU already exists: spare"},
	} {
		input := variables{"siteId": h.here.id, "skus": []variables{item("a", "A"), item("b", "B"), c.last}}
		fault := h.refusedFor(t, createSkus, input, "ALREADY_EXISTS", c.reason)
		require.Equal(t, []string{c.field, c.message}, []string{fault.Extensions.Field, fault.Message})
		require.Equal(t, before, content())
	}
	var out struct{ CreateSkus struct{ Skus []sku } }
	h.must(t, createSkus, variables{"input": variables{"siteId": h.here.id, "skus": []variables{item("c", "C"), item("a", "A"), item("b", "B")}}}, &out)
	names := []string{}
	for _, s := range out.CreateSkus.Skus {
		names = append(names, s.Name)
		require.Equal(t, []string{"SKU_CREATED"}, causes(h.history(t, s.ID)))
	}
	require.Equal(t, []string{"c", "a", "b"}, names)
}

func TestASkuOfHardwareThatAnotherDescribesIsADuplicate(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	components := h.generate(t, h.here.ready.ID)
	input := variables{"siteId": h.here.id, "name": "other", "components": components}
	fault := h.refusedFor(t, createSku, input, "ALREADY_EXISTS", "SKU_DUPLICATE")
	require.Equal(t, "Specified SKU matches SKU with ID: dell.r760.storage.1", fault.Message)
	require.Equal(t, "components", fault.Extensions.Field)
	require.Equal(t, map[string]any{"id": "dell.r760.storage.1", "schemaVersion": 5.0}, fault.Extensions.Details)
	// Also under the very name.
	h.refusedFor(t, createSku, merged(input, variables{"name": "dell.r760.storage.1"}), "ALREADY_EXISTS", "SKU_DUPLICATE")
	fault = h.refusedFor(t, createSku, variables{"siteId": h.here.id, "name": "spare", "components": ofChassis(components, "X")}, "ALREADY_EXISTS", "SKU_NAME_TAKEN")
	require.Equal(t, []string{"SKU already exists: spare", "name"}, []string{fault.Message, fault.Extensions.Field})

	// At another site the same hardware and the same name are free.
	third := h.createSite(t, "third")
	h.must(t, createSku, variables{"input": merged(input, variables{"siteId": third, "name": "dell.r760.storage.1"})}, nil)
}

func TestADuplicateOfAnOlderVersionNamesTheWayToUpgrade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	old := b.report(t, site, readyMac, "old", inventory(t, "composed/xe9680_8gpu_pre_v5_inventory.json"))
	older := variables{"siteId": site, "acceptOlderVersions": true, "skus": []variables{{"name": "old", "schemaVersion": 4, "components": b.generate(t, old.ID)}}}
	var created struct{ CreateSkus struct{ Skus []sku } }
	b.must(t, createSkus, variables{"input": older}, &created)
	require.Equal(t, 4, created.CreateSkus.Skus[0].SchemaVersion)
	old = b.report(t, site, readyMac, "old", inventory(t, "composed/xe9680_8gpu.json"))
	require.Equal(t, machine{ID: old.ID, Name: "old", State: "READY", SkuName: "old"}, old)

	components := b.generate(t, old.ID)
	fault := b.refusedFor(t, createSku, variables{"siteId": site, "name": "new", "components": components}, "ALREADY_EXISTS", "SKU_DUPLICATE")
	require.Equal(t, "Specified SKU matches SKU with ID: old (schema version 4); upgrade it with sku replace", fault.Message)
	require.Equal(t, map[string]any{"id": "old", "schemaVersion": 4.0}, fault.Extensions.Details)

	var out struct{ ReplaceSku struct{ Sku sku } }
	b.must(t, replaceSku, variables{"input": variables{"skuId": created.CreateSkus.Skus[0].ID, "components": components}}, &out)
	require.Equal(t, []int{5, 2}, []int{out.ReplaceSku.Sku.SchemaVersion, out.ReplaceSku.Sku.Revision})
	require.Equal(t, "READY", b.status(t, old.ID).State)
}

func TestReplacingASkuVerifiesItsMachinesAgain(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	twin := h.report(t, h.here.id, "02:00:00:00:00:03", "here-twin", inventory(t, "composed/r760_9nvme.json"))
	require.Equal(t, "READY", twin.State)
	machines := []string{h.here.ready.ID, twin.ID}
	components := h.generate(t, h.here.ready.ID)

	content := h.fingerprint(t)
	before := content()
	for _, stale := range []int{0, 2, -1} {
		input := variables{"skuId": h.here.sku, "components": lessDrive(t, components), "expectedRevision": stale}
		fault := h.refusedFor(t, replaceSku, input, "ABORTED", "REVISION_CONFLICT")
		require.Equal(t, map[string]any{"expected": float64(stale), "present": 1.0}, fault.Extensions.Details)
	}
	h.refusedFor(t, replaceSku, variables{"skuId": h.here.sku, "components": ofChassis(h.generate(t, h.here.waiting.ID), "Spare")}, "ALREADY_EXISTS", "SKU_DUPLICATE")
	require.Equal(t, before, content())

	replace := func(components map[string]any, revision int) {
		var out struct{ ReplaceSku struct{ Sku sku } }
		h.must(t, replaceSku, variables{"input": variables{"skuId": h.here.sku, "components": components, "expectedRevision": revision}}, &out)
		require.Equal(t, revision+1, out.ReplaceSku.Sku.Revision)
	}
	// Every machine that has it is verified, which begins with a fresh inventory.
	whole := inventory(t, "composed/r760_9nvme.json")
	refreshed := func() {
		for _, id := range machines {
			h.becomes(t, id, "UPDATING_INVENTORY")
		}
		h.refresh(t, h.here.id, nil, whole)
	}
	replace(lessDrive(t, components), 1)
	refreshed()
	for _, id := range machines {
		s := h.status(t, id)
		require.Equal(t, []string{"BOM_VALIDATING", "SKU_VERIFICATION_FAILED", "dell.r760.storage.1"}, []string{s.State, s.SubState, s.SkuName})
		require.False(t, s.LastVerification.Match)
		require.False(t, s.SkuComparison.Match)
		require.Len(t, s.HealthAlerts.Edges, 1)
		require.Contains(t, s.HealthAlerts.Edges[0].Node.Message, "Found unexpected storage drive")
	}
	replace(components, 2)
	refreshed()
	for _, id := range machines {
		s := h.status(t, id)
		require.Equal(t, []string{"READY", "", "dell.r760.storage.1"}, []string{s.State, s.SubState, s.SkuName})
		require.True(t, s.LastVerification.Match)
		require.Empty(t, s.HealthAlerts.Edges)
		history := causes(h.history(t, id))
		require.Equal(t, []string{
			"VERIFY_REQUESTED", "INVENTORY_UPDATED", "SKU_MISMATCH",
			"VERIFY_REQUESTED", "INVENTORY_UPDATED", "SKU_VERIFIED",
		}, history[len(history)-6:])
	}
	replace(components, 3) // by the same: its own hardware is no duplicate

	a := h.do(t, h.admin, `query($id: String!) { transitions(where: {subjectId: $id}, orderBy: {field: SEQUENCE}) { edges { node {
		sequence subjectType fromState toState cause actor message details } } } }`, variables{"id": h.here.sku})
	golden(t, "sku/history", a.raw)
}

func TestDescriptionAndDeviceTypeAreKeptSetAndCleared(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	components := ofChassis(h.generate(t, h.here.waiting.ID), "X")
	var created struct{ CreateSku struct{ Sku sku } }
	const create = `mutation($input: CreateSkuInput!) { createSku(input: $input) { sku { id name description deviceType schemaVersion revision } } }`
	h.must(t, create, variables{"input": variables{"siteId": h.here.id, "name": "n", "components": components, "deviceType": "gpu node"}}, &created)
	s := created.CreateSku.Sku
	require.Equal(t, "X; 2xCPU; 8xGPU; 2 TiB", s.Description, "absent, the description sums up the hardware")
	require.Equal(t, new("gpu node"), s.DeviceType)
	require.Equal(t, []int{5, 1}, []int{s.SchemaVersion, s.Revision})

	edit := func(document string, change variables) sku {
		t.Helper()
		var out map[string]struct{ Sku sku }
		h.must(t, document, variables{"input": merged(variables{"skuId": s.ID}, change)}, &out)
		for _, payload := range out {
			return payload.Sku
		}
		return sku{}
	}
	replaced := func(change variables) sku {
		t.Helper()
		return edit(replaceSku, merged(variables{"components": components}, change))
	}
	updated := func(change variables) sku { t.Helper(); return edit(updateMetadata, change) }
	for i, c := range []struct {
		got         sku
		description string
		deviceType  *string
	}{
		{replaced(nil), "X; 2xCPU; 8xGPU; 2 TiB", new("gpu node")},
		{replaced(variables{"description": "by hand"}), "by hand", new("gpu node")},
		{replaced(variables{"deviceType": nil}), "by hand", nil},
		{updated(variables{"description": nil}), "", nil},
		{replaced(variables{"description": "again"}), "again", nil},
		{replaced(variables{"description": nil}), "", nil},
		{replaced(variables{"deviceType": "a", "description": ""}), "", new("a")},
		{updated(variables{"deviceType": "b"}), "", new("b")},
		{updated(variables{"description": "c"}), "c", new("b")},
		{updated(variables{"deviceType": nil}), "c", nil},
		{updated(variables{"deviceType": "d", "description": "line\nline"}), "line\nline", new("d")},
	} {
		require.Equal(t, c.description, c.got.Description, i)
		require.Equal(t, c.deviceType, c.got.DeviceType, i)
		require.Equal(t, i+2, c.got.Revision, i)
	}
	require.Len(t, h.history(t, s.ID), 12)

	fault := h.refusedFor(t, updateMetadata, variables{"skuId": s.ID}, "INVALID_ARGUMENT", "NOTHING_TO_CHANGE")
	require.Equal(t, "description and/or deviceType required", fault.Message)
	h.refusedFor(t, updateMetadata, variables{"skuId": s.ID, "description": "x", "expectedRevision": 11}, "ABORTED", "REVISION_CONFLICT")
	content := h.fingerprint(t)
	before := content()
	same := updated(variables{"deviceType": "d", "description": "line\nline", "expectedRevision": 12})
	require.Equal(t, 12, same.Revision)
	require.Equal(t, before, content(), "an edit that changes nothing leaves revision and history alone")

	// What is not compared is not verified.
	verified := h.status(t, h.here.ready.ID).LastVerification
	length := len(h.history(t, h.here.ready.ID))
	h.must(t, updateMetadata, variables{"input": variables{"skuId": h.here.sku, "description": "new"}}, nil)
	require.Equal(t, verified, h.status(t, h.here.ready.ID).LastVerification)
	require.Len(t, h.history(t, h.here.ready.ID), length)
}

func TestASkuInUseIsNotDeletedAndTheErrorNamesTheMachines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	whole := inventory(t, "composed/r760_9nvme.json")
	first := b.report(t, site, "02:00:00:00:01:00", "node-00", whole)
	id := b.createSku(t, site, first.ID, "n")
	names := []string{}
	for i := range 25 {
		name := fmt.Sprintf("node-%02d", (i*7)%25) // not in the order of the names
		require.Equal(t, "READY", b.report(t, site, fmt.Sprintf("02:00:00:00:01:%02x", (i*7)%25), name, whole).State)
		names = append(names, name)
	}
	slices.Sort(names)
	content := b.fingerprint(t)
	before := content()
	fault := b.refusedFor(t, deleteSku, variables{"skuId": id}, "FAILED_PRECONDITION", "SKU_IN_USE")
	require.Equal(t, "The SKU is in use by 25 machines: "+strings.Join(names[:20], ", ")+", …", fault.Message)
	listed, err := json.Marshal(fault.Extensions.Details)
	require.NoError(t, err)
	want, err := json.Marshal(map[string]any{"count": 25, "first": names[:20]})
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(listed))
	require.Equal(t, before, content())
}

func TestAnUnusedSkuIsDeletedAndItsHistoryStays(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	fault := h.refusedFor(t, deleteSku, variables{"skuId": h.here.sku}, "FAILED_PRECONDITION", "SKU_IN_USE")
	require.Equal(t, "The SKU is in use by 1 machines: here-ready", fault.Message)
	require.Equal(t, map[string]any{"count": 1.0, "first": []any{"here-ready"}}, fault.Extensions.Details)
	a := h.do(t, h.admin, deleteSku, variables{"input": variables{"skuId": h.here.spare}})
	require.JSONEq(t, `{"data": {"deleteSku": {"deletedSkuId": "`+h.here.spare+`"}}}`, string(a.raw))
	require.Equal(t, []string{"SKU_CREATED", "SKU_DELETED"}, causes(h.history(t, h.here.spare)))
	a = h.do(t, h.admin, `query($id: ID!) { node(id: $id) { id } sku(site: "here", name: "spare") { id } }`, variables{"id": h.here.spare})
	require.JSONEq(t, `{"data": {"node": null, "sku": null}}`, string(a.raw))
	fault = h.refusedFor(t, deleteSku, variables{"skuId": h.here.spare}, "NOT_FOUND", "SKU_NOT_FOUND")
	require.Equal(t, "The SKU "+h.here.spare+" does not exist", fault.Message)
	again := h.newSku(t, h.here.id, "spare", ofChassis(h.generate(t, h.here.waiting.ID), "Spare"))
	require.NotEqual(t, h.here.spare, again)

	h.called(t, unassignSku, variables{"machineId": h.here.ready.ID})
	h.must(t, deleteSku, variables{"input": variables{"skuId": h.here.sku}}, nil)
}

func TestAssignmentsHavePreconditionsWithFixedMessages(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	unknownMachine, unknownSku := fleet.NewID(fleet.PrefixMachine), fleet.NewID(fleet.PrefixSku)
	ready, waiting := h.here.ready.ID, h.here.waiting.ID
	allocated := h.report(t, h.here.id, "02:00:00:00:00:04", "allocated", inventory(t, "composed/xe9680_7gpu.json"))
	_, err := h.sql(t).Exec(t.Context(), `UPDATE machines SET state = 'ALLOCATED', sub_state = NULL WHERE id = $1`, allocated.ID)
	require.NoError(t, err)
	content := h.fingerprint(t)
	before := content()
	for _, c := range []struct {
		document                     string
		input                        variables
		code, reason, field, message string
	}{
		{assignSku, variables{"machineId": unknownMachine, "skuId": unknownSku}, "NOT_FOUND", "MACHINE_NOT_FOUND", "machineId", "machine not found: " + unknownMachine},
		{assignSku, variables{"machineId": unknownMachine, "skuId": unknownSku, "force": true}, "NOT_FOUND", "MACHINE_NOT_FOUND", "machineId", "machine not found: " + unknownMachine},
		{assignSku, variables{"machineId": ready, "skuId": unknownSku}, "FAILED_PRECONDITION", "SKU_ALREADY_ASSIGNED", "", "The specified machine already has a SKU assigned (dell.r760.storage.1)"},
		{assignSku, variables{"machineId": ready, "skuId": h.here.sku}, "FAILED_PRECONDITION", "SKU_ALREADY_ASSIGNED", "", "The specified machine already has a SKU assigned (dell.r760.storage.1)"},
		{assignSku, variables{"machineId": allocated.ID, "skuId": unknownSku}, "FAILED_PRECONDITION", "MACHINE_STATE", "", "Specified machine is not in a valid state for assigning a SKU"},
		{assignSku, variables{"machineId": waiting, "skuId": unknownSku}, "NOT_FOUND", "SKU_NOT_FOUND", "skuId", "SKU ID not found: " + unknownSku},
		{assignSku, variables{"machineId": ready, "skuId": unknownSku, "force": true}, "NOT_FOUND", "SKU_NOT_FOUND", "skuId", "SKU ID not found: " + unknownSku},
		{assignSku, variables{"machineId": waiting, "skuId": h.there.spare}, "NOT_FOUND", "SKU_NOT_FOUND", "skuId", "SKU ID not found: " + h.there.spare},
		{unassignSku, variables{"machineId": unknownMachine}, "NOT_FOUND", "MACHINE_NOT_FOUND", "machineId", "machine not found: " + unknownMachine},
		{unassignSku, variables{"machineId": waiting}, "FAILED_PRECONDITION", "MACHINE_STATE", "", "Specified machine is not in a valid state for removing SKU association"},
		{unassignSku, variables{"machineId": allocated.ID}, "FAILED_PRECONDITION", "MACHINE_STATE", "", "Specified machine is not in a valid state for removing SKU association"},
		{verifySku, variables{"machineId": unknownMachine}, "NOT_FOUND", "MACHINE_NOT_FOUND", "machineId", "machine not found: " + unknownMachine},
		{verifySku, variables{"machineId": waiting}, "FAILED_PRECONDITION", "MACHINE_STATE", "", "Specified machine is not in a valid state for machine SKU verification"},
		{verifySku, variables{"machineId": allocated.ID}, "FAILED_PRECONDITION", "MACHINE_STATE", "", "Specified machine is not in a valid state for machine SKU verification"},
	} {
		fault := h.refusedFor(t, c.document, c.input, c.code, c.reason)
		require.Equal(t, []string{c.field, c.message}, []string{fault.Extensions.Field, fault.Message})
		if c.reason == "MACHINE_STATE" {
			require.Contains(t, fault.Extensions.Details, "state")
		}
		require.Equal(t, before, content())
	}
}

func TestASkuIsAssignedVerifiedAndTakenAway(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	ready, waiting := h.here.ready.ID, h.here.waiting.ID
	h.warm(t)

	// Assigned by an operator, the wrong SKU is found out with the next inventory.
	waitingReports := func() machine {
		return h.report(t, h.here.id, waitingMac, "here-waiting", inventory(t, "composed/xe9680_8gpu.json"))
	}
	readyReports := func() machine {
		return h.report(t, h.here.id, readyMac, "here-ready", inventory(t, "composed/r760_9nvme.json"))
	}
	var out struct{ AssignSku struct{ Machine machine } }
	h.mustAs(t, h.siteOperator, assignSku, variables{"input": variables{"machineId": waiting, "skuId": h.here.sku}}, &out)
	require.Equal(t, machine{ID: waiting, Name: "here-waiting", State: "BOM_VALIDATING", SubState: "UPDATING_INVENTORY", SkuName: "dell.r760.storage.1"}, out.AssignSku.Machine)
	require.Equal(t, "SKU_VERIFICATION_FAILED", waitingReports().SubState)
	require.Len(t, h.status(t, waiting).HealthAlerts.Edges, 1)

	// Verified again it stays, and history tells that it was.
	require.Equal(t, "UPDATING_INVENTORY", h.called(t, verifySku, variables{"machineId": waiting}).SubState)
	require.Equal(t, "SKU_VERIFICATION_FAILED", waitingReports().SubState)
	require.Equal(t, "SKU_MISMATCH", last(h.history(t, waiting)).Cause)
	verified := h.status(t, ready).LastVerification
	h.called(t, verifySku, variables{"machineId": ready})
	require.Equal(t, "READY", readyReports().State)
	require.Greater(t, h.status(t, ready).LastVerification.At, verified.At)
	require.Equal(t, "SKU_VERIFIED", last(h.history(t, ready)).Cause)

	// Taken away, its alert goes with it.
	m := h.called(t, unassignSku, variables{"machineId": waiting})
	require.Equal(t, machine{ID: waiting, Name: "here-waiting", State: "BOM_VALIDATING", SubState: "WAITING_FOR_SKU_ASSIGNMENT"}, m)
	s := h.status(t, waiting)
	require.Empty(t, s.HealthAlerts.Edges)
	require.Nil(t, s.LastVerification)
	require.Nil(t, s.SkuComparison)

	// Force takes the present SKU and the state for granted; without a SKU it
	// changes nothing.
	content := h.fingerprint(t)
	before := content()
	h.called(t, unassignSku, variables{"machineId": waiting, "force": true})
	require.Equal(t, before, content())
	h.called(t, assignSku, variables{"machineId": ready, "skuId": h.here.spare, "force": true})
	require.Equal(t, "SKU_VERIFICATION_FAILED", readyReports().SubState)
	h.called(t, assignSku, variables{"machineId": ready, "skuId": h.here.sku, "force": true})
	require.Equal(t, "READY", readyReports().State)
	require.Empty(t, h.status(t, ready).HealthAlerts.Edges)

	// The next inventory is matched again.
	h.called(t, unassignSku, variables{"machineId": ready})
	again := h.report(t, h.here.id, readyMac, "here-ready", inventory(t, "composed/r760_9nvme.json"))
	require.Equal(t, machine{ID: ready, Name: "here-ready", State: "READY", SkuName: "dell.r760.storage.1"}, again)

	a := h.do(t, h.admin, `query($id: String!) { transitions(where: {subjectId: $id}, orderBy: {field: SEQUENCE}) { edges { node {
		sequence fromState toState cause actor message details } } } }`, variables{"id": ready})
	golden(t, "sku/assignments", a.raw)
}

func last(events []event) event { return events[len(events)-1] }

func TestExplainReturnsTheNearestSkusFirst(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	pulled := h.report(t, h.here.id, "02:00:00:00:00:05", "pulled", without(t, inventory(t, "composed/r760_9nvme.json"), 3))
	const document = `query($id: ID!, $first: Int) { explainSku(machineId: $id, first: $first) { sku { name site { name } machineCount } match distance edits { message } } }`
	a := h.do(t, h.viewer, document, variables{"id": pulled.ID, "first": 2})
	require.Empty(t, a.Errors, "%s", a.raw)
	golden(t, "sku/explain", a.raw)
	var out struct{ ExplainSku []struct{ Match bool } }
	h.must(t, `query($id: ID!) { explainSku(machineId: $id) { match } }`, variables{"id": h.here.ready.ID}, &out)
	require.Len(t, out.ExplainSku, 3)
	require.True(t, out.ExplainSku[0].Match)
	for _, first := range []int{0, -1, 21} {
		fault := h.refused(t, h.viewer, document, variables{"id": pulled.ID, "first": first})
		require.Equal(t, []string{"INVALID_ARGUMENT", "PAGE_SIZE_INVALID", "first"}, []string{fault.Extensions.Code, fault.Extensions.Reason, fault.Extensions.Field})
	}
}

func TestAPreviewTellsWhoWouldStartAndStopMatching(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	whole := inventory(t, "composed/r760_9nvme.json")
	pulled := h.report(t, h.here.id, "02:00:00:00:00:05", "pulled", without(t, whole, 3))
	h.report(t, h.here.id, "02:00:00:00:00:06", "also-pulled", without(t, whole, 3))
	h.report(t, h.here.id, "02:00:00:00:00:07", "also-ready", whole)
	content := h.fingerprint(t)
	before := content()
	const document = `query($id: ID!, $c: SkuComponentsInput!) { previewSkuReplace(skuId: $id, components: $c) {
		starts { count machines { name site { name } } } stops { count machines { name sku { name } } } duplicateOf { name machineCount } } }`
	for name, components := range map[string]map[string]any{
		"preview_moves":     h.generate(t, pulled.ID),
		"preview_same":      h.generate(t, h.here.ready.ID),
		"preview_duplicate": ofChassis(h.generate(t, h.here.waiting.ID), "Spare"),
	} {
		a := h.do(t, h.viewer, document, variables{"id": h.here.sku, "c": components})
		require.Empty(t, a.Errors, "%s", a.raw)
		golden(t, "sku/"+name, a.raw)
	}
	require.Equal(t, before, content())
	for _, f := range componentsRefused(h.generate(t, pulled.ID)) {
		fault := h.refused(t, h.viewer, document, variables{"id": h.here.sku, "c": f.change["components"]})
		require.Equal(t, []string{"INVALID_ARGUMENT", f.reason, f.field}, []string{fault.Extensions.Code, fault.Extensions.Reason, fault.Extensions.Field}, f.name)
	}
}

func TestADraftTakesAGivenNameOrProposesOne(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	const document = `query($id: ID!, $name: String) { generateSku(machineId: $id, name: $name) { name schemaVersion } }`
	for name, want := range map[any]string{nil: "dell.r760.storage.2", "mine": "mine", "dell.r760.storage.1": "dell.r760.storage.1"} {
		a := h.do(t, h.viewer, document, variables{"id": h.here.ready.ID, "name": name})
		require.JSONEq(t, `{"data": {"generateSku": {"name": "`+want+`", "schemaVersion": 5}}}`, string(a.raw))
	}
	for _, f := range namesRefused("name", fleet.MaxSkuNameLength) {
		fault := h.refused(t, h.viewer, document, merged(f.change, variables{"id": h.here.ready.ID}))
		require.Equal(t, []string{"INVALID_ARGUMENT", f.reason, f.field}, []string{fault.Extensions.Code, fault.Extensions.Reason, fault.Extensions.Field}, f.name)
	}
}
