package gqltests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	allocateMachine = `mutation($input: AllocateMachineInput!) { allocateMachine(input: $input) { machine { id name state subState skuName } } }`
	releaseMachine  = `mutation($input: ReleaseMachineInput!) { releaseMachine(input: $input) { machine { id name state subState skuName } } }`
	deleteMachine   = `mutation($input: DeleteMachineInput!) { deleteMachine(input: $input) { deletedMachineId } }`
	raiseAlert      = `mutation($input: RaiseHealthAlertInput!) { raiseHealthAlert(input: $input) { healthAlert { id } } }`
	clearAlert      = `mutation($input: ClearHealthAlertInput!) { clearHealthAlert(input: $input) { machine { id name state subState skuName } } }`
	claimWork       = `mutation($input: ClaimWorkInput!) { claimWork(input: $input) { work { __typename id machineId claimedAt outcome } } }`
	finishWork      = `mutation($input: FinishWorkInput!) { finishWork(input: $input) { work { __typename id outcome error finishedAt } } }`
)

func (b *bundle) blockers(t *testing.T, id string) (codes []string) {
	t.Helper()
	var out struct {
		Node struct {
			Allocatable        bool
			AllocationBlockers []struct{ Code, Message string }
		}
	}
	b.must(t, `query($id: ID!) { node(id: $id) { ... on Machine { allocatable allocationBlockers { code message } } } }`, variables{"id": id}, &out)
	codes = []string{}
	for _, blocker := range out.Node.AllocationBlockers {
		require.NotEmpty(t, blocker.Message)
		codes = append(codes, blocker.Code)
	}
	require.Equal(t, len(codes) == 0, out.Node.Allocatable)
	return codes
}

func (b *bundle) allocatable(t *testing.T, id string) bool {
	t.Helper()
	return len(b.blockers(t, id)) == 0
}

// raise raises an alert that prevents allocations, and returns its id.
func (b *bundle) raise(t *testing.T, machineID string) string {
	t.Helper()
	var out struct {
		RaiseHealthAlert struct{ HealthAlert struct{ ID string } }
	}
	b.must(t, raiseAlert, variables{"input": variables{"machineId": machineID, "alertId": "Fan", "source": "monitor", "message": "slow", "classifications": []string{"PREVENT_ALLOCATIONS"}}}, &out)
	return out.RaiseHealthAlert.HealthAlert.ID
}

func TestAMachineIsAllocatedAndComesBackThroughValidation(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	m := l.arrives(t, readyMac, l.good)
	known := len(l.history(t, m.ID))
	require.Equal(t, "ALLOCATED", l.called(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "tenant-1"}).position())
	require.Equal(t, []string{"MACHINE_STATE", "MACHINE_CLAIMED"}, l.blockers(t, m.ID))
	second := l.arrives(t, waitingMac, l.good)
	l.called(t, allocateMachine, variables{"machineId": second.ID, "allocationName": "tenant-1"})
	a := l.do(t, l.admin, `{ allocations { totalCount nodes { name site { name } memberships(orderBy: {field: ALLOCATED_AT}) { nodes { machineName releasedAt machine { claim { kind } } } } } } }`, nil)
	require.JSONEq(t, `{"data": {"allocations": {"totalCount": 1, "nodes": [{"name": "tenant-1", "site": {"name": "dc1"}, "memberships": {"nodes": [
		{"machineName": "machine-020000000001", "releasedAt": null, "machine": {"claim": {"kind": "ALLOCATION"}}},
		{"machineName": "machine-020000000002", "releasedAt": null, "machine": {"claim": {"kind": "ALLOCATION"}}}]}}]}}}`, string(a.raw))

	fault := l.refusedFor(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "tenant-2"}, "FAILED_PRECONDITION", "MACHINE_NOT_ALLOCATABLE")
	require.Contains(t, fault.Message, "the machine is ALLOCATED, not READY")
	l.refusedFor(t, deleteMachine, variables{"machineId": m.ID}, "FAILED_PRECONDITION", "MACHINE_ALLOCATED")
	l.refusedFor(t, verifySku, variables{"machineId": m.ID}, "FAILED_PRECONDITION", "MACHINE_STATE")

	require.Equal(t, "UPDATING_INVENTORY", l.called(t, releaseMachine, variables{"machineId": m.ID}).position())
	l.refusedFor(t, releaseMachine, variables{"machineId": m.ID}, "FAILED_PRECONDITION", "MACHINE_STATE")
	require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
	require.Equal(t, []string{
		"ALLOCATED > ALLOCATED", "RELEASED > CLEANUP", "CLEANED > UPDATING_INVENTORY", "INVENTORY_UPDATED > VERIFYING_SKU",
		"SKU_VERIFIED > VALIDATING/RUNNING", validated,
	}, l.way(t, m.ID, known))
	require.Empty(t, l.blockers(t, m.ID))
	require.Equal(t, "ALLOCATED", l.called(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "tenant-2"}).position())
}

