package server

import (
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

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
func newResolver(db *database, limits sku.Limits, now func() time.Time) *resolvers.Resolver {
	client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db.SQL)))
	access.Intercept(client)
	skus := bom.New(client, now, limits)
	return &resolvers.Resolver{
		Client:    client,
		Access:    access.New(client, now),
		Sites:     site.New(client, now),
		Bom:       skus,
		Lifecycle: lifecycle.New(client, now, skus),
	}
}
