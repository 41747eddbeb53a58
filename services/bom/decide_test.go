package bom

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

var (
	ready      = fleet.MachinePosition{State: fleet.StateReady}
	validating = fleet.MachinePosition{State: fleet.StateValidating, Sub: fleet.SubRunning}
	rebooting  = fleet.MachinePosition{State: fleet.StateValidating, Sub: fleet.SubRebooting}
	matching   = fleet.BomPosition(fleet.SubMatchingSku)
	updating   = fleet.BomPosition(fleet.SubUpdatingInventory)
	verifying  = fleet.BomPosition(fleet.SubVerifyingSku)
	mismatched = fleet.BomPosition(fleet.SubSkuVerificationFailed)
	waiting    = fleet.BomPosition(fleet.SubWaitingForSkuAssignment)
	missing    = fleet.BomPosition(fleet.SubSkuMissing)
)

// on is a site that validates; allow and ignore are its two exceptions.
func on(allow, ignore bool) fleet.BomValidation {
	c := fleet.DefaultBomValidation()
	c.Enabled, c.AllowAllocationOnValidationFailure, c.IgnoreUnassignedMachines = true, allow, ignore
	return c
}

// TestEveryRowOfTheTransitionTable walks the rows of the guide's states one by one:
// what a machine at a position does by the facts. Each row is tried on its way to
// VALIDATING and back to READY.
func TestEveryRowOfTheTransitionTable(t *testing.T) {
	t.Parallel()
	strict, ignoring, allowing, disabled := on(false, false), on(false, true), on(true, false), fleet.DefaultBomValidation()
	onward := fleet.MachinePosition{State: "ONWARD"}
	stay, ask := decision{}, func(q question) decision { return decision{ask: q} }
	rows := []struct {
		name string
		at   fleet.MachinePosition
		f    facts
		want decision
	}{
		// READY
		{"disabled: nothing", ready, facts{config: disabled, verifyRequested: true, sku: skuPresent}, stay},
		{"no SKU: is one matching?", ready, facts{config: strict, matchDue: true}, ask(askMatch)},
		{"no SKU, match", ready, facts{config: strict, matchDue: true, match: yes}, move(fleet.EventSkuMatchFound, updating)},
		{"no SKU, match, ignoring", ready, facts{config: ignoring, matchDue: true, match: yes}, move(fleet.EventSkuMatchFound, updating)},
		{"no SKU, no match", ready, facts{config: strict, matchDue: true, match: no}, move(fleet.EventSkuNotFound, waiting)},
		{"no SKU, not due", ready, facts{config: strict}, move(fleet.EventSkuNotFound, waiting)},
		{"no SKU, no match, ignoring", ready, facts{config: ignoring, matchDue: true, match: no}, stay},
		{"no SKU, not due, ignoring", ready, facts{config: ignoring}, stay},
		{"no SKU, allowing: does not cover it", ready, facts{config: allowing, matchDue: true, match: no}, move(fleet.EventSkuNotFound, waiting)},
		{"verify requested", ready, facts{config: strict, sku: skuPresent, verifyRequested: true}, move(fleet.EventVerifyRequested, updating)},
		{"verify requested, SKU missing", ready, facts{config: allowing, sku: skuMissing, verifyRequested: true}, move(fleet.EventVerifyRequested, updating)},
		{"SKU missing", ready, facts{config: strict, sku: skuMissing}, move(fleet.EventSkuMissing, missing)},
		{"SKU missing, allowing", ready, facts{config: allowing, sku: skuMissing}, stay},
		{"SKU missing, ignoring: does not cover it", ready, facts{config: ignoring, sku: skuMissing}, move(fleet.EventSkuMissing, missing)},
		{"assigned only in the database", ready, facts{config: strict, sku: skuPresent}, stay},
		{"new inventory differs", ready, facts{config: strict, sku: skuPresent, changed: true, fresh: true}, move(fleet.EventInventoryChanged, verifying)},
		{"new inventory differs, disabled", ready, facts{config: disabled, sku: skuPresent, changed: true, fresh: true}, stay},

		// MATCHING_SKU
		{"has a SKU", matching, facts{config: strict, sku: skuPresent}, move(fleet.EventVerificationStarted, verifying)},
		{"has a SKU that is missing", matching, facts{config: strict, sku: skuMissing}, move(fleet.EventVerificationStarted, verifying)},
		{"is one matching?", matching, facts{config: strict}, ask(askMatch)},
		{"match", matching, facts{config: strict, match: yes}, move(fleet.EventSkuMatched, onward)},
		{"none, ignoring", matching, facts{config: ignoring, match: no}, move(fleet.EventUnassignedIgnored, onward)},
		{"none", matching, facts{config: strict, match: no}, move(fleet.EventSkuNotFound, waiting)},
		{"none, allowing", matching, facts{config: allowing, match: no}, move(fleet.EventSkuNotFound, waiting)},
		{"disabled", matching, facts{config: disabled}, move(fleet.EventBomValidationDisabled, onward)},

		// UPDATING_INVENTORY
		{"inventory, no SKU", updating, facts{config: strict, fresh: true}, move(fleet.EventInventoryUpdated, matching)},
		{"inventory, SKU", updating, facts{config: strict, fresh: true, sku: skuPresent}, move(fleet.EventInventoryUpdated, verifying)},
		{"inventory, SKU missing", updating, facts{config: strict, fresh: true, sku: skuMissing}, move(fleet.EventInventoryUpdated, verifying)},
		{"none yet", updating, facts{config: strict, sku: skuPresent}, stay},
		{"none yet, allowing and ignoring", updating, facts{config: on(true, true)}, stay},
		{"disabled", updating, facts{config: disabled}, move(fleet.EventBomValidationDisabled, onward)},

		// VERIFYING_SKU
		{"SKU gone", verifying, facts{config: strict}, move(fleet.EventSkuGone, matching)},
		{"SKU missing", verifying, facts{config: strict, sku: skuMissing}, move(fleet.EventSkuMissing, missing)},
		{"SKU missing, ignoring", verifying, facts{config: ignoring, sku: skuMissing}, move(fleet.EventSkuMissing, missing)},
		{"SKU missing, allowing: never enters SKU_MISSING", verifying, facts{config: allowing, sku: skuMissing}, move(fleet.EventMissingAllowed, onward)},
		{"is it what the SKU says?", verifying, facts{config: strict, sku: skuPresent}, ask(askVerdict)},
		{"no differences", verifying, facts{config: strict, sku: skuPresent, verdict: yes}, move(fleet.EventSkuVerified, onward)},
		{"differences, allowing", verifying, facts{config: allowing, sku: skuPresent, verdict: no}, move(fleet.EventMismatchAllowed, onward)},
		{"differences", verifying, facts{config: strict, sku: skuPresent, verdict: no}, move(fleet.EventSkuMismatch, mismatched)},
		{"differences, ignoring: does not cover it", verifying, facts{config: ignoring, sku: skuPresent, verdict: no}, move(fleet.EventSkuMismatch, mismatched)},
		{"disabled", verifying, facts{config: disabled, sku: skuPresent}, move(fleet.EventBomValidationDisabled, onward)},

		// SKU_VERIFICATION_FAILED
		{"SKU gone", mismatched, facts{config: strict}, move(fleet.EventSkuGone, waiting)},
		{"verify requested", mismatched, facts{config: strict, sku: skuPresent, verifyRequested: true}, move(fleet.EventVerifyRequested, updating)},
		{"allowing", mismatched, facts{config: allowing, sku: skuPresent}, move(fleet.EventMismatchAllowed, onward)},
		{"otherwise", mismatched, facts{config: strict, sku: skuPresent, fresh: true}, stay},
		{"otherwise, ignoring", mismatched, facts{config: ignoring, sku: skuPresent}, stay},
		{"disabled", mismatched, facts{config: disabled, sku: skuPresent}, move(fleet.EventBomValidationDisabled, onward)},

		// WAITING_FOR_SKU_ASSIGNMENT
		{"has a SKU", waiting, facts{config: strict, sku: skuPresent, verifyRequested: true}, move(fleet.EventVerifyRequested, updating)},
		{"is one matching?", waiting, facts{config: strict, matchDue: true}, ask(askMatch)},
		{"match", waiting, facts{config: strict, matchDue: true, match: yes}, move(fleet.EventSkuMatchFound, updating)},
		{"ignoring", waiting, facts{config: ignoring, matchDue: true, match: no}, move(fleet.EventUnassignedIgnored, onward)},
		{"allowing", waiting, facts{config: allowing, matchDue: true, match: no}, stay},
		{"otherwise", waiting, facts{config: strict, matchDue: true, match: no}, stay},
		{"not due", waiting, facts{config: strict}, stay},
		{"disabled", waiting, facts{config: disabled}, move(fleet.EventBomValidationDisabled, onward)},

		// SKU_MISSING
		{"SKU gone", missing, facts{config: strict}, move(fleet.EventSkuGone, waiting)},
		{"SKU gone, ignoring", missing, facts{config: ignoring}, move(fleet.EventUnassignedIgnored, onward)},
		{"SKU exists now", missing, facts{config: strict, sku: skuPresent}, move(fleet.EventSkuAvailable, updating)},
		{"may it be generated?", missing, facts{config: strict, sku: skuMissing, generateDue: true}, ask(askGeneration)},
		{"generation attempted", missing, facts{config: strict, sku: skuMissing, generateDue: true, generated: yes}, move(fleet.EventSkuGenerationAttempted, updating)},
		{"not attempted", missing, facts{config: strict, sku: skuMissing, generateDue: true, generated: no}, stay},
		{"allowing", missing, facts{config: allowing, sku: skuMissing}, move(fleet.EventMissingAllowed, onward)},
		{"otherwise", missing, facts{config: strict, sku: skuMissing}, stay},
		{"otherwise, ignoring", missing, facts{config: ignoring, sku: skuMissing}, stay},
		{"disabled", missing, facts{config: disabled, sku: skuMissing}, move(fleet.EventBomValidationDisabled, onward)},

		// A DPU stands outside.
		{"DPU", fleet.MachinePosition{State: fleet.StateIngesting}, facts{config: strict, dpu: true}, move(fleet.EventDpuReported, ready)},
		{"DPU that has a SKU", ready, facts{config: strict, dpu: true, sku: skuPresent}, move(fleet.EventDpuReported, ready)},
		{"DPU that waits", waiting, facts{config: strict, dpu: true}, move(fleet.EventDpuReported, ready)},
		{"DPU that is ready", ready, facts{config: strict, dpu: true}, stay},
		{"DPU that is allocated", fleet.MachinePosition{State: fleet.StateAllocated}, facts{config: strict, dpu: true, sku: skuPresent}, stay},
	}
	for _, row := range rows {
		for _, leads := range []fleet.MachinePosition{ready, validating, rebooting} {
			f, want := row.f, row.want
			f.onward = leads
			if want.to == onward {
				want.to = leads
			}
			got := decide(row.at, f)
			require.Equal(t, want, got, "%s: %s, onward to %s", row.at, row.name, leads)
			if got.event != "" {
				require.True(t, fleet.AllowsMachineTransition(row.at, got.event, got.to), "%s: %s", row.at, row.name)
			}
		}
	}
}

