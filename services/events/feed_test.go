package events_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"fleetgraph/ent"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/testdb"
	"fleetgraph/migrate"
	"fleetgraph/services/events"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m, migrate.ApplyURL)) }

// bundle is a database with one site.
type bundle struct {
	url  string
	site string
}

// feed is the feed of one process.
type feed struct {
	*events.Feed
	db     *pgdb.DB
	client *ent.Client
	stop   func()
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{url: testdb.New(t), site: fleet.NewID(fleet.PrefixSite)}
	db, err := pgdb.Open(t.Context(), b.url, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	client := ent.NewClient(ent.Driver(db.Driver()))
	require.NoError(t, client.Site.Create().SetID(b.site).SetName("lab").Exec(t.Context()))
	return b
}

// process starts a feed as another process would have it.
func (b *bundle) process(t *testing.T) *feed {
	t.Helper()
	db, err := pgdb.Open(t.Context(), b.url, nil)
	require.NoError(t, err)
	client := ent.NewClient(ent.Driver(db.Driver()))
	same := func(ctx context.Context) context.Context { return ctx }
	f := &feed{Feed: events.NewFeed(db, client, same, slog.New(slog.DiscardHandler)), db: db, client: client}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	f.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		require.NoError(t, db.Close())
	})
	t.Cleanup(f.stop)
	return f
}

// append records a change of an object at the site, in tx or one of its own.
func (b *bundle) append(ctx context.Context, client *ent.Client, subject string, at time.Time) error {
	return events.Append(ctx, client, events.Transition{
		SiteID: &b.site, SubjectType: fleet.SubjectSku, SubjectID: subject, Cause: "TEST", Actor: "test", At: at,
	})
}

// next is the next change of a subscription.
func next(t *testing.T, s *events.Subscription) *ent.Transition {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	row, err := s.Next(ctx)
	require.NoError(t, err)
	return row
}

func TestAChangeThatCommitsLateIsNotSkipped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := b.process(t)
	s, err := f.Follow(t.Context(), events.AtSite(b.site), 0, nil)
	require.NoError(t, err)
	defer s.Close()
	now := time.Now()

	held, err := f.client.Tx(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.append(t.Context(), held.Client(), "held", now))
	for i := range 5 {
		subject := fmt.Sprint("quick-", i)
		require.NoError(t, b.append(t.Context(), f.client, subject, now.Add(time.Second)))
		require.Equal(t, subject, next(t, s).SubjectID, "who waits holds nobody up")
	}
	require.NoError(t, held.Commit())
	late := next(t, s)
	require.Equal(t, "held", late.SubjectID)

	again, err := f.Follow(t.Context(), events.AtSite(b.site), *late.Position-1, nil)
	require.NoError(t, err)
	defer again.Close()
	require.Equal(t, late.ID, next(t, again).ID, "and its place is behind what followers had before")
}

func TestAnObjectThatIsHeldHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := b.process(t)
	s, err := f.Follow(t.Context(), events.AtSite(b.site), 0, nil)
	require.NoError(t, err)
	defer s.Close()
	// A transaction has the row of a change that has no position yet, as the deletion of
	// a machine has.
	writer, err := pgx.Connect(t.Context(), b.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, writer.Close(context.WithoutCancel(t.Context()))) }()
	lock, err := f.db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, events.FeedLock)
	require.NoError(t, err)
	now := time.Now()
	for range 3 {
		require.NoError(t, b.append(t.Context(), f.client, "held", now))
	}
	tx, err := writer.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT id FROM transitions WHERE subject_id = 'held' AND sequence = 2 FOR UPDATE`)
	require.NoError(t, err)
	require.NoError(t, lock.Rollback(t.Context()))

	require.Equal(t, 1, next(t, s).Sequence)
	require.NoError(t, b.append(t.Context(), f.client, "free", now))
	require.Equal(t, "free", next(t, s).SubjectID, "the third waits for the second")
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, 2, next(t, s).Sequence)
	require.Equal(t, 3, next(t, s).Sequence)
}

// TestSeveralProcessesMakeOneOrder has writers with clocks that differ append at three
// processes, one of which ends early; all followers see the same.
func TestSeveralProcessesMakeOneOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	processes := []*feed{b.process(t), b.process(t), b.process(t)}
	const writers, changes = 12, 40
	followers := make([]*events.Subscription, 0, 4)
	for _, f := range []*feed{processes[0], processes[0], processes[1]} {
		s, err := f.Follow(t.Context(), events.AtSite(b.site), 0, nil)
		require.NoError(t, err)
		defer s.Close()
		followers = append(followers, s)
	}
	var all sync.WaitGroup
	failed := make(chan error, writers)
	for w := range writers {
		all.Go(func() {
			clock := time.Duration(w%3-1) * time.Hour
			for i := range changes {
				f := processes[(w+i)%len(processes)]
				if i > changes/2 {
					f = processes[i%2]
				}
				if err := b.append(context.WithoutCancel(t.Context()), f.client, fmt.Sprint("object-", w), time.Now().Add(clock*time.Duration(i%2))); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	require.NoError(t, <-failed)
	processes[2].stop()

	var first []string
	for i, s := range followers {
		sequences := map[string]int{}
		var got []string
		for range writers * changes {
			row := next(t, s)
			require.Equal(t, sequences[row.SubjectID]+1, row.Sequence, "within an object by its sequence")
			sequences[row.SubjectID]++
			got = append(got, row.ID)
			require.Equal(t, int64(len(got)), *row.Position, "without a gap")
		}
		if i == 0 {
			first = got
		}
		require.Equal(t, first, got)
	}
	object, err := processes[1].Follow(t.Context(), events.OfObject("object-3"), 7, nil)
	require.NoError(t, err)
	defer object.Close()
	for i := 8; i <= changes; i++ {
		require.Equal(t, i, next(t, object).Sequence)
	}
}

func TestWhoFallsBehindReadsWhatIsStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := b.process(t)
	s, err := f.Follow(t.Context(), events.OfObject("busy"), 0, nil)
	require.NoError(t, err)
	defer s.Close()
	const changes = 3000 // thrice the window
	rows := make([]*ent.TransitionCreate, 0, changes)
	for i := range changes {
		rows = append(rows, f.client.Transition.Create().SetSiteID(b.site).SetSubjectType(fleet.SubjectSku).SetSubjectID("busy").
			SetSequence(i+1).SetCause("TEST").SetActor("test").SetOccurredAt(time.Now()))
		if len(rows) == 500 {
			require.NoError(t, f.client.Transition.CreateBulk(rows...).Exec(t.Context()))
			rows = rows[:0]
			if i == 499 {
				require.Equal(t, 1, next(t, s).Sequence)
			}
		}
	}
	for i := 2; i <= changes; i++ {
		require.Equal(t, i, next(t, s).Sequence)
	}
}

func TestACursorOutsideOfTheHistoryIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := b.process(t)
	site, object := events.AtSite(b.site), events.OfObject("object")
	for range 10 {
		require.NoError(t, b.append(t.Context(), f.client, "object", time.Now()))
	}
	s, err := f.Follow(t.Context(), site, 0, nil)
	require.NoError(t, err)
	for range 10 {
		next(t, s)
	}
	s.Close()
	_, err = f.db.Pool.Exec(t.Context(), `DELETE FROM transitions WHERE sequence <= 5`)
	require.NoError(t, err)
	for _, stream := range []events.Stream{site, object} {
		for after, ok := range map[int64]bool{0: false, 4: false, 5: true, 10: true, 11: false} {
			s, err := f.Follow(t.Context(), stream, after, nil)
			if ok {
				require.NoError(t, err)
				s.Close()
				continue
			}
			refused, known := fleet.AsError(err)
			require.True(t, known, "%v", err)
			require.Equal(t, "CURSOR_EXPIRED", refused.Reason)
			require.Equal(t, fleet.FailedPrecondition, refused.Code)
		}
	}
	_, err = object.Read(site.Cursor(3))
	refused, _ := fleet.AsError(err)
	require.Equal(t, "CURSOR_FOREIGN", refused.Reason)
	n, err := site.Read(site.Cursor(3))
	require.NoError(t, err)
	require.Equal(t, int64(3), n)
}
