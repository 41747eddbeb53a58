// Command diff writes the next migration: what separates the schema that the
// existing files make from the one that ent's code expects.
//
//	go run ./migrate/diff NAME          write migrate/<next number>_NAME.sql
//	go run ./migrate/diff -rewrite NAME the same after deleting all files (before the first release only)
//	go run ./migrate/diff -hash         renew migrate/atlas.sum after a file was edited by hand
//
// It runs from the module root, on a PostgreSQL of its own that it throws away. It
// never touches another database.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	entmigrate "fleetgraph/ent/migrate"
	"fleetgraph/internal/pgembed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "migrate/diff:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("diff", flag.ContinueOnError)
	dir := flags.String("dir", "migrate", "directory of the migrations")
	rewrite := flags.Bool("rewrite", false, "delete all migrations first")
	hash := flags.Bool("hash", false, "renew atlas.sum and write no migration")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *hash {
		return rehash(*dir)
	}
	name := flags.Arg(0)
	if !regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`).MatchString(name) || flags.NArg() != 1 {
		return errors.New("usage: diff NAME, of lower-case letters, digits and underscores")
	}
	if *rewrite {
		if err := removeMigrations(*dir); err != nil {
			return err
		}
	}
	return withDatabase(ctx, func(db *sql.DB) error { return diff(ctx, db, *dir, name) })
}

// diff replays the files of dir on db, which must be empty, and writes what is
// missing. Columns and indexes that ent does not know are dropped: declare them in
// ent/schema.
func diff(ctx context.Context, db *sql.DB, dir, name string) error {
	migrations, err := sqltool.NewGooseDir(dir)
	if err != nil {
		return err
	}
	formatter, err := newFormatter(dir)
	if err != nil {
		return err
	}
	err = entmigrate.NewSchema(entsql.OpenDB(dialect.Postgres, db)).NamedDiff(ctx, name,
		schema.WithDir(migrations),
		schema.WithFormatter(formatter),
		schema.WithMigrationMode(schema.ModeReplay),
		schema.WithDialect(dialect.Postgres),
		schema.WithDropColumn(true),
		schema.WithDropIndex(true),
		schema.WithErrNoPlan(true),
	)
	if errors.Is(err, migrate.ErrNoPlan) {
		return errors.New("the migrations already make the schema that ent expects")
	}
	return err
}

func rehash(dir string) error {
	migrations, err := sqltool.NewGooseDir(dir)
	if err != nil {
		return err
	}
	sum, err := migrations.Checksum()
	if err != nil {
		return err
	}
	return migrate.WriteSumFile(migrations, sum)
}

func removeMigrations(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil {
		return err
	}
	for _, path := range append(old, filepath.Join(dir, migrate.HashFileName)) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// withDatabase runs fn with the empty database of a server that lives no longer.
func withDatabase(ctx context.Context, fn func(*sql.DB) error) (err error) {
	dir, err := os.MkdirTemp("", "fleetgraph-diff-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // when we are root, PostgreSQL's account passes through
		return err
	}
	server, err := pgembed.Start(ctx, pgembed.Config{DataDir: dir, NoFsync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	db, err := sql.Open("pgx", server.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(db)
}
