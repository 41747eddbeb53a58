package testdb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// hangVariable makes TestHang, in a process of its own, wait to be killed.
const hangVariable = "TESTDB_TEST_HANG"

func TestMain(m *testing.M) {
	os.Exit(Main(m, func(ctx context.Context, url string) error {
		return onServer(ctx, url, "CREATE TABLE migrated (id bigint PRIMARY KEY)")
	}))
}

func open(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func rows(t *testing.T, conn *pgx.Conn, query string, args ...any) int {
	t.Helper()
	var count int
	require.NoError(t, conn.QueryRow(t.Context(), query, args...).Scan(&count))
	return count
}

func TestEachTestHasItsOwnMigratedDatabase(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprintf("database %d", i), func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			conn := open(t, New(t))
			t.Logf("new database and connection: %s", time.Since(begin).Round(time.Millisecond))
			require.Zero(t, rows(t, conn, "SELECT count(*) FROM migrated"))
			_, err := conn.Exec(t.Context(), "INSERT INTO migrated VALUES (1)")
			require.NoError(t, err)
		})
	}
}

func TestADatabaseIsDroppedAfterItsTestEvenWhileConnected(t *testing.T) { //nolint:tparallel // what follows looks at what the subtest left
	t.Parallel()
	var name string
	var left *pgx.Conn
	t.Run("a test that leaves its connection open", func(t *testing.T) {
		address := New(t)
		parsed, err := url.Parse(address)
		require.NoError(t, err)
		name = strings.TrimPrefix(parsed.Path, "/")
		left, err = pgx.Connect(t.Context(), address)
		require.NoError(t, err)
	})
	require.Error(t, left.Ping(t.Context()))
	require.NoError(t, left.Close(t.Context()))
	require.Zero(t, rows(t, open(t, Server(t)), "SELECT count(*) FROM pg_database WHERE datname = $1", name))
}

func TestEmptyHasNoMigrations(t *testing.T) {
	t.Parallel()
	conn := open(t, Empty(t))
	require.Zero(t, rows(t, conn, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"))
}

func TestServerIsTheMaintenanceDatabaseOfASuperuser(t *testing.T) {
	t.Parallel()
	if os.Getenv(externalURL) != "" {
		t.Skip("an external server's role is what it is")
	}
	conn := open(t, Server(t))
	require.Equal(t, 1, rows(t, conn, "SELECT count(*) FROM pg_roles WHERE rolname = current_user AND rolsuper"))
}

func TestMainRunsOnceAProcess(t *testing.T) {
	t.Parallel()
	require.Equal(t, 1, Main(nil, nil))
}

func TestTheServerIsNoLeakOfTheTestsThatUseIt(t *testing.T) { //nolint:paralleltest // it looks at all goroutines
	before := goleak.IgnoreCurrent()
	Server(t)
	require.NoError(t, goleak.Find(append(IgnoreServer(), before)...))
}

func TestAFailedMigrationFailsTheTestsThatNeedIt(t *testing.T) {
	t.Parallel()
	Server(t)
	running := current.Load()
	refused := errors.New("refused")
	broken := &server{
		ownerURL: running.ownerURL,
		migrate:  func(context.Context, string) error { return refused },
	}
	require.ErrorIs(t, broken.makeTemplate(t.Context()), refused)
	require.NoError(t, broken.close())
}

func TestAURLThatIsNoneIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"host=db password=hidden", "postgres://u:hidden@h:port/x", "mysql://u:hidden@h/x"} {
		_, err := withDatabase(address, "x")
		require.ErrorContains(t, err, externalURL)
		require.NotContains(t, err.Error(), "hidden")
	}
}

// TestHang is the body of the process that the next test kills.
func TestHang(t *testing.T) { //nolint:paralleltest // it never runs with others
	if os.Getenv(hangVariable) == "" {
		t.Skip("runs in a process of its own")
	}
	fmt.Printf("hanging in %s\n", current.Load().dirOf(t))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func (s *server) dirOf(t *testing.T) string {
	t.Helper()
	New(t)
	return s.dir
}

func TestNothingOutlivesAKilledTestProcess(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(parent), 0o711)) //nolint:gosec // PostgreSQL's account passes through
	temp := filepath.Join(parent, strings.Repeat("x", 80))    // too long for a socket
	require.NoError(t, os.Mkdir(temp, 0o711))
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHang$", "-test.v")
	process.Env = append(os.Environ(), hangVariable+"=1", externalURL+"=", "TMPDIR="+temp)
	_, err := process.StdinPipe()
	require.NoError(t, err)
	output, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	dir := ""
	for lines := bufio.NewScanner(output); dir == "" && lines.Scan(); {
		_, dir, _ = strings.Cut(lines.Text(), "hanging in ")
	}
	require.DirExists(t, dir)
	socket, err := os.Readlink(filepath.Join(dir, "postgres.socket"))
	require.NoError(t, err)
	require.NoError(t, sweep(temp, time.Now().Add(time.Hour)))
	require.DirExists(t, dir, "a live process keeps its directory")

	require.NoError(t, process.Process.Kill())
	require.Error(t, process.Wait())
	require.Eventually(t, func() bool { // PostgreSQL removes it as the last thing
		_, err := os.Stat(filepath.Join(dir, "postgres", "postmaster.pid"))
		return os.IsNotExist(err)
	}, 20*time.Second, 20*time.Millisecond)
	require.NoError(t, sweep(temp, time.Now()))
	require.DirExists(t, dir, "too young")
	require.NoError(t, sweep(temp, time.Now().Add(time.Hour)))
	require.NoDirExists(t, dir)
	require.NoDirExists(t, socket)
}
