package bom

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/fleet"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
	"fleetgraph/services/sku"
)

// maxNamed is how many objects in the way an error names.
const maxNamed = 20

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

// Replace replaces what a SKU describes and asks for a verification of every machine
// that has it (the guide, Replacing an existing SKU).
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
		return []string{row.ID}, s.requestVerification(ctx, tx, row.ID)
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

// requestVerification asks for a verification of every machine of a SKU, which
// cannot be allocated until it has happened. They are due as well, in case the process
// that does the job is killed.
func (s *Service) requestVerification(ctx context.Context, tx *ent.Client, skuID string) error {
	now := s.now()
	err := tx.Machine.Update().Where(machine.SkuID(skuID)).SetVerifyRequestedAt(now).SetAttendAt(now).Exec(ctx)
	if err != nil {
		return err
	}
	return s.skuChanged(ctx, skuID)
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
