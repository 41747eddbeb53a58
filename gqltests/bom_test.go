package gqltests_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lab is a server with one site that validates, and good hardware.
type lab struct {
	*bundle
	site       string
	good, bad  json.RawMessage // hardware of one kind, the second without a drive
	other      json.RawMessage // hardware of another kind
	components map[string]any  // of a SKU that good matches
}

// newLab makes a lab; config says more of the site's bomValidation.
func newLab(t *testing.T, config variables) *lab {
	t.Helper()
	l := &lab{bundle: setup(t), good: inventory(t, "composed/r760_9nvme.json"), other: inventory(t, "composed/xe9680_8gpu.json")}
	l.bad = without(t, l.good, 3)
	l.site = l.createSite(t, "dc1")
	l.configure(t, config)
	sample := l.createSite(t, "sample")
	l.components = l.generate(t, l.report(t, sample, readyMac, "sample", l.good).ID)
	return l
}

func (l *lab) configure(t *testing.T, config variables) {
	t.Helper()
	l.configureSite(t, l.site, merged(variables{"enabled": true}, config))
}

// expect registers what is expected of the machine with this BMC.
func (l *lab) expect(t *testing.T, mac, skuName string) {
	t.Helper()
	l.must(t, `mutation($input: CreateExpectedMachineInput!) { createExpectedMachine(input: $input) { expectedMachine { id } } }`,
		variables{"input": variables{"siteId": l.site, "expectedMachine": variables{"bmcMacAddress": mac, "skuName": skuName}, "allowUnknownSku": true}}, nil)
}

// arrives reports an inventory of the machine with this BMC.
func (l *lab) arrives(t *testing.T, mac string, document json.RawMessage) machine {
	t.Helper()
	m, _ := l.reported(t, variables{"siteId": l.site, "bmcMacAddress": mac, "inventory": document})
	return m
}

// becomes waits until a machine is at a position, and returns its status.
func (b *bundle) becomes(t *testing.T, id, position string) status {
	t.Helper()
	var s status
	require.Eventually(t, func() bool {
		s = b.status(t, id)
		return s.position() == position
	}, polling, tick, "%s", position)
	return s
}

func (m machine) position() string {
	if m.SubState == "" {
		return m.State
	}
	return m.SubState
}

// way is the causes of a machine's history after the first n, and where each led.
func (b *bundle) way(t *testing.T, id string, after int) []string {
	t.Helper()
	out := []string{}
	for _, e := range b.history(t, id)[after:] {
		step := e.Cause
		if e.ToState != "" {
			step += " > " + strings.TrimPrefix(e.ToState, "BOM_VALIDATING/")
		}
		out = append(out, step)
	}
	return out
}

func (l *lab) alerts(t *testing.T, id string) []string {
	t.Helper()
	texts := []string{}
	for _, e := range l.status(t, id).HealthAlerts.Edges {
		texts = append(texts, e.Node.Message)
	}
	return texts
}

const validated = "VALIDATION_NOT_AVAILABLE > READY"

func TestAMachineWithoutASkuWaitsUntilOneMatchesIt(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]variables{ // 1.2, 2.1, 2.3; 2.4: allowing does not cover the unassigned
		"strict": {"findMatchInterval": "1s"}, "allowing": {"findMatchInterval": "1s", "allowAllocationOnValidationFailure": true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, config)
			m := l.arrives(t, readyMac, l.good)
			require.Equal(t, "WAITING_FOR_SKU_ASSIGNMENT", m.position())
			attempt := func() (at string) {
				var out struct {
					Node struct{ LastMatchAttemptAt string }
				}
				l.must(t, `query($id: ID!) { node(id: $id) { ... on Machine { lastMatchAttemptAt } } }`, variables{"id": m.ID}, &out)
				return out.Node.LastMatchAttemptAt
			}
			for range 2 { // passes
				before := attempt()
				require.Eventually(t, func() bool { return attempt() != before }, polling, tick)
			}
			require.Equal(t, []string{"DISCOVERED > INGESTING", "INGESTED > MATCHING_SKU", "SKU_NOT_FOUND > WAITING_FOR_SKU_ASSIGNMENT"}, l.way(t, m.ID, 0))
			require.Empty(t, l.alerts(t, m.ID))

			// 1.1: a SKU is created while it waits.
			l.newSku(t, l.site, "n", l.components)
			l.becomes(t, m.ID, "UPDATING_INVENTORY")
			require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
			require.Equal(t, []string{
				"SKU_MATCH_FOUND > UPDATING_INVENTORY", "INVENTORY_UPDATED > MATCHING_SKU",
				"SKU_MATCHED > VALIDATING/RUNNING", validated,
			}, l.way(t, m.ID, 3))
			require.Equal(t, "n", l.status(t, m.ID).SkuName)
		})
	}
}

