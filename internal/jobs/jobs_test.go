package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/ent"
	"fleetgraph/internal/jobs"
	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/testdb"
	"fleetgraph/migrate"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m, migrate.ApplyURL)) }

// paint is a job that nobody does.
type paint struct {
	SiteID string `json:"site_id"`
}

func (paint) Kind() string { return "site.paint" }

type bundle struct {
	db     *pgdb.DB
	client *ent.Client
	queue  *jobs.Queue
}

func setup(t *testing.T) bundle {
	t.Helper()
	db, err := pgdb.Open(t.Context(), testdb.New(t), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	queue, err := jobs.NewQueue(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return bundle{db, ent.NewClient(ent.Driver(db.Driver())), queue}
}

func createSite(ctx context.Context, tx *ent.Client, name string) error {
	return tx.Site.Create().SetName(name).SetCreatedAt(time.Now()).Exec(ctx)
}

// stored lists the arguments of the jobs that exist, and how many sites there are.
func (b bundle) stored(t *testing.T) (args []string, sites int) {
	t.Helper()
	err := b.db.Pool.QueryRow(t.Context(), `SELECT
		(SELECT coalesce(array_agg(args->>'site_id' ORDER BY id), '{}') FROM river_job WHERE kind = 'site.paint' AND state = 'available'),
		(SELECT count(*) FROM sites)`).Scan(&args, &sites)
	require.NoError(t, err)
	return args, sites
}

func TestAJobExistsIfAndOnlyIfItsTransactionCommits(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, end := range map[string]func() error{
		"committed": func() error { return nil },
		"refused":   func() error { return refused },
		"panicked":  func() error { panic(refused) }, //nolint:forbidigo // what is tested
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			run := func() (err error) {
				defer func() {
					if value := recover(); value != nil {
						err = refused
					}
				}()
				return pgdb.InTx(t.Context(), b.client, func(ctx context.Context, tx *ent.Client) error {
					require.NoError(t, createSite(ctx, tx, "here"))
					require.NoError(t, b.queue.Insert(ctx, paint{"a"}, paint{"b"}))
					args, sites := b.stored(t) //nolint:contextcheck // as another sees it, from outside of the transaction
					require.Empty(t, args, "nobody sees a job before its transaction has committed")
					require.Zero(t, sites)
					return end()
				})
			}
			err := run()
			args, sites := b.stored(t)
			if name == "committed" {
				require.NoError(t, err)
				require.Equal(t, []string{"a", "b"}, args)
				require.Equal(t, 1, sites)
				return
			}
			require.ErrorIs(t, err, refused)
			require.Empty(t, args)
			require.Zero(t, sites)
		})
	}
}

func TestATransactionThatIsRunAgainInsertsItsJobsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	runs := 0
	err := pgdb.InTx(t.Context(), b.client, func(ctx context.Context, tx *ent.Client) error {
		runs++
		if err := createSite(ctx, tx, "here"); err != nil {
			return err
		}
		if err := b.queue.Insert(ctx, paint{"a"}); err != nil {
			return err
		}
		if runs > 1 {
			return nil
		}
		raw, ok := pgdb.SQLTx(ctx)
		require.True(t, ok)
		_, err := raw.ExecContext(ctx, "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'serialization_failure'; END $$")
		return err
	})
	require.NoError(t, err)
	require.Equal(t, 2, runs)
	args, sites := b.stored(t)
	require.Equal(t, []string{"a"}, args)
	require.Equal(t, 1, sites)
}

func TestAJobNeedsATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.ErrorContains(t, b.queue.Insert(t.Context(), paint{"a"}), "not in a transaction")
	var ended context.Context
	require.NoError(t, pgdb.InTx(t.Context(), b.client, func(ctx context.Context, _ *ent.Client) error {
		ended = ctx
		return nil
	}))
	require.Error(t, b.queue.Insert(ended, paint{"a"}))
	args, _ := b.stored(t)
	require.Empty(t, args)
}

func TestTheSameJobMayComeTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 2 {
		require.NoError(t, pgdb.InTx(t.Context(), b.client, func(ctx context.Context, _ *ent.Client) error {
			return b.queue.Insert(ctx, paint{"a"})
		}))
	}
	args, _ := b.stored(t)
	require.Equal(t, []string{"a", "a"}, args, "one that runs already may have read what was before")
}
