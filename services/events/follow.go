package events

import (
	"context"
	"errors"
	"time"

	"entgo.io/ent/dialect/sql"

	"fleetgraph/ent"
	"fleetgraph/ent/predicate"
	"fleetgraph/ent/relay"
	"fleetgraph/ent/transition"
	"fleetgraph/fleet"
	"fleetgraph/internal/notify"
)

const (
	// followPage is how many stored changes a follower reads at once.
	followPage = 200
	// readTimeout bounds one such reading.
	readTimeout = 10 * time.Second
)

// Stream is what can be followed: the changes of one object, by their sequence, or
// those at one site, by their position.
type Stream struct {
	topic  string
	order  relay.Order
	of     predicate.Transition
	column string
	number func(*ent.Transition) int64
}

// OfObject is the stream of one object's changes.
func OfObject(id string) Stream {
	return Stream{
		topic: id, order: streamOrder(id), of: transition.SubjectID(id), column: transition.FieldSequence,
		number: func(t *ent.Transition) int64 { return int64(t.Sequence) },
	}
}

// AtSite is the stream of all changes at a site.
func AtSite(siteID string) Stream {
	topic := siteTopic(siteID)
	return Stream{
		topic: topic, order: streamOrder(topic), of: transition.SiteID(siteID), column: transition.FieldPosition,
		number: func(t *ent.Transition) int64 { return *t.Position },
	}
}

func streamOrder(topic string) relay.Order {
	return relay.Order{Connection: topic, Kind: relay.KindInt}
}

// Cursor is the place in the stream after a number of changes.
func (s Stream) Cursor(number int64) relay.Cursor { return s.order.Encode("", number) }

// CursorOf is the place in the stream after a change of it.
func (s Stream) CursorOf(t *ent.Transition) relay.Cursor { return s.Cursor(s.number(t)) }

// Read returns the number in a cursor of the stream: INVALID_ARGUMENT, reason
// CURSOR_FOREIGN for one of another stream, CURSOR_INVALID for what is none.
func (s Stream) Read(c relay.Cursor) (int64, error) {
	at, err := s.order.ReadCursor("after", c)
	if err != nil {
		return 0, err
	}
	number, _ := at.Value.(int64)
	return number, nil
}

// Subscription is one follower's place in a stream. It is used by one goroutine.
type Subscription struct {
	feed     *Feed
	stream   Stream
	keep     func(*ent.Transition) bool
	follower *notify.Follower[*ent.Transition]
	last     int64 // number of the last change that was looked at
	stored   bool  // whether what is stored after it is to be read
	pending  []*ent.Transition
	behind   bool // pending is of what was stored
}

// Follow follows a stream after a number, once and in order; keep leaves changes
// out. The caller sees what the context's caller may see. FAILED_PRECONDITION,
// reason CURSOR_EXPIRED, where the history no longer has what follows the number, or
// does not have the number yet, as after the restoring of a backup. Close ends it.
func (f *Feed) Follow(ctx context.Context, stream Stream, after int64, keep func(*ent.Transition) bool) (*Subscription, error) {
	// Joined first: nothing falls between what is stored and what is new.
	follower, err := f.join(ctx, stream.topic)
	if err != nil {
		return nil, err
	}
	s := &Subscription{feed: f, stream: stream, keep: keep, follower: follower, last: after, stored: true}
	if err := s.check(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the following.
func (s *Subscription) Close() { s.feed.leave(s.follower) }

// check holds the subscription's start against what is stored.
func (s *Subscription) check(ctx context.Context) error {
	first, last, err := s.feed.bounds(ctx, s.stream)
	if err != nil {
		return err
	}
	if s.last > last || s.last < first-1 {
		return fleet.Precondition("CURSOR_EXPIRED", "the history does not have what follows this cursor: start again without one").At("after")
	}
	return nil
}

// bounds are the first and the last number that a cursor of the stream may come
// after, as far as stored.
func (f *Feed) bounds(ctx context.Context, stream Stream) (first, last int64, err error) {
	// Positions are one row over all sites, so a site's stream has no first of its own.
	query := `SELECT coalesce(min(position), 1), coalesce(max(position), 0) FROM transitions`
	var args []any
	if stream.column == transition.FieldSequence {
		query = `SELECT coalesce(min(sequence), 1), coalesce(max(sequence), 0) FROM transitions WHERE subject_id = $1`
		args = append(args, stream.topic)
	}
	err = f.db.Pool.QueryRow(ctx, query, args...).Scan(&first, &last)
	return first, last, err
}

// Last is the number of the last change of a stream: of one whose commit was
// answered before, or a later one.
func (f *Feed) Last(ctx context.Context, stream Stream) (int64, error) {
	if stream.column == transition.FieldPosition {
		if err := f.numberAll(ctx); err != nil {
			return 0, err
		}
	}
	_, last, err := f.bounds(ctx, stream)
	return last, err
}

// ErrClosed tells that the process stops; nothing that it had was left out.
var ErrClosed = notify.ErrClosed

// Next waits for the next change, or for ErrClosed.
func (s *Subscription) Next(ctx context.Context) (*ent.Transition, error) {
	for ctx.Err() == nil {
		for len(s.pending) > 0 {
			t := s.pending[0]
			s.pending = s.pending[1:]
			n := s.stream.number(t)
			if n <= s.last {
				continue // read before it came
			}
			s.last = n
			if s.keep == nil || s.keep(t) {
				return t, nil
			}
		}
		if err := s.refill(ctx); err != nil {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

// Behind tells whether the last change came from where it is stored, and not as it
// happened; and up to which position the feed has come by now.
func (s *Subscription) Behind() (position int64, behind bool) {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.feed.position, s.behind
}

// refill reads what is stored until there is no more, and then waits for the hub.
func (s *Subscription) refill(ctx context.Context) (err error) {
	if s.behind = s.stored; !s.stored {
		s.pending, err = s.follower.Next(ctx)
		if errors.Is(err, notify.ErrBehind) {
			s.stored, err = true, nil
		}
		return err
	}
	// Not broken off with its follower: that would cost the connection to the database.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	s.follower.Rejoin()
	s.pending, err = s.feed.client.Transition.Query().
		Where(s.stream.of, predicate.Transition(sql.FieldGT(s.stream.column, s.last))).
		Order(ent.Asc(s.stream.column)).Limit(followPage).All(ctx)
	s.stored = len(s.pending) == followPage
	return err
}

// Watch follows an object without its changes: changed returns a channel that is
// closed when something has happened to it. done ends it.
func (f *Feed) Watch(ctx context.Context, id string) (changed func() <-chan struct{}, done func(), err error) {
	follower, err := f.join(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return follower.Changed, func() { f.leave(follower) }, nil
}
