// Package testdb gives each test a database of its own, with all migrations, on a
// real PostgreSQL.
//
// A test process gets its own embedded server, without fsync, when its first test
// asks for a database; so a package whose tests need none pays nothing, and no
// process depends on another's. Migrations run once, into a template; a test's
// database is a copy of its files. With FLEETGRAPH_TEST_DATABASE_URL set, the server
// of that URL serves, whose role must be allowed to create databases.
//
// Invariants: nothing outlives the test process, however it ends (on Linux; where
// the system has no parent-death signal, a killed process leaves its server to the
// next run); what a killed process leaves on disk is removed by a later one; a
// package whose tests leak goroutines fails.
//
//	func TestMain(m *testing.M) { os.Exit(testdb.Main(m, migrate.Apply)) }
//
//	func TestX(t *testing.T) {
//		t.Parallel()
//		db, err := pgdb.Open(t.Context(), testdb.New(t), nil)
//		…
//	}
package testdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// externalURL names the variable with the URL of a server to use.
const externalURL = "FLEETGRAPH_TEST_DATABASE_URL"

const (
	// databaseTimeout bounds the making or dropping of one database.
	databaseTimeout = time.Minute
	// shutdownTimeout bounds the fast shutdown at the end.
	shutdownTimeout = 20 * time.Second
)

// Migrate brings the empty database of a URL to the current schema. It leaves no
// connection open, or the database cannot serve as a template.
type Migrate func(ctx context.Context, url string) error

// current is the server of this process. It is a variable because the testing
// package offers no way to hand a value from TestMain to a test.
var current atomic.Pointer[server]

// Main runs the tests of a package and returns the exit code. It stops the server
// at the end and looks for leaked goroutines if all tests passed. migrate may be
// nil, for empty databases.
func Main(m *testing.M, migrate Migrate) int {
	s := &server{migrate: migrate}
	if !current.CompareAndSwap(nil, s) {
		return report(errors.New("testdb.Main runs once a process"))
	}
	code := m.Run()
	if err := s.close(); err != nil {
		code = max(code, report(err))
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			code = report(err)
		}
	}
	return code
}

func report(err error) int {
	fmt.Fprintln(os.Stderr, "testdb:", err)
	return 1
}

// New makes a database from the template and returns its URL, as a role that owns
// it. The database is dropped, with whatever is still connected, after the test.
func New(tb testing.TB) string {
	tb.Helper()
	return create(tb, (*server).newDatabase)
}

// Empty is New without the migrations, for tests of these.
func Empty(tb testing.TB) string {
	tb.Helper()
	return create(tb, (*server).emptyDatabase)
}

// create has a context of its own, for that of the test has ended in its cleanup.
func create(tb testing.TB, database func(*server, context.Context) (name, url string, err error)) string {
	tb.Helper()
	s := running(tb)
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	name, url, err := database(s, ctx)
	if err != nil {
		tb.Fatalf("new database: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
		defer cancel()
		if err := s.dropDatabase(ctx, name); err != nil {
			tb.Errorf("drop the database: %v", err)
		}
	})
	return url
}

// Server returns the URL of the maintenance database: as superuser on the embedded
// server, as the role given on an external one. Other tests use the server too.
func Server(tb testing.TB) string {
	tb.Helper()
	return running(tb).adminURL
}

// IgnoreServer are the options for a goleak check inside a test: they leave out the
// embedded server, which lives as long as the process.
func IgnoreServer() []goleak.Option {
	const child = "fleetgraph/internal/pgembed.(*child)."
	return []goleak.Option{
		goleak.IgnoreAnyFunction(child + "supervise"),
		goleak.IgnoreAnyFunction(child + "readLog"),
	}
}

func running(tb testing.TB) *server {
	tb.Helper()
	s := current.Load()
	if s == nil {
		tb.Fatal("TestMain must run testdb.Main")
	}
	if err := s.start(); err != nil {
		tb.Fatalf("test server: %v", err)
	}
	return s
}

// onServer runs one statement on a connection of its own: a pool would look like a
// leak to the tests that check for goroutines.
func onServer(ctx context.Context, url, statement string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
