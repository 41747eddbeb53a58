package resolvers

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/relay"
	"fleetgraph/ent/transition"
	"fleetgraph/fleet"
	"fleetgraph/graph"
	"fleetgraph/internal/live"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

func isDeletion(t *ent.Transition) bool { return t.Cause == string(fleet.EventMachineDeleted) }

// followMachine opens the stream of a machine that exists, or did when the cursor was
// given out.
func (r *Resolver) followMachine(ctx context.Context, id string, after *relay.Cursor) (live.Source, error) {
	if _, err := access.RequireOrAgent(ctx, fleet.RoleViewer); err != nil {
		return nil, err
	}
	if err := fleet.CheckID("id", fleet.PrefixMachine, id); err != nil {
		return nil, err
	}
	exists, err := r.Client.Machine.Query().Where(machine.ID(id)).Exist(ctx)
	if err != nil {
		return nil, err
	}
	if !exists {
		known := false
		if after != nil {
			known, err = r.Client.Transition.Query().Where(transition.SubjectID(id)).Exist(ctx)
		}
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, machineMissing(id)
		}
	}
	return r.followObject(ctx, id, after, isDeletion, !exists)
}

// machineEvent is the graph's form of an event of a machine's stream.
func (r *Resolver) machineEvent(ctx context.Context, id string, e live.Event) (graph.MachineEvent, error) {
	t, at := changeOf(e)
	var row *ent.Machine
	load := func() error {
		query, err := r.Client.Machine.Query().Where(machine.ID(id)).CollectOne(ctx, "machine")
		if err != nil {
			return err
		}
		row, err = orNull(query.Only(ctx))
		return err
	}
	if at != nil {
		if err := r.settle(ctx, at, load); err != nil {
			return nil, err
		}
		if row == nil {
			return nil, machineMissing(id)
		}
		return graph.MachineSnapshot{Machine: row, Cursor: at.stream.Cursor(at.number)}, nil
	}
	cursor := events.OfObject(id).CursorOf(t)
	if isDeletion(t) {
		return graph.MachineEnd{Transition: t, Cursor: cursor}, nil
	}
	if relay.Selects(ctx, "machine") {
		if err := load(); err != nil {
			return nil, err
		}
	}
	return graph.MachineChange{Transition: t, Machine: row, Cursor: cursor}, nil
}
