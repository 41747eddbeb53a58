package pgembed

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

const (
	// logPrefix is log_line_prefix: the kind of process, which decides how much an
	// error matters.
	logPrefix = "[%b] "
	// keptLines of the log go into an error.
	keptLines = 20
	// maxLine bytes of a line are kept, the rest is dropped.
	maxLine = 8 << 10
)

// serverLog turns PostgreSQL's standard error into log records and remembers the
// last lines.
type serverLog struct {
	logger *slog.Logger

	mu   sync.Mutex
	last []string
}

func newServerLog(logger *slog.Logger) *serverLog { return &serverLog{logger: logger} }

// consume reads to the end, whatever the input: a full pipe would stop the server.
func (l *serverLog) consume(reader io.Reader) {
	lines := bufio.NewReaderSize(reader, maxLine)
	continued := false
	for {
		line, isPrefix, err := lines.ReadLine()
		if err != nil {
			return
		}
		if !continued {
			l.add(string(line))
		}
		continued = isPrefix
	}
}

func (l *serverLog) add(line string) {
	l.mu.Lock()
	l.last = append(l.last, line)
	if len(l.last) > keptLines {
		l.last = slices.Delete(l.last, 0, 1)
	}
	l.mu.Unlock()
	level, message := classify(line)
	l.logger.LogAttrs(context.Background(), level, message, slog.String("source", "postgres"))
}

func (l *serverLog) lastLines() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "\n")
}

// classify reads "[client backend] ERROR:  text". What went wrong for a client is
// the client's to report; an error in the server's own processes is ours.
func classify(line string) (level slog.Level, message string) {
	process, rest, found := strings.Cut(strings.TrimPrefix(line, "["), "] ")
	if !found || !strings.HasPrefix(line, "[") {
		return slog.LevelInfo, line // before the configuration is read, or a library's
	}
	severity, _, _ := strings.Cut(rest, ":")
	client := process == "client backend"
	switch severity {
	case "PANIC":
		return slog.LevelError, line
	case "FATAL":
		if client || process == "not initialized" {
			return slog.LevelDebug, line // a refused or cut connection
		}
		return slog.LevelError, line
	case "ERROR":
		if client {
			return slog.LevelDebug, line
		}
		return slog.LevelError, line
	case "WARNING":
		return slog.LevelWarn, line
	}
	return slog.LevelDebug, line
}
