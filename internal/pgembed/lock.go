package pgembed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// lock is an flock on a file: the kernel drops it when the holder dies, however it
// dies. The descriptor is close-on-exec, so PostgreSQL does not inherit it.
type lock struct {
	file *os.File
}

// acquireLock takes the lock without waiting, or returns ErrLocked with the
// process id the holder wrote down. The file stays: removing it would let two
// processes lock two files of one name.
func acquireLock(path string) (*lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(file, 20))
		return nil, errors.Join(
			fmt.Errorf("%w: process %s holds %s", ErrLocked, strings.TrimSpace(string(holder)), path),
			file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	err = errors.Join(file.Truncate(0), writePID(file))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return &lock{file: file}, nil
}

func writePID(file *os.File) error {
	_, err := fmt.Fprintf(file, "%d\n", os.Getpid())
	return err
}

func (l *lock) release() error { return l.file.Close() }
