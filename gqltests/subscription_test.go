package gqltests_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// followMachine is what tests follow machines with.
const followMachine = `subscription($id: ID!, $after: Cursor) { machine(id: $id, after: $after) {
	__typename
	... on MachineSnapshot { cursor machine { name state } }
	... on MachineChange { cursor transition { sequence cause toState } machine { name state } }
	... on MachineEnd { cursor transition { sequence cause } }
} }`

// machineEvent is an event of it.
type machineEvent struct {
	Machine struct {
		Typename   string `json:"__typename"`
		Cursor     string
		Machine    *machine
		Transition *change
	}
}

type change struct {
	Sequence               int
	Cause, ToState         string
	SubjectID, SubjectType string
}

func TestAMachineIsFollowedFromASnapshotToItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	siteID := b.createSite(t, "lab")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", inventory(t, "composed/xe9680_8gpu.json"))
	s := b.connect(t, b.admin)
	s.subscribe(t, "1", followMachine, variables{"id": m.ID})

	var e machineEvent
	s.data(t, "1", &e)
	require.Equal(t, "MachineSnapshot", e.Machine.Typename)
	require.Equal(t, "BOM_VALIDATING", e.Machine.Machine.State)

	b.createSku(t, siteID, m.ID, "sku-1")
	for {
		e = machineEvent{}
		s.data(t, "1", &e)
		require.Equal(t, "MachineChange", e.Machine.Typename)
		if e.Machine.Transition.Cause == "SKU_MATCH_FOUND" {
			break
		}
	}
	cursor := e.Machine.Cursor
	b.must(t, `mutation($input: DeleteMachineInput!) { deleteMachine(input: $input) { deletedMachineId } }`,
		variables{"input": variables{"machineId": m.ID}}, nil)
	for e.Machine.Typename != "MachineEnd" {
		e = machineEvent{}
		s.data(t, "1", &e)
	}
	done := s.next(t)
	require.Equal(t, "complete", done.Type)

	s.subscribe(t, "2", followMachine, variables{"id": m.ID, "after": cursor})
	for e.Machine.Typename = ""; e.Machine.Typename != "MachineEnd"; {
		e = machineEvent{}
		s.data(t, "2", &e)
	}
	require.Equal(t, "complete", s.next(t).Type)
	s.subscribe(t, "3", followMachine, variables{"id": m.ID, "after": e.Machine.Cursor})
	require.Equal(t, message{Type: "complete", ID: "3"}, s.next(t))
	s.subscribe(t, "4", followMachine, variables{"id": m.ID})
	require.Equal(t, "MACHINE_NOT_FOUND", s.refused(t, "4").Extensions.Reason)
}
