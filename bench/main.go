// Command bench measures fleetgraph beside its yardsticks in one run, prints a
// table, and writes it with a description of the machine to bench/results. Compare
// the ratios: absolute figures depend on the machine and its load.
//
//	go run ./bench [-seconds 4] [-rounds 3] [-out bench/results]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	seconds := flag.Float64("seconds", 4, "length of one round of a load, in seconds")
	rounds := flag.Int("rounds", 3, "rounds of each load; the median counts")
	out := flag.String("out", "bench/results", "directory for the report; empty for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, time.Duration(*seconds*float64(time.Second)), *rounds, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, length time.Duration, rounds int, out string) error {
	report := describe(ctx)
	rows, err := benchMatch(rounds)
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
