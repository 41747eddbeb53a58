package pgembed

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// childDataDir makes the test binary a server process that other tests may kill.
const childDataDir = "PGEMBED_TEST_DATA_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDataDir); dir != "" {
		os.Exit(serveUntilEOF(dir))
	}
	goleak.VerifyTestMain(m)
}

func serveUntilEOF(dir string) int {
	server, err := Start(context.Background(), Config{DataDir: dir, NoFsync: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stdout, "ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := server.Stop(context.Background()); err != nil {
		return 1
	}
	return 0
}

// startProcess runs a server in a process of its own and waits until it is ready.
func startProcess(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDataDir+"="+dir)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return cmd
}

// tempDataDir is a directory that PostgreSQL's account can reach.
func tempDataDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) //nolint:gosec // the account passes through
	return filepath.Join(dir, "data")
}

func startServer(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.NoFsync = true
	begin := time.Now()
	server, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Logf("started in %s", time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	return server
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func queryText(t *testing.T, conn *pgx.Conn, query string) string {
	t.Helper()
	var text string
	require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&text))
	return text
}

func keepTable(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	_, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 'here' AS word")
	require.NoError(t, err)
}

func postmasterPID(t *testing.T, dir string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	require.NoError(t, err)
	return pid
}

func kill9(t *testing.T, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
}

func resolved(t *testing.T, dir string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	return dir
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
