package fleet

import (
	"io"
	"slices"
)

// MachineState is the state of a machine's main life.
type MachineState string

// The states of a machine.
const (
	StateIngesting     MachineState = "INGESTING"      // known by its BMC; its inventory is being taken in
	StateBomValidating MachineState = "BOM_VALIDATING" // its hardware is checked against a SKU, or it waits for a person; see the sub-state
	StateValidating    MachineState = "VALIDATING"     // its hardware and host software are being tested
	StateReady         MachineState = "READY"          // healthy and free to be allocated
	StateAllocated     MachineState = "ALLOCATED"      // in the hands of a tenant
	StateCleanup       MachineState = "CLEANUP"        // given back, and being cleaned
	StateFailed        MachineState = "FAILED"         // a validation failed; an on-demand run that passes leads out
)

// Values lists the states, for ent.
func (MachineState) Values() []string {
	return []string{
		string(StateIngesting), string(StateBomValidating), string(StateValidating),
		string(StateReady), string(StateAllocated), string(StateCleanup), string(StateFailed),
	}
}

// MarshalGQL writes the GraphQL form.
func (s MachineState) MarshalGQL(w io.Writer) { marshalEnum(w, s) }

// UnmarshalGQL reads the GraphQL form.
func (s *MachineState) UnmarshalGQL(v any) error { return unmarshalEnum(s, v, s.Values()) }

// MachineSubState refines BOM_VALIDATING and VALIDATING; other states have none.
type MachineSubState string

// The sub-states of BOM_VALIDATING (the guide, BOM Validation States), then those
// of VALIDATING.
const (
	SubMatchingSku             MachineSubState = "MATCHING_SKU"               // looking for a SKU that matches the inventory
	SubUpdatingInventory       MachineSubState = "UPDATING_INVENTORY"         // waiting for a fresh inventory
	SubVerifyingSku            MachineSubState = "VERIFYING_SKU"              // comparing the inventory with the assigned SKU
	SubSkuVerificationFailed   MachineSubState = "SKU_VERIFICATION_FAILED"    // the inventory departs from the assigned SKU; a person has to act
	SubWaitingForSkuAssignment MachineSubState = "WAITING_FOR_SKU_ASSIGNMENT" // no SKU is assigned and none matches
	SubSkuMissing              MachineSubState = "SKU_MISSING"                // the assigned SKU does not exist
	SubRebooting               MachineSubState = "REBOOTING"                  // rebooting before the tests
	SubRunning                 MachineSubState = "RUNNING"                    // the tests are running
)

// Values lists the sub-states, for ent.
func (MachineSubState) Values() []string {
	return []string{
		string(SubMatchingSku), string(SubUpdatingInventory), string(SubVerifyingSku),
		string(SubSkuVerificationFailed), string(SubWaitingForSkuAssignment), string(SubSkuMissing),
		string(SubRebooting), string(SubRunning),
	}
}

// MarshalGQL writes the GraphQL form.
func (s MachineSubState) MarshalGQL(w io.Writer) { marshalEnum(w, s) }

// UnmarshalGQL reads the GraphQL form.
func (s *MachineSubState) UnmarshalGQL(v any) error { return unmarshalEnum(s, v, s.Values()) }

// MachinePosition is a state with its sub-state; Sub is empty where the state has
// none.
type MachinePosition struct {
	State MachineState
	Sub   MachineSubState
}

// String is the state, and after a slash the sub-state where there is one.
func (p MachinePosition) String() string {
	if p.Sub == "" {
		return string(p.State)
	}
	return string(p.State) + "/" + string(p.Sub)
}

// BomPosition is the sub-state of BOM_VALIDATING.
func BomPosition(sub MachineSubState) MachinePosition {
	return MachinePosition{State: StateBomValidating, Sub: sub}
}

// MachineEvent is what happens to a machine and may move it.
type MachineEvent string

// The events that move a machine.
const (
	EventDiscovered             MachineEvent = "DISCOVERED"               // a BMC is seen for the first time
	EventIngested               MachineEvent = "INGESTED"                 // its first inventory is stored: BOM validation begins
	EventDpuReported            MachineEvent = "DPU_REPORTED"             // a DPU's inventory: no BOM validation
	EventVerificationStarted    MachineEvent = "VERIFICATION_STARTED"     // a SKU is assigned: it is compared, not looked for
	EventSkuMatched             MachineEvent = "SKU_MATCHED"              // no SKU assigned, one matches: it is assigned, which counts as verified
	EventSkuMatchFound          MachineEvent = "SKU_MATCH_FOUND"          // one matches the last inventory: a fresh one has to confirm it
	EventSkuNotFound            MachineEvent = "SKU_NOT_FOUND"            // no SKU assigned and none matches
	EventUnassignedIgnored      MachineEvent = "UNASSIGNED_IGNORED"       // the same, and the site lets such machines go on
	EventSkuGone                MachineEvent = "SKU_GONE"                 // the assignment was taken away
	EventVerifyRequested        MachineEvent = "VERIFY_REQUESTED"         // somebody asked for a verification, which begins with a fresh inventory
	EventInventoryChanged       MachineEvent = "INVENTORY_CHANGED"        // a new inventory differs in what the SKU compares
	EventInventoryUpdated       MachineEvent = "INVENTORY_UPDATED"        // the fresh inventory that was waited for has come
	EventSkuVerified            MachineEvent = "SKU_VERIFIED"             // the inventory matches the assigned SKU
	EventSkuMismatch            MachineEvent = "SKU_MISMATCH"             // the inventory departs from the assigned SKU
	EventMismatchAllowed        MachineEvent = "SKU_MISMATCH_ALLOWED"     // the same, and the site lets such machines go on
	EventSkuMissing             MachineEvent = "SKU_MISSING"              // the assigned SKU does not exist
	EventMissingAllowed         MachineEvent = "SKU_MISSING_ALLOWED"      // the same, and the site lets such machines go on
	EventSkuAvailable           MachineEvent = "SKU_AVAILABLE"            // the SKU that was missing exists now
	EventSkuGenerationAttempted MachineEvent = "SKU_GENERATION_ATTEMPTED" // the missing SKU was to be generated from the machine, whether or not that worked
	EventBomValidationDisabled  MachineEvent = "BOM_VALIDATION_DISABLED"  // the site does not validate: the machine goes on
	EventRebooted               MachineEvent = "REBOOTED"                 // the host restarted before its tests
	EventRebootSkipped          MachineEvent = "REBOOT_SKIPPED"           // the site no longer has hosts restart before their tests
	EventValidationNotAvailable MachineEvent = "VALIDATION_NOT_AVAILABLE" // no test can be run: the machine passes
	EventAllocated              MachineEvent = "ALLOCATED"                // it was given to an allocation
	EventReleased               MachineEvent = "RELEASED"                 // it was given back
	EventCleaned                MachineEvent = "CLEANED"                  // what the tenant left is removed
)

