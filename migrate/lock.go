package migrate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3/lock"
)

const (
	// lockID is the key of our advisory lock: "fleetgra" in ASCII. It is not goose's
	// own, since it covers more than goose.
	lockID int64 = 0x666c656574677261
	// The lock is polled, never waited for: a session that waits for a lock inside
	// the database has a snapshot, and CREATE INDEX CONCURRENTLY of the holder waits
	// for that snapshot to end.
	lockPollSeconds = 1
	lockPolls       = 300
)

// locked runs fn while this process alone may change the schema.
func locked(ctx context.Context, db *sql.DB, fn func(context.Context) error) (err error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(lockID), lock.WithLockTimeout(lockPollSeconds, lockPolls))
	if err != nil {
		return fmt.Errorf("migration lock: %w", err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("migration lock: %w", err)
	}
	defer func() { err = errors.Join(err, ignoreDone(conn.Close())) }()
	if err := locker.SessionLock(ctx, conn); err != nil {
		return fmt.Errorf("migration lock: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		if unlock := locker.SessionUnlock(ctx, conn); unlock != nil {
			// The lock lives as long as its session: end that rather than hand a
			// locked connection back to the pool.
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
			err = errors.Join(err, fmt.Errorf("migration unlock: %w", unlock))
		}
	}()
	return fn(ctx)
}

// ignoreDone drops the error of closing a connection that was discarded before.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) {
		return nil
	}
	return err
}