// TestWhateverTheFactsTheTableAllowsTheMove tries every combination of the facts.
func TestWhateverTheFactsTheTableAllowsTheMove(t *testing.T) {
	t.Parallel()
	bits := func(n, i int) bool { return n>>i&1 == 1 }
	for _, at := range []fleet.MachinePosition{ready, matching, updating, verifying, mismatched, waiting, missing} {
		for n := range 1 << 9 {
			for _, s := range []skuFact{skuNone, skuMissing, skuPresent} {
				for a := range 27 {
					f := facts{
						config: on(bits(n, 0), bits(n, 1)), onward: validating, dpu: bits(n, 2), sku: s, fresh: bits(n, 3), changed: bits(n, 4),
						verifyRequested: bits(n, 5), matchDue: bits(n, 6), generateDue: bits(n, 7),
						match: answer(a % 3), verdict: answer(a / 3 % 3), generated: answer(a / 9),
					}
					f.config.Enabled = bits(n, 8)
					d := decide(at, f)
					if d.event != "" {
						require.True(t, fleet.AllowsMachineTransition(at, d.event, d.to), "%s %+v %+v", at, f, d)
					}
					require.False(t, d.ask == askMatch && f.match != unknown || d.ask == askVerdict && f.verdict != unknown ||
						d.ask == askGeneration && f.generated != unknown, "%s %+v asks twice", at, f)
				}
			}
		}
	}
}

