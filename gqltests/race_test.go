package gqltests_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

const reportInventory = `mutation($input: ReportInventoryInput!) { reportInventory(input: $input) { created machine { id name state subState skuName } } }`

// outcomes counts answers by the reason of their error, "" for none.
func outcomes(t *testing.T, answers []answer) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, a := range answers {
		if len(a.Errors) == 0 {
			out[""]++
			continue
		}
		require.NotEqual(t, "INTERNAL", a.Errors[0].Extensions.Code, "%s", a.raw)
		out[a.Errors[0].Extensions.Reason]++
	}
	return out
}

func TestOfCreationsOfTheSameHardwareAtOnceExactlyOneWins(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	components := ofChassis(h.generate(t, h.here.waiting.ID), "X")
	answers := make([]answer, 8)
	atOnce(len(answers), func(i int) {
		answers[i] = h.do(t, h.admin, createSku, variables{"input": variables{"siteId": h.here.id, "name": fmt.Sprint("n", i), "components": components}})
	})
	require.Equal(t, map[string]int{"": 1, "SKU_DUPLICATE": 7}, outcomes(t, answers))
	for i := range answers {
		answers[i] = answer{}
	}
	atOnce(len(answers), func(i int) {
		answers[i] = h.do(t, h.admin, createSku, variables{"input": variables{"siteId": h.here.id, "name": "n", "components": ofChassis(components, fmt.Sprint("Y", i))}})
	})
	require.Equal(t, map[string]int{"": 1, "SKU_NAME_TAKEN": 7}, outcomes(t, answers))
}

func TestReportsOfANewMachineAtOnceMakeOneMachineWithAnUnbrokenHistory(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	whole := inventory(t, "composed/r760_9nvme.json")
	for round, name := range []any{nil, "named"} {
		mac := fmt.Sprintf("02:00:00:00:02:%02x", round)
		answers := make([]answer, 8)
		atOnce(len(answers), func(i int) {
			document := whole
			if i%2 == 1 {
				document = without(t, whole, i) // so that most reports change the state
			}
			answers[i] = h.do(t, h.admin, reportInventory, variables{"input": variables{"siteId": h.here.id, "bmcMacAddress": mac, "name": name, "inventory": document}})
		})
		require.Equal(t, map[string]int{"": 8}, outcomes(t, answers))
		ids, created := map[string]bool{}, 0
		for _, a := range answers {
			var payload struct {
				Created bool
				Machine machine
			}
			require.NoError(t, json.Unmarshal(a.Data["reportInventory"], &payload))
			ids[payload.Machine.ID] = true
			if payload.Created {
				created++
			}
		}
		require.Len(t, ids, 1)
		require.Equal(t, 1, created)
		for id := range ids {
			events := h.history(t, id) // whose numbers have no gap
			require.Equal(t, "DISCOVERED", events[0].Cause)
			for i, e := range events[1:] {
				require.Equal(t, events[i].ToState, e.FromState)
			}
		}
	}
}

func TestOfAssignmentsAtOnceExactlyOneWins(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	skus := []string{h.here.sku, h.here.spare, h.here.deletable}
	answers := make([]answer, 8)
	atOnce(len(answers), func(i int) {
		answers[i] = h.do(t, h.allOperator, assignSku, variables{"input": variables{"machineId": h.here.waiting.ID, "skuId": skus[i%len(skus)]}})
	})
	require.Equal(t, map[string]int{"": 1, "SKU_ALREADY_ASSIGNED": 7}, outcomes(t, answers))
	require.Equal(t, []string{"DISCOVERED", "INGESTED", "SKU_NOT_FOUND", "SKU_ASSIGNED", "VERIFY_REQUESTED"}, causes(h.history(t, h.here.waiting.ID)))
}

func TestOfEditsOfOneRevisionAtOnceExactlyOneWins(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	answers := make([]answer, 8)
	atOnce(len(answers), func(i int) {
		answers[i] = h.do(t, h.admin, updateMetadata, variables{"input": variables{"skuId": h.here.sku, "description": strconv.Itoa(i), "expectedRevision": 1}})
	})
	require.Equal(t, map[string]int{"": 1, "REVISION_CONFLICT": 7}, outcomes(t, answers))
}

