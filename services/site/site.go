// Package site creates and edits sites. A site is never deleted: tokens, names and
// history are bound to it.
package site

import (
	"context"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/site"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// Service creates and edits sites.
type Service struct {
	client *ent.Client
	now    func() time.Time
}

// New returns the service on client, with now as its clock.
func New(client *ent.Client, now func() time.Time) *Service {
	return &Service{client: client, now: now}
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
	ExpectedRevision *int
	Key              string `json:"-"`
}

// Update edits a site and returns its id. An edit that changes nothing leaves the
// revision and the history alone.
func (s *Service) Update(ctx context.Context, in Update) (string, error) {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return "", err
	}
	if err := in.check(); err != nil {
		return "", err
	}
	_, err = access.Run(ctx, s.client, access.Mutation{Name: "updateSite", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		row, err := tx.Site.Query().Where(site.ID(in.SiteID)).ForUpdate().Only(ctx)
		if ent.IsNotFound(err) {
			return nil, fleet.Missing("siteId", "SITE_NOT_FOUND", "site not found: %s", in.SiteID)
		}
		if err != nil {
			return nil, err
		}
		if err := fleet.CheckRevision(in.ExpectedRevision, row.Revision); err != nil {
			return nil, err
		}
		before := map[string]any{"name": row.Name, "description": row.Description}
		name, description := row.Name, row.Description
		if in.Name.Set {
			name = *in.Name.Value
		}
		if in.Description.Set {
			description = in.Description.Or("")
		}
		if name == row.Name && description == row.Description {
			return []string{row.ID}, nil
		}
		now := s.now()
		err = tx.Site.Update().Where(site.ID(row.ID)).SetName(name).SetDescription(description).
			AddRevision(1).SetUpdatedAt(now).Exec(ctx)
		if err != nil {
			return nil, nameTaken(err, name)
		}
		return []string{row.ID}, events.Append(ctx, tx, events.Transition{
			SiteID: &row.ID, SubjectType: fleet.SubjectSite, SubjectID: row.ID,
			Cause: "SITE_UPDATED", Actor: c.Name, At: now,
			Details: map[string]any{"before": before, "after": map[string]any{"name": name, "description": description}},
		})
	})
	return in.SiteID, err
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
