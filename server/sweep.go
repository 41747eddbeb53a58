package server

import (
	"context"
	"log/slog"
	"time"

	"fleetgraph/ent"
	"fleetgraph/services/access"
)

// sweepInterval is how often idempotency keys whose time is over are deleted. Any
// number of processes may do so at once.
const sweepInterval = time.Hour

// sweep deletes what is kept for a time only, until ctx ends.
func sweep(ctx context.Context, client *ent.Client, logger *slog.Logger) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		n, err := access.Sweep(ctx, client, time.Now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			logger.WarnContext(ctx, "idempotency keys were not swept", slog.Any("err", err))
		case n > 0:
			logger.InfoContext(ctx, "idempotency keys swept", slog.Int("deleted", n))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
