package server

import (
	"log/slog"
	"time"

	"fleetgraph/ent"
	"fleetgraph/fleet"
	"fleetgraph/internal/seal"
	"fleetgraph/resolvers"
	"fleetgraph/services/access"
	"fleetgraph/services/bom"
	"fleetgraph/services/events"
	"fleetgraph/services/expected"
	"fleetgraph/services/job"
	"fleetgraph/services/lifecycle"
	"fleetgraph/services/site"
	"fleetgraph/services/sku"
	"fleetgraph/services/validation"
)

// newClient opens the entities of a database. Every read through it is scoped to the
// caller.
func newClient(db *database) *ent.Client {
	client := ent.NewClient(ent.Driver(db.Driver()))
	access.Intercept(client)
	return client
}

// foundation is what the services stand on. box seals credentials; nil where there is
// no key.
type foundation struct {
	client  *ent.Client
	queue   bom.Queue
	box     *seal.Box
	feed    *events.Feed
	logger  *slog.Logger
	limits  sku.Limits
	now     func() time.Time
	issuers []access.Issuer
}

// newResolver builds the services and the root of the resolvers over them.
func newResolver(f foundation) *resolvers.Resolver {
	client, now := f.client, f.now
	skus := bom.New(client, f.queue, f.logger, now, f.limits)
	tests := validation.New(client, now)
	return &resolvers.Resolver{
		Client:     client,
		Access:     access.New(client, now, f.issuers...),
		Sites:      site.New(client, now, skus, tests),
		Bom:        skus,
		Lifecycle:  lifecycle.New(client, now, skus),
		Expected:   expected.New(client, now, f.box),
		Jobs:       job.New(client, now, map[fleet.JobKind]job.Ender{fleet.JobBulk: skus.CancelBulk}),
		Validation: tests,
		Feed:       f.feed,
	}
}
