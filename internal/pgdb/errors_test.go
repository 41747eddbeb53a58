package pgdb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/testdb"
)

const constrained = `
	CREATE TABLE parents (id int PRIMARY KEY);
	CREATE TABLE children (
		id     int CONSTRAINT children_key UNIQUE,
		parent int CONSTRAINT children_parent REFERENCES parents,
		age    int CONSTRAINT children_age CHECK (age >= 0),
		word   text NOT NULL DEFAULT '',
		span   int4range,
		CONSTRAINT children_span EXCLUDE USING gist (span WITH &&));
	INSERT INTO children (id, span) VALUES (1, '[1,5]');`

func TestConstraintNamesWhatWasViolated(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	_, err := db.Pool.Exec(t.Context(), constrained)
	require.NoError(t, err)
	for statement, want := range map[string]struct {
		name, code string
		kind       pgdb.Kind
	}{
		"INSERT INTO children (id) VALUES (1)":                {"children_key", "23505", pgdb.KindUnique},
		"INSERT INTO children (parent) VALUES (7)":            {"children_parent", "23503", pgdb.KindForeignKey},
		"INSERT INTO children (age) VALUES (-1)":              {"children_age", "23514", pgdb.KindCheck},
		"INSERT INTO children (id, word) VALUES (2, NULL)":    {"word", "23502", pgdb.KindNotNull},
		"INSERT INTO children (id, span) VALUES (3, '[5,6]')": {"children_span", "23P01", pgdb.KindExclusion},
		"SELECT 1/0": {"", "22012", pgdb.KindNone},
	} {
		_, poolErr := db.Pool.Exec(t.Context(), statement)
		_, sqlErr := db.SQL.ExecContext(t.Context(), statement)
		for _, err := range []error{poolErr, fmt.Errorf("wrapped: %w", sqlErr)} {
			name, kind := pgdb.Constraint(err)
			require.Equal(t, want.name, name, statement)
			require.Equal(t, want.kind, kind, statement)
			require.Equal(t, want.code, pgdb.ErrorCode(err), statement)
			require.False(t, pgdb.Retryable(err), statement)
			require.False(t, pgdb.Unavailable(err), statement)
		}
	}
}

func TestOtherErrorsHaveNoKind(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, io.EOF, pgx.ErrNoRows, context.Canceled} {
		name, kind := pgdb.Constraint(err)
		require.Empty(t, name)
		require.Equal(t, pgdb.KindNone, kind)
		require.Empty(t, pgdb.ErrorCode(err))
		require.False(t, pgdb.Retryable(err))
		require.False(t, pgdb.Unavailable(err))
	}
}

func TestTextWithNulIsUnstorable(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	_, err := db.Pool.Exec(t.Context(), "SELECT $1::text", "a\x00b")
	require.True(t, pgdb.Unstorable(err), err)
	_, err = db.Pool.Exec(t.Context(), "SELECT 1/0")
	require.False(t, pgdb.Unstorable(err), err)
	require.False(t, pgdb.Unstorable(nil))
}

func begin(t *testing.T, pool *pgxpool.Pool, isolation pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: isolation})
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func exec(t *testing.T, tx pgx.Tx, statement string) {
	t.Helper()
	_, err := tx.Exec(t.Context(), statement)
	require.NoError(t, err)
}

func TestALostRaceUnderSnapshotIsolationIsRetryable(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	_, err := db.Pool.Exec(t.Context(), "CREATE TABLE counters AS SELECT 1 AS id, 0 AS n")
	require.NoError(t, err)
	loser := begin(t, db.Pool, pgx.RepeatableRead)
	exec(t, loser, "SELECT * FROM counters")
	_, err = db.Pool.Exec(t.Context(), "UPDATE counters SET n = 1")
	require.NoError(t, err)
	_, err = loser.Exec(t.Context(), "UPDATE counters SET n = 2")
	_, kind := pgdb.Constraint(err)
	require.Equal(t, pgdb.KindSerialization, kind)
	require.True(t, pgdb.Retryable(err))
}

func TestTheVictimOfADeadlockIsRetryable(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	_, err := db.Pool.Exec(t.Context(), "CREATE TABLE counters AS SELECT id, 0 AS n FROM generate_series(1, 2) AS id")
	require.NoError(t, err)
	one, two := begin(t, db.Pool, pgx.ReadCommitted), begin(t, db.Pool, pgx.ReadCommitted)
	exec(t, one, "UPDATE counters SET n = 1 WHERE id = 1")
	exec(t, two, "UPDATE counters SET n = 1 WHERE id = 2")
	crossed := make(chan error, 1)
	ctx := t.Context()
	go func() {
		_, err := one.Exec(ctx, "UPDATE counters SET n = 1 WHERE id = 2")
		crossed <- err
	}()
	_, secondErr := two.Exec(ctx, "UPDATE counters SET n = 1 WHERE id = 1")
	if secondErr != nil {
		require.NoError(t, two.Rollback(ctx))
	} else {
		require.NoError(t, two.Commit(ctx))
	}
	victim := errors.Join(secondErr, <-crossed)
	_, kind := pgdb.Constraint(victim)
	require.Equal(t, pgdb.KindDeadlock, kind)
	require.True(t, pgdb.Retryable(victim))
}

func TestACutConnectionAndAnAbsentServerAreUnavailable(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	_, err := db.Pool.Exec(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())")
	require.True(t, pgdb.Unavailable(err), err)
	_, err = pgdb.Open(t.Context(), "postgres://u:p@127.0.0.1:1/x", nil)
	require.True(t, pgdb.Unavailable(err), err)

	connection, err := db.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer connection.Release()
	require.NoError(t, connection.Conn().Close(t.Context()))
	_, err = connection.Exec(t.Context(), "SELECT 1")
	require.True(t, pgdb.Unavailable(err), err)
}