func TestAnAssignmentLeadsOutOfWaitingThroughAFreshInventory(t *testing.T) { // 2.2, 4.1
	t.Parallel()
	l := newLab(t, nil)
	wider := l.newSku(t, l.site, "wider", lessDrive(t, l.components))
	m := l.arrives(t, readyMac, l.good)
	require.Equal(t, "UPDATING_INVENTORY", l.called(t, assignSku, variables{"machineId": m.ID, "skuId": wider}).position())
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.good).position())
	require.Len(t, l.alerts(t, m.ID), 1)
	require.Equal(t, "READY", func() string {
		require.Equal(t, "UPDATING_INVENTORY", l.called(t, verifySku, variables{"machineId": m.ID}).position())
		require.Len(t, l.alerts(t, m.ID), 1, "the alert stands until the next verdict")
		return l.arrives(t, readyMac, without(t, l.good, 0)).position()
	}())
	require.Empty(t, l.alerts(t, m.ID))
	require.Equal(t, []string{
		"SKU_ASSIGNED", "VERIFY_REQUESTED > UPDATING_INVENTORY", "INVENTORY_UPDATED > VERIFYING_SKU", "SKU_MISMATCH > SKU_VERIFICATION_FAILED",
		"VERIFY_REQUESTED > UPDATING_INVENTORY", "INVENTORY_UPDATED > VERIFYING_SKU", "SKU_VERIFIED > VALIDATING/RUNNING", validated,
	}, l.way(t, m.ID, 3))
}

