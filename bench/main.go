// Command bench measures fleetgraph beside its yardsticks in one run, prints a
// table, and writes it with a description of the machine to bench/results. Compare
// the ratios: absolute figures depend on the machine and its load.
//
//	go run ./bench [-seconds 4] [-rounds 3] [-out bench/results] [-cpuprofile FILE]
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
	out := flag.String("out", "bench/results", "directory for the report; empty for none")
	profile := flag.String("cpuprofile", "", "file for a CPU profile of the whole run; empty for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	stopProfile, err := startProfile(*profile)
	if err == nil {
		err = errors.Join(run(ctx, time.Duration(*seconds*float64(time.Second)), *rounds, *out), stopProfile())
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

func run(ctx context.Context, length time.Duration, rounds int, out string) error {
	report := describe(ctx)
	rows, err := benchMatch(ctx, rounds)
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, rows...)
	rows, version, err := benchRead(ctx, length, rounds)
	if err != nil {
		return err
	}
	report.Postgres = version
	report.Rows = append(report.Rows, rows...)
	report.print(os.Stdout)
	if out == "" {
		return nil
	}
	path, err := report.write(out)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "written to", path)
	return nil
}