func TestWhatKeepsAMachineFromBeingAllocated(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	sku := l.newSku(t, l.site, "n", l.components)
	waiting := l.arrives(t, waitingMac, l.other)
	require.Equal(t, []string{"MACHINE_STATE"}, l.blockers(t, waiting.ID))
	m := l.arrives(t, readyMac, l.good)
	require.Empty(t, l.blockers(t, m.ID))

	alert := l.raise(t, m.ID)
	require.Equal(t, []string{"HEALTH_ALERT"}, l.blockers(t, m.ID))
	l.refusedFor(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "a"}, "FAILED_PRECONDITION", "MACHINE_NOT_ALLOCATABLE")
	require.Equal(t, alert, l.raise(t, m.ID), "the same alert stands once")
	l.must(t, raiseAlert, variables{"input": variables{"machineId": m.ID, "alertId": "Dust", "message": "some"}}, nil)
	require.Equal(t, []string{"HEALTH_ALERT"}, l.blockers(t, m.ID), "one that prevents nothing does not count")
	l.called(t, clearAlert, variables{"healthAlertId": alert})
	require.Empty(t, l.blockers(t, m.ID))
	l.refusedFor(t, clearAlert, variables{"healthAlertId": alert}, "NOT_FOUND", "ALERT_NOT_FOUND")
	require.Equal(t, []string{"HEALTH_ALERT_RAISED", "HEALTH_ALERT_RAISED", "HEALTH_ALERT_RAISED", "HEALTH_ALERT_CLEARED"}, l.way(t, m.ID, 4))

	// What the system raised clears itself, and only the system raises it.
	l.arrives(t, readyMac, l.bad)
	require.Equal(t, []string{"MACHINE_STATE", "HEALTH_ALERT"}, l.blockers(t, m.ID))
	var out struct {
		HealthAlerts struct{ Nodes []struct{ ID string } }
	}
	l.must(t, `{ healthAlerts(where: {alertId: "SkuValidation"}) { nodes { id } } }`, nil, &out)
	l.refusedFor(t, clearAlert, variables{"healthAlertId": out.HealthAlerts.Nodes[0].ID}, "FAILED_PRECONDITION", "ALERT_OF_SYSTEM")
	l.refusedFor(t, raiseAlert, variables{"machineId": m.ID, "alertId": "SkuValidation", "source": "sku-validation", "message": "x"}, "INVALID_ARGUMENT", "SOURCE_RESERVED")
	_ = sku
}

func TestAlertsWithoutEndNeitherPileUpNorFillARefusal(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	m := l.arrives(t, readyMac, l.good)
	input := func(i int) variables {
		return variables{
			"machineId": m.ID, "alertId": fmt.Sprint("a", i), "source": "monitor",
			"message": strings.Repeat("é", 4000), "classifications": []string{"PREVENT_ALLOCATIONS"},
		}
	}
	for i := range 100 {
		l.must(t, raiseAlert, variables{"input": input(i)}, nil)
	}
	l.refusedFor(t, raiseAlert, input(100), "FAILED_PRECONDITION", "TOO_MANY_ALERTS")
	l.must(t, raiseAlert, variables{"input": input(99)}, nil) // one that stands
	require.Len(t, l.blockers(t, m.ID), 100)
	fault := l.refusedFor(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "a"}, "FAILED_PRECONDITION", "MACHINE_NOT_ALLOCATABLE")
	require.Regexp(t, `^the machine cannot be allocated: (a\d+ \(monitor\): é{300}…; ){3}and 97 more$`, fault.Message)
	require.Len(t, fault.Extensions.Details["blockers"], 100)

	// The system's own do not count, and always find room.
	require.Equal(t, "SKU_VERIFICATION_FAILED", l.arrives(t, readyMac, l.bad).position())
	require.Equal(t, 101, l.count(t, `SELECT count(*) FROM health_alerts`))
}

