package bom

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
	"fleetgraph/services/lifecycle"
	"fleetgraph/services/sku"
)

// maxExplained bounds the candidates of one explanation.
const maxExplained = 20

// Draft is what a SKU made from a machine's inventory would be.
type Draft struct {
	Name          string
	Description   string
	SchemaVersion int
	Components    fleet.SkuComponents
}

// Generate returns a draft from a machine's last inventory at the current schema
// version. Without a name it proposes one by the guide's convention (SKU Names)
// with the next index that is free at the site.
func (s *Service) Generate(ctx context.Context, machineID string, name *string) (Draft, error) {
	if name != nil {
		if err := fleet.CheckSkuName("name", *name); err != nil {
			return Draft{}, err
		}
	}
	m, hw, err := s.inventoried(ctx, machineID)
	if err != nil {
		return Draft{}, err
	}
	components, err := hw.Components(fleet.CurrentSchemaVersion)
	if err != nil {
		return Draft{}, err
	}
	if name == nil {
		names, err := s.client.Sku.Query().Where(entsku.SiteID(m.SiteID)).Select(entsku.FieldName).Strings(ctx)
		if err != nil {
			return Draft{}, err
		}
		taken := make(map[string]bool, len(names))
		for _, n := range names {
			taken[n] = true
		}
		name = new(sku.ProposeName(components, func(n string) bool { return taken[n] }))
	}
	return Draft{
		Name: *name, Description: sku.Describe(components),
		SchemaVersion: fleet.CurrentSchemaVersion, Components: components,
	}, nil
}

// Explained is a SKU with what separates a machine from it.
type Explained struct {
	SkuID string
	sku.Candidate
}

// Explain returns the first SKUs of the machine's site that are nearest to it.
func (s *Service) Explain(ctx context.Context, machineID string, first int) ([]Explained, error) {
	if first < 1 || first > maxExplained {
		return nil, fleet.Invalid("first", "PAGE_SIZE_INVALID", "first is within 1 and %d", maxExplained)
	}
	m, hw, err := s.inventoried(ctx, machineID)
	if err != nil {
		return nil, err
	}
	rows, err := s.client.Sku.Query().Where(entsku.SiteID(m.SiteID)).All(ctx)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]string, len(rows))
	for _, row := range rows {
		ids[row.Name] = row.ID
	}
	candidates, err := s.matcher.Explain(ctx, hw, describedAll(rows), first)
	if err != nil {
		return nil, err
	}
	out := make([]Explained, len(candidates))
	for i, c := range candidates {
		out[i] = Explained{SkuID: ids[c.Sku.Name], Candidate: c}
	}
	return out, nil
}

// Compare compares a machine with a SKU, at the SKU's own schema version; nil
// before the machine's first inventory.
func (s *Service) Compare(ctx context.Context, m *ent.Machine, row *ent.Sku) (*fleet.Comparison, error) {
	return s.compare(ctx, m, row)
}

// Affected is the machines that a change concerns: how many, and the ids of the
// first 20 by name.
type Affected struct {
	Count int
	First []string
}

func (a *Affected) add(id string) {
	if a.Count++; len(a.First) < maxNamed {
		a.First = append(a.First, id)
	}
}

// Preview is what replacing a SKU's components would change. DuplicateOf is the id
// of another SKU that the new hardware would double, empty where no other SKU of the site describes the new hardware.
type Preview struct {
	Starts, Stops Affected
	DuplicateOf   string
}

// PreviewReplace tells who would start or stop matching. Machines are those with
// the SKU, and those of the site with none.
func (s *Service) PreviewReplace(ctx context.Context, skuID string, components fleet.SkuComponents) (Preview, error) {
	if err := fleet.CheckID("skuId", fleet.PrefixSku, skuID); err != nil {
		return Preview{}, err
	}
	if err := sku.Validate(components, fleet.CurrentSchemaVersion, s.limits); err != nil {
		return Preview{}, err
	}
	row, err := findSku(ctx, s.client, skuID, false)
	if err != nil {
		return Preview{}, err
	}
	before := described(row)
	after := sku.Sku{Name: row.Name, SchemaVersion: fleet.CurrentSchemaVersion, Components: components}
	var preview Preview
	others, err := s.client.Sku.Query().
		Where(entsku.SiteID(row.SiteID), entsku.IDNEQ(row.ID), entsku.MatchKey(sku.Key(components))).All(ctx)
	if err != nil {
		return Preview{}, err
	}
	duplicate, found, err := s.matcher.Duplicate(ctx, after, describedAll(others))
	if err != nil {
		return Preview{}, err
	}
	if found {
		for _, other := range others {
			if other.Name == duplicate.Name {
				preview.DuplicateOf = other.ID
			}
		}
	}
	err = s.eachConcerned(ctx, row, func(m *ent.Machine) error {
		hw, err := hardware(m)
		if err != nil || hw == nil {
			return err
		}
		was, err := s.matcher.Compare(ctx, hw, before)
		if err != nil {
			return err
		}
		will, err := s.matcher.Compare(ctx, hw, after)
		if err != nil {
			return err
		}
		switch {
		case !was.Match && will.Match:
			preview.Starts.add(m.ID)
		case was.Match && !will.Match && m.SkuID != nil:
			preview.Stops.add(m.ID)
		}
		return nil
	})
	return preview, err
}

// previewBatch is how many machines are held in memory at once.
const previewBatch = 500

// eachConcerned visits, by name, the hosts that have the SKU or none.
func (s *Service) eachConcerned(ctx context.Context, row *ent.Sku, visit func(*ent.Machine) error) error {
	last := ""
	for {
		batch, err := s.client.Machine.Query().
			Where(machine.SiteID(row.SiteID), machine.KindEQ(fleet.KindHost), machine.NameGT(last),
				machine.Or(machine.SkuID(row.ID), machine.SkuNameIsNil())).
			Order(ent.Asc(machine.FieldName)).Limit(previewBatch).All(ctx)
		if err != nil {
			return err
		}
		for _, m := range batch {
			if err := visit(m); err != nil {
				return err
			}
			last = m.Name
		}
		if len(batch) < previewBatch {
			return nil
		}
	}
}

// inventoried loads a machine with its hardware: FAILED_PRECONDITION, reason
// INVENTORY_MISSING, before its first inventory.
func (s *Service) inventoried(ctx context.Context, machineID string) (*ent.Machine, *sku.Machine, error) {
	m, err := lifecycle.Find(ctx, s.client, machineID)
	if err != nil {
		return nil, nil, err
	}
	hw, err := hardware(m)
	if err != nil {
		return nil, nil, err
	}
	if hw == nil {
		return nil, nil, fleet.Precondition("INVENTORY_MISSING", "machine %s has not reported an inventory", m.Name)
	}
	return m, hw, nil
}
