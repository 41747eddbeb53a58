// Package lifecycle is a machine's main life: it takes in inventories, keeps a
// machine's identity, and makes every transition by one guarded writer. What an
// inventory means for a machine's SKU is another's verdict (see Validator).
package lifecycle

import (
	"context"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/fleet"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// Change is what happens to a machine in one transition, beside its state.
type Change struct {
	Event   fleet.MachineEvent
	Message string
	Details any
	At      time.Time
}

// Position is where a machine's row says that it is.
func Position(m *ent.Machine) fleet.MachinePosition {
	p := fleet.MachinePosition{State: m.State}
	if m.SubState != nil {
		p.Sub = *m.SubState
	}
	return p
}

// Move takes m, which the caller has locked, to another position because of
// c.Event, writes what else changes with it, and records it. m's state and its
// RunContext are what is written; set reports other columns. A machine that stays where it
// is keeps the time it came there. FAILED_PRECONDITION, reason MACHINE_STATE, where
// the table has no such transition; ABORTED, reason STATE_CHANGED, where another was
// faster.
func Move(ctx context.Context, tx *ent.Client, m *ent.Machine, to fleet.MachinePosition, c Change, set ...func(*ent.MachineUpdate)) error {
	from := Position(m)
	if !fleet.AllowsMachineTransition(from, c.Event, to) {
		return fleet.Precondition("MACHINE_STATE", "a machine that is %s has no transition to %s for %s", from, to, c.Event)
	}
	update := tx.Machine.Update().Where(machine.ID(m.ID), machine.StateEQ(from.State), subStateIs(from.Sub)).
		SetState(to.State).SetUpdatedAt(c.At)
	if to != from {
		update.SetStateChangedAt(c.At)
		m.StateChangedAt = c.At
	}
	m.State, m.SubState = to.State, nil
	if to.Sub == "" {
		update.ClearSubState()
	} else {
		update.SetSubState(to.Sub)
		m.SubState = new(to.Sub)
	}
	if m.RunContext == nil {
		update.ClearRunContext()
	} else {
		update.SetRunContext(*m.RunContext)
	}
	for _, more := range set {
		more(update)
	}
	n, err := update.Save(ctx)
	if err != nil {
		return err
	}
	if n != 1 {
		return fleet.Conflict("STATE_CHANGED", "the machine left %s meanwhile", from)
	}
	return Record(ctx, tx, m, &from, &to, c)
}

// Record appends a change of m to its history. From and to are nil for a change
// that is none of state.
func Record(ctx context.Context, tx *ent.Client, m *ent.Machine, from, to *fleet.MachinePosition, c Change) error {
	return events.Append(ctx, tx, events.Transition{
		SiteID: &m.SiteID, SubjectType: fleet.SubjectMachine, SubjectID: m.ID, MachineID: &m.ID,
		From: text(from), To: text(to),
		Cause: string(c.Event), Actor: access.Actor(ctx), Message: c.Message, Details: c.Details, At: c.At,
	})
}

func text(p *fleet.MachinePosition) *string {
	if p == nil {
		return nil
	}
	return new(p.String())
}
