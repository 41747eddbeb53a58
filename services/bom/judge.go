package bom

import (
	"context"
	"strings"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/healthalert"
	"fleetgraph/ent/machine"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
	"fleetgraph/services/lifecycle"
)

// The alert of a failed validation (the guide, Behavior).
const (
	AlertID             = "SkuValidation"
	AlertSource         = "sku-validation"
	PreventAllocations  = "PREVENT_ALLOCATIONS"
	maxRecordedMismatch = 100 // mismatches in one history row; the alert has them all
)

// InventoryStored judges a machine by the inventory that m holds; see judge.
func (s *Service) InventoryStored(ctx context.Context, tx *ent.Client, m *ent.Machine) error {
	return s.judge(ctx, tx, m, true)
}

// judge compares m, which is locked, with its SKU, or looks for one that it
// matches, and moves it: READY where the hardware is what the SKU says, otherwise
// to where it waits for a person, with an alert that says why. Quiet judgements
// leave no history where nothing changes.
func (s *Service) judge(ctx context.Context, tx *ent.Client, m *ent.Machine, quiet bool) error {
	change := lifecycle.Change{At: s.now()}
	if m.Kind == fleet.KindDPU {
		return s.exempt(ctx, tx, m, change)
	}
	if m.SkuID != nil {
		return s.verify(ctx, tx, m, change)
	}
	return s.match(ctx, tx, m, change)
}

// exempt takes a DPU out of BOM validation, and away from it the SKU that it may have
// got while it passed for a host.
func (s *Service) exempt(ctx context.Context, tx *ent.Client, m *ent.Machine, change lifecycle.Change) error {
	change.Event = fleet.EventDpuReported
	if m.SkuName != nil {
		if err := clearSku(ctx, tx, m); err != nil {
			return err
		}
		change.Details = map[string]any{"sku": *m.SkuName}
	}
	return s.settle(ctx, tx, m, change, "")
}

// clearSku takes the SKU of a machine away, and with it the last verdict.
func clearSku(ctx context.Context, tx *ent.Client, m *ent.Machine) error {
	return tx.Machine.Update().Where(machine.ID(m.ID)).ClearSkuID().ClearSkuName().
		ClearLastVerifiedAt().ClearLastVerificationMatch().Exec(ctx)
}

func (s *Service) verify(ctx context.Context, tx *ent.Client, m *ent.Machine, change lifecycle.Change) error {
	row, err := findSku(ctx, tx, *m.SkuID, false)
	if err != nil {
		return err
	}
	comparison, err := s.compare(ctx, m, row)
	if err != nil || comparison == nil {
		return err
	}
	err = tx.Machine.Update().Where(machine.ID(m.ID)).
		SetLastVerifiedAt(change.At).SetLastVerificationMatch(comparison.Match).Exec(ctx)
	if err != nil {
		return err
	}
	details := map[string]any{"sku": row.Name, "skuRevision": row.Revision}
	change.Details = details
	if comparison.Match {
		change.Event = fleet.EventSkuVerified
		return s.settle(ctx, tx, m, change, "")
	}
	change.Event = fleet.EventSkuMismatch
	change.Message = messages(comparison.Mismatches)
	details["mismatches"] = comparison.Mismatches[:min(len(comparison.Mismatches), maxRecordedMismatch)]
	details["mismatchCount"] = len(comparison.Mismatches)
	return s.settle(ctx, tx, m, change, change.Message)
}

// match assigns the matching SKU with the smallest name and records the others.
// The match counts as a verification.
func (s *Service) match(ctx context.Context, tx *ent.Client, m *ent.Machine, change lifecycle.Change) error {
	rows, err := s.matches(ctx, tx, m)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		change.Event = fleet.EventSkuNotFound
		return s.settle(ctx, tx, m, change, "")
	}
	taken := rows[0]
	err = tx.Machine.Update().Where(machine.ID(m.ID)).SetSkuID(taken.ID).SetSkuName(taken.Name).
		SetLastVerifiedAt(change.At).SetLastVerificationMatch(true).Exec(ctx)
	if err != nil {
		return err
	}
	others := make([]string, 0, len(rows)-1)
	for _, row := range rows[1:] {
		others = append(others, row.Name)
	}
	change.Event = fleet.EventSkuMatched
	change.Details = map[string]any{"sku": taken.Name, "skuRevision": taken.Revision, "alsoMatching": others}
	return s.settle(ctx, tx, m, change, "")
}

// matches returns the SKUs of m's site that m matches, each at its own schema
// version, by name. They stay as they are until the transaction ends: one that is
// being replaced or deleted is waited for.
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

// settle puts or removes the alert and moves the machine. An empty text removes
// it: an alert never outlives its reason.
func (s *Service) settle(ctx context.Context, tx *ent.Client, m *ent.Machine, change lifecycle.Change, alert string) error {
	_, err := setAlert(ctx, tx, m, alert, change.At)
	if err != nil {
		return err
	}
	return lifecycle.Move(ctx, tx, m, fleet.MachinePosition{}, change)
}

// setAlert makes the machine's one SKU alert say text, or removes it, and tells
// whether that changed anything.
func setAlert(ctx context.Context, tx *ent.Client, m *ent.Machine, text string, now time.Time) (changed bool, err error) {
	its := healthalert.And(
		healthalert.MachineID(m.ID), healthalert.Source(AlertSource), healthalert.AlertID(AlertID))
	if text == "" {
		n, err := tx.HealthAlert.Delete().Where(its).Exec(ctx)
		return n > 0, err
	}
	standing, err := tx.HealthAlert.Query().Where(its).Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return true, tx.HealthAlert.Create().SetSiteID(m.SiteID).SetMachineID(m.ID).
			SetAlertID(AlertID).SetSource(AlertSource).SetMessage(text).
			SetClassifications([]string{PreventAllocations}).SetInAlertSince(now).Exec(ctx)
	case err != nil || standing.Message == text:
		return false, err
	default:
		return true, tx.HealthAlert.Update().Where(its).SetMessage(text).SetInAlertSince(now).Exec(ctx)
	}
}

func messages(mismatches []fleet.Mismatch) string {
	lines := make([]string, len(mismatches))
	for i, m := range mismatches {
		lines[i] = m.Message
	}
	return strings.Join(lines, "\n")
}
