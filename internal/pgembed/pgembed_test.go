package pgembed

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestFirstStartMakesAClosedUTF8DatabaseOfAnOrdinaryOwner(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	server := startServer(t, Config{DataDir: dir})
	conn := connect(t, server.URL())

	require.Equal(t, "fleetgraph fleetgraph", queryText(t, conn, "SELECT current_database() || ' ' || current_user"))
	require.Equal(t, "UTF8 C", queryText(t, conn,
		"SELECT pg_encoding_to_char(encoding) || ' ' || datcollate FROM pg_database WHERE datname = current_database()"))
	require.Equal(t, "false true", queryText(t, conn,
		"SELECT rolsuper || ' ' || rolcreatedb FROM pg_roles WHERE rolname = current_user"))
	require.Equal(t, "postgres true", queryText(t, connect(t, server.AdminURL()),
		"SELECT current_user || ' ' || rolsuper FROM pg_roles WHERE rolname = current_user"))
	require.Empty(t, queryText(t, conn, "SHOW listen_addresses"))
	for setting, want := range map[string]string{
		"max_connections": "100", "shared_buffers": "128MB", "data_checksums": "on", "fsync": "off", "TimeZone": "UTC",
	} {
		require.Equal(t, want, queryText(t, conn, "SHOW "+setting), setting)
	}
	for path, mode := range map[string]os.FileMode{"postgres": 0o700 | os.ModeDir, "postgres.pgpass": 0o600, "lock": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), path)
	}
	require.NoFileExists(t, filepath.Join(dir, "postgres.initdb-password"))
}

func TestAWrongPasswordIsRefused(t *testing.T) {
	t.Parallel()
	server := startServer(t, Config{DataDir: tempDataDir(t)})
	address, err := url.Parse(server.URL())
	require.NoError(t, err)
	address.User = url.UserPassword(ownerRole, "guess")
	_, err = pgx.Connect(t.Context(), address.String())
	require.ErrorContains(t, err, "28P01")
}

func TestSecondStartFindsTheDataAtTheSameURL(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	first := startServer(t, Config{DataDir: dir})
	keepTable(t, connect(t, first.URL()))
	require.NoError(t, first.Stop(t.Context()))
	require.NoError(t, first.Stop(t.Context()), "a second Stop")
	select {
	case <-first.Done():
	default:
		require.Fail(t, "Stop returned before the end of the process")
	}

	second := startServer(t, Config{DataDir: dir})
	require.Equal(t, first.URL(), second.URL())
	require.Equal(t, "here", queryText(t, connect(t, second.URL()), "SELECT word FROM kept"))
}

func TestSecondServerOnALiveDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	server := startServer(t, Config{DataDir: dir})
	_, err := Start(t.Context(), Config{DataDir: dir})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, filepath.Join(resolved(t, dir), "lock"))
	require.Equal(t, "1", queryText(t, connect(t, server.URL()), "SELECT '1'"), "the first still serves")
}

func TestStopWithoutTimeShutsDownAtOnceAndTheNextStartRecovers(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	server, err := Start(t.Context(), Config{DataDir: dir, NoFsync: true})
	require.NoError(t, err)
	keepTable(t, connect(t, server.URL()))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Stop(ended); err != nil { // the fast shutdown may win
		require.ErrorIs(t, err, context.Canceled)
	}
	again := startServer(t, Config{DataDir: dir})
	require.Equal(t, "here", queryText(t, connect(t, again.URL()), "SELECT word FROM kept"))
}

func TestDoneTellsOfAServerThatDied(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	server := startServer(t, Config{DataDir: dir})
	kill9(t, postmasterPID(t, dir))
	<-server.Done()
}

func TestSocketPathTooLongOrAmbiguousUsesAPrivateTemporaryDirectory(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{"long": strings.Repeat("x", 100), "list separator": "a,b c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, Config{DataDir: filepath.Join(tempDataDir(t), part)})
			require.NotEmpty(t, server.socket.link)
			info, err := os.Stat(server.socket.path)
			require.NoError(t, err)
			require.Equal(t, 0o700|os.ModeDir, info.Mode())
			require.Equal(t, "1", queryText(t, connect(t, server.URL()), "SELECT '1'"))
			require.NoError(t, server.Stop(t.Context()))
			require.NoDirExists(t, server.socket.path)
		})
	}
}

func TestEarlyExitCarriesTheLastLogLines(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	cfg := Config{DataDir: dir, NoFsync: true, Settings: map[string]string{"shared_buffers": "plenty"}}
	_, err := Start(t.Context(), cfg)
	require.ErrorContains(t, err, `invalid value for parameter "shared_buffers": "plenty"`)
	startServer(t, Config{DataDir: dir}) // the lock is free and the cluster whole
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, Config{DataDir: tempDataDir(t)})
	require.ErrorIs(t, err, context.Canceled)
}

func TestStartAfterABrokenFirstStartBeginsAnew(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "postgres.new", "base"), 0o711))
	require.NoError(t, os.Chmod(dir, 0o711)) //nolint:gosec // the account passes through
	startServer(t, Config{DataDir: dir})
	require.NoDirExists(t, filepath.Join(dir, "postgres.new"))
}

func TestStartTouchesNoForeignDirectory(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "postgres", "letters"), 0o700))
	_, err := Start(t.Context(), Config{DataDir: dir})
	require.ErrorContains(t, err, "no PostgreSQL data directory and not empty")
	require.DirExists(t, filepath.Join(dir, "postgres", "letters"))
}

func TestLostPasswordsAreNamed(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	require.NoError(t, startServer(t, Config{DataDir: dir}).Stop(t.Context()))
	require.NoError(t, os.Remove(filepath.Join(dir, "postgres.pgpass")))
	_, err := Start(t.Context(), Config{DataDir: dir})
	require.ErrorContains(t, err, "postgres.pgpass")
}
