package bom

import (
	"context"
	"log/slog"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/expectedmachine"
	"fleetgraph/ent/machine"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
	"fleetgraph/services/sku"
)

// matches returns the SKUs of m's site that m matches, each at its own schema
// version, by name. They stay as they are until the transaction ends: one that is
// being replaced or deleted is waited for, and waits for machines of its own only:
// m has no SKU, or has just lost one that is locked already.
func (s *Service) matches(ctx context.Context, tx *ent.Client, m *ent.Machine) ([]*ent.Sku, error) {
	hw, err := hardware(m)
	if err != nil || hw == nil {
		return nil, err
	}
	candidates, err := tx.Sku.Query().
		Where(entsku.SiteID(m.SiteID), entsku.MatchKey(hw.Key())).
		Order(ent.Asc(entsku.FieldName)).ForShare().All(ctx)
	if err != nil {
		return nil, err
	}
	matching := candidates[:0]
	for _, row := range candidates {
		comparison, err := s.matcher.Compare(ctx, hw, described(row))
		if err != nil {
			return nil, err
		}
		if comparison.Match {
			matching = append(matching, row)
		}
	}
	return matching, nil
}

// compare compares a machine with a SKU; nil before its first inventory.
func (s *Service) compare(ctx context.Context, m *ent.Machine, row *ent.Sku) (*fleet.Comparison, error) {
	hw, err := hardware(m)
	if err != nil || hw == nil {
		return nil, err
	}
	comparison, err := s.matcher.Compare(ctx, hw, described(row))
	if err != nil {
		return nil, err
	}
	return &comparison, nil
}

// generateMissing creates the SKU that m's expected machine names from m itself (the
// guide, Assign a SKU through the expected machine), under the name that both say.
// It returns what the history says of the attempt, which may have failed; nil where
// none was made.
func (s *Service) generateMissing(ctx context.Context, tx *ent.Client, m *ent.Machine, now time.Time) (map[string]any, error) {
	system := access.AsSystem(ctx, "bom") // an agent's report may cause it
	wanted, err := tx.ExpectedMachine.Query().Where(
		expectedmachine.SiteID(m.SiteID), expectedmachine.BmcMACAddress(m.BmcMACAddress),
		expectedmachine.SkuName(*m.SkuName)).Exist(system)
	if err != nil || !wanted {
		return nil, err
	}
	m.LastGenerateAttemptAt = &now
	if err := tx.Machine.Update().Where(machine.ID(m.ID)).SetLastGenerateAttemptAt(now).Exec(ctx); err != nil {
		return nil, err
	}
	log := s.logger.With(slog.String("machine", m.Name), slog.String("sku", *m.SkuName))
	hw, err := hardware(m)
	if err != nil {
		return nil, err
	}
	if hw == nil {
		log.WarnContext(ctx, "Failed to generate SKU for machine", slog.String("err", "it has no inventory"))
		return nil, nil //nolint:nilnil // no attempt
	}
	components, err := hw.Components(fleet.CurrentSchemaVersion)
	if err != nil {
		log.WarnContext(ctx, "Failed to generate SKU for machine", slog.Any("err", err))
		return nil, nil //nolint:nilnil // no attempt
	}
	details := map[string]any{"sku": *m.SkuName}
	err = s.createMissing(system, tx, m, components)
	if fault, ok := fleet.AsError(err); ok {
		log.WarnContext(ctx, "Failed to create generated SKU for machine", slog.Any("err", fault))
		details["error"] = fault.Message
		return details, nil
	}
	return details, err
}

func (s *Service) createMissing(ctx context.Context, tx *ent.Client, m *ent.Machine, components fleet.SkuComponents) error {
	item := NewSku{Name: *m.SkuName, Components: components}
	if err := s.checkNew(&item, false); err != nil {
		return err
	}
	if err := lockSite(ctx, tx, m.SiteID); err != nil {
		return err
	}
	exists, err := tx.Sku.Query().Where(entsku.SiteID(m.SiteID), entsku.Name(item.Name)).Exist(ctx)
	if err != nil || exists { // another was faster: it is there
		return err
	}
	rows, err := tx.Sku.Query().Where(entsku.SiteID(m.SiteID), entsku.MatchKey(sku.Key(components))).All(ctx)
	if err != nil {
		return err
	}
	stored := map[string][]sku.Sku{sku.Key(components): describedAll(rows)}
	row, err := s.insert(ctx, tx, m.SiteID, item, stored)
	if err != nil {
		return err
	}
	if err := events.Append(ctx, tx, s.event(row, access.Actor(ctx), "SKU_CREATED", snapshot(row))); err != nil {
		return err
	}
	return s.skuChanged(ctx, row.ID)
}
