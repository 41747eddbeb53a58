package bom

import (
	"context"
	"fmt"
	"strconv"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
	"fleetgraph/services/sku"
)

const (
	// maxBatch bounds the SKUs of one createSkus.
	maxBatch = 500
	// maxNamed is how many objects in the way an error names.
	maxNamed = 20
)

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
	return row, err
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

// Replace is the input of Service.Replace. A description or device type that is
// not set is kept.
type Replace struct {
	SkuID            string
	Components       fleet.SkuComponents
	SchemaVersion    *int
	Description      fleet.Patch[string]
	DeviceType       fleet.Patch[string]
	ExpectedRevision *int
	Key              string `json:"-"`
}

// Replace replaces what a SKU describes and verifies every machine that has it,
// in one transaction (the guide, Replacing an existing SKU).
func (s *Service) Replace(ctx context.Context, in Replace) error {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return err
	}
	if err := s.checkReplace(&in); err != nil {
		return err
	}
	_, err = access.Run(ctx, s.client, access.Mutation{Name: "replaceSku", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		row, err := s.lockSku(ctx, tx, in.SkuID)
		if err != nil {
			return nil, err
		}
		if err := fleet.CheckRevision(in.ExpectedRevision, row.Revision); err != nil {
			return nil, err
		}
		candidate := sku.Sku{Name: row.Name, SchemaVersion: *in.SchemaVersion, Components: in.Components}
		if err := s.checkDuplicate(ctx, tx, row.SiteID, row.ID, candidate); err != nil {
			return nil, err
		}
		update := tx.Sku.UpdateOneID(row.ID).SetComponents(in.Components).SetSchemaVersion(*in.SchemaVersion).
			SetMatchKey(sku.Key(in.Components)).AddRevision(1).SetUpdatedAt(s.now())
		setMetadata(update, in.Description, in.DeviceType)
		after, err := update.Save(ctx)
		if err != nil {
			return nil, err
		}
		details := map[string]any{"before": snapshot(row), "after": snapshot(after)}
		if err := events.Append(ctx, tx, s.event(after, c.Name, "SKU_REPLACED", details)); err != nil {
			return nil, err
		}
		return []string{row.ID}, s.verifyAll(ctx, tx, row.ID)
	})
	return err
}

func (s *Service) checkReplace(in *Replace) error {
	if err := fleet.CheckID("skuId", fleet.PrefixSku, in.SkuID); err != nil {
		return err
	}
	if in.SchemaVersion == nil {
		in.SchemaVersion = new(fleet.CurrentSchemaVersion)
	}
	if err := sku.CheckVersion(*in.SchemaVersion, false); err != nil {
		return err
	}
	if err := sku.Validate(in.Components, *in.SchemaVersion, s.limits); err != nil {
		return err
	}
	return checkMetadata(in.Description.Value, in.DeviceType.Value)
}

// verifyAll judges every machine of a SKU, in the order of their ids, so that two
// of these never wait for each other.
func (s *Service) verifyAll(ctx context.Context, tx *ent.Client, skuID string) error {
	ids, err := tx.Machine.Query().Where(machine.SkuID(skuID)).Order(ent.Asc(machine.FieldID)).IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		m, err := tx.Machine.Query().Where(machine.ID(id)).ForUpdate().Only(ctx)
		if err != nil {
			return err
		}
		if m.SkuID == nil || *m.SkuID != skuID {
			continue
		}
		if err := s.judge(ctx, tx, m, false); err != nil {
			return fmt.Errorf("verify machine %s: %w", m.Name, err)
		}
	}
	return nil
}

// Metadata is the input of Service.UpdateMetadata.
type Metadata struct {
	SkuID            string
	Description      fleet.Patch[string]
	DeviceType       fleet.Patch[string]
	ExpectedRevision *int
	Key              string `json:"-"`
}

