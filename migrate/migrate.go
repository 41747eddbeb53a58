// Package migrate holds the versioned schema of the database and brings a database
// to it. The files are written by ent's diff (see migrate/diff), applied by goose,
// forward only; an applied file is never edited.
//
// Invariants: all changes of the schema happen under one session lock, so any
// number of processes may start at once; the migrated database differs in nothing
// from what ent expects, which the drift test holds.
package migrate

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/pressly/goose/v3"
)

//go:embed *.sql
var files embed.FS

// State is how far the schema of a database is.
type State struct {
	// Version is the number of the last applied migration, 0 for an empty database.
	Version int64
	// Latest is the number of the last migration of this binary.
	Latest int64
	// Pending counts the migrations of this binary that the database lacks, those of
	// the job queue included. A database may also be ahead: Version > Latest with none
	// pending.
	Pending int
}

// Apply brings the database to the newest schema and returns how many migrations
// it ran. It waits for another process that is at it, asking once a second, for at
// most five minutes. It needs two connections of db at the same time.
func Apply(ctx context.Context, db *sql.DB) (applied int, err error) {
	err = locked(ctx, db, func(ctx context.Context) error {
		provider, err := newProvider(db)
		if err != nil {
			return err
		}
		results, err := provider.Up(ctx)
		applied = len(results)
		if err != nil {
			return fmt.Errorf("apply migrations: %w", err)
		}
		n, err := applyRiver(ctx, db)
		applied += n
		return err
	})
	return applied, err
}

// ApplyURL is Apply for the database of a URL, on connections that it closes.
func ApplyURL(ctx context.Context, url string) (err error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = Apply(ctx, db)
	return err
}

// Status reads how far the schema of the database is. It changes nothing and
// takes no lock.
func Status(ctx context.Context, db *sql.DB) (State, error) {
	applied, err := appliedVersions(ctx, db)
	if err != nil {
		return State{}, err
	}
	provider, err := newProvider(db)
	if err != nil {
		return State{}, err
	}
	var state State
	for version := range applied {
		state.Version = max(state.Version, version)
	}
	for _, source := range provider.ListSources() {
		state.Latest = max(state.Latest, source.Version)
		if !applied[source.Version] {
			state.Pending++
		}
	}
	pending, err := pendingRiver(ctx, db)
	state.Pending += pending
	return state, err
}

// appliedVersions reads goose's table by hand: goose itself would create it, which
// a readiness probe must not do.
func appliedVersions(ctx context.Context, db *sql.DB) (map[int64]bool, error) {
	var exists bool
	if err := db.QueryRowContext(ctx, "SELECT to_regclass('"+goose.DefaultTablename+"') IS NOT NULL").Scan(&exists); err != nil {
		return nil, fmt.Errorf("look for the schema version: %w", err)
	}
	if !exists {
		return map[int64]bool{}, nil
	}
	return versions(ctx, db, "SELECT version_id FROM "+goose.DefaultTablename+" WHERE is_applied AND version_id > 0")
}

// versions is the set of numbers that a query finds.
func versions(ctx context.Context, db *sql.DB, query string) (map[int64]bool, error) {
	applied := map[int64]bool{}
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read the schema version: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return nil, fmt.Errorf("read the schema version: %w", err)
		}
		applied[version] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the schema version: %w", err)
	}
	return applied, nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}

// unlockTimeout bounds the release of the lock after the work, which happens even
// when the caller's context has ended.
const unlockTimeout = 10 * time.Second
