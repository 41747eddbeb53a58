package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const (
	// waitInterval is how often a job is looked at that is waited for.
	waitInterval = 500 * time.Millisecond
	// progressAfter is how long a wait may be before its progress is shown.
	progressAfter = time.Second
	barWidth      = 30
)

func (a *app) jobWait() *cobra.Command {
	return &cobra.Command{
		Use:     "wait JOB",
		Aliases: []string{"w"},
		Short:   "Waits until a job has ended; the exit code is 1 unless it did all that it was to do",
		Args:    cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			return a.waitAndShow(ctx, args[0])
		}),
		ValidArgsFunction: a.completeArgs(a.jobIDs),
	}
}

// waitAndShow waits until a job has ended and shows it: a quietError unless it did all
// that it was to do. The job goes on when ctx ends before it.
func (a *app) waitAndShow(ctx context.Context, id string) error {
	j, err := a.wait(ctx, id)
	if err != nil {
		return err
	}
	if err := a.showJob(ctx, j); err != nil {
		return err
	}
	if !j.isDone() {
		return quietError{}
	}
	return nil
}

func (a *app) wait(ctx context.Context, id string) (jobView, error) {
	began, shown := a.now(), false
	defer func() {
		if shown {
			fmt.Fprint(a.stderr, "\r\x1b[K")
		}
	}()
	ticks := time.NewTicker(waitInterval)
	defer ticks.Stop()
	for {
		j, err := a.job(ctx, id)
		if err != nil || j.State.HasEnded() {
			return j, err
		}
		if a.format == formatTable && isTerminal(a.stderr) && a.now().Sub(began) > progressAfter {
			shown = true
			fmt.Fprint(a.stderr, "\r"+progress(j)+"\x1b[K")
		}
		select {
		case <-ctx.Done():
			return j, ctx.Err()
		case <-ticks.C:
		}
	}
}

func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// progress is one line of how far a job is, which fits 80 columns.
func progress(j jobView) string {
	if j.bulkView == nil || j.Total == 0 {
		return string(j.State)
	}
	full := barWidth * j.Done / j.Total
	line := fmt.Sprintf("[%s%s] %d/%d", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), j.Done, j.Total)
	if j.Failed > 0 {
		line += fmt.Sprintf(", %d failed", j.Failed)
	}
	return line
}
