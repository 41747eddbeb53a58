// Package jobs puts work that follows a change into the transaction that makes the
// change: the job exists if the change does. River keeps the jobs and runs them; who
// does what is the server's to say.
package jobs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"fleetgraph/internal/pgdb"
)

// Args are the arguments of a job, whose kind they name as noun.verb: ids, never
// objects.
type Args = river.JobArgs

// Options say how a job is queued; arguments with a method InsertOpts choose theirs.
type Options = river.InsertOpts

// Queue inserts jobs. It runs none.
type Queue struct{ client *river.Client[*sql.Tx] }

// NewQueue returns a queue.
func NewQueue(logger *slog.Logger) (*Queue, error) {
	client, err := river.NewClient(riverdatabasesql.New(nil), &river.Config{Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	return &Queue{client}, nil
}

// Insert adds jobs in the transaction of ctx; see pgdb.InTx. They are not made
// unique: one that runs already may have read what was before this transaction, so a
// job is written to find nothing left to do when it comes twice.
func (q *Queue) Insert(ctx context.Context, args ...Args) error {
	tx, ok := pgdb.SQLTx(ctx)
	if !ok {
		return errors.New("insert a job: not in a transaction")
	}
	params := make([]river.InsertManyParams, len(args))
	for i, a := range args {
		params[i] = river.InsertManyParams{Args: a}
	}
	if _, err := q.client.InsertManyFastTx(ctx, tx, params); err != nil {
		return fmt.Errorf("insert a job: %w", err)
	}
	return nil
}

// Holds tells, in the transaction of ctx, whether a job with these arguments is yet to
// end. It reads every such job of the kind.
func (q *Queue) Holds(ctx context.Context, args Args) (held bool, err error) {
	tx, ok := pgdb.SQLTx(ctx)
	if !ok {
		return false, errors.New("look for a job: not in a transaction")
	}
	wanted, err := json.Marshal(args)
	if err != nil {
		return false, fmt.Errorf("look for a job: %w", err)
	}
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM river_job WHERE kind = $1 AND args @> $2::jsonb
		AND state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))`, args.Kind(), string(wanted)).Scan(&held)
	if err != nil {
		return false, fmt.Errorf("look for a job: %w", err)
	}
	return held, nil
}