// UpdateMetadata edits what is not compared; nothing is verified again. An edit
// that changes nothing leaves the revision and the history alone.
func (s *Service) UpdateMetadata(ctx context.Context, in Metadata) error {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return err
	}
	if err := fleet.CheckID("skuId", fleet.PrefixSku, in.SkuID); err != nil {
		return err
	}
	if !in.Description.Set && !in.DeviceType.Set {
		return fleet.Invalid("description", "NOTHING_TO_CHANGE", "description and/or deviceType required")
	}
	if err := checkMetadata(in.Description.Value, in.DeviceType.Value); err != nil {
		return err
	}
	_, err = access.Run(ctx, s.client, access.Mutation{Name: "updateSkuMetadata", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		row, err := findSku(ctx, tx, in.SkuID, true)
		if err != nil {
			return nil, err
		}
		if err := fleet.CheckRevision(in.ExpectedRevision, row.Revision); err != nil {
			return nil, err
		}
		if isKept(row.Description, in.Description) && isKept(deref(row.DeviceType), in.DeviceType) {
			return []string{row.ID}, nil
		}
		update := tx.Sku.UpdateOneID(row.ID).AddRevision(1).SetUpdatedAt(s.now())
		setMetadata(update, in.Description, in.DeviceType)
		after, err := update.Save(ctx)
		if err != nil {
			return nil, err
		}
		details := map[string]any{"before": metadata(row), "after": metadata(after)}
		return []string{row.ID}, events.Append(ctx, tx, s.event(after, c.Name, "SKU_UPDATED", details))
	})
	return err
}

// Delete deletes a SKU that no machine has: otherwise FAILED_PRECONDITION, reason
// SKU_IN_USE, with the number of machines and the first 20 names.
func (s *Service) Delete(ctx context.Context, skuID, key string) error {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return err
	}
	if err := fleet.CheckID("skuId", fleet.PrefixSku, skuID); err != nil {
		return err
	}
	_, err = access.Run(ctx, s.client, access.Mutation{Name: "deleteSku", Key: key, Input: skuID}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		row, err := findSku(ctx, tx, skuID, true)
		if err != nil {
			return nil, err
		}
		if err := inUse(ctx, tx, row); err != nil {
			return nil, err
		}
		if err := tx.Sku.DeleteOneID(row.ID).Exec(ctx); err != nil {
			return nil, err
		}
		return []string{row.ID}, events.Append(ctx, tx, s.event(row, c.Name, "SKU_DELETED", snapshot(row)))
	})
	return err
}

// inUse names the machines that have the SKU. Its row is locked, so that none is
// added meanwhile: an assignment and a match lock it too.
func inUse(ctx context.Context, tx *ent.Client, row *ent.Sku) error {
	holders := tx.Machine.Query().Where(machine.SkuID(row.ID))
	count, err := holders.Clone().Count(ctx)
	if err != nil || count == 0 {
		return err
	}
	names, err := holders.Order(ent.Asc(machine.FieldName)).Limit(maxNamed).Select(machine.FieldName).Strings(ctx)
	if err != nil {
		return err
	}
	return fleet.Precondition("SKU_IN_USE", "The SKU is in use by %d machines: %s", count, fleet.List(names, count)).
		WithDetails(map[string]any{"count": count, "first": names})
}

// lockSku locks a SKU after its site, the order in which Create locks.
func (s *Service) lockSku(ctx context.Context, tx *ent.Client, id string) (*ent.Sku, error) {
	row, err := findSku(ctx, tx, id, false)
	if err != nil {
		return nil, err
	}
	if err := lockSite(ctx, tx, row.SiteID); err != nil {
		return nil, err
	}
	return findSku(ctx, tx, id, true)
}

func (s *Service) event(row *ent.Sku, actor, cause string, details any) events.Transition {
	return events.Transition{
		SiteID: &row.SiteID, SubjectType: fleet.SubjectSku, SubjectID: row.ID,
		Cause: cause, Actor: actor, At: s.now(), Details: details,
	}
}

func snapshot(row *ent.Sku) map[string]any {
	out := metadata(row)
	out["name"], out["schemaVersion"], out["components"], out["revision"] = row.Name, row.SchemaVersion, row.Components, row.Revision
	return out
}

func metadata(row *ent.Sku) map[string]any {
	return map[string]any{"description": row.Description, "deviceType": row.DeviceType}
}

func setMetadata(update *ent.SkuUpdateOne, description, deviceType fleet.Patch[string]) {
	if description.Set {
		update.SetDescription(description.Or(""))
	}
	switch {
	case deviceType.Value != nil:
		update.SetDeviceType(*deviceType.Value)
	case deviceType.Set:
		update.ClearDeviceType()
	}
}

// isKept tells whether a patch leaves a value as it is; empty stands for none.
func isKept(present string, patch fleet.Patch[string]) bool {
	return !patch.Set || deref(patch.Value) == present
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func checkMetadata(description, deviceType *string) error {
	if description != nil {
		if err := fleet.CheckText("description", *description); err != nil {
			return err
		}
	}
	if deviceType != nil {
		return fleet.CheckNamed("deviceType", *deviceType, fleet.MaxSkuNameLength)
	}
	return nil
}
