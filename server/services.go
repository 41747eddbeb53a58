package server

import (
	"log/slog"
	"time"

	"fleetgraph/ent"
	"fleetgraph/resolvers"
	"fleetgraph/services/access"
	"fleetgraph/services/bom"
	"fleetgraph/services/lifecycle"
	"fleetgraph/services/site"
	"fleetgraph/services/sku"
)

// newResolver builds the services on a database and the root of the resolvers over
// them. Every read through its client is scoped to the caller.
func newResolver(db *database, queue bom.Queue, logger *slog.Logger, limits sku.Limits, now func() time.Time) *resolvers.Resolver {
	client := ent.NewClient(ent.Driver(db.Driver()))
	access.Intercept(client)
	skus := bom.New(client, queue, logger, now, limits)
	return &resolvers.Resolver{
		Client:    client,
		Access:    access.New(client, now),
		Sites:     site.New(client, now, skus),
		Bom:       skus,
		Lifecycle: lifecycle.New(client, now, skus),
	}
}
