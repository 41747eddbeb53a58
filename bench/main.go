// Command bench measures fleetgraph beside its yardsticks in one run, prints a
// table, and writes it with a description of the machine to bench/results. Compare
// the ratios: absolute figures depend on the machine and its load.
//
//	go run ./bench [-only match|read|follow] [-seconds 4] [-rounds 3] [-follow 30s] [-out bench/results] [-cpuprofile FILE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"time"
)

func main() {
	seconds := flag.Float64("seconds", 4, "length of one round of a load, in seconds")
	rounds := flag.Int("rounds", 3, "rounds of each load; the median counts")
	follow := flag.Duration("follow", 30*time.Second, "length of one round of followers")
	only := flag.String("only", "", "match, read or follow: only that")
	out := flag.String("out", "bench/results", "directory for the report; empty for none")
	profile := flag.String("cpuprofile", "", "file for a CPU profile of the whole run; empty for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	if task := os.Getenv(writerVariable); task != "" {
		if err := write(ctx, task); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	stopProfile, err := startProfile(*profile)
	if err == nil {
		err = errors.Join(run(ctx, settings{time.Duration(*seconds * float64(time.Second)), *rounds, *follow, *only, *out}), stopProfile())
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// startProfile profiles the process until the returned function is called.
func startProfile(path string) (func() error, error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() error { pprof.StopCPUProfile(); return file.Close() }, nil
}

type settings struct {
	length time.Duration
	rounds int
	follow time.Duration
	only   string
	out    string
}

func run(ctx context.Context, s settings) error {
	report := describe(ctx)
	known := false
	for _, part := range []struct {
		name string
		run  func() ([]Row, error)
	}{
		{"match", func() ([]Row, error) { return benchMatch(ctx, s.rounds) }},
		{"read", func() (rows []Row, err error) {
			rows, report.Postgres, err = benchRead(ctx, s.length, s.rounds)
			return rows, err
		}},
		{"follow", func() ([]Row, error) { return benchFollow(ctx, s.follow) }},
	} {
		if s.only != "" && s.only != part.name {
			continue
		}
		known = true
		rows, err := part.run()
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		report.Rows = append(report.Rows, rows...)
	}
	if !known {
		return fmt.Errorf("there is no measurement %q", s.only)
	}
	report.print(os.Stdout)
	if s.out == "" {
		return nil
	}
	path, err := report.write(s.out)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "written to", path)
	return nil
}
