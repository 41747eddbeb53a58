package server

import (
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"fleetgraph/ent"
	"fleetgraph/internal/seal"
	"fleetgraph/resolvers"
	"fleetgraph/services/access"
	"fleetgraph/services/bom"
	"fleetgraph/services/expected"
	"fleetgraph/services/lifecycle"
	"fleetgraph/services/site"
	"fleetgraph/services/sku"
)

// newClient opens the entities of a database. Every read through it is scoped to the
// caller.
func newClient(db *database) *ent.Client {
	client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db.SQL)))
	access.Intercept(client)
	return client
}

// newResolver builds the services on a client and the root of the resolvers over
// them. box seals credentials; nil where there is no key.
func newResolver(client *ent.Client, box *seal.Box, limits sku.Limits, now func() time.Time) *resolvers.Resolver {
	skus := bom.New(client, now, limits)
	return &resolvers.Resolver{
		Client:    client,
		Access:    access.New(client, now),
		Sites:     site.New(client, now),
		Bom:       skus,
		Lifecycle: lifecycle.New(client, now, skus),
		Expected:  expected.New(client, now, box),
	}
}
