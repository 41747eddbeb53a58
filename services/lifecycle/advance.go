package lifecycle

import (
	"context"
	"fmt"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/site"
	"fleetgraph/fleet"
)

// maxSteps bounds the moves of one Advance; the longest way through the table has
// half as many.
const maxSteps = 16

// Trigger is why a machine is looked at.
type Trigger struct {
	// Timer: nothing happened but time; what a site spaces out is not due before its
	// interval has passed.
	Timer bool
	// Configured: the site's configuration has changed; what it let pass before is judged
	// by what is known of the machine.
	Configured bool
	// Before is the machine before the inventory that has just arrived was stored; nil
	// where none has.
	Before *ent.Machine
}

// Configuration is what a site says about the life of its machines.
type Configuration struct {
	Bom        fleet.BomValidation
	Validation fleet.MachineValidation
}

// Onward is where BOM validation leads a machine: back to READY where it came from
// there, otherwise to its tests.
func (c Configuration) Onward(context *fleet.RunContext) fleet.MachinePosition {
	switch {
	case context == nil:
		return fleet.MachinePosition{State: fleet.StateReady}
	case c.reboots():
		return rebooting()
	default:
		return fleet.MachinePosition{State: fleet.StateValidating, Sub: fleet.SubRunning}
	}
}

// reboots tells whether hosts of the site restart before their tests.
func (c Configuration) reboots() bool {
	return c.Validation.Enabled && c.Validation.RebootBeforeValidation
}

func rebooting() fleet.MachinePosition {
	return fleet.MachinePosition{State: fleet.StateValidating, Sub: fleet.SubRebooting}
}

// A Validator decides and makes the moves of a machine through BOM validation. It
// runs inside the transaction that has the machine locked.
type Validator interface {
	// Step makes the next move of a machine that is READY or in BOM_VALIDATING, or a
	// DPU's out of it, and tells whether there was one.
	Step(ctx context.Context, tx *ent.Client, m *ent.Machine, config Configuration, trigger *Trigger) (moved bool, err error)
	// Due is when the machine is to be looked at again although nothing happens; nil
	// for never.
	Due(m *ent.Machine, config Configuration) *time.Time
}

// Advance takes m, which the caller has locked, as far as it can go by itself, one
// recorded move after the other, and settles what is wanted of its host and when it
// is to be looked at next. m is up to date afterwards.
func Advance(ctx context.Context, tx *ent.Client, v Validator, m *ent.Machine, trigger Trigger, now func() time.Time) error {
	config, err := configuration(ctx, tx, m.SiteID)
	if err != nil {
		return err
	}
	reported := trigger.Before != nil
	for range maxSteps {
		moved, err := step(ctx, tx, v, m, config, &trigger, now)
		if err != nil {
			return err
		}
		if !moved {
			return settle(ctx, tx, m, config, reported, v.Due(m, config), now())
		}
	}
	return fmt.Errorf("machine %s: no rest after %d moves, at %s", m.ID, maxSteps, Position(m))
}

func step(ctx context.Context, tx *ent.Client, v Validator, m *ent.Machine, config Configuration, trigger *Trigger, now func() time.Time) (moved bool, err error) {
	change := Change{At: now()}
	switch m.State {
	case fleet.StateIngesting:
		if m.Kind == fleet.KindDPU {
			return v.Step(ctx, tx, m, config, trigger)
		}
		change.Event = fleet.EventIngested
		m.RunContext = new(fleet.ContextDiscovery)
		return true, Move(ctx, tx, m, fleet.BomPosition(fleet.SubMatchingSku), change)
	case fleet.StateReady, fleet.StateBomValidating:
		return v.Step(ctx, tx, m, config, trigger)
	case fleet.StateValidating:
		if Position(m) == rebooting() {
			if config.reboots() && trigger.Before != nil {
				return v.Step(ctx, tx, m, config, trigger)
			}
			if config.reboots() {
				return false, nil // until the agent has finished the work
			}
			change.Event = fleet.EventRebootSkipped
			return true, Move(ctx, tx, m, fleet.MachinePosition{State: fleet.StateValidating, Sub: fleet.SubRunning}, change)
		}
		change.Event = fleet.EventValidationNotAvailable
		change.Message = "this server runs no tests: the machine passes"
		m.RunContext = nil
		return true, Move(ctx, tx, m, fleet.MachinePosition{State: fleet.StateReady}, change)
	case fleet.StateCleanup:
		if config.Validation.Cleanup == fleet.CleanupAgent {
			return false, nil // the same
		}
		return true, cleaned(ctx, tx, m, change)
	case fleet.StateAllocated:
		if trigger.Before != nil {
			return v.Step(ctx, tx, m, config, trigger)
		}
	case fleet.StateFailed:
	}
	return false, nil
}

func cleaned(ctx context.Context, tx *ent.Client, m *ent.Machine, change Change) error {
	change.Event = fleet.EventCleaned
	m.RunContext = new(fleet.ContextCleanup)
	return Move(ctx, tx, m, fleet.BomPosition(fleet.SubUpdatingInventory), change)
}

// configuration reads what a machine's site says now. Whoever changes it has every
// machine of the site looked at again, so it need not be locked.
func configuration(ctx context.Context, tx *ent.Client, siteID string) (Configuration, error) {
	row, err := tx.Site.Query().Where(site.ID(siteID)).
		Select(site.FieldBomValidation, site.FieldMachineValidation).Only(ctx)
	if err != nil {
		return Configuration{}, fmt.Errorf("configuration of %s: %w", siteID, err)
	}
	return Configuration{Bom: row.BomValidation, Validation: row.MachineValidation}, nil
}

// settle brings the work items in line with where the machine has come to rest, and
// notes when it is due.
func settle(ctx context.Context, tx *ent.Client, m *ent.Machine, config Configuration, reported bool, due *time.Time, now time.Time) error {
	if err := reconcileWork(ctx, tx, m, wanted(m, config), reported, now); err != nil {
		return err
	}
	if due == nil && m.AttendAt == nil || due != nil && m.AttendAt != nil && due.Equal(*m.AttendAt) {
		return nil
	}
	m.AttendAt = due
	update := tx.Machine.Update().Where(machine.ID(m.ID))
	if due == nil {
		return update.ClearAttendAt().Exec(ctx)
	}
	return update.SetAttendAt(*due).Exec(ctx)
}