func TestAnExpectedSkuThatIsMissing(t *testing.T) {
	t.Parallel()
	const alert = "The assigned sku no-sku does not exist"
	missing := func(t *testing.T, config variables) (*lab, machine) {
		t.Helper()
		l := newLab(t, config)
		l.expect(t, readyMac, "no-sku")
		return l, l.arrives(t, readyMac, l.good)
	}

	t.Run("waits until it is created", func(t *testing.T) { // 3.1
		t.Parallel()
		l, m := missing(t, nil)
		for range 3 {
			require.Equal(t, []string{"SKU_MISSING", "no-sku"}, []string{m.position(), m.SkuName})
			require.Equal(t, []string{alert}, l.alerts(t, m.ID))
			m = l.arrives(t, readyMac, l.good)
		}
		l.newSku(t, l.site, "no-sku", l.components)
		s := l.becomes(t, m.ID, "UPDATING_INVENTORY")
		require.Empty(t, s.HealthAlerts.Edges)
		require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
		require.Equal(t, []string{
			"INGESTED > MATCHING_SKU", "VERIFICATION_STARTED > VERIFYING_SKU", "SKU_MISSING > SKU_MISSING", "SKU_AVAILABLE > UPDATING_INVENTORY",
			"INVENTORY_UPDATED > VERIFYING_SKU", "SKU_VERIFIED > VALIDATING/RUNNING", validated,
		}, l.way(t, m.ID, 1))
	})

	t.Run("the assignment is taken away", func(t *testing.T) { // 3.2
		t.Parallel()
		l, m := missing(t, nil)
		l.refusedFor(t, unassignSku, variables{"machineId": m.ID}, "FAILED_PRECONDITION", "MACHINE_STATE")
		require.Equal(t, "WAITING_FOR_SKU_ASSIGNMENT", l.called(t, unassignSku, variables{"machineId": m.ID, "force": true}).position())
		require.Empty(t, l.alerts(t, m.ID))

		// What is expected of a machine counts at first sight only.
		again := l.arrives(t, readyMac, l.good)
		require.Equal(t, []string{"WAITING_FOR_SKU_ASSIGNMENT", ""}, []string{again.position(), again.SkuName})
	})

	t.Run("the assignment is taken away, ignoring", func(t *testing.T) {
		t.Parallel()
		l, m := missing(t, variables{"ignoreUnassignedMachines": true})
		require.Equal(t, "SKU_MISSING", m.position(), "ignoring does not cover a machine with a SKU")
		require.Equal(t, "READY", l.called(t, unassignSku, variables{"machineId": m.ID, "force": true}).position())
	})

	t.Run("another one is assigned instead", func(t *testing.T) {
		t.Parallel()
		l, m := missing(t, nil)
		id := l.newSku(t, l.site, "real", l.components)
		l.refusedFor(t, assignSku, variables{"machineId": m.ID, "skuId": id}, "FAILED_PRECONDITION", "SKU_ALREADY_ASSIGNED")
		require.Equal(t, "UPDATING_INVENTORY", l.called(t, assignSku, variables{"machineId": m.ID, "skuId": id, "force": true}).position())
		require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
	})

	t.Run("is generated from the machine", func(t *testing.T) { // 3.3
		t.Parallel()
		l, m := missing(t, variables{"autoGenerateMissingSku": true, "autoGenerateMissingSkuInterval": "2s"})
		require.Equal(t, []string{"READY", "no-sku"}, []string{m.position(), m.SkuName})
		require.Equal(t, []string{
			"SKU_MISSING > SKU_MISSING", "SKU_GENERATION_ATTEMPTED > UPDATING_INVENTORY", "INVENTORY_UPDATED > VERIFYING_SKU",
			"SKU_VERIFIED > VALIDATING/RUNNING", validated,
		}, l.way(t, m.ID, 3))
		var out struct {
			Sku struct {
				Components  map[string]any
				Transitions any
			}
		}
		l.must(t, `{ sku(site: "dc1", name: "no-sku") { components {`+componentFields+`} } }`, nil, &out)
		require.Equal(t, l.components, out.Sku.Components)

		// Another host of the same hardware is verified against it; one of other hardware is not.
		l.expect(t, waitingMac, "no-sku")
		require.Equal(t, "READY", l.arrives(t, waitingMac, l.good).position())
		l.expect(t, "02:00:00:00:00:03", "no-sku")
		require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, "02:00:00:00:00:03", l.other).position())
	})

	t.Run("is generated from the report of an agent", func(t *testing.T) {
		t.Parallel()
		l := newLab(t, variables{"autoGenerateMissingSku": true})
		l.expect(t, readyMac, "no-sku")
		agent := l.issueToken(t, variables{"name": "agent", "role": "AGENT", "siteId": l.site, "bmcMacAddress": readyMac})
		var out struct{ ReportInventory struct{ Machine machine } }
		l.mustAs(t, agent, reportInventory, variables{"input": variables{"siteId": l.site, "bmcMacAddress": readyMac, "inventory": l.good}}, &out)
		require.Equal(t, []string{"READY", "no-sku"}, []string{out.ReportInventory.Machine.position(), out.ReportInventory.Machine.SkuName})
		var sku struct{ Sku struct{ ID string } }
		l.must(t, `{ sku(site: "dc1", name: "no-sku") { id } }`, nil, &sku)
		require.Equal(t, "system:bom", l.history(t, sku.Sku.ID)[0].Actor)
	})

	t.Run("is generated once the site says so", func(t *testing.T) {
		t.Parallel()
		l, m := missing(t, nil)
		require.Equal(t, "SKU_MISSING", m.position())
		l.configure(t, variables{"autoGenerateMissingSku": true})
		l.becomes(t, m.ID, "UPDATING_INVENTORY")
		require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
	})

	t.Run("is not generated where another SKU describes the hardware", func(t *testing.T) {
		t.Parallel()
		l := newLab(t, variables{"autoGenerateMissingSku": true, "autoGenerateMissingSkuInterval": "2s"})
		l.newSku(t, l.site, "other", l.components)
		l.expect(t, readyMac, "no-sku")
		m := l.arrives(t, readyMac, l.good)
		require.Equal(t, "SKU_MISSING", m.position())
		require.Equal(t, []string{alert}, l.alerts(t, m.ID))
		events := l.history(t, m.ID)
		i := slices.IndexFunc(events, func(e event) bool { return e.Cause == "SKU_GENERATION_ATTEMPTED" })
		require.Equal(t, "Specified SKU matches SKU with ID: other", events[i].Message)
		require.Equal(t, "SKU_MISSING", last(events).Cause)

		// It is tried again, no more often than the interval, after which it waits for an
		// inventory again.
		l.becomes(t, m.ID, "UPDATING_INVENTORY")
		require.Equal(t, "SKU_MISSING", l.arrives(t, readyMac, l.good).position())

		// Without the assignment, matching finds the SKU that describes it.
		require.Contains(t, []string{"UPDATING_INVENTORY", "WAITING_FOR_SKU_ASSIGNMENT"}, l.called(t, unassignSku, variables{"machineId": m.ID, "force": true}).position())
		m = l.arrives(t, readyMac, l.good)
		require.Equal(t, []string{"READY", "other"}, []string{m.position(), m.SkuName})
	})

	t.Run("is not generated where nothing is expected of the machine any more", func(t *testing.T) {
		t.Parallel()
		l, _ := missing(t, nil)
		var out struct{ ExpectedMachine struct{ ID string } }
		l.must(t, `{ expectedMachine(site: "dc1", bmcMacAddress: "`+readyMac+`") { id } }`, nil, &out)
		l.must(t, `mutation($input: DeleteExpectedMachineInput!) { deleteExpectedMachine(input: $input) { deletedExpectedMachineId } }`,
			variables{"input": variables{"expectedMachineId": out.ExpectedMachine.ID}}, nil)
		l.configure(t, variables{"autoGenerateMissingSku": true})
		require.Equal(t, "SKU_MISSING", l.arrives(t, readyMac, l.good).position())
	})

	t.Run("does not stop the machine where the site allows it", func(t *testing.T) { // 3.4
		t.Parallel()
		l, m := missing(t, variables{"allowAllocationOnValidationFailure": true})
		require.Equal(t, "READY", m.position())
		require.Empty(t, l.alerts(t, m.ID))
		require.Equal(t, []string{"VERIFICATION_STARTED > VERIFYING_SKU", "SKU_MISSING_ALLOWED > VALIDATING/RUNNING", validated}, l.way(t, m.ID, 2))
		require.Equal(t, alert, l.history(t, m.ID)[3].Message)

		// The SKU that is created then is not verified by itself, but on request.
		l.newSku(t, l.site, "no-sku", l.components)
		require.Eventually(t, func() bool {
			return l.count(t, `SELECT count(*) FROM machines WHERE sku_id IS NOT NULL AND site_id = $1`, l.site) == 1
		}, polling, tick)
		require.Equal(t, "READY", l.status(t, m.ID).position())
		require.Nil(t, l.status(t, m.ID).LastVerification)
		require.Equal(t, "UPDATING_INVENTORY", l.called(t, verifySku, variables{"machineId": m.ID}).position())
		require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
		require.True(t, l.status(t, m.ID).LastVerification.Match)
	})
}

