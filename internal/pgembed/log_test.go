package pgembed

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClassifyLeavesClientErrorsToClients(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]slog.Level{
		"[postmaster] LOG:  database system is ready to accept connections": slog.LevelDebug,
		"[client backend] ERROR:  duplicate key":                            slog.LevelDebug,
		"[client backend] FATAL:  password authentication failed":           slog.LevelDebug,
		"[autovacuum worker] ERROR:  invalid page":                          slog.LevelError,
		"[checkpointer] PANIC:  could not write":                            slog.LevelError,
		"[client backend] PANIC:  could not write":                          slog.LevelError,
		"[client backend] WARNING:  nonstandard use":                        slog.LevelWarn,
		"ld.so: something": slog.LevelInfo,
	} {
		level, message := classify(line)
		require.Equal(t, want, level, line)
		require.Equal(t, line, message)
	}
}

func TestServerLogIsBoundedInLinesAndBytes(t *testing.T) {
	t.Parallel()
	var output bytes.Buffer
	log := newServerLog(slog.New(slog.NewTextHandler(&output, nil)))
	input := strings.Repeat("x", 3*maxLine) + "\n" + strings.Repeat("short\n", keptLines-1)
	log.consume(strings.NewReader(input))
	lines := strings.Split(log.lastLines(), "\n")
	require.Len(t, lines, keptLines)
	require.Len(t, lines[0], maxLine)
	log.consume(strings.NewReader("one more\n"))
	require.Len(t, strings.Split(log.lastLines(), "\n"), keptLines)
	require.Contains(t, output.String(), "source=postgres")
}