// TestWhereAMachineComesToRest runs the 32 combinations of {enabled, allow, ignore}
// and {no SKU, good, bad, missing} from the first inventory on.
func TestWhereAMachineComesToRest(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		enabled, allow, ignore := n&1 != 0, n&2 != 0, n&4 != 0
		config := on(allow, ignore)
		config.Enabled = enabled
		for name, c := range map[string]struct {
			f       facts
			stopsAt fleet.MachinePosition // where the site validates and lets nothing pass
			passes  bool
		}{
			"no SKU":  {facts{sku: skuNone, match: no}, waiting, ignore},
			"good":    {facts{sku: skuPresent, verdict: yes}, validating, true},
			"bad":     {facts{sku: skuPresent, verdict: no}, mismatched, allow},
			"missing": {facts{sku: skuMissing}, missing, allow},
		} {
			t.Run(fmt.Sprintf("enabled %t, allow %t, ignore %t, %s", enabled, allow, ignore, name), func(t *testing.T) {
				t.Parallel()
				want := c.stopsAt
				if !enabled || c.passes {
					want = validating
				}
				f := c.f
				f.config, f.onward = config, validating
				at, visited := matching, map[fleet.MachinePosition]bool{}
				for d := decide(at, f); !d.stays() && at.State == fleet.StateBomValidating; d = decide(at, f) {
					require.Zero(t, d.ask, at)
					require.False(t, visited[at], "%s twice", at)
					visited[at] = true
					at = d.to
				}
				require.Equal(t, want, at)
			})
		}
	}
}
