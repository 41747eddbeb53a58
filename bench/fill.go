package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

const (
	sites       = 4
	skusPerSite = 50
)

// fill makes the fleet have this many machines, at 4 sites with 50 SKUs each. Every
// fourth machine has an alert. Rows are written by COPY: the services' own way in is
// not what is measured.
func fill(ctx context.Context, pool *pgxpool.Pool, machines int) error {
	if _, err := pool.Exec(ctx, "TRUNCATE sites, skus, machines, health_alerts, transitions CASCADE"); err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second)
	var siteRows, skuRows, machineRows, alertRows [][]any
	siteIDs := make([]string, sites)
	skuIDs := make([]string, sites*skusPerSite)
	for s := range siteIDs {
		siteIDs[s] = fleet.NewID(fleet.PrefixSite)
		siteRows = append(siteRows, []any{siteIDs[s], now, fmt.Sprintf("dc%d", s), "", 1, now, fleet.DefaultBomValidation(), fleet.DefaultMachineValidation()})
	}
	for k := range skuIDs {
		components, err := sku.Generate(hardware(k), nil, fleet.CurrentSchemaVersion)
		if err != nil {
			return err
		}
		document, err := json.Marshal(components)
		if err != nil {
			return err
		}
		skuIDs[k] = fleet.NewID(fleet.PrefixSku)
		skuRows = append(skuRows, []any{
			skuIDs[k], now, siteIDs[k%sites], fmt.Sprintf("kind.%05d", k), sku.Describe(components),
			fleet.CurrentSchemaVersion, document, sku.Key(components), 1, now,
		})
	}
	inventory, err := json.Marshal(hardware(0))
	if err != nil {
		return err
	}
	for i := range machines {
		id, site := fleet.NewID(fleet.PrefixMachine), siteIDs[i%sites]
		k := i % len(skuIDs)
		state, sub := fleet.StateReady, (*string)(nil)
		if i%4 == 0 {
			state, sub = fleet.StateBomValidating, new(string(fleet.SubSkuVerificationFailed))
			alertRows = append(alertRows, []any{
				fleet.NewID(fleet.PrefixHealthAlert), site, id, "SkuValidation", "sku-validation", "",
				"Expected storage drive at PCI location /nvme/ not found", []byte(`["PREVENT_ALLOCATIONS"]`), now,
			})
		}
		machineRows = append(machineRows, []any{
			id, now, site, fmt.Sprintf("node-%06d", i), fmt.Sprintf("02:00:00:%02x:%02x:%02x", i>>16, i>>8&255, i&255),
			"HOST", "default", fmt.Sprintf("S%06d", i), "Dell Inc.", "PowerEdge R700", string(state), sub, now,
			skuIDs[k], fmt.Sprintf("kind.%05d", k), inventory, now, now,
		})
	}
	for _, table := range []struct {
		name    string
		columns []string
		rows    [][]any
	}{
		{"sites", []string{"id", "created_at", "name", "description", "revision", "updated_at", "bom_validation", "machine_validation"}, siteRows},
		{"skus", []string{"id", "created_at", "site_id", "name", "description", "schema_version", "components", "match_key", "revision", "updated_at"}, skuRows},
		{"machines", []string{
			"id", "created_at", "site_id", "name", "bmc_mac_address", "kind", "platform", "serial_number", "vendor", "model", "state", "sub_state",
			"state_changed_at", "sku_id", "sku_name", "inventory_document", "inventory_reported_at", "updated_at",
		}, machineRows},
		{"health_alerts", []string{"id", "site_id", "machine_id", "alert_id", "source", "target", "message", "classifications", "in_alert_since"}, alertRows},
	} {
		if _, err := pool.CopyFrom(ctx, pgx.Identifier{table.name}, table.columns, pgx.CopyFromRows(table.rows)); err != nil {
			return fmt.Errorf("fill %s: %w", table.name, err)
		}
	}
	// Or else autovacuum does so while the readers are measured.
	_, err = pool.Exec(ctx, "VACUUM ANALYZE")
	return err
}
