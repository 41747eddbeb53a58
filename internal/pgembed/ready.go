package pgembed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// readyPoll is short: a start takes a few hundred milliseconds.
const readyPoll = 20 * time.Millisecond

// sqlStateStarting is cannot_connect_now: starting up, shutting down, recovering.
const sqlStateStarting = "57P03"

// awaitReady returns when the superuser can connect and the database is there.
func (s *Server) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.AdminURL())
		if err == nil {
			return errors.Join(s.ensureDatabase(ctx, conn), conn.Close(ctx))
		}
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code != sqlStateStarting {
			return fmt.Errorf("PostgreSQL refuses the superuser: %s (SQLSTATE %s)", refused.Message, refused.Code)
		}
		select {
		case <-s.child.done:
			return fmt.Errorf("PostgreSQL ended during its start: %w; its last lines:\n%s",
				exitError(s.child.err), s.child.log.lastLines())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not accept connections yet: %w; its last lines:\n%s",
				ctx.Err(), s.child.log.lastLines())
		case <-ticker.C:
		}
	}
}

// ensureDatabase makes the owner and the database unless they exist; a crash may
// have come between initdb and this, or between its own steps.
func (s *Server) ensureDatabase(ctx context.Context, conn *pgx.Conn) error {
	for _, step := range []struct{ exists, create string }{
		{
			"SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = '" + ownerRole + "')",
			"CREATE ROLE " + ownerRole + " LOGIN CREATEDB PASSWORD '" + strings.ReplaceAll(s.credential.owner, "'", "''") + "'",
		},
		{
			"SELECT EXISTS (SELECT FROM pg_database WHERE datname = '" + databaseName + "')",
			"CREATE DATABASE " + databaseName + " OWNER " + ownerRole,
		},
	} {
		var exists bool
		if err := conn.QueryRow(ctx, step.exists).Scan(&exists); err != nil {
			return fmt.Errorf("look for the database: %w", err)
		}
		if exists {
			continue
		}
		if _, err := conn.Exec(ctx, step.create); err != nil {
			return fmt.Errorf("create the database: %w", err)
		}
	}
	return nil
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}
