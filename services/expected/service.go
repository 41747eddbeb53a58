// Package expected keeps what operators know of machines before these are seen. An
// edit never touches a machine: what a machine gets of its entry is copied at first
// sight.
//
// Invariants: a BMC has at most one entry at its site; the site's row is the lock of
// its entries; credentials are stored sealed and leave this package in no answer, no
// error and no history.
package expected

import (
	"context"
	"time"

	"entgo.io/ent/dialect/sql"

	"fleetgraph/ent"
	"fleetgraph/ent/expectedmachine"
	"fleetgraph/ent/site"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/seal"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// Service keeps expected machines.
type Service struct {
	client *ent.Client
	now    func() time.Time
	box    *seal.Box
}

// New returns the service on client, with now as its clock. box seals credentials;
// without one, nil, credentials are refused.
func New(client *ent.Client, now func() time.Time, box *seal.Box) *Service {
	return &Service{client: client, now: now, box: box}
}

// noKeyUpdate locks a row against other decisions on it, but not against rows that
// refer to it, as every row of history refers to its site.
func noKeyUpdate(s *sql.Selector) { s.For("NO KEY UPDATE") }

// keyShare keeps a row from being deleted before what refers to it is there.
func keyShare(s *sql.Selector) { s.For("KEY SHARE") }

// lockSite serialises what changes the entries of a site.
func lockSite(ctx context.Context, tx *ent.Client, id string) error {
	_, err := tx.Site.Query().Where(site.ID(id), noKeyUpdate).OnlyID(ctx)
	if ent.IsNotFound(err) {
		return fleet.Missing("siteId", "SITE_NOT_FOUND", "site not found: %s", id)
	}
	return err
}

func missing(id string) *fleet.Error {
	return fleet.Missing("expectedMachineId", "EXPECTED_MACHINE_NOT_FOUND", "expected_machine not found: %s", id)
}

// lockSiteOf locks the site of an entry that the caller may see, and returns its id.
func lockSiteOf(ctx context.Context, tx *ent.Client, id string) (string, error) {
	row, err := tx.ExpectedMachine.Query().Where(expectedmachine.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return "", missing(id)
	}
	if err != nil {
		return "", err
	}
	return row.SiteID, lockSite(ctx, tx, row.SiteID)
}

func (s *Service) event(siteID, id, actor, cause string, details any) events.Transition {
	return events.Transition{
		SiteID: &siteID, SubjectType: fleet.SubjectExpectedMachine, SubjectID: id,
		Cause: cause, Actor: actor, At: s.now(), Details: details,
	}
}

// Delete deletes an entry. A machine that was seen stays as it is.
func (s *Service) Delete(ctx context.Context, id, key string) error {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return err
	}
	if err := fleet.CheckID("expectedMachineId", fleet.PrefixExpected, id); err != nil {
		return err
	}
	_, err = access.Run(ctx, s.client, access.Mutation{Name: "deleteExpectedMachine", Key: key, Input: id}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		siteID, err := lockSiteOf(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		row, err := tx.ExpectedMachine.Query().Where(expectedmachine.ID(id)).ForUpdate().Only(ctx)
		if ent.IsNotFound(err) {
			return nil, missing(id)
		}
		if err != nil {
			return nil, err
		}
		if err := tx.ExpectedMachine.DeleteOneID(id).Exec(ctx); err != nil {
			return nil, err
		}
		return []string{id}, events.Append(ctx, tx, s.event(siteID, id, c.Name, "EXPECTED_MACHINE_DELETED", recordOf(row)))
	})
	return err
}

// LinkSku points the entries of a site that name a SKU at it, for when it has been
// created after them. The caller holds the lock of the site.
func LinkSku(ctx context.Context, tx *ent.Client, siteID, skuID, name string) error {
	return tx.ExpectedMachine.Update().
		Where(expectedmachine.SiteID(siteID), expectedmachine.SkuName(name)).SetSkuID(skuID).Exec(ctx)
}

// taken turns the violation of the key of entries into an error for people. The
// site's lock leaves it to writers that do not take it.
func taken(err error) error {
	if constraint, kind := pgdb.Constraint(err); kind == pgdb.KindUnique && constraint == "expected_machines_site_id_bmc_mac_address_key" {
		return fleet.Conflict("CONTENTION", "another entry of one of these BMCs was made at the same time; try again").WithCause(err)
	}
	return err
}
