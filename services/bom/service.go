// Package bom is BOM validation: the SKUs of a site, their assignment to machines,
// and the verdict on a machine's hardware. The rules of comparison are package
// sku's; the machine's moves are package lifecycle's.
package bom

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/site"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/sku"
)

// Service keeps SKUs and judges machines by them.
type Service struct {
	client  *ent.Client
	queue   Queue
	logger  *slog.Logger
	now     func() time.Time
	limits  sku.Limits
	matcher *sku.Matcher
}

// New returns the service on client, whose follow-up work goes to queue, with now as
// its clock and limits on what a SKU may hold, of which zero is the default.
func New(client *ent.Client, queue Queue, logger *slog.Logger, now func() time.Time, limits sku.Limits) *Service {
	return &Service{client: client, queue: queue, logger: logger, now: now, limits: limits, matcher: sku.NewMatcher(limits)}
}

// described is the pure form of a stored SKU.
func described(row *ent.Sku) sku.Sku {
	return sku.Sku{Name: row.Name, SchemaVersion: row.SchemaVersion, Components: row.Components}
}

func describedAll(rows []*ent.Sku) []sku.Sku {
	out := make([]sku.Sku, len(rows))
	for i, row := range rows {
		out[i] = described(row)
	}
	return out
}

// hardware is the pure form of a machine's last inventory; nil before the first.
func hardware(m *ent.Machine) (*sku.Machine, error) {
	if len(m.InventoryDocument) == 0 {
		return nil, nil //nolint:nilnil // no inventory is no fault, and has no hardware
	}
	inventory, err := fleet.ParseInventory(m.InventoryDocument)
	if err != nil {
		return nil, fmt.Errorf("stored inventory of %s: %w", m.ID, err)
	}
	return sku.NewMachine(inventory, m.FabricPorts), nil
}

// lockSite serialises what decides on all SKUs of a site: that no two of them
// describe the same hardware.
func lockSite(ctx context.Context, tx *ent.Client, id string) error {
	_, err := tx.Site.Query().Where(site.ID(id), pgdb.ForNoKeyUpdate).OnlyID(ctx)
	if ent.IsNotFound(err) {
		return fleet.Missing("siteId", "SITE_NOT_FOUND", "site not found: %s", id)
	}
	return err
}

// findSku loads the SKU of this id, locked when lock is set.
func findSku(ctx context.Context, client *ent.Client, id string, lock bool) (*ent.Sku, error) {
	query := client.Sku.Query().Where(entsku.ID(id))
	if lock {
		query.Where(pgdb.ForNoKeyUpdate)
	}
	row, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, fleet.Missing("skuId", "SKU_NOT_FOUND", "The SKU %s does not exist", id)
	}
	return row, err
}
