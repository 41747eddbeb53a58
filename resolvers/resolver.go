// Package resolvers is thin: GraphQL in, one service call, GraphQL out. Reads go
// straight to ent, which loads what the selection asks for; what a mutation changed
// is read again the same way. Rules live in services.
package resolvers

import (
	"fleetgraph/ent"
	"fleetgraph/services/access"
	"fleetgraph/services/bom"
	"fleetgraph/services/events"
	"fleetgraph/services/expected"
	"fleetgraph/services/job"
	"fleetgraph/services/lifecycle"
	"fleetgraph/services/site"
	"fleetgraph/services/validation"
)

// Resolver is the root of all resolvers. Client is scoped to the caller of each
// request (see access.Intercept).
type Resolver struct {
	Client     *ent.Client
	Access     *access.Service
	Sites      *site.Service
	Bom        *bom.Service
	Lifecycle  *lifecycle.Service
	Expected   *expected.Service
	Jobs       *job.Service
	Validation *validation.Service
	Feed       *events.Feed
}
