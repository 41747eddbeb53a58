// Package site creates and edits sites. A site is never deleted: tokens, names and
// history are bound to it.
package site

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/site"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// An Evaluator has every machine of a site looked at again, in the transaction that
// changes what the site says about them.
type Evaluator interface {
	SiteConfigured(ctx context.Context, tx *ent.Client, siteID string) error
}

// A Catalog is the tests of sites, kept in the transaction that changes a site.
type Catalog interface {
	// AddCatalog gives a site the built-in tests that it does not have yet.
	AddCatalog(ctx context.Context, tx *ent.Client, siteID string) error
	// CheckTests refuses settings that name no test of the site's catalog.
	CheckTests(ctx context.Context, tx *ent.Client, siteID string, settings []fleet.TestSetting) error
}

// Service creates and edits sites.
type Service struct {
	client    *ent.Client
	now       func() time.Time
	evaluator Evaluator
	catalog   Catalog
}

// New returns the service on client, with now as its clock.
func New(client *ent.Client, now func() time.Time, evaluator Evaluator, catalog Catalog) *Service {
	return &Service{client: client, now: now, evaluator: evaluator, catalog: catalog}
}

// Create is the input of Service.Create.
type Create struct {
	Name        string
	Description string
	Key         string `json:"-"`
}

// Create creates a site and returns its id: ALREADY_EXISTS, reason SITE_NAME_TAKEN,
// where the name is taken. Only an admin of all sites may.
func (s *Service) Create(ctx context.Context, in Create) (string, error) {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return "", err
	}
	if !c.AllSites {
		return "", fleet.Denied("SITES_TOO_WIDE", "only a caller of all sites may create a site")
	}
	if err := fleet.CheckName("name", in.Name); err != nil {
		return "", err
	}
	if err := fleet.CheckText("description", in.Description); err != nil {
		return "", err
	}
	out, err := access.Run(ctx, s.client, access.Mutation{Name: "createSite", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		now := s.now()
		row, err := tx.Site.Create().SetName(in.Name).SetDescription(in.Description).
			SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return nil, nameTaken(err, in.Name)
		}
		if err := s.catalog.AddCatalog(ctx, tx, row.ID); err != nil {
			return nil, err
		}
		return []string{row.ID}, events.Append(ctx, tx, events.Transition{
			SiteID: &row.ID, SubjectType: fleet.SubjectSite, SubjectID: row.ID,
			Cause: "SITE_CREATED", Actor: c.Name, At: now,
			Details: map[string]any{"name": row.Name, "description": row.Description},
		})
	})
	if err != nil {
		return "", err
	}
	return out.Result[0], nil
}

// Update is the input of Service.Update.
type Update struct {
	SiteID           string
	Name             fleet.Patch[string]
	Description      fleet.Patch[string]
	Bom              fleet.Patch[Bom]        // cleared: all defaults
	Validation       fleet.Patch[Validation] // the same
	ExpectedRevision *int
	Key              string `json:"-"`
}

// Update edits a site and returns what of the configuration takes effect otherwise
// than it was given. An edit that changes nothing leaves the revision and the history
// alone; one that concerns the site's machines has all of them looked at again.
func (s *Service) Update(ctx context.Context, in Update) ([]fleet.ConfigurationWarning, error) {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	out, err := access.Run(ctx, s.client, access.Mutation{Name: "updateSite", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		row, err := tx.Site.Query().Where(site.ID(in.SiteID), pgdb.ForNoKeyUpdate).Only(ctx)
		if ent.IsNotFound(err) {
			return nil, fleet.Missing("siteId", "SITE_NOT_FOUND", "site not found: %s", in.SiteID)
		}
		if err != nil {
			return nil, err
		}
		if err := fleet.CheckRevision(in.ExpectedRevision, row.Revision); err != nil {
			return nil, err
		}
		return s.update(ctx, tx, c.Name, row, in)
	})
	if err != nil {
		return nil, err
	}
	return decodeWarnings(out.Result[0])
}

// update returns the warnings in their JSON form: a repeat returns them again.
func (s *Service) update(ctx context.Context, tx *ent.Client, actor string, row *ent.Site, in Update) ([]string, error) {
	was := configured{row.BomValidation, row.MachineValidation}
	is, warnings, err := in.configure(was)
	if err != nil {
		return nil, err
	}
	if in.Validation.Value != nil && in.Validation.Value.Tests.Set {
		if err := s.catalog.CheckTests(ctx, tx, row.ID, is.Validation.Tests); err != nil {
			return nil, err
		}
	}
	result, err := json.Marshal(warnings)
	if err != nil {
		return nil, err
	}
	name, description := row.Name, row.Description
	if in.Name.Set {
		name = *in.Name.Value
	}
	if in.Description.Set {
		description = in.Description.Or("")
	}
	before, after := map[string]any{}, map[string]any{}
	for key, values := range map[string][2]string{"name": {row.Name, name}, "description": {row.Description, description}} {
		if values[0] != values[1] {
			before[key], after[key] = values[0], values[1]
		}
	}
	if err := differences("bom_validation", was.Bom, is.Bom, before, after); err != nil {
		return nil, err
	}
	if err := differences("machine_validation_config", was.Validation, is.Validation, before, after); err != nil {
		return nil, err
	}
	if len(after) == 0 {
		return []string{string(result)}, nil
	}
	now := s.now()
	err = tx.Site.Update().Where(site.ID(row.ID)).SetName(name).SetDescription(description).
		SetBomValidation(is.Bom).SetMachineValidation(is.Validation).AddRevision(1).SetUpdatedAt(now).Exec(ctx)
	if err != nil {
		return nil, nameTaken(err, name)
	}
	if movesMachines(was, is) {
		if err := s.evaluator.SiteConfigured(ctx, tx, row.ID); err != nil {
			return nil, err
		}
	}
	return []string{string(result)}, events.Append(ctx, tx, events.Transition{
		SiteID: &row.ID, SubjectType: fleet.SubjectSite, SubjectID: row.ID,
		Cause: "SITE_UPDATED", Actor: actor, At: now,
		Details: map[string]any{"before": before, "after": after},
	})
}

func decodeWarnings(text string) ([]fleet.ConfigurationWarning, error) {
	var warnings []fleet.ConfigurationWarning
	if err := json.Unmarshal([]byte(text), &warnings); err != nil {
		return nil, fmt.Errorf("warnings of updateSite: %w", err)
	}
	return warnings, nil
}

func (in Update) check() error {
	if err := fleet.CheckID("siteId", fleet.PrefixSite, in.SiteID); err != nil {
		return err
	}
	name, err := in.Name.Required("name")
	if err != nil {
		return err
	}
	if name != nil {
		if err := fleet.CheckName("name", *name); err != nil {
			return err
		}
	}
	if in.Description.Value != nil {
		return fleet.CheckText("description", *in.Description.Value)
	}
	return nil
}

func nameTaken(err error, name string) error {
	if constraint, kind := pgdb.Constraint(err); kind == pgdb.KindUnique && constraint == "sites_name_key" {
		return fleet.Exists("name", "SITE_NAME_TAKEN", "a site named %q exists", name)
	}
	return err
}