func TestAVerificationFromReadySkipsTheTests(t *testing.T) { // 4.2, 4.3, 5.1
	t.Parallel()
	l := newLab(t, nil)
	right := l.newSku(t, l.site, "right", l.components)
	cpus, ok := l.components["cpus"].([]any)
	require.True(t, ok)
	cpu, ok := cpus[0].(map[string]any)
	require.True(t, ok)
	more := l.newSku(t, l.site, "more", merged(l.components, variables{"cpus": []any{merged(cpu, variables{"count": 3})}}))
	m := l.arrives(t, readyMac, l.good)
	require.Equal(t, []string{"READY", "right"}, []string{m.position(), m.SkuName})
	known := len(l.history(t, m.ID))

	require.Equal(t, "UPDATING_INVENTORY", l.called(t, verifySku, variables{"machineId": m.ID}).position())
	require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
	require.Equal(t, []string{"VERIFY_REQUESTED > UPDATING_INVENTORY", "INVENTORY_UPDATED > VERIFYING_SKU", "SKU_VERIFIED > READY"}, l.way(t, m.ID, known))

	require.Equal(t, "UPDATING_INVENTORY", l.called(t, assignSku, variables{"machineId": m.ID, "skuId": more, "force": true}).position())
	for range 3 { // and stays
		require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.good).position())
	}
	require.Contains(t, l.alerts(t, m.ID)[0], "Number of CPUs (2) does not match expected (3)")
	require.Equal(t, "UPDATING_INVENTORY", l.called(t, assignSku, variables{"machineId": m.ID, "skuId": right, "force": true}).position())
	require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
	require.Empty(t, l.alerts(t, m.ID))
	require.NotContains(t, strings.Join(l.way(t, m.ID, known), "\n"), "VALIDATING/RUNNING")
}

func TestASkuThatIsOnlyWrittenIntoTheDatabaseIsNotVerified(t *testing.T) { // 5.2
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "right", l.components)
	wrong := l.newSku(t, l.site, "wrong", lessDrive(t, l.components))
	m := l.arrives(t, readyMac, l.good)
	_, err := l.sql(t).Exec(t.Context(), `UPDATE machines SET sku_id = $1, sku_name = 'wrong' WHERE id = $2`, wrong, m.ID)
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
	}
	l.configure(t, variables{"findMatchInterval": "1s"}) // has every machine looked at
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.bad).position() /* which differs from before, and from the SKU by another drive */)
}

