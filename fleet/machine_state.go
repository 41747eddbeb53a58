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

// MachineEvent is what happens to a machine and may move it.
type MachineEvent string

// The events of a machine.
const (
	EventDiscovered  MachineEvent = "DISCOVERED"     // a BMC is seen for the first time
	EventRenamed     MachineEvent = "RENAMED"        // a report gave the machine another name
	EventSkuMatched  MachineEvent = "SKU_MATCHED"    // no SKU assigned, one matches: it is assigned
	EventSkuNotFound MachineEvent = "SKU_NOT_FOUND"  // no SKU assigned and none matches
	EventSkuVerified MachineEvent = "SKU_VERIFIED"   // the inventory matches the assigned SKU
	EventSkuMismatch MachineEvent = "SKU_MISMATCH"   // the inventory departs from the assigned SKU
	EventSkuUnset    MachineEvent = "SKU_UNASSIGNED" // the assignment was taken away
	EventSkuAssigned MachineEvent = "SKU_ASSIGNED"   // a person assigned a SKU; its verdict follows
	EventDpuReported MachineEvent = "DPU_REPORTED"   // a DPU's inventory: no BOM validation
)

// MachineTransition is one row of the table: an event, the positions it may find
// the machine in, and the position it leaves it in.
type MachineTransition struct {
	Event MachineEvent
	From  []MachinePosition
	To    MachinePosition
}

// Positions that several rows of the table share.
func settled() []MachinePosition {
	return []MachinePosition{
		{State: StateIngesting},
		{State: StateReady},
		{State: StateBomValidating, Sub: SubSkuVerificationFailed},
		{State: StateBomValidating, Sub: SubWaitingForSkuAssignment},
	}
}

// MachineTransitions is the table of a machine's transitions while matching and
// verification happen within the report of an inventory.
func MachineTransitions() []MachineTransition {
	ready := MachinePosition{State: StateReady}
	failed := MachinePosition{State: StateBomValidating, Sub: SubSkuVerificationFailed}
	waiting := MachinePosition{State: StateBomValidating, Sub: SubWaitingForSkuAssignment}
	return []MachineTransition{
		{Event: EventSkuMatched, From: settled(), To: ready},
		{Event: EventSkuVerified, From: settled(), To: ready},
		{Event: EventDpuReported, From: settled(), To: ready},
		{Event: EventSkuMismatch, From: settled(), To: failed},
		{Event: EventSkuNotFound, From: settled(), To: waiting},
		{Event: EventSkuUnset, From: settled(), To: waiting},
	}
}

// NextMachinePosition is where event takes a machine that is at from; ok is false
// where the table has no such row.
func NextMachinePosition(from MachinePosition, event MachineEvent) (to MachinePosition, ok bool) {
	for _, t := range MachineTransitions() {
		if t.Event == event && slices.Contains(t.From, from) {
			return t.To, true
		}
	}
	return MachinePosition{}, false
}
