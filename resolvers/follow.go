package resolvers

import (
	"context"
	"errors"
	"io"
	"strconv"

	"fleetgraph/ent"
	"fleetgraph/ent/relay"
	"fleetgraph/fleet"
	"fleetgraph/internal/live"
	"fleetgraph/services/events"
)

// snapshotTries bounds how often a snapshot is read again because something changed
// meanwhile. After that it may show a change that comes once more as an event.
const snapshotTries = 10

// history is a source of the changes in one stream: an opening, where it does not go
// on behind a cursor, then the changes, up to the one that ends it.
type history struct {
	feed    *events.Feed
	stream  events.Stream
	keep    func(*ent.Transition) bool // nil: all
	ends    func(*ent.Transition) bool // nil: it does not end
	opening *opening
	ended   bool
	follow  *events.Subscription
}

// opening is the first event of a stream, of no change. Building it settles number,
// that of the last change before it, and whether nothing comes behind it.
type opening struct {
	stream events.Stream
	sent   bool
	number int64
	ended  bool
}

// start makes h begin behind a cursor, at once, so that a bad one is refused before
// the first event, or with an opening where there is none.
func (h *history) start(ctx context.Context, after *relay.Cursor) error {
	if after == nil {
		h.opening = &opening{stream: h.stream}
		return nil
	}
	number, err := h.stream.Read(*after)
	if err != nil {
		return err
	}
	h.follow, err = h.feed.Follow(ctx, h.stream, number, h.keep)
	return err
}

// Next returns the opening, and then the changes.
func (h *history) Next(ctx context.Context) (live.Event, error) {
	switch {
	case h.ended:
		return live.Event{}, io.EOF
	case h.follow != nil:
	case !h.opening.sent:
		h.opening.sent = true
		return live.Event{Value: h.opening}, nil
	case h.opening.ended:
		return live.Event{}, io.EOF
	default:
		var err error
		if h.follow, err = h.feed.Follow(ctx, h.stream, h.opening.number, h.keep); err != nil {
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
	return live.Event{Key: h.key(t), Value: t}, nil
}

// key lets followers share what is rendered of a change: those who get it as it
// happens, and of those who catch up the ones for whom nothing has happened since. An
// object is never shown to them as it was before they came.
func (h *history) key(t *ent.Transition) string {
	if position, behind := h.follow.Behind(); behind {
		return t.ID + "@" + strconv.FormatInt(position, 10)
	}
	return t.ID
}

// Close ends the following.
func (h *history) Close() {
	if h.follow != nil {
		h.follow.Close()
	}
}

// followObject opens the stream of an object; ended tells that its last change has
// been.
func (r *Resolver) followObject(ctx context.Context, id string, after *relay.Cursor, ends func(*ent.Transition) bool, ended bool) (live.Source, error) {
	h := &history{feed: r.Feed, stream: events.OfObject(id), ends: ends}
	if ended && after != nil {
		number, err := h.stream.Read(*after)
		if err != nil {
			return nil, err
		}
		last, err := r.Feed.Last(ctx, h.stream)
		if err != nil {
			return nil, err
		}
		if number == last {
			h.ended = true
			return h, nil
		}
	}
	return h, h.start(ctx, after)
}

// settle loads an object together with the number of its last change: what it shows
// is not older and, but for one that changes without pause, not newer.
func (r *Resolver) settle(ctx context.Context, at *opening, load func() error) error {
	number, err := r.Feed.Last(ctx, at.stream)
	if err != nil {
		return err
	}
	for range snapshotTries {
		if err := load(); err != nil {
			return err
		}
		at.number = number
		if number, err = r.Feed.Last(ctx, at.stream); err != nil {
			return err
		}
		if number == at.number {
			break
		}
	}
	return nil
}

// changeOf is the change in an event that is no opening.
func changeOf(e live.Event) (*ent.Transition, *opening) {
	if t, ok := e.Value.(*ent.Transition); ok {
		return t, nil
	}
	return nil, e.Value.(*opening) //nolint:forcetypeassert // history has no other
}

func machineMissing(id string) *fleet.Error {
	return fleet.Missing("id", "MACHINE_NOT_FOUND", "machine not found: %s", id)
}

func jobMissing(id string) *fleet.Error {
	return fleet.Missing("id", "JOB_NOT_FOUND", "job not found: %s", id)
}