func TestOfAllocationsAtOnceExactlyOneWins(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	m := l.arrives(t, readyMac, l.good)
	for round := range 5 {
		answers := make([]answer, 8)
		atOnce(len(answers), func(i int) {
			answers[i] = l.do(t, l.admin, allocateMachine, variables{"input": variables{"machineId": m.ID, "allocationName": fmt.Sprint("tenant-", i%3)}})
		})
		require.Equal(t, map[string]int{"": 1, "MACHINE_NOT_ALLOCATABLE": 7}, outcomes(t, answers), round)
		require.Equal(t, 1, l.count(t, `SELECT count(*) FROM allocation_memberships WHERE released_at IS NULL`))
		require.Equal(t, 1, l.count(t, `SELECT count(*) FROM machine_claims`))
		answers = make([]answer, 4)
		atOnce(len(answers), func(i int) {
			answers[i] = l.do(t, l.admin, releaseMachine, variables{"input": variables{"machineId": m.ID}})
		})
		require.Equal(t, map[string]int{"": 1, "MACHINE_STATE": 3}, outcomes(t, answers))
		require.Equal(t, "READY", l.arrives(t, readyMac, l.good).position())
	}
}

func TestAnAllocationAndAnAlertAtOnceHappenOneAfterTheOther(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	allocated := 0
	for round := range 20 {
		m := l.arrives(t, fmt.Sprintf("02:00:00:00:01:%02x", round), l.good)
		answers := make([]answer, 2)
		atOnce(len(answers), func(i int) {
			if i == round%2 {
				answers[0] = l.do(t, l.admin, allocateMachine, variables{"input": variables{"machineId": m.ID, "allocationName": "a"}})
			} else {
				answers[1] = l.do(t, l.admin, raiseAlert, variables{"input": variables{"machineId": m.ID, "alertId": "Fan", "message": "slow", "classifications": []string{"PREVENT_ALLOCATIONS"}}})
			}
		})
		require.Empty(t, answers[1].Errors)
		// Whichever came first, the history says so: no machine is allocated after its alert.
		causes := causes(l.history(t, m.ID))
		if len(answers[0].Errors) == 0 {
			allocated++
			require.Equal(t, []string{"ALLOCATED", "HEALTH_ALERT_RAISED"}, causes[len(causes)-2:])
		} else {
			require.Equal(t, "MACHINE_NOT_ALLOCATABLE", answers[0].Errors[0].Extensions.Reason)
			require.Equal(t, "HEALTH_ALERT_RAISED", causes[len(causes)-1])
		}
	}
	t.Logf("%d of 20 were allocated first", allocated)
}

func TestAnAllocationAndALostDriveAtOnceHappenOneAfterTheOther(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	for round := range 10 {
		mac := fmt.Sprintf("02:00:00:00:01:%02x", round)
		m := l.arrives(t, mac, l.good)
		answers := make([]answer, 2)
		atOnce(len(answers), func(i int) {
			if i == round%2 {
				answers[0] = l.do(t, l.admin, allocateMachine, variables{"input": variables{"machineId": m.ID, "allocationName": "a"}})
			} else {
				answers[1] = l.do(t, l.admin, reportInventory, variables{"input": variables{"siteId": l.site, "bmcMacAddress": mac, "inventory": l.bad}})
			}
		})
		require.Empty(t, answers[1].Errors)
		want := "ALLOCATED"
		if len(answers[0].Errors) > 0 {
			want = "SKU_VERIFICATION_FAILED"
		}
		require.Equal(t, want, l.status(t, m.ID).position())
	}
}

