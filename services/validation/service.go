// Package validation is the tests that a site can run on its machines: the catalog of
// built-in ones, what is enabled, and which of them a run is made of.
package validation

import (
	"time"

	"fleetgraph/ent"
)

// Service keeps the tests of sites.
type Service struct {
	client *ent.Client
	now    func() time.Time
}

// New returns the service on client, with now as its clock.
func New(client *ent.Client, now func() time.Time) *Service {
	return &Service{client: client, now: now}
}