func TestAMismatchStopsNothingWhereTheSiteAllowsIt(t *testing.T) { // 5.3
	t.Parallel()
	l := newLab(t, variables{"allowAllocationOnValidationFailure": true})
	l.newSku(t, l.site, "expected", l.components)
	l.expect(t, readyMac, "expected")
	m := l.arrives(t, readyMac, l.bad)
	require.Equal(t, "READY", m.position())
	require.Empty(t, l.alerts(t, m.ID))
	require.Equal(t, []string{"SKU_MISMATCH_ALLOWED > VALIDATING/RUNNING", validated}, l.way(t, m.ID, 3))
	event := l.history(t, m.ID)[3]
	require.Contains(t, event.Message, "not found")
	require.InDelta(t, 1, event.Details["mismatchCount"], 0)
	require.False(t, l.status(t, m.ID).LastVerification.Match)

	// Where it no longer does, the machine is looked at, and a verification tells.
	l.configure(t, variables{"allowAllocationOnValidationFailure": false})
	require.Equal(t, "UPDATING_INVENTORY", l.called(t, verifySku, variables{"machineId": m.ID}).position())
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.bad).position())
	l.configure(t, variables{"allowAllocationOnValidationFailure": true})
	l.becomes(t, m.ID, "READY")
	require.Empty(t, l.alerts(t, m.ID))
}

func TestIgnoringTheUnassignedDoesNotCoverAMismatch(t *testing.T) { // the row "new"
	t.Parallel()
	l := newLab(t, variables{"ignoreUnassignedMachines": true})
	free := l.arrives(t, waitingMac, l.other)
	require.Equal(t, []string{"READY", ""}, []string{free.position(), free.SkuName})
	l.newSku(t, l.site, "expected", l.components)
	l.expect(t, readyMac, "expected")
	m := l.arrives(t, readyMac, l.bad)
	require.Equal(t, "SKU_VERIFICATION_FAILED", m.position())
	require.Len(t, l.alerts(t, m.ID), 1)

	// An impossible pattern is a mismatch that is told.
	impossible := variables{"model": "", "count": 1, "pciPatterns": []any{"^nowhere$"}}
	l.newSku(t, l.site, "impossible", merged(ofChassis(l.components, "PowerEdge R760"), variables{"storage": []any{impossible}}))
	l.expect(t, "02:00:00:00:00:03", "impossible")
	m = l.arrives(t, "02:00:00:00:00:03", l.good)
	require.Equal(t, "SKU_VERIFICATION_FAILED", m.position())
	require.Contains(t, l.alerts(t, m.ID)[0], "Expected storage drive at PCI location /^nowhere$/ not found")
}

func TestASecondMachineOfTheSameHardwareIsMatched(t *testing.T) { // 6.1
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	for _, mac := range []string{readyMac, waitingMac} {
		m := l.arrives(t, mac, l.good)
		require.Equal(t, []string{"READY", "n"}, []string{m.position(), m.SkuName})
		require.Equal(t, []string{"DISCOVERED > INGESTING", "INGESTED > MATCHING_SKU", "SKU_MATCHED > VALIDATING/RUNNING", validated}, l.way(t, m.ID, 0))
	}
}

func TestAReplacementIsFollowedByAVerification(t *testing.T) { // 6.2
	t.Parallel()
	l := newLab(t, nil)
	id := l.newSku(t, l.site, "n", l.components)
	m, free := l.arrives(t, readyMac, l.good), l.arrives(t, waitingMac, l.bad)
	require.Equal(t, []string{"READY", "WAITING_FOR_SKU_ASSIGNMENT"}, []string{m.position(), free.position()})
	l.must(t, replaceSku, variables{"input": variables{"skuId": id, "components": l.generate(t, free.ID)}}, nil)

	// From that moment on it cannot be allocated, whatever the jobs have done yet.
	fault := l.refusedFor(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "a"}, "FAILED_PRECONDITION", "MACHINE_NOT_ALLOCATABLE")
	require.NotEmpty(t, fault.Extensions.Details["blockers"])
	l.becomes(t, m.ID, "UPDATING_INVENTORY")
	l.becomes(t, free.ID, "UPDATING_INVENTORY") // since it matches now
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.good).position())
	taken := l.arrives(t, waitingMac, l.bad)
	require.Equal(t, []string{"READY", "n"}, []string{taken.position(), taken.SkuName})
}