// Events that are recorded and move nothing.
const (
	EventRenamed          MachineEvent = "RENAMED"              // a report gave the machine another name
	EventSkuAssigned      MachineEvent = "SKU_ASSIGNED"         // a person assigned a SKU
	EventSkuUnassigned    MachineEvent = "SKU_UNASSIGNED"       // a person took the SKU away, or the machine is a DPU
	EventInventoryOverdue MachineEvent = "INVENTORY_OVERDUE"    // the inventory that is waited for has not come in time
	EventWorkFailed       MachineEvent = "WORK_FAILED"          // the agent could not do what was wanted of the host
	EventAlertRaised      MachineEvent = "HEALTH_ALERT_RAISED"  // a person or an outside monitor raised an alert
	EventAlertCleared     MachineEvent = "HEALTH_ALERT_CLEARED" // and cleared it
	EventMachineDeleted   MachineEvent = "MACHINE_DELETED"      // the machine was deleted
)

// MachineTransition is one row of the table: an event, the positions that it may
// find the machine in, and those that it may leave it in. Which of several it is
// depends on the site's configuration and on what the machine came from; the
// services decide, and the table holds them to it.
type MachineTransition struct {
	Event MachineEvent
	From  []MachinePosition
	To    []MachinePosition
}

// AllowsMachineTransition tells whether event may take a machine from one position
// to the other.
func AllowsMachineTransition(from MachinePosition, event MachineEvent, to MachinePosition) bool {
	return slices.ContainsFunc(MachineTransitions(), func(t MachineTransition) bool {
		return t.Event == event && slices.Contains(t.From, from) && slices.Contains(t.To, to)
	})
}

// MachineTransitions is the table of a machine's main life (the guide, BOM
// Validation States).
func MachineTransitions() []MachineTransition {
	at := func(positions ...MachinePosition) []MachinePosition { return positions }
	var (
		ingesting  = MachinePosition{State: StateIngesting}
		matching   = BomPosition(SubMatchingSku)
		updating   = BomPosition(SubUpdatingInventory)
		verifying  = BomPosition(SubVerifyingSku)
		mismatched = BomPosition(SubSkuVerificationFailed)
		waiting    = BomPosition(SubWaitingForSkuAssignment)
		missing    = BomPosition(SubSkuMissing)
		rebooting  = MachinePosition{State: StateValidating, Sub: SubRebooting}
		running    = MachinePosition{State: StateValidating, Sub: SubRunning}
		ready      = MachinePosition{State: StateReady}
		allocated  = MachinePosition{State: StateAllocated}
		cleanup    = MachinePosition{State: StateCleanup}
	)
	// Where a machine goes on to after BOM validation: to its tests, or back to READY
	// where it came from there.
	onward := at(ready, rebooting, running)
	return []MachineTransition{
		{EventIngested, at(ingesting), at(matching)},
		{EventDpuReported, at(ingesting, matching, updating, verifying, mismatched, waiting, missing, ready), at(ready)},

		{EventVerificationStarted, at(matching), at(verifying)},
		{EventSkuMatched, at(matching), onward},
		{EventSkuNotFound, at(matching, ready), at(waiting)},
		{EventUnassignedIgnored, at(matching, waiting, missing), onward},

		{EventSkuMatchFound, at(ready, waiting), at(updating)},
		{EventVerifyRequested, at(ready, mismatched, waiting), at(updating)},
		{EventSkuAvailable, at(missing), at(updating)},
		{EventSkuGenerationAttempted, at(missing), at(updating)},
		{EventInventoryUpdated, at(updating), at(matching, verifying)},
		{EventInventoryChanged, at(ready), at(verifying)},

		{EventSkuVerified, at(verifying), onward},
		{EventSkuMismatch, at(verifying), at(mismatched)},
		{EventMismatchAllowed, at(verifying, mismatched), onward},
		{EventSkuMissing, at(verifying, ready), at(missing)},
		{EventMissingAllowed, at(verifying, missing), onward},
		{EventSkuGone, at(verifying), at(matching)},
		{EventSkuGone, at(mismatched, missing), at(waiting)},
		{EventBomValidationDisabled, at(matching, updating, verifying, mismatched, waiting, missing), onward},

		{EventRebooted, at(rebooting), at(running)},
		{EventRebootSkipped, at(rebooting), at(running)},
		{EventValidationNotAvailable, at(running), at(ready)},

		{EventAllocated, at(ready), at(allocated)},
		{EventReleased, at(allocated), at(cleanup)},
		{EventCleaned, at(cleanup), at(updating)},
	}
}
