package pgembed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	// immediateTimeout is what an immediate shutdown gets. PostgreSQL itself kills
	// its children after 5 s.
	immediateTimeout = 10 * time.Second
	// logTimeout bounds the wait for the end of the log after the process is gone:
	// after a kill, a backend may still hold the pipe.
	logTimeout = 2 * time.Second
)

// child is the server process. supervise owns it and closes done when it has ended
// and its log is read; readLog ends before that.
type child struct {
	process *os.Process
	log     *serverLog
	done    chan struct{}
	err     error // of Wait; read after done
}

func startChild(cmd *exec.Cmd, logger *slog.Logger) (*child, error) {
	c := &child{log: newServerLog(logger), done: make(chan struct{})}
	started := make(chan error, 1)
	go c.supervise(cmd, started)
	if err := <-started; err != nil {
		<-c.done
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return c, nil
}

// supervise stays on one thread from the fork to the end of the child: the kernel
// sends the parent-death signal when the *thread* that forked ends.
func (c *child) supervise(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)

	reader, writer, err := os.Pipe()
	if err != nil {
		started <- err
		return
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	err = cmd.Start()
	_ = writer.Close() // ours; the child has its own
	if err != nil {
		_ = reader.Close()
		started <- err
		return
	}
	c.process = cmd.Process
	logDone := make(chan struct{})
	go c.readLog(reader, logDone)
	started <- nil

	c.err = cmd.Wait()
	select {
	case <-logDone:
	case <-time.After(logTimeout):
	}
	_ = reader.Close()
	<-logDone
}

func (c *child) readLog(reader *os.File, done chan<- struct{}) {
	defer close(done)
	c.log.consume(reader)
}

// stop asks for a fast shutdown; when ctx ends, for an immediate one; then kills.
// It returns after the process has ended.
func (c *child) stop(ctx context.Context) error {
	select {
	case <-c.done:
		return nil // it ended unasked, which Done has told
	default:
	}
	if err := c.signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-c.done:
		return c.stopError(nil)
	case <-ctx.Done():
	}
	if err := c.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	select {
	case <-c.done:
		return c.stopError(ctx.Err())
	case <-time.After(immediateTimeout):
	}
	if err := c.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.done
	return c.stopError(ctx.Err())
}

func (c *child) stopError(cause error) error {
	if cause != nil {
		return fmt.Errorf("PostgreSQL did not shut down in time and recovers at the next start: %w", cause)
	}
	if c.err != nil {
		return fmt.Errorf("PostgreSQL: shutdown: %w: %s", c.err, c.log.lastLines())
	}
	return nil
}

func (c *child) signal(sig os.Signal) error {
	if err := c.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("PostgreSQL: %w", err)
	}
	return nil
}

// runOnOneThread runs a program that ends, under the same rule as supervise.
func runOnOneThread(cmd *exec.Cmd) (output []byte, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.CombinedOutput()
}
