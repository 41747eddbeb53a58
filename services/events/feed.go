package events

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"fleetgraph/ent"
	"fleetgraph/ent/transition"
	"fleetgraph/internal/notify"
	"fleetgraph/internal/pgdb"
)

const (
	// Channel carries hints between processes: the last position that was given.
	Channel = "fleetgraph_transitions"
	// feedPause is the shortest time between two looks for what is new: changes that
	// come faster share one, and one wake-up and one write for each follower.
	feedPause = 40 * time.Millisecond
	// feedPoll is how often the table is looked at without a hint. It bounds how late a
	// change is whose process was killed right after it, or whose hint was lost.
	feedPoll = time.Second
	// feedPage is how many changes are read or numbered at once.
	feedPage = 1000
	// FeedLock is the advisory lock of who gives positions.
	FeedLock = 0x666c656574 // "fleet"
	// numberTimeout bounds one round of numbering.
	numberTimeout = 10 * time.Second
	// idleTimeout is how long a round may stand still between two statements.
	idleTimeout = "5s"
	// lastRound bounds the round after the end.
	lastRound = 2 * time.Second
)

// Feed is the history as a stream. Each change gets its position after its commit,
// in a transaction of its own under one lock over all processes, so that positions
// become visible in their order: a change that commits late gets a late position,
// and who has read up to one has missed nothing before it. A sequence taken within
// the change's own transaction would not do: of two such, the later may commit first.
//
// Within one object the order of positions is that of its sequence.
type Feed struct {
	db     *pgdb.DB
	client *ent.Client
	logger *slog.Logger
	system func(context.Context) context.Context
	hub    *notify.Hub[*ent.Transition]
	hints  chan struct{}

	mu        sync.Mutex
	followers int
	position  int64 // up to which the followers' topics have everything
}

// NewFeed returns the feed of a database. client is scoped to callers, and system
// makes a context of one that sees everything.
func NewFeed(db *pgdb.DB, client *ent.Client, system func(context.Context) context.Context, logger *slog.Logger) *Feed {
	return &Feed{
		db: db, client: client, system: system, logger: logger,
		hub: notify.NewHub(size), hints: make(chan struct{}, 1),
	}
}

// size is about what a change holds in memory, in bytes.
func size(t *ent.Transition) int { return 512 + len(t.Details) + len(t.Message) }

// Run numbers what this process has committed, and what others left, and hands
// everything new to the followers. When ctx ends it does so a last time, lets the
// followers have it, and returns. An unreachable database delays the feed and loses
// nothing of it.
func (f *Feed) Run(ctx context.Context) {
	ctx = f.system(ctx)
	f.follow(ctx)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRound)
	defer cancel()
	if err := f.advance(last); err != nil {
		f.logger.WarnContext(ctx, "the last changes go to their followers by another process", slog.Any("err", err))
	}
	f.hub.Close()
}

func (f *Feed) follow(ctx context.Context) {
	var listening sync.WaitGroup
	listening.Go(func() { notify.Listen(ctx, f.db.Connect, Channel, f.hint, f.logger) })
	defer listening.Wait()
	poll := time.NewTicker(feedPoll)
	defer poll.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.db.Committed():
		case <-f.hints:
		case <-poll.C:
		}
		select { // since the last round
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		err := f.advance(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			f.logger.WarnContext(ctx, "the feed stands still", slog.Any("err", err))
		}
		failing = err != nil
		pause.Reset(feedPause)
	}
}

func (f *Feed) hint() {
	select {
	case f.hints <- struct{}{}:
	default: // there is one
	}
}

// advance does one round.
func (f *Feed) advance(ctx context.Context) error {
	if err := f.numberAll(ctx); err != nil {
		return err
	}
	return f.pass(ctx)
}

// numberAll gives positions to all changes that can have one.
func (f *Feed) numberAll(ctx context.Context) error {
	for {
		n, err := f.number(ctx)
		if err != nil {
			return fmt.Errorf("number transitions: %w", err)
		}
		if n < feedPage {
			return nil
		}
	}
}

