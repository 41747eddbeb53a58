package pgdb

import (
	"context"
	"errors"
	"fmt"

	"fleetgraph/ent"
)

// txAttempts bounds how often InTx runs a function whose transaction Postgres
// broke off as a deadlock or a serialization failure.
const txAttempts = 3

// InTx runs fn in one transaction of client and commits it when fn returns nil;
// any other outcome, a panic included, rolls it back. It is the one place that
// begins a transaction. Where Postgres broke the transaction off (deadlock,
// serialization failure) fn runs again, so it must have no effect but through tx and
// SQLTx(ctx).
// Entities that fn read are dead afterwards: return ids, and read again.
func InTx(ctx context.Context, client *ent.Client, fn func(ctx context.Context, tx *ent.Client) error) error {
	var err error
	for range txAttempts {
		if err = inTxOnce(ctx, client, fn); !Retryable(err) {
			return err
		}
	}
	return err
}

func inTxOnce(ctx context.Context, client *ent.Client, fn func(ctx context.Context, tx *ent.Client) error) (err error) {
	ctx = context.WithValue(ctx, holderKey{}, &holder{})
	tx, err := client.Tx(ctx)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	committed := false
	defer func() {
		if !committed {
			if rollback := tx.Rollback(); rollback != nil && err != nil {
				err = errors.Join(err, fmt.Errorf("roll back: %w", rollback))
			}
		}
	}()
	if err := fn(ctx, tx.Client()); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit transaction: %w", err)
	}
	committed = true
	return nil
}