func TestAMachineThatIsUnassignedIsMatchedAgain(t *testing.T) { // 6.3, and the trap of the original
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	m := l.arrives(t, readyMac, l.good)
	for _, prepare := range []func(){
		func() {}, // matched
		func() { // verified
			l.called(t, verifySku, variables{"machineId": m.ID})
			require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
		},
	} {
		prepare()
		require.Equal(t, "UPDATING_INVENTORY", l.called(t, unassignSku, variables{"machineId": m.ID}).position())
		again := l.arrives(t, readyMac, l.good)
		require.Equal(t, []string{"READY", "n"}, []string{again.position(), again.SkuName})
	}
	known := len(l.history(t, m.ID))
	l.called(t, unassignSku, variables{"machineId": m.ID})
	l.arrives(t, readyMac, l.good)
	require.Equal(t, []string{
		"SKU_UNASSIGNED", "SKU_MATCH_FOUND > UPDATING_INVENTORY", "INVENTORY_UPDATED > MATCHING_SKU", "SKU_MATCHED > READY",
	}, l.way(t, m.ID, known), "it came from READY: no tests")

	// A verification asked for without a SKU is an attempt to match, and no trap.
	free := l.arrives(t, waitingMac, l.other)
	l.configure(t, variables{"ignoreUnassignedMachines": true})
	l.becomes(t, free.ID, "READY")
	require.Equal(t, "READY", l.called(t, verifySku, variables{"machineId": free.ID}).position())
	require.True(t, l.allocatable(t, free.ID))
	l.newSku(t, l.site, "o", l.generate(t, free.ID))
	l.becomes(t, free.ID, "UPDATING_INVENTORY")
	require.Equal(t, "READY", l.arrives(t, waitingMac, l.other).position())
}

func TestAFailedMachineThatIsUnassignedLosesItsAlert(t *testing.T) { // the original kept it
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	m := l.arrives(t, readyMac, l.good)
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.bad).position())
	require.Len(t, l.alerts(t, m.ID), 1)
	require.Equal(t, "WAITING_FOR_SKU_ASSIGNMENT", l.called(t, unassignSku, variables{"machineId": m.ID}).position())
	require.Empty(t, l.alerts(t, m.ID))
	require.Nil(t, l.status(t, m.ID).LastVerification)
}

func TestReadyHardwareThatChangesIsVerifiedAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	m := l.arrives(t, readyMac, l.good)
	known := len(l.history(t, m.ID))

	// What the SKU does not compare changes nothing.
	other := edited(t, l.good, func(document map[string]any) {
		document["block_devices"] = []any{variables{"model": "USB stick", "device_type": "disk"}}
	})
	require.Equal(t, "READY", l.arrives(t, readyMac, other).position())
	require.Len(t, l.history(t, m.ID), known)
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.bad).position())
	require.Equal(t, []string{"INVENTORY_CHANGED > VERIFYING_SKU", "SKU_MISMATCH > SKU_VERIFICATION_FAILED"}, l.way(t, m.ID, known))
	require.Equal(t, []any{"STORAGE"}, l.history(t, m.ID)[known].Details["components"])

	// Repaired, it waits for a person to ask.
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.good).position())
	require.True(t, l.status(t, m.ID).SkuComparison.Match)
	l.called(t, verifySku, variables{"machineId": m.ID})
	require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
}

func TestHardwareThatChangesWhileItIsOutIsRecordedAndFoundOnReturn(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	m := l.arrives(t, readyMac, l.good)
	l.called(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "a"})
	known := len(l.history(t, m.ID))
	require.Equal(t, "ALLOCATED", l.arrives(t, readyMac, l.bad).position())
	require.Equal(t, []string{"INVENTORY_CHANGED"}, l.way(t, m.ID, known))
	require.Empty(t, l.alerts(t, m.ID))

	// The tenancy was shorter than a day: the inventory that the machine comes back with
	// counts all the same (row 26).
	require.Equal(t, "UPDATING_INVENTORY", l.called(t, releaseMachine, variables{"machineId": m.ID}).position())
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.bad).position())
	require.Equal(t, []string{
		"INVENTORY_CHANGED", "RELEASED > CLEANUP", "CLEANED > UPDATING_INVENTORY", "INVENTORY_UPDATED > VERIFYING_SKU", "SKU_MISMATCH > SKU_VERIFICATION_FAILED",
	}, l.way(t, m.ID, known))

	// It was on its way from a tenant: after the repair its tests come, too.
	l.called(t, verifySku, variables{"machineId": m.ID})
	require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
	require.Equal(t, []string{"SKU_VERIFIED > VALIDATING/RUNNING", validated}, l.way(t, m.ID, known+7))
}

