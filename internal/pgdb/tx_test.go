package pgdb_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/ent"
	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/testdb"
)

const ownTransaction = "SELECT pg_current_xact_id()::text"

func inTx(t *testing.T, client *ent.Client, fn func(ctx context.Context, tx *sql.Tx) error) error {
	t.Helper()
	return pgdb.InTx(t.Context(), client, func(ctx context.Context, _ *ent.Client) error {
		tx, ok := pgdb.SQLTx(ctx)
		require.True(t, ok)
		return fn(ctx, tx)
	})
}

func TestSQLTxIsTheTransactionOfItsContext(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	client := ent.NewClient(ent.Driver(db.Driver()))
	_, ok := pgdb.SQLTx(t.Context())
	require.False(t, ok, "there is none")

	var ended *sql.Tx
	require.NoError(t, inTx(t, client, func(ctx context.Context, tx *sql.Tx) error {
		ended = tx
		var outer, inner, again string
		require.NoError(t, tx.QueryRowContext(ctx, ownTransaction).Scan(&outer))
		require.NoError(t, pgdb.InTx(ctx, client, func(ctx context.Context, _ *ent.Client) error {
			other, ok := pgdb.SQLTx(ctx)
			require.True(t, ok)
			return other.QueryRowContext(ctx, ownTransaction).Scan(&inner)
		}))
		require.NotEqual(t, outer, inner, "one within another is another")
		tx, _ = pgdb.SQLTx(ctx)
		require.NoError(t, tx.QueryRowContext(ctx, ownTransaction).Scan(&again))
		require.Equal(t, outer, again)
		return nil
	}))
	require.ErrorIs(t, ended.QueryRowContext(t.Context(), ownTransaction).Scan(new(string)), sql.ErrTxDone)
}

func TestEveryRunOfInTxHasATransactionOfItsOwn(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	_, err := db.Pool.Exec(t.Context(), "CREATE TABLE notes (transaction text)")
	require.NoError(t, err)
	seen := map[*sql.Tx]bool{}
	err = inTx(t, ent.NewClient(ent.Driver(db.Driver())), func(ctx context.Context, tx *sql.Tx) error {
		seen[tx] = true
		_, err := tx.ExecContext(ctx, "INSERT INTO notes SELECT pg_current_xact_id()::text")
		require.NoError(t, err)
		_, err = tx.ExecContext(ctx, "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'deadlock_detected'; END $$")
		return err
	})
	require.True(t, pgdb.Retryable(err), err)
	require.Len(t, seen, 3)
	var notes int
	require.NoError(t, db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM notes").Scan(&notes))
	require.Zero(t, notes)
}
