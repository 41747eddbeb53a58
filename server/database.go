package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/pgembed"
	"fleetgraph/migrate"
)

// embeddedStopTimeout bounds the fast shutdown of the server's own Postgres, which
// writes a checkpoint.
const embeddedStopTimeout = 30 * time.Second

// database is the connection pool, and the Postgres behind it where that is ours.
type database struct {
	*pgdb.DB
	embedded *pgembed.Server // nil with a database URL
}

// openDatabase starts Postgres where no URL is given, connects, and brings the
// schema up to date.
func openDatabase(ctx context.Context, cfg Config) (db *database, err error) {
	db = &database{}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.close(ctx))
			db = nil
		}
	}()
	url := cfg.DatabaseURL
	if url == "" {
		if db.embedded, err = startEmbedded(ctx, cfg); err != nil {
			return db, err
		}
		url = db.embedded.URL()
	}
	if db.DB, err = pgdb.Open(ctx, url, cfg.Tracer); err != nil {
		return db, err
	}
	applied, err := migrate.Apply(ctx, db.SQL)
	if err != nil {
		return db, err
	}
	if applied > 0 {
		cfg.Logger.InfoContext(ctx, "database migrated", slog.Int("applied", applied))
	}
	return db, nil
}

func startEmbedded(ctx context.Context, cfg Config) (*pgembed.Server, error) {
	server, err := pgembed.Start(ctx, pgembed.Config{DataDir: cfg.DataDir, Logger: cfg.Logger})
	switch {
	case errors.Is(err, pgembed.ErrLocked):
		return nil, fmt.Errorf("%s: %w; stop that one, or choose another with --data-dir", cfg.DataDir, err)
	case errors.Is(err, pgembed.ErrNotFound):
		return nil, fmt.Errorf("%w; or use an existing server with --database-url", err)
	case err != nil:
		return nil, err
	}
	return server, nil
}

// down is closed when the server's own Postgres has ended; it is nil, which never
// is ready, with another's.
func (db *database) down() <-chan struct{} {
	if db.embedded == nil {
		return nil
	}
	return db.embedded.Done()
}

// close ends the connections and then, last of all, Postgres. It ignores that ctx
// has ended.
func (db *database) close(ctx context.Context) error {
	var err error
	if db.DB != nil {
		err = db.DB.Close()
	}
	if db.embedded != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), embeddedStopTimeout)
		defer cancel()
		err = errors.Join(err, db.embedded.Stop(ctx))
	}
	return err
}