func TestAMachineThatNothingHoldsIsDeletedAndItsHistoryStays(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	l.expect(t, readyMac, "n")
	m := l.arrives(t, readyMac, l.good)
	l.called(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "a"})
	l.called(t, releaseMachine, variables{"machineId": m.ID}) // leaves a membership and work
	l.raise(t, m.ID)
	known := len(l.history(t, m.ID))
	l.must(t, deleteMachine, variables{"input": variables{"machineId": m.ID}}, nil)
	l.refusedFor(t, deleteMachine, variables{"machineId": m.ID}, "NOT_FOUND", "MACHINE_NOT_FOUND")
	events := l.history(t, m.ID)
	require.Len(t, events, known+1)
	require.Equal(t, "MACHINE_DELETED", last(events).Cause)
	require.Zero(t, l.count(t, `SELECT (SELECT count(*) FROM work_items) + (SELECT count(*) FROM machine_claims) + (SELECT count(*) FROM health_alerts)`))
	a := l.do(t, l.admin, `{ allocations { nodes { memberships { nodes { machineName machine { id } } } } } expectedMachines { nodes { machine { id } } } }`, nil)
	require.JSONEq(t, `{"data": {"allocations": {"nodes": [{"memberships": {"nodes": [{"machineName": "machine-020000000001", "machine": null}]}}]},
		"expectedMachines": {"nodes": [{"machine": null}]}}}`, string(a.raw))

	// Seen again it is new, and gets what is expected again.
	again := l.arrives(t, readyMac, l.good)
	require.NotEqual(t, m.ID, again.ID)
	require.Equal(t, []string{"READY", "n"}, []string{again.position(), again.SkuName})
}

// worked is what tests look at of work.
type worked struct {
	Typename  string `json:"__typename"`
	ID        string
	ClaimedAt *string
	Outcome   *string
}

func (b *bundle) claim(t *testing.T, token, machineID string) *worked {
	t.Helper()
	var out struct{ ClaimWork struct{ Work *worked } }
	b.mustAs(t, token, claimWork, variables{"input": variables{"machineId": machineID}}, &out)
	return out.ClaimWork.Work
}

