package bom

import (
	"context"
	"strconv"

	"fleetgraph/ent"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
	"fleetgraph/services/expected"
	"fleetgraph/services/sku"
)

// maxBatch bounds the SKUs of one createSkus.
const maxBatch = 500

// NewSku is one SKU to create. SchemaVersion nil is the current one, Description
// nil a summary of the hardware.
type NewSku struct {
	Name          string
	Description   *string
	DeviceType    *string
	SchemaVersion *int
	Components    fleet.SkuComponents
}

// Create is the input of Service.Create.
type Create struct {
	SiteID              string
	Skus                []NewSku
	AcceptOlderVersions bool
	Batch               bool   // the faults of a SKU name its index
	Key                 string `json:"-"`
}

// Create creates SKUs of one site, all or none, and returns their ids in order. A
// SKU whose hardware another SKU of the site, or of the batch, describes already
// is ALREADY_EXISTS, reason SKU_DUPLICATE; a name that is taken ALREADY_EXISTS,
// reason SKU_NAME_TAKEN.
func (s *Service) Create(ctx context.Context, in Create) ([]string, error) {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return nil, err
	}
	if err := s.checkCreate(&in); err != nil {
		return nil, err
	}
	name := "createSku"
	if in.Batch {
		name = "createSkus"
	}
	out, err := access.Run(ctx, s.client, access.Mutation{Name: name, Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		if err := lockSite(ctx, tx, in.SiteID); err != nil {
			return nil, err
		}
		stored, err := candidates(ctx, tx, in)
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(in.Skus))
		for i, item := range in.Skus {
			row, err := s.insert(ctx, tx, in.SiteID, item, stored)
			if err != nil {
				return nil, in.at(i, err)
			}
			ids[i] = row.ID
			if err := events.Append(ctx, tx, s.event(row, c.Name, "SKU_CREATED", snapshot(row))); err != nil {
				return nil, err
			}
			if err := s.skuChanged(ctx, row.ID); err != nil {
				return nil, err
			}
		}
		return ids, nil
	})
	return out.Result, err
}

func (s *Service) checkCreate(in *Create) error {
	if err := fleet.CheckID("siteId", fleet.PrefixSite, in.SiteID); err != nil {
		return err
	}
	if n := len(in.Skus); n == 0 || n > maxBatch {
		return fleet.Invalid("skus", "BATCH_SIZE", "1 to %d SKUs can be created at once", maxBatch)
	}
	taken := make(map[string]int, len(in.Skus))
	for i := range in.Skus {
		item := &in.Skus[i]
		if err := s.checkNew(item, in.AcceptOlderVersions); err != nil {
			return in.at(i, err)
		}
		if first, ok := taken[item.Name]; ok {
			return in.at(i, fleet.Invalid("name", "DUPLICATE", "SKU %d has the same name %q", first, item.Name))
		}
		taken[item.Name] = i
	}
	return nil
}

// checkNew checks a new SKU and fills in its defaults.
func (s *Service) checkNew(item *NewSku, acceptOlder bool) error {
	if err := fleet.CheckSkuName("name", item.Name); err != nil {
		return err
	}
	if item.SchemaVersion == nil {
		item.SchemaVersion = new(fleet.CurrentSchemaVersion)
	}
	if err := sku.CheckVersion(*item.SchemaVersion, acceptOlder); err != nil {
		return err
	}
	if err := sku.Validate(item.Components, *item.SchemaVersion, s.limits); err != nil {
		return err
	}
	if item.Description == nil {
		item.Description = new(sku.Describe(item.Components))
	}
	return checkMetadata(item.Description, item.DeviceType)
}

// at names the SKU of a batch that err concerns.
func (in Create) at(i int, err error) error {
	if e, ok := fleet.AsError(err); ok && in.Batch {
		return e.At("skus." + strconv.Itoa(i))
	}
	return err
}

// candidates are the site's SKUs that one of the new ones could be a duplicate of,
// by match key.
func candidates(ctx context.Context, tx *ent.Client, in Create) (map[string][]sku.Sku, error) {
	keys := make([]string, len(in.Skus))
	for i, item := range in.Skus {
		keys[i] = sku.Key(item.Components)
	}
	rows, err := tx.Sku.Query().Where(entsku.SiteID(in.SiteID), entsku.MatchKeyIn(keys...)).All(ctx)
	if err != nil {
		return nil, err
	}
	stored := make(map[string][]sku.Sku, len(rows))
	for _, row := range rows {
		stored[row.MatchKey] = append(stored[row.MatchKey], described(row))
	}
	return stored, nil
}

// insert stores a SKU unless it is a duplicate of a stored one, which it is itself
// from then on.
func (s *Service) insert(ctx context.Context, tx *ent.Client, siteID string, item NewSku, stored map[string][]sku.Sku) (*ent.Sku, error) {
	key := sku.Key(item.Components)
	candidate := sku.Sku{Name: item.Name, SchemaVersion: *item.SchemaVersion, Components: item.Components}
	if err := s.matcher.CheckDuplicate(ctx, candidate, stored[key]); err != nil {
		return nil, err
	}
	stored[key] = append(stored[key], candidate)
	now := s.now()
	row, err := tx.Sku.Create().
		SetSiteID(siteID).SetName(item.Name).SetDescription(*item.Description).SetNillableDeviceType(item.DeviceType).
		SetSchemaVersion(*item.SchemaVersion).SetComponents(item.Components).SetMatchKey(key).
		SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
	if name, kind := pgdb.Constraint(err); kind == pgdb.KindUnique && name == "skus_site_id_name_key" {
		return nil, fleet.Exists("name", "SKU_NAME_TAKEN", "SKU already exists: %s", item.Name)
	}
	if err != nil {
		return nil, err
	}
	return row, expected.LinkSku(ctx, tx, siteID, row.ID, row.Name)
}

// checkDuplicate refuses a candidate that describes the hardware of a stored SKU
// other than the one of id except. The site is locked.
func (s *Service) checkDuplicate(ctx context.Context, client *ent.Client, siteID, except string, candidate sku.Sku) error {
	rows, err := client.Sku.Query().
		Where(entsku.SiteID(siteID), entsku.IDNEQ(except), entsku.MatchKey(sku.Key(candidate.Components))).All(ctx)
	if err != nil {
		return err
	}
	return s.matcher.CheckDuplicate(ctx, candidate, describedAll(rows))
}
