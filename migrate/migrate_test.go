package migrate

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"

	"fleetgraph/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m, ApplyURL)) }

func open(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestDriftIsEmpty(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	statements, err := Drift(t.Context(), db)
	require.NoError(t, err)
	require.Empty(t, statements, "the migrations do not make the schema that ent expects: write the missing one with `make migration NAME=…`")
}

func TestDriftSeesWhatIsTooMuchAndTooLittle(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	for _, statement := range []string{"ALTER TABLE sites DROP COLUMN description", "ALTER TABLE sites ADD COLUMN stray text", "CREATE INDEX stray ON sites (name)"} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	statements, err := Drift(t.Context(), db)
	require.NoError(t, err)
	require.Contains(t, statements, `ADD COLUMN "description"`)
	require.Contains(t, statements, `DROP COLUMN "stray"`)
	require.Contains(t, statements, `DROP INDEX "stray"`)
}

func TestFiveProcessesAtOnceApplyOnce(t *testing.T) {
	t.Parallel()
	url := testdb.Empty(t)
	var total, runs sync.Map
	var wait sync.WaitGroup
	for i := range 5 {
		db := open(t, url)
		wait.Go(func() {
			applied, err := Apply(context.WithoutCancel(t.Context()), db)
			total.Store(i, applied)
			runs.Store(i, err)
		})
	}
	wait.Wait()
	sum := 0
	for i := range 5 {
		err, _ := runs.Load(i)
		require.Nil(t, err)
		applied, _ := total.Load(i)
		sum += applied.(int)
	}
	names, err := fs.Glob(files, "*.sql")
	require.NoError(t, err)
	river, err := newRiver(open(t, url))
	require.NoError(t, err)
	require.Equal(t, len(names)+len(river.AllVersions()), sum)
}

func TestStatusBeforeAndAfter(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Empty(t))
	before, err := Status(t.Context(), db)
	require.NoError(t, err)
	require.Zero(t, before.Version)
	require.Positive(t, before.Latest)
	require.Positive(t, before.Pending)
	var tables int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables))
	require.Zero(t, tables, "a look at the status creates nothing")

	_, err = Apply(t.Context(), db)
	require.NoError(t, err)
	after, err := Status(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, State{Version: before.Latest, Latest: before.Latest}, after)
}

func TestApplyingAgainDoesNothing(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	applied, err := Apply(t.Context(), db)
	require.NoError(t, err)
	require.Zero(t, applied)
}

func TestStatusCountsTheMigrationsOfTheJobQueue(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Empty(t))
	river, err := newRiver(db)
	require.NoError(t, err)
	provider, err := newProvider(db)
	require.NoError(t, err)
	all := len(river.AllVersions())
	require.Positive(t, all)
	pending := func() int {
		state, err := Status(t.Context(), db)
		require.NoError(t, err)
		return state.Pending
	}
	require.Equal(t, all+len(provider.ListSources()), pending())

	_, err = provider.Up(t.Context())
	require.NoError(t, err)
	require.Equal(t, all, pending(), "a process may die between the two")

	// The database of a binary with an older River.
	_, err = river.Migrate(t.Context(), rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: all - 1})
	require.NoError(t, err)
	require.Equal(t, 1, pending())
	applied, err := Apply(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, 1, applied)
	require.Zero(t, pending())

	// The database of a binary with a newer one.
	_, err = db.ExecContext(t.Context(), "INSERT INTO river_migration (line, version) VALUES ('main', 9999)")
	require.NoError(t, err)
	require.Zero(t, pending())
	applied, err = Apply(t.Context(), db)
	require.NoError(t, err)
	require.Zero(t, applied)
}

func TestApplyGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	url := testdb.Empty(t)
	holder := open(t, url)
	conn, err := holder.Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), "SELECT pg_advisory_lock($1)", lockID)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := Apply(ctx, holder)
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.NoError(t, conn.Close())
}

func TestEveryFileBoundsItsLocksAndIsHashed(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(files, "*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		require.Contains(t, string(content), "lock_timeout", name)
		require.NotContains(t, strings.ToLower(string(content)), "+goose down", name)
	}
	dir, err := sqltool.NewGooseDir(".")
	require.NoError(t, err)
	require.NoError(t, migrate.Validate(dir), "a file was edited after it was written; if that was before its release: go run ./migrate/diff -hash")
}