func TestWhatAStateWantsOfTheHostIsClaimedAndFinishedByItsAgent(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	m, second := l.arrives(t, readyMac, l.good), l.arrives(t, waitingMac, l.good)
	agent := l.issueToken(t, variables{"name": "agent", "role": "AGENT", "machineId": m.ID})
	require.Nil(t, l.claim(t, agent, m.ID))
	l.must(t, `mutation($input: UpdateSiteInput!) { updateSite(input: $input) { site { id } } }`, variables{"input": variables{
		"siteId":            l.site,
		"machineValidation": variables{"enabled": true, "cleanup": "AGENT", "rebootBeforeValidation": true},
	}}, nil)
	l.called(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "a"})
	require.Equal(t, "CLEANUP", l.called(t, releaseMachine, variables{"machineId": m.ID}).position())

	// Whoever else asks gets nothing.
	for _, token := range []string{l.admin, l.issueToken(t, variables{"name": "op", "role": "OPERATOR"})} {
		fault := l.refused(t, token, claimWork, variables{"input": variables{"machineId": m.ID}})
		require.Equal(t, "ROLE_TOO_SMALL", fault.Extensions.Reason)
	}
	fault := l.refused(t, agent, claimWork, variables{"input": variables{"machineId": second.ID}})
	require.Equal(t, "MACHINE_NOT_FOUND", fault.Extensions.Reason)

	finish := func(id, outcome string, more variables) worked {
		t.Helper()
		var out struct{ FinishWork struct{ Work worked } }
		l.mustAs(t, agent, finishWork, variables{"input": merged(variables{"workId": id, "outcome": outcome}, more)}, &out)
		return out.FinishWork.Work
	}
	cleanup := l.claim(t, agent, m.ID)
	require.Equal(t, "Cleanup", cleanup.Typename)
	require.Equal(t, cleanup, l.claim(t, agent, m.ID), "until it is finished, the same")

	// A failure is recorded, and the same is wanted again later.
	require.Equal(t, "FAILED", *finish(cleanup.ID, "FAILED", variables{"error": "disk is busy"}).Outcome)
	require.Equal(t, "FAILED", *finish(cleanup.ID, "FAILED", variables{"error": "disk is busy"}).Outcome, "a repeat changes nothing")
	fault = l.refused(t, agent, finishWork, variables{"input": variables{"workId": cleanup.ID, "outcome": "SUCCEEDED"}})
	require.Equal(t, "WORK_FINISHED", fault.Extensions.Reason)
	require.Equal(t, "WORK_FAILED", last(l.history(t, m.ID)).Cause)
	require.Nil(t, l.claim(t, agent, m.ID))
	_, err := l.sql(t).Exec(t.Context(), `UPDATE machines SET attend_at = attend_at - interval '1 minute' WHERE id = $1`, m.ID)
	require.NoError(t, err)
	var again *worked
	require.Eventually(t, func() bool { again = l.claim(t, agent, m.ID); return again != nil }, polling, tick)
	require.NotEqual(t, cleanup.ID, again.ID)
	require.Equal(t, "SUCCEEDED", *finish(again.ID, "SUCCEEDED", nil).Outcome)
	require.Equal(t, "UPDATING_INVENTORY", l.status(t, m.ID).position())

	// A refresh is fulfilled by the report.
	refresh := l.claim(t, agent, m.ID)
	require.Equal(t, "RefreshInventory", refresh.Typename)
	fault = l.refused(t, agent, finishWork, variables{"input": variables{"workId": refresh.ID, "outcome": "SUCCEEDED"}})
	require.Equal(t, "INVENTORY_NOT_REPORTED", fault.Extensions.Reason)
	require.Equal(t, "REBOOTING", l.arrives(t, readyMac, l.good).position())
	require.Equal(t, "SUCCEEDED", *finish(refresh.ID, "SUCCEEDED", nil).Outcome, "after the report it has succeeded")
	reboot := l.claim(t, agent, m.ID)
	require.Equal(t, "Reboot", reboot.Typename)
	var open struct {
		Node struct {
			Work []worked
		}
	}
	l.must(t, `query($id: ID!) { node(id: $id) { ... on Machine { work { __typename id claimedAt outcome } } } }`, variables{"id": m.ID}, &open)
	require.Equal(t, []worked{*reboot}, open.Node.Work)
	finish(reboot.ID, "SUCCEEDED", nil)
	require.Equal(t, "READY", l.status(t, m.ID).position())
	require.Nil(t, l.claim(t, agent, m.ID))
	events := l.way(t, m.ID, 0)
	require.Equal(t, []string{"SKU_VERIFIED > VALIDATING/REBOOTING", "REBOOTED > VALIDATING/RUNNING", validated}, events[len(events)-3:])
}

func TestAMachineDoesNotWaitForWhatItsSiteNoLongerWants(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, "n", l.components)
	l.updateSite(t, variables{"siteId": l.site, "machineValidation": variables{"enabled": true, "cleanup": "AGENT", "rebootBeforeValidation": true}})
	m := l.arrives(t, readyMac, l.good)
	require.Equal(t, "REBOOTING", m.position())
	l.updateSite(t, variables{"siteId": l.site, "machineValidation": variables{"rebootBeforeValidation": false}})
	l.becomes(t, m.ID, "READY")
	require.Equal(t, []string{"REBOOT_SKIPPED > VALIDATING/RUNNING", validated}, l.way(t, m.ID, 3))
	l.called(t, allocateMachine, variables{"machineId": m.ID, "allocationName": "a"})
	require.Equal(t, "CLEANUP", l.called(t, releaseMachine, variables{"machineId": m.ID}).position())
	l.updateSite(t, variables{"siteId": l.site, "machineValidation": variables{"cleanup": "NONE"}})
	l.becomes(t, m.ID, "UPDATING_INVENTORY")
	require.Zero(t, l.count(t, `SELECT count(*) FROM work_items WHERE finished_at IS NULL AND kind <> 'REFRESH_INVENTORY'`))
}
