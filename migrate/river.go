package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"

	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
)

// applyRiver brings the tables of the job queue to the version of this binary's
// River and returns how many migrations it ran. The caller holds the lock.
func applyRiver(ctx context.Context, db *sql.DB) (applied int, err error) {
	migrator, err := newRiver(db)
	if err != nil {
		return 0, err
	}
	result, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return 0, fmt.Errorf("apply migrations of the job queue: %w", err)
	}
	return len(result.Versions), nil
}

func newRiver(db *sql.DB) (*rivermigrate.Migrator[*sql.Tx], error) {
	migrator, err := rivermigrate.New(riverdatabasesql.New(db), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("read the migrations of the job queue: %w", err)
	}
	return migrator, nil
}

// pendingRiver counts the migrations of the job queue that the database lacks. It
// creates nothing.
func pendingRiver(ctx context.Context, db *sql.DB) (int, error) {
	migrator, err := newRiver(db)
	if err != nil {
		return 0, err
	}
	all := migrator.AllVersions()
	var exists bool
	if err := db.QueryRowContext(ctx, "SELECT to_regclass('river_migration') IS NOT NULL").Scan(&exists); err != nil {
		return 0, fmt.Errorf("look for the version of the job queue: %w", err)
	}
	if !exists {
		return len(all), nil
	}
	applied, err := versions(ctx, db, "SELECT version FROM river_migration WHERE line = 'main'")
	if err != nil {
		return 0, err
	}
	pending := 0
	for _, m := range all {
		if !applied[int64(m.Version)] {
			pending++
		}
	}
	return pending, nil
}