func TestARequestForAVerificationOutlivesWhateverLiesBetween(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	id := l.newSku(t, l.site, "n", l.components)
	m := l.arrives(t, readyMac, l.good)
	l.called(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "a"})
	l.must(t, replaceSku, variables{"input": variables{"skuId": id, "components": lessDrive(t, l.components)}}, nil)
	requested := func() int {
		return l.count(t, `SELECT count(*) FROM machines WHERE verify_requested_at IS NOT NULL AND id = $1`, m.ID)
	}
	require.Equal(t, 1, requested())
	l.called(t, releaseMachine, variables{"machineId": m.ID})
	require.Equal(t, 1, requested(), "through CLEANUP and UPDATING_INVENTORY")
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.good).position())
	require.Equal(t, 0, requested())
}

func TestASiteThatDoesNotValidateLetsEveryMachineThrough(t *testing.T) {
	t.Parallel()
	l := newLab(t, variables{"enabled": false})
	m := l.arrives(t, readyMac, l.good)
	require.Equal(t, "READY", m.position())
	require.Equal(t, []string{"DISCOVERED > INGESTING", "INGESTED > MATCHING_SKU", "BOM_VALIDATION_DISABLED > VALIDATING/RUNNING", validated}, l.way(t, m.ID, 0))
	l.expect(t, waitingMac, "no-sku")
	named := l.arrives(t, waitingMac, l.good)
	require.Equal(t, []string{"READY", "no-sku"}, []string{named.position(), named.SkuName}, "the name is copied all the same")

	// Switched on, every machine is looked at; off again, whoever waits goes on.
	l.configure(t, nil)
	l.becomes(t, m.ID, "WAITING_FOR_SKU_ASSIGNMENT")
	l.becomes(t, named.ID, "SKU_MISSING")
	require.Len(t, l.alerts(t, named.ID), 1)
	l.configure(t, variables{"enabled": false})
	l.becomes(t, m.ID, "READY")
	l.becomes(t, named.ID, "READY")
	require.Empty(t, l.alerts(t, named.ID))
}

// TestWhereEveryMachineOfEverySiteComesToRest runs the 32 combinations of {enabled,
// allow, ignore} and {no SKU, good, bad, missing} from a machine's first inventory.
func TestWhereEveryMachineOfEverySiteComesToRest(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	for n := range 8 {
		enabled, allow, ignore := n&1 != 0, n&2 != 0, n&4 != 0
		l.site = l.createSite(t, fmt.Sprint("s", n))
		l.configureSite(t, l.site, variables{"enabled": enabled, "allowAllocationOnValidationFailure": allow, "ignoreUnassignedMachines": ignore})
		l.newSku(t, l.site, "n", l.components)
		for i, c := range []struct {
			sku      string
			document json.RawMessage
			stops    string
			passes   bool
		}{
			{"", l.other, "WAITING_FOR_SKU_ASSIGNMENT", ignore},
			{"n", l.good, "READY", true},
			{"n", l.bad, "SKU_VERIFICATION_FAILED", allow},
			{"missing", l.good, "SKU_MISSING", allow},
		} {
			mac := fmt.Sprintf("02:00:00:00:00:1%d", i)
			if c.sku != "" {
				l.expect(t, mac, c.sku)
			}
			want := c.stops
			if !enabled || c.passes {
				want = "READY"
			}
			m := l.arrives(t, mac, c.document)
			require.Equal(t, want, m.position(), "enabled %t, allow %t, ignore %t, SKU %q", enabled, allow, ignore, c.sku)
			require.Equal(t, want == "READY", l.allocatable(t, m.ID))
			alerts := 0
			if want == "SKU_VERIFICATION_FAILED" || want == "SKU_MISSING" {
				alerts = 1
			}
			require.Len(t, l.alerts(t, m.ID), alerts)
		}
	}
}

