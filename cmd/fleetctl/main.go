// Command fleetctl is the administrator's command line of fleetgraph. It speaks
// GraphQL to the server through typed operations, except for `sku generate
// --inventory` and `sku diff`, which work on files alone.
//
// Exit codes: 0 done, 1 refused or failed, 2 usage, 3 the server is unreachable.
// What was asked for goes to the standard output, everything else to the
// standard error.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:], process{
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		getenv: os.Getenv,
		now:    time.Now,
	})
}
