package pgembed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	orphanFastTimeout = 30 * time.Second
	orphanPoll        = 25 * time.Millisecond
)

// remnant is a process that still works on the cluster although we hold the lock:
// its parent was killed.
type remnant struct {
	pid   int
	title string // its command line
}

// isHelper tells the postmaster's children, which change their title, from
// programs somebody started.
func (r remnant) isHelper() bool { return strings.HasPrefix(r.title, "postgres: ") }

// clearRemains leaves the cluster with no process on it and no stale lock file.
// A postmaster gets a fast shutdown first; its children, if it is dead, an immediate
// one. Any other program on the directory (pg_upgrade, a single-user session) is
// somebody's work and an error.
func (c cluster) clearRemains(ctx context.Context, logger *slog.Logger) error {
	postmaster := c.readPIDFile()
	found, err := c.remnants(postmaster)
	if err != nil {
		return fmt.Errorf("look for an orphaned PostgreSQL: %w", err)
	}
	for _, r := range found {
		if r.pid != postmaster && !r.isHelper() {
			return fmt.Errorf("process %d (%s) works on %s: stop it first", r.pid, r.title, c.dir)
		}
	}
	if len(found) > 0 {
		logger.Warn("stopping the PostgreSQL that a killed server left behind", slog.Int("processes", len(found)))
		if err := c.stopRemnants(ctx, found, postmaster); err != nil {
			return err
		}
	}
	if err := c.removeOldSocketDir(); err != nil {
		return err
	}
	if !seesAllRemnants {
		return nil // PostgreSQL's own check of postmaster.pid decides
	}
	// PostgreSQL refuses to start while the number in one of these files is any process
	// of its user, such as a shell that got the number after a reboot, or its own zombie
	// in a container whose first process does not reap. We know better.
	for _, name := range []string{"postmaster.pid", socketFile + ".lock", socketFile} {
		err := os.Remove(filepath.Join(c.dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("stale lock: %w", err)
		}
	}
	return nil
}

func (c cluster) stopRemnants(ctx context.Context, found []remnant, postmaster int) error {
	if slices.ContainsFunc(found, func(r remnant) bool { return r.pid == postmaster }) {
		if err := c.signalRemnant(postmaster, postmaster, syscall.SIGINT); err != nil {
			return err
		}
		if gone, err := c.awaitGone(ctx, postmaster, orphanFastTimeout); gone || err != nil {
			return err
		}
	}
	found, err := c.remnants(postmaster)
	if err != nil {
		return err
	}
	for _, r := range found {
		if err := c.signalRemnant(r.pid, postmaster, syscall.SIGQUIT); err != nil {
			return err
		}
	}
	gone, err := c.awaitGone(ctx, postmaster, immediateTimeout)
	if err == nil && !gone {
		err = fmt.Errorf("an orphaned PostgreSQL on %s does not end", c.dir)
	}
	return err
}

// signalRemnant opens a handle on the process first and looks again then: the
// number may have passed to another process since it was read.
func (c cluster) signalRemnant(pid, postmaster int, sig os.Signal) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("orphaned PostgreSQL %d: %w", pid, err)
	}
	defer process.Release() //nolint:errcheck // it closes a handle and never fails on one that is open
	found, err := c.remnants(postmaster)
	if err != nil || !slices.ContainsFunc(found, func(r remnant) bool { return r.pid == pid }) {
		return err
	}
	if err := process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("orphaned PostgreSQL %d: %w", pid, err)
	}
	return nil
}

func (c cluster) awaitGone(ctx context.Context, postmaster int, timeout time.Duration) (bool, error) {
	deadline := time.After(timeout)
	ticker := time.NewTicker(orphanPoll)
	defer ticker.Stop()
	for {
		found, err := c.remnants(postmaster)
		if err != nil || len(found) == 0 {
			return len(found) == 0, err
		}
		select {
		case <-ticker.C:
		case <-deadline:
			return false, nil
		case <-ctx.Done():
			return false, fmt.Errorf("waiting for an orphaned PostgreSQL to end: %w", ctx.Err())
		}
	}
}

// readPIDFile returns the process in the first line of postmaster.pid, 0 when there
// is no (whole) file. A single-user session writes its number negative: no postmaster.
func (c cluster) readPIDFile() (postmaster int) {
	content, err := os.ReadFile(filepath.Join(c.dir, "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(content), "\n")
	postmaster, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0
	}
	return max(0, postmaster)
}
