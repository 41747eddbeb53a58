package pgembed

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestStartAfterKillingServerAndPostgresFindsTheData(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	process := startProcess(t, dir)
	keepTable(t, connect(t, urlOf(t, dir)))
	kill9(t, postmasterPID(t, dir))
	kill9(t, process.Process.Pid)
	require.Error(t, process.Wait())
	require.FileExists(t, filepath.Join(dir, "postgres", "postmaster.pid"))

	server := startServer(t, Config{DataDir: dir})
	require.Equal(t, "here", queryText(t, connect(t, server.URL()), "SELECT word FROM kept"))
}

func TestTheTemporarySocketOfAKilledServerIsRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDataDir(t), strings.Repeat("x", 100))
	process := startProcess(t, dir)
	old, err := os.Readlink(newCluster(resolved(t, dir)).socketLink())
	require.NoError(t, err)
	kill9(t, process.Process.Pid)
	require.Error(t, process.Wait())
	require.DirExists(t, old)

	startServer(t, Config{DataDir: dir})
	require.NoDirExists(t, old)
}

func TestPostgresEndsWithAKilledServer(t *testing.T) {
	t.Parallel()
	if !seesAllRemnants {
		t.Skip("this system has no parent-death signal")
	}
	dir := tempDataDir(t)
	process := startProcess(t, dir)
	kill9(t, process.Process.Pid)
	require.Error(t, process.Wait())
	cluster := newCluster(resolved(t, dir))
	gone, err := cluster.awaitGone(t.Context(), 0, 20*time.Second)
	require.NoError(t, err)
	require.True(t, gone)
}

func TestAnOrphanedPostgresIsStoppedAndReplaced(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	server := startServer(t, Config{DataDir: dir})
	keepTable(t, connect(t, server.URL()))
	require.NoError(t, server.Stop(t.Context()))

	orphan := startOrphan(t, dir)
	waitForPIDFile(t, dir)
	again := startServer(t, Config{DataDir: dir})
	select {
	case <-orphan.done:
	case <-t.Context().Done():
	}
	require.NoError(t, orphan.err, "a fast shutdown, not a kill")
	require.Equal(t, "here", queryText(t, connect(t, again.URL()), "SELECT word FROM kept"))
}

func TestBusyBackendsOfADeadPostmasterAreEnded(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	process := startProcess(t, dir)
	conn, err := pgx.Connect(t.Context(), urlOf(t, dir))
	require.NoError(t, err)
	busy := make(chan error, 1)
	go func() { // a loop that never looks whether the postmaster lives
		_, err := conn.Exec(context.Background(), "SELECT count(*) FROM generate_series(1, 1000000000000)")
		busy <- err
	}()
	admin := connect(t, urlOf(t, dir))
	require.Eventually(t, func() bool {
		return queryText(t, admin, "SELECT count(*)::text FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT count(*) FROM gen%'") == "1"
	}, 10*time.Second, 20*time.Millisecond)
	kill9(t, postmasterPID(t, dir))
	kill9(t, process.Process.Pid)
	require.Error(t, process.Wait())

	startServer(t, Config{DataDir: dir})
	require.Error(t, <-busy)
	require.NoError(t, conn.Close(t.Context()))
}

func TestAStalePIDThatNowIsAnotherProcessOfTheAccountIsNoObstacle(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	require.NoError(t, startServer(t, Config{DataDir: dir}).Stop(t.Context()))
	cluster := newCluster(resolved(t, dir))
	account, err := chooseAccount(cluster)
	require.NoError(t, err)

	sleeper := exec.CommandContext(t.Context(), "sleep", "600")
	sleeper.Dir = "/"
	sleeper.SysProcAttr = &syscall.SysProcAttr{Credential: account.credential()}
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	pidFile := filepath.Join(cluster.dir, "postmaster.pid")
	require.NoError(t, os.WriteFile(pidFile, []byte(strconv.Itoa(sleeper.Process.Pid)+"\n"), 0o600))
	require.NoError(t, account.give(pidFile))

	startServer(t, Config{DataDir: dir})
	require.NoError(t, sleeper.Process.Signal(syscall.Signal(0)), "it was left alone")
}

func TestSomebodyElsesSessionOnTheClusterIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	if !seesAllRemnants {
		t.Skip("needs /proc")
	}
	dir := tempDataDir(t)
	require.NoError(t, startServer(t, Config{DataDir: dir}).Stop(t.Context()))
	cluster := newCluster(resolved(t, dir))
	session := clusterCommand(t, cluster, "--single", "-D", cluster.dir, "postgres")
	input, err := session.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, session.Start())
	waitForPIDFile(t, dir)

	_, err = Start(t.Context(), Config{DataDir: dir})
	require.ErrorContains(t, err, strconv.Itoa(session.Process.Pid))
	require.ErrorContains(t, err, "stop it first")
	require.NoError(t, input.Close())
	require.NoError(t, session.Wait())
}

// urlOf is the address of a server in another process.
func urlOf(t *testing.T, dir string) string {
	t.Helper()
	cluster := newCluster(resolved(t, dir))
	credential, err := cluster.loadCredentials(true)
	require.NoError(t, err)
	socket, err := os.Readlink(cluster.socketLink())
	if err != nil {
		socket = cluster.dir
	}
	return (&Server{socket: socketDir{path: socket}, credential: credential}).URL()
}

func clusterCommand(t *testing.T, cluster cluster, args ...string) *exec.Cmd {
	t.Helper()
	found, err := findBinaries(t.Context(), Config{}.searchDirs(), 0)
	require.NoError(t, err)
	account, err := chooseAccount(cluster)
	require.NoError(t, err)
	return found.command(t.Context(), "postgres", account, cluster.dir, args...)
}

// startOrphan starts PostgreSQL on the cluster as a killed server would leave it:
// nobody holds the lock.
func startOrphan(t *testing.T, dir string) *child {
	t.Helper()
	cluster := newCluster(resolved(t, dir))
	cmd := clusterCommand(t, cluster, cluster.arguments(socketDir{path: cluster.dir}, Config{NoFsync: true})...)
	orphan, err := startChild(cmd, discard())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, orphan.stop(context.Background())) })
	return orphan
}

func waitForPIDFile(t *testing.T, dir string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "postgres", "postmaster.pid"))
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
}
