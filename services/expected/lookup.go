package expected

import (
	"context"
	"slices"

	"fleetgraph/ent"
	"fleetgraph/ent/expectedmachine"
	"fleetgraph/ent/machine"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
)

// surroundings are what entries of a site refer to, by name and by MAC address. The
// rows stay there until the transaction ends.
type surroundings struct {
	skus     map[string]string // ids by name
	machines map[string]string // ids by the MAC address of the BMC
}

// lookUp finds the SKUs and the machines that entries name, in one query each. What
// it locks is locked after the site and before any entry.
func lookUp(ctx context.Context, tx *ent.Client, siteID string, items []Fields) (surroundings, error) {
	names, macs := []string{}, macsOf(items)
	for i := range items {
		if name := items[i].SkuName.Value; name != nil {
			names = append(names, *name)
		}
	}
	found := surroundings{map[string]string{}, map[string]string{}}
	if len(names) > 0 {
		slices.Sort(names)
		rows, err := tx.Sku.Query().Where(entsku.SiteID(siteID), entsku.NameIn(slices.Compact(names)...), keyShare).
			Select(entsku.FieldID, entsku.FieldName).All(ctx)
		if err != nil {
			return surroundings{}, (&fleet.Error{
				Code: fleet.Unavailable, Reason: "SKU_LOOKUP_FAILED", Field: "skuName",
				Message: "Failed to validate SKU ID in request data due to DB error",
			}).WithCause(err)
		}
		for _, row := range rows {
			found.skus[row.Name] = row.ID
		}
	}
	if len(macs) > 0 {
		rows, err := tx.Machine.Query().Where(machine.SiteID(siteID), machine.BmcMACAddressIn(macs...), keyShare).
			Select(machine.FieldID, machine.FieldBmcMACAddress).All(ctx)
		if err != nil {
			return surroundings{}, err
		}
		for _, row := range rows {
			found.machines[row.BmcMACAddress] = row.ID
		}
	}
	return found, nil
}

// checkSkus finds the entries whose SKU does not exist at the site.
func (s surroundings) checkSkus(items []Fields, found faults, f form) {
	for i := range items {
		name := items[i].SkuName.Value
		if name == nil || found[i] != nil {
			continue
		}
		if _, ok := s.skus[*name]; !ok {
			found[i] = f.unknownSku(*name)
		}
	}
}

func macsOf(items []Fields) []string {
	macs := make([]string, 0, len(items))
	for i := range items {
		if mac := items[i].BmcMacAddress.Value; mac != nil {
			macs = append(macs, *mac)
		}
	}
	return macs
}

// checkTaken finds the entries whose BMC another entry of the site has; ids are their
// own, and nil for new ones.
func checkTaken(ctx context.Context, tx *ent.Client, siteID string, items []Fields, ids []string, found faults) error {
	macs := macsOf(items)
	if len(macs) == 0 {
		return nil
	}
	rows, err := tx.ExpectedMachine.Query().Where(expectedmachine.SiteID(siteID), expectedmachine.BmcMACAddressIn(macs...)).
		Select(expectedmachine.FieldID, expectedmachine.FieldBmcMACAddress).All(ctx)
	if err != nil {
		return err
	}
	holders := make(map[string]string, len(rows))
	for _, row := range rows {
		holders[row.BmcMACAddress] = row.ID
	}
	for i := range items {
		mac := items[i].BmcMacAddress.Value
		if mac == nil || found[i] != nil {
			continue
		}
		if holder, ok := holders[*mac]; ok && (ids == nil || ids[i] != holder) {
			found[i] = fleet.Exists("bmcMacAddress", "MAC_TAKEN", duplicateMac, *mac)
		}
	}
	return nil
}