func TestADeletionAndAnAssignmentAtOnceNeverBothHappen(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	components := h.generate(t, h.here.waiting.ID)
	for round := range 10 {
		id := h.newSku(t, h.here.id, fmt.Sprint("n", round), components)
		answers := make([]answer, 3)
		atOnce(len(answers), func(i int) {
			switch i {
			case 0:
				answers[i] = h.do(t, h.admin, deleteSku, variables{"input": variables{"skuId": id}})
			case 1:
				answers[i] = h.do(t, h.admin, assignSku, variables{"input": variables{"machineId": h.here.waiting.ID, "skuId": id, "force": true}})
			default: // matches it
				answers[i] = h.do(t, h.admin, reportInventory, variables{"input": variables{"siteId": h.here.id, "bmcMacAddress": "02:00:00:00:02:01", "inventory": inventory(t, "composed/xe9680_8gpu.json")}})
			}
		})
		for reason := range outcomes(t, answers) {
			require.Contains(t, []string{"", "SKU_NOT_FOUND", "SKU_IN_USE"}, reason)
		}
		holders := h.count(t, `SELECT count(*) FROM machines WHERE sku_id = $1`, id)
		deleted := len(answers[0].Errors) == 0
		require.Equal(t, deleted, holders == 0)
		for _, mac := range []string{waitingMac, "02:00:00:00:02:01"} {
			var out struct{ Machine machine }
			h.must(t, `query($mac: String) { machine(site: "here", bmcMacAddress: $mac) { id skuName } }`, variables{"mac": mac}, &out)
			if out.Machine.SkuName != "" {
				h.called(t, unassignSku, variables{"machineId": out.Machine.ID, "force": true})
			}
		}
		if !deleted {
			h.must(t, deleteSku, variables{"input": variables{"skuId": id}}, nil)
		}
	}
}

// refresh reports the inventory of every machine of a site that waits for one: its
// own, or else the usual.
func (b *bundle) refresh(t *testing.T, siteID string, own map[string]json.RawMessage, usual json.RawMessage) {
	t.Helper()
	var out struct {
		Machines struct {
			Nodes []struct{ BmcMacAddress string }
		}
	}
	b.must(t, `query($site: ID!) { machines(first: 200, where: {siteId: $site, subState: UPDATING_INVENTORY}) { nodes { bmcMacAddress } } }`, variables{"site": siteID}, &out)
	for _, m := range out.Machines.Nodes {
		document, ok := own[m.BmcMacAddress]
		if !ok {
			document = usual
		}
		b.reported(t, variables{"siteId": siteID, "bmcMacAddress": m.BmcMacAddress, "inventory": document})
	}
}