func TestAnOverdueInventoryIsToldAndAnyInventoryEndsIt(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	m := l.arrives(t, readyMac, l.good)
	l.called(t, verifySku, variables{"machineId": m.ID})
	conn := l.sql(t)
	_, err := conn.Exec(t.Context(), `UPDATE machines SET state_changed_at = state_changed_at - interval '6 minutes',
		inventory_reported_at = inventory_reported_at - interval '7 minutes', attend_at = attend_at - interval '6 minutes' WHERE id = $1`, m.ID)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(l.alerts(t, m.ID)) == 1 }, polling, tick)
	require.Contains(t, l.alerts(t, m.ID)[0], "no inventory has arrived since ")
	require.Equal(t, "INVENTORY_OVERDUE", last(l.history(t, m.ID)).Cause)
	require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
	require.Empty(t, l.alerts(t, m.ID))
}

// The original never matched a machine with a TPM to a SKU of a version before 4
// (row 27): each SKU is compared at its own version.
func TestAMachineWithATpmMatchesASkuOfAVersionWithout(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	drives := map[string]int{}
	groups, ok := l.components["storage"].([]any)
	require.True(t, ok)
	for _, g := range groups {
		g, ok := g.(map[string]any)
		require.True(t, ok)
		model, ok := g["model"].(string)
		require.True(t, ok)
		drives[model]++
	}
	storage := []any{}
	for model, count := range drives {
		storage = append(storage, variables{"model": model, "count": count})
	}
	require.NotNil(t, l.components["tpm"])
	old := lacking(merged(l.components, variables{"storage": storage}), "tpm")
	l.must(t, createSkus, variables{"input": variables{
		"siteId": l.site, "acceptOlderVersions": true, "skus": []any{variables{"name": "old", "schemaVersion": 3, "components": old}},
	}}, nil)
	m := l.arrives(t, readyMac, l.good)
	require.Equal(t, []string{"READY", "old"}, []string{m.position(), m.SkuName})
	require.Equal(t, "READY", l.arrives(t, waitingMac, edited(t, l.good, func(document map[string]any) { delete(document, "tpm_description") })).position())
}

// A machine that waited for an assignment may be waiting for the inventory that
// confirms a match by the time somebody assigns a SKU: that is no race to lose.
func TestAnAssignmentIsNotLostToAMatchThatIsPending(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	m := l.arrives(t, readyMac, l.good)
	id := l.newSku(t, l.site, "n", l.components)
	require.Equal(t, "UPDATING_INVENTORY", l.status(t, m.ID).position())
	require.Equal(t, "n", l.called(t, assignSku, variables{"machineId": m.ID, "skuId": id}).SkuName)
	l.refusedFor(t, assignSku, variables{"machineId": m.ID, "skuId": id}, "FAILED_PRECONDITION", "SKU_ALREADY_ASSIGNED")
	require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
	require.Equal(t, "SKU_VERIFIED", l.history(t, m.ID)[len(l.history(t, m.ID))-2].Cause)
}

// What a site let pass is judged when it no longer does, and so is what changed while
// it did not validate, or while a host was to restart.
func TestNoReadyMachineIsAllocatableWithHardwareThatNobodyJudged(t *testing.T) {
	t.Parallel()
	l := newLab(t, variables{"allowAllocationOnValidationFailure": true})
	l.newSku(t, l.site, "n", l.components)
	m, second := l.arrives(t, readyMac, l.good), l.arrives(t, waitingMac, l.good)
	require.Equal(t, "READY", l.arrives(t, readyMac, l.bad).position())
	l.configure(t, variables{"allowAllocationOnValidationFailure": false})
	l.becomes(t, m.ID, "SKU_VERIFICATION_FAILED")
	require.Equal(t, "READY", l.status(t, second.ID).position(), "one that matches stays")

	l.configure(t, variables{"enabled": false})
	require.Equal(t, "READY", l.arrives(t, waitingMac, l.bad).position())
	l.configure(t, nil)
	l.becomes(t, second.ID, "SKU_VERIFICATION_FAILED")

	l.updateSite(t, variables{"siteId": l.site, "machineValidation": variables{"enabled": true, "rebootBeforeValidation": true}})
	third := l.arrives(t, "02:00:00:00:00:03", l.good)
	require.Equal(t, "REBOOTING", third.position())
	require.Equal(t, "REBOOTING", l.arrives(t, "02:00:00:00:00:03", l.bad).position())
	l.updateSite(t, variables{"siteId": l.site, "machineValidation": variables{"rebootBeforeValidation": false}})
	l.becomes(t, third.ID, "UPDATING_INVENTORY")
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, "02:00:00:00:00:03", l.bad).position())
}