// numberSQL gives positions to the oldest changes that have none: in the order of
// their times, but within an object in that of its sequence, whatever its writers'
// clocks say. Rows that another transaction holds (those of a machine that is being
// deleted) wait, and with them the later ones of their object.
const numberSQL = `
WITH free AS (
	SELECT id, subject_id, sequence, occurred_at FROM transitions WHERE position IS NULL
	ORDER BY subject_id, sequence LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
), ranked AS (
	SELECT *, row_number() OVER w AS rank, min(sequence) OVER w AS first, max(occurred_at) OVER w AS settled
	FROM free WINDOW w AS (PARTITION BY subject_id ORDER BY sequence)
), next AS (
	SELECT id, row_number() OVER (ORDER BY settled, subject_id, sequence) AS n FROM ranked r
	WHERE sequence = first + rank - 1 AND NOT EXISTS (
		SELECT FROM transitions e WHERE e.subject_id = r.subject_id AND e.sequence < r.first AND e.position IS NULL)
)
UPDATE transitions t SET position = (SELECT coalesce(max(position), 0) FROM transitions) + next.n
FROM next WHERE t.id = next.id`

// number gives positions to changes that have none, at most feedPage of them, and
// returns how many there were.
func (f *Feed) number(ctx context.Context) (n int64, err error) {
	var fresh bool
	if err := f.db.Pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM transitions WHERE position IS NULL)`).Scan(&fresh); err != nil || !fresh {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, numberTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, f.db.Pool, func(tx pgx.Tx) error {
		// A process that stands still with the lock must not hold up the others.
		if _, err := tx.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', $1, true)`, idleTimeout); err != nil {
			return err
		}
		// The lock first, in a statement of its own: the next one then sees all that was
		// numbered before.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, FeedLock); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, numberSQL, feedPage)
		if n = tag.RowsAffected(); err != nil || n == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `SELECT pg_notify($1, (SELECT max(position)::text FROM transitions))`, Channel)
		return err
	})
	return n, err
}

// pass hands what is new to the followers.
func (f *Feed) pass(ctx context.Context) error {
	for {
		f.mu.Lock()
		position, followed := f.position, f.followers > 0
		f.mu.Unlock()
		if !followed {
			return nil
		}
		rows, err := f.client.Transition.Query().Where(transition.PositionGT(position)).
			Order(transition.ByPosition()).Limit(feedPage).All(ctx)
		if err != nil {
			return fmt.Errorf("read transitions: %w", err)
		}
		if len(rows) > 0 {
			f.publish(rows)
			f.mu.Lock()
			f.position = *rows[len(rows)-1].Position
			f.mu.Unlock()
		}
		if len(rows) < feedPage {
			return nil
		}
	}
}

// publish sorts changes into the topics of their object and of their site.
func (f *Feed) publish(rows []*ent.Transition) {
	topics := map[string][]*ent.Transition{}
	add := func(topic string, row *ent.Transition) {
		if topics[topic] != nil || f.hub.Followed(topic) {
			topics[topic] = append(topics[topic], row)
		}
	}
	for _, row := range rows {
		add(row.SubjectID, row)
		if row.SiteID != nil {
			add(siteTopic(*row.SiteID), row)
		}
	}
	for topic, rows := range topics {
		f.hub.Publish(topic, rows)
	}
}

// siteTopic is the topic of everything at a site; the site's id is the topic of the
// site as an object.
func siteTopic(siteID string) string { return "at:" + siteID }

// join makes the feed read from now on for one more follower.
func (f *Feed) join(ctx context.Context, topic string) (*notify.Follower[*ent.Transition], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers == 0 {
		last, err := f.last(ctx)
		if err != nil {
			return nil, err
		}
		f.position = last
	}
	f.followers++
	return f.hub.Follow(topic), nil
}

func (f *Feed) leave(follower *notify.Follower[*ent.Transition]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers--
	follower.Leave()
}

// last is the last position that was given.
func (f *Feed) last(ctx context.Context) (last int64, err error) {
	err = f.db.Pool.QueryRow(ctx, `SELECT coalesce(max(position), 0) FROM transitions`).Scan(&last)
	return last, err
}