func TestReplacementsAndReportsAtOnceLeaveEveryMachineVerified(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	whole := inventory(t, "composed/r760_9nvme.json")
	components := h.generate(t, h.here.ready.ID)
	for round := range 6 {
		answers := make([]answer, 8)
		atOnce(len(answers), func(i int) {
			switch {
			case i == 0 && round%2 == 0:
				answers[i] = h.do(t, h.admin, replaceSku, variables{"input": variables{"skuId": h.here.sku, "components": lessDrive(t, components)}})
			case i == 0:
				answers[i] = h.do(t, h.admin, replaceSku, variables{"input": variables{"skuId": h.here.sku, "components": components}})
			case i == 1: // a machine that has the SKU
				answers[i] = h.do(t, h.admin, reportInventory, variables{"input": variables{"siteId": h.here.id, "bmcMacAddress": readyMac, "inventory": without(t, whole, round)}})
			case i == 2:
				answers[i] = h.do(t, h.admin, assignSku, variables{"input": variables{"machineId": h.here.ready.ID, "skuId": h.here.sku, "force": true}})
			default: // machines that may match it
				answers[i] = h.do(t, h.admin, reportInventory, variables{"input": variables{"siteId": h.here.id, "bmcMacAddress": fmt.Sprintf("02:00:00:00:%02x:%02x", round+3, i), "inventory": whole}})
			}
		})
		require.Equal(t, map[string]int{"": 8}, outcomes(t, answers))
		// Whoever waits for an inventory gets it; afterwards nobody is asked for anything.
		require.Eventually(t, func() bool {
			h.refresh(t, h.here.id, map[string]json.RawMessage{readyMac: without(t, whole, round)}, whole)
			return h.count(t, `SELECT (SELECT count(*) FROM machines WHERE verify_requested_at IS NOT NULL OR sub_state = 'UPDATING_INVENTORY') +
				(SELECT count(*) FROM river_job WHERE kind = 'sku.evaluate' AND state IN ('available', 'running', 'retryable', 'scheduled'))`) == 0
		}, polling, tick)
		var out struct {
			Machines struct{ Edges []struct{ Node status } }
		}
		h.must(t, `{ machines(first: 200, where: {siteId: "`+h.here.id+`"}) { edges { node { name state subState skuName skuComparison { match } lastVerification { match } healthAlerts { edges { node { message } } } } } } }`, nil, &out)
		for _, edge := range out.Machines.Edges {
			s := edge.Node
			if s.SkuName == "" {
				require.Equal(t, "WAITING_FOR_SKU_ASSIGNMENT", s.SubState)
				continue
			}
			// One that failed waits for a person, whatever it reported since.
			require.True(t, s.SkuComparison.Match || s.State != "READY", "%s: %+v", s.Name, s.SkuComparison)
			require.Equal(t, s.State == "READY", s.LastVerification.Match)
			require.Equal(t, s.State == "READY", len(s.HealthAlerts.Edges) == 0)
		}
	}
	require.Zero(t, h.count(t, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`))
}

// Many machines that name one SKU, which does not exist, arrive at once: one of them
// is what it is generated from, and none waits for another that waits for it.
func TestOfMachinesThatNameAMissingSkuAtOnceOneIsItsSource(t *testing.T) {
	t.Parallel()
	l := newLab(t, variables{"autoGenerateMissingSku": true})
	const total = 24
	mac := func(i int) string { return fmt.Sprintf("02:00:00:00:04:%02x", i) }
	for i := range total {
		l.expect(t, mac(i), "no-sku")
	}
	answers := make([]answer, total)
	atOnce(total, func(i int) {
		answers[i] = l.do(t, l.admin, reportInventory, variables{"input": variables{"siteId": l.site, "bmcMacAddress": mac(i), "inventory": l.good}})
	})
	require.Equal(t, map[string]int{"": total}, outcomes(t, answers))
	for i := range total {
		var out struct{ Machine machine }
		l.must(t, `query($mac: String) { machine(site: "dc1", bmcMacAddress: $mac) { id state subState skuName } }`, variables{"mac": mac(i)}, &out)
		require.Equal(t, "READY", out.Machine.position())
	}
	require.Equal(t, 1, l.count(t, `SELECT count(*) FROM skus WHERE name = 'no-sku'`))
	require.Equal(t, total, l.count(t, `SELECT count(*) FROM expected_machines WHERE machine_id IS NOT NULL AND sku_id IS NOT NULL`))
	require.Zero(t, l.count(t, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`))
}

// Who loses a SKU is held against all of its site, the one that it lost among them,
// which is being replaced and has it verified.
func TestReplacementsAndUnassignmentsAtOnceDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	whole := inventory(t, "composed/r760_9nvme.json")
	components := h.generate(t, h.here.ready.ID)
	machines := make([]string, 12)
	for i := range machines {
		machines[i] = h.report(t, h.here.id, fmt.Sprintf("02:00:00:00:05:%02x", i), fmt.Sprint("m-", i), whole).ID
	}
	for range 4 {
		answers := make([]answer, 2*len(machines))
		atOnce(len(answers), func(i int) {
			if i < len(machines) {
				answers[i] = h.do(t, h.admin, unassignSku, variables{"input": variables{"machineId": machines[i], "force": true}})
			} else {
				answers[i] = h.do(t, h.admin, replaceSku, variables{"input": variables{"skuId": h.here.sku, "components": components}})
			}
		})
		require.Equal(t, map[string]int{"": len(answers)}, outcomes(t, answers))
		h.refresh(t, h.here.id, nil, whole)
	}
	require.Zero(t, h.count(t, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`))
}
