package pgdb

import (
	"context"
	"database/sql"
	"fmt"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// Driver is ent's driver on db. It lets InTx reach the transaction that ent opens,
// so that what does not go through ent can take part in it.
func (db *DB) Driver() dialect.Driver {
	return recording{entsql.OpenDB(dialect.Postgres, db.SQL), db.committed}
}

type recording struct {
	*entsql.Driver
	committed chan<- struct{}
}

// Tx opens a transaction, and notes it where InTx wants it.
func (d recording) Tx(ctx context.Context) (dialect.Tx, error) {
	tx, err := d.Driver.Tx(ctx)
	if err != nil {
		return nil, err
	}
	if holder, ok := ctx.Value(holderKey{}).(*holder); ok {
		opened, ok := tx.(*entsql.Tx)
		if !ok {
			return nil, fmt.Errorf("a transaction of %T", tx)
		}
		holder.tx, _ = opened.ExecQuerier.(*sql.Tx)
	}
	return telling{tx, d.committed}, nil
}

// telling is a transaction that tells when it has been committed.
type telling struct {
	dialect.Tx
	committed chan<- struct{}
}

// Commit ends the transaction.
func (t telling) Commit() error {
	if err := t.Tx.Commit(); err != nil {
		return err
	}
	select {
	case t.committed <- struct{}{}:
	default: // told already
	}
	return nil
}

type holderKey struct{}

// holder is the transaction of one run of InTx.
type holder struct{ tx *sql.Tx }

// SQLTx is the transaction that the context of InTx's function belongs to; ok is
// false outside of one.
func SQLTx(ctx context.Context) (tx *sql.Tx, ok bool) {
	h, ok := ctx.Value(holderKey{}).(*holder)
	if !ok || h.tx == nil {
		return nil, false
	}
	return h.tx, true
}
