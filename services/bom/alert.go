package bom

import (
	"context"
	"slices"
	"strings"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/healthalert"
	"fleetgraph/fleet"
	"fleetgraph/services/lifecycle"
)

// The alerts of BOM validation (the guide, Behavior).
const (
	alertSource  = "sku-validation"
	alertSku     = "SkuValidation"    // the hardware differs from the SKU, or the SKU does not exist
	alertOverdue = "InventoryOverdue" // a fresh inventory has been waited for too long
)

// alerts brings the machine's alerts in line with a move: text is what is wrong from
// now on, empty for nothing. An alert never outlives its reason; that of a failed
// verification stands until the next verdict.
func (st *step) alerts(ctx context.Context, event fleet.MachineEvent, text string) error {
	if lifecycle.Position(st.m) == fleet.BomPosition(fleet.SubUpdatingInventory) {
		if _, err := setAlert(ctx, st.tx, st.m, alertOverdue, "", st.now); err != nil {
			return err
		}
	}
	before := []fleet.MachineEvent{
		fleet.EventVerifyRequested, fleet.EventInventoryUpdated, fleet.EventVerificationStarted, fleet.EventInventoryChanged,
	}
	if slices.Contains(before, event) { // the next verdict
		return nil
	}
	_, err := setAlert(ctx, st.tx, st.m, alertSku, text, st.now)
	return err
}

// setAlert makes the machine's alert of this id say text, or removes it, and tells
// whether that changed anything.
func setAlert(ctx context.Context, tx *ent.Client, m *ent.Machine, id, text string, now time.Time) (changed bool, err error) {
	its := healthalert.And(healthalert.MachineID(m.ID), healthalert.Source(alertSource), healthalert.AlertID(id))
	if text == "" {
		n, err := tx.HealthAlert.Delete().Where(its).Exec(ctx)
		return n > 0, err
	}
	standing, err := tx.HealthAlert.Query().Where(its).Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return true, tx.HealthAlert.Create().SetSiteID(m.SiteID).SetMachineID(m.ID).
			SetAlertID(id).SetSource(alertSource).SetMessage(text).
			SetClassifications([]string{lifecycle.PreventAllocations}).SetInAlertSince(now).Exec(ctx)
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
