package resolvers

import (
	"context"
	"errors"
	"io"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/relay"
	entsite "fleetgraph/ent/site"
	"fleetgraph/ent/transition"
	"fleetgraph/fleet"
	"fleetgraph/graph"
	"fleetgraph/internal/live"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// snapshotTries bounds how often a snapshot is read again because something changed
// meanwhile. After that it may show a change that comes once more as an event.
const snapshotTries = 10

// history is a source of the changes in one stream.
type history struct {
	feed   *events.Feed
	stream events.Stream
	keep   func(*ent.Transition) bool
	ends   func(*ent.Transition) bool // nil: never
	// opening is the first event, of no change; nil where there is none.
	opening *opening
	last    int64 // number of the change to go on after, until following
	ended   bool
	follow  *events.Subscription
}

// opening is the first event of a stream. number is that of the last change before
// it, which building the event settles.
type opening struct {
	stream events.Stream
	number int64
}

// Next returns the opening, and then the changes.
func (h *history) Next(ctx context.Context) (live.Event, error) {
	switch {
	case h.ended:
		return live.Event{}, io.EOF
	case h.opening != nil && h.follow == nil && h.last < 0:
		h.last = 0
		return live.Event{Value: h.opening}, nil
	case h.follow == nil:
		if h.opening != nil {
			h.last = h.opening.number
		}
		var err error
		if h.follow, err = h.feed.Follow(ctx, h.stream, h.last, h.keep); err != nil {
			return live.Event{}, err
		}
	}
	t, err := h.follow.Next(ctx)
	if errors.Is(err, events.ErrClosed) {
		err = live.ErrStopping
	}
	if err != nil {
		return live.Event{}, err
	}
	h.ended = h.ends != nil && h.ends(t)
	return live.Event{Key: t.ID, Value: t}, nil
}

// Close ends the following.
func (h *history) Close() {
	if h.follow != nil {
		h.follow.Close()
	}
}

// start makes h begin behind a cursor, at once, so that a bad one is refused before
// the first event, or with an opening where there is none.
func (h *history) start(ctx context.Context, after *relay.Cursor) (err error) {
	if after == nil {
		h.opening, h.last = &opening{stream: h.stream}, -1
		return nil
	}
	if h.last, err = h.stream.Read(*after); err != nil {
		return err
	}
	h.follow, err = h.feed.Follow(ctx, h.stream, h.last, h.keep)
	return err
}

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
	h := &history{feed: r.Feed, stream: events.OfObject(id), ends: isDeletion}
	if !exists {
		var end *ent.Transition
		if after != nil {
			end, err = orNull(r.Client.Transition.Query().Where(transition.SubjectID(id)).Order(ent.Desc(transition.FieldSequence)).First(ctx))
		}
		if err != nil {
			return nil, err
		}
		if end == nil {
			return nil, machineMissing(id)
		}
		if number, err := h.stream.Read(*after); err == nil && number == int64(end.Sequence) {
			h.ended = true
			return h, nil
		}
	}
	return h, h.start(ctx, after)
}

// machineEvent is the graph's form of an event of a machine's stream.
func (r *Resolver) machineEvent(ctx context.Context, id string, e live.Event) (graph.MachineEvent, error) {
	t, ok := e.Value.(*ent.Transition)
	if !ok {
		return r.machineSnapshot(ctx, id, e.Value.(*opening)) //nolint:forcetypeassert // history has no other
	}
	cursor := events.OfObject(id).CursorOf(t)
	if isDeletion(t) {
		return graph.MachineEnd{Transition: t, Cursor: cursor}, nil
	}
	change := graph.MachineChange{Transition: t, Cursor: cursor}
	if !relay.Selects(ctx, "machine") {
		return change, nil
	}
	query, err := r.Client.Machine.Query().Where(machine.ID(id)).CollectOne(ctx, "machine")
	if err != nil {
		return nil, err
	}
	change.Machine, err = orNull(query.Only(ctx))
	return change, err
}

// machineSnapshot loads a machine together with the number of its last change: what
// it shows is neither older nor, but for one that changes without pause, newer.
func (r *Resolver) machineSnapshot(ctx context.Context, id string, at *opening) (graph.MachineEvent, error) {
	number, err := r.Feed.Last(ctx, at.stream)
	if err != nil {
		return nil, err
	}
	var row *ent.Machine
	for range snapshotTries {
		query, err := r.Client.Machine.Query().Where(machine.ID(id)).CollectOne(ctx, "machine")
		if err != nil {
			return nil, err
		}
		row, err = query.Only(ctx)
		if ent.IsNotFound(err) {
			return nil, machineMissing(id)
		}
		if err != nil {
			return nil, err
		}
		at.number = number
		if number, err = r.Feed.Last(ctx, at.stream); err != nil {
			return nil, err
		}
		if number == at.number {
			break
		}
	}
	return graph.MachineSnapshot{Machine: row, Cursor: at.stream.Cursor(at.number)}, nil
}

func machineMissing(id string) *fleet.Error {
	return fleet.Missing("id", "MACHINE_NOT_FOUND", "machine not found: %s", id)
}

// followSite opens the stream of a site.
func (r *Resolver) followSite(ctx context.Context, name string, after *relay.Cursor, kinds []fleet.SubjectType) (live.Source, error) {
	caller, err := access.Require(ctx, fleet.RoleViewer)
	if err != nil {
		return nil, err
	}
	if kinds != nil && len(kinds) == 0 {
		return nil, fleet.Invalid("kinds", "LIST_EMPTY", "name at least one kind, or leave kinds out for all")
	}
	id, err := r.Client.Site.Query().Where(entsite.Name(name)).OnlyID(ctx)
	if ent.IsNotFound(err) {
		return nil, fleet.Missing("site", "SITE_NOT_FOUND", "site not found: %s", name)
	}
	if err != nil {
		return nil, err
	}
	h := &history{feed: r.Feed, stream: events.AtSite(id), keep: caller.Follows(kinds)}
	return h, h.start(ctx, after)
}

// siteEvent is the graph's form of an event of a site's stream.
func (r *Resolver) siteEvent(ctx context.Context, e live.Event) (*graph.TransitionEvent, error) {
	if t, ok := e.Value.(*ent.Transition); ok {
		return &graph.TransitionEvent{Transition: t, Cursor: events.AtSite(*t.SiteID).CursorOf(t)}, nil
	}
	at := e.Value.(*opening) //nolint:forcetypeassert // history has no other
	var err error
	at.number, err = r.Feed.Last(ctx, at.stream)
	return &graph.TransitionEvent{Cursor: at.stream.Cursor(at.number)}, err
}
