// Package demo fills an empty database with a site of sample machines, so that the
// first screen shows something: machines that are ready, one that waits for a SKU,
// one with an alert, and DPUs. It goes through the services as an operator would,
// and never touches a database that has a site.
package demo

import (
	"context"
	"embed"
	"fmt"

	"fleetgraph/ent"
	"fleetgraph/fleet"
	"fleetgraph/services/access"
	"fleetgraph/services/bom"
	"fleetgraph/services/lifecycle"
	"fleetgraph/services/site"
	"fleetgraph/services/sku"
)

//go:embed inventories
var inventories embed.FS

// siteName is the name of the site that is made.
const siteName = "demo"

// Services are what the sample goes through. Client is scoped to the caller.
type Services struct {
	Client   *ent.Client
	Sites    *site.Service
	Skus     *bom.Service
	Machines *lifecycle.Service
}

// machine is one sample machine.
type machine struct {
	name      string
	inventory string // the file that it reports
	// skuVersion is the schema version of a SKU that is made from the machine, which
	// it then matches; zero: the machine matches one that is there, or waits. The
	// inventories of older agents lack the drive sizes that version 5 needs.
	skuVersion int
	// later is the file that it reports after that; empty for none.
	later string
}

// machines of the site. BMC MAC addresses follow from the order.
func machines() []machine {
	return []machine{
		{name: "gpu-01", inventory: "composed/xe9680_8gpu", skuVersion: 5},
		{name: "gpu-02", inventory: "composed/xe9680_8gpu"},
		{name: "gpu-03-lost-a-gpu", inventory: "composed/xe9680_7gpu"},
		{name: "gpu-04-lost-a-drive", inventory: "composed/xe9680_8gpu", later: "composed/xe9680_missing_drive"},
		{name: "storage-01", inventory: "composed/r760_9nvme", skuVersion: 5},
		{name: "storage-02", inventory: "composed/r760_9nvme_renumbered_controllers"},
		{name: "nvl-01-tray-1", inventory: "upstream/gb200_compute_tray_1_info", skuVersion: 4},
		{name: "nvl-01-tray-2", inventory: "upstream/gb200_compute_tray_2_info", skuVersion: 4},
		{name: "nvl-01-tray-3", inventory: "upstream/gb200_compute_tray_3_info"},
		{name: "nvl-01-tray-4", inventory: "upstream/gb200_compute_tray_4_info"},
		{name: "gpu-05", inventory: "upstream/x86_info", skuVersion: 4},
		{name: "virtual-01", inventory: "upstream/machine-a-tron_host_discovery_info", skuVersion: 4},
		{name: "dpu-01", inventory: "upstream/dpu_info"},
		{name: "dpu-02", inventory: "upstream/dpu_bf3_info"},
	}
}

// Fill makes the site unless the database has one. Of two processes that do so at
// once, the second finds the first one's site and leaves it alone.
func Fill(ctx context.Context, s Services) error {
	ctx = access.AsSystem(ctx, "demo")
	sites, err := s.Client.Site.Query().Count(ctx)
	if err != nil || sites > 0 {
		return err
	}
	siteID, err := s.Sites.Create(ctx, site.Create{Name: siteName, Description: "Sample machines; nothing here exists."})
	if known, ok := fleet.AsError(err); ok && known.Code == fleet.AlreadyExists {
		return nil
	}
	if err != nil {
		return err
	}
	enabled := site.Bom{Enabled: fleet.Patch[bool]{Set: true, Value: new(true)}}
	_, err = s.Sites.Update(ctx, site.Update{SiteID: siteID, Bom: fleet.Patch[site.Bom]{Set: true, Value: &enabled}})
	if err != nil {
		return err
	}
	for i, m := range machines() {
		if err := s.add(ctx, siteID, bmcMacAddress(i), m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// bmcMacAddress is of the range that nobody is assigned (IEEE 802, locally
// administered).
func bmcMacAddress(i int) string { return fmt.Sprintf("02:fb:00:00:00:%02x", i+1) }

func (s Services) add(ctx context.Context, siteID, mac string, m machine) error {
	if err := s.report(ctx, siteID, mac, m.name, m.inventory); err != nil {
		return err
	}
	if m.skuVersion != 0 {
		if err := s.defineSku(ctx, siteID, m); err != nil {
			return err
		}
		if err := s.report(ctx, siteID, mac, m.name, m.inventory); err != nil { // which matches it now
			return err
		}
	}
	if m.later == "" {
		return nil
	}
	return s.report(ctx, siteID, mac, m.name, m.later)
}

func (s Services) report(ctx context.Context, siteID, mac, name, inventory string) error {
	document, err := read(inventory)
	if err != nil {
		return err
	}
	_, err = s.Machines.ReportInventory(ctx, lifecycle.Report{
		SiteID: siteID, BmcMacAddress: mac, Name: name, Inventory: document,
	})
	return err
}

func (s Services) defineSku(ctx context.Context, siteID string, m machine) error {
	document, err := read(m.inventory)
	if err != nil {
		return err
	}
	inventory, err := fleet.ParseInventory(document)
	if err != nil {
		return err
	}
	components, err := sku.NewMachine(inventory, nil).Components(m.skuVersion)
	if err != nil {
		return err
	}
	name := sku.ProposeName(components, func(string) bool { return false }) // no two samples propose the same
	_, err = s.Skus.Create(ctx, bom.Create{
		SiteID:              siteID,
		Skus:                []bom.NewSku{{Name: name, SchemaVersion: &m.skuVersion, Components: components}},
		AcceptOlderVersions: true,
	})
	return err
}

func read(inventory string) ([]byte, error) {
	return inventories.ReadFile("inventories/" + inventory + ".json")
}
