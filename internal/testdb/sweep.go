package testdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// dirPrefix marks the directories that sweep may remove.
	dirPrefix = "fleetgraph-test-"
	// sweepAge keeps sweep away from a directory whose process has made its lock
	// file but not locked it yet.
	sweepAge = 10 * time.Minute
)

// sweep removes from tempDir what killed test processes left: our user's
// directories of that name whose lock is free.
func sweep(tempDir string, now time.Time) error {
	dirs, err := filepath.Glob(filepath.Join(tempDir, dirPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := sweepOne(dir, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what a killed test left: %w", err)
		}
	}
	return nil
}

// sweepOne holds the lock while it removes. ErrNotExist means that another process
// was faster, or that there is no lock file yet.
func sweepOne(dir string, now time.Time) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || now.Sub(info.ModTime()) < sweepAge {
		return nil
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer lock.Close()
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // its process lives
	}
	if err != nil {
		return err
	}
	// Where the path was too long for a socket, pgembed made it elsewhere.
	socket, err := os.Readlink(filepath.Join(dir, "postgres.socket"))
	if err == nil && strings.HasPrefix(filepath.Base(socket), "fleetgraph-pg-") {
		err = os.RemoveAll(socket)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}
