// Package jobs puts work that follows a change into the transaction that makes the
// change: the job exists if the change does. River keeps the jobs and runs them; who
// does what is the server's to say.
package jobs

import (
	"context"
	"database/sql"
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
