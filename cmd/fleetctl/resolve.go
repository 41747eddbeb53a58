package main

import (
	"context"
	"encoding/hex"
	"net"
	"strings"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

// site is the site that the command is about: the one that the settings name,
// else the only one that the caller may see.
func (a *app) site(ctx context.Context) (client.SiteFields, error) {
	if a.theSite != nil {
		return *a.theSite, nil
	}
	settings, err := a.settings()
	if err != nil {
		return client.SiteFields{}, err
	}
	var site client.SiteFields
	if settings.Site != "" {
		site, err = a.siteNamed(ctx, settings.Site)
	} else {
		site, err = a.onlySite(ctx)
	}
	if err != nil {
		return client.SiteFields{}, err
	}
	a.theSite = &site
	return site, nil
}

func (a *app) siteNamed(ctx context.Context, name string) (client.SiteFields, error) {
	gql, err := a.api()
	if err != nil {
		return client.SiteFields{}, err
	}
	found, err := client.GetSite(ctx, gql, name)
	if err != nil {
		return client.SiteFields{}, err
	}
	if found.Site == nil {
		return client.SiteFields{}, fleet.Missing("site", "SITE_NOT_FOUND", "site not found: %s", name)
	}
	return *found.Site, nil
}

func (a *app) onlySite(ctx context.Context) (client.SiteFields, error) {
	gql, err := a.api()
	if err != nil {
		return client.SiteFields{}, err
	}
	found, err := client.ListSites(ctx, gql, 2, nil)
	if err != nil {
		return client.SiteFields{}, err
	}
	switch edges := found.Sites.Edges; len(edges) {
	case 0:
		return client.SiteFields{}, fleet.Missing("site", "SITE_NOT_FOUND", "there is no site yet: create one with fleetctl site create NAME")
	case 1:
		return *edges[0].Node, nil
	default:
		return client.SiteFields{}, usagef("there are several sites: pass --site NAME, or set FLEETGRAPH_SITE")
	}
}

// machine finds a machine by its id, or at the site by its name, the MAC address
// of its BMC or its serial number, in this order. A serial number that several
// machines report is the server's error, which names them.
func (a *app) machine(ctx context.Context, arg string) (client.MachineFields, error) {
	gql, err := a.api()
	if err != nil {
		return client.MachineFields{}, err
	}
	if prefix, ok := fleet.IDPrefix(arg); ok && prefix == fleet.PrefixMachine {
		found, err := client.MachineById(ctx, gql, arg)
		if err != nil {
			return client.MachineFields{}, err
		}
		for _, edge := range found.Machines.Edges {
			return *edge.Node, nil
		}
		return client.MachineFields{}, fleet.Missing("machine", "MACHINE_NOT_FOUND", "machine not found: %s", arg)
	}
	site, err := a.site(ctx)
	if err != nil {
		return client.MachineFields{}, err
	}
	found, err := client.MachineByName(ctx, gql, site.Name, arg, isMac(arg))
	if err != nil {
		return client.MachineFields{}, err
	}
	if found.ByName != nil {
		return *found.ByName, nil
	}
	if found.ByMac != nil {
		return *found.ByMac, nil
	}
	bySerial, err := client.MachineBySerial(ctx, gql, site.Name, arg)
	if err != nil {
		return client.MachineFields{}, err
	}
	if bySerial.Machine == nil {
		return client.MachineFields{}, fleet.Missing("machine", "MACHINE_NOT_FOUND",
			"machine not found at site %s: no name, BMC MAC address or serial number is %s", site.Name, arg)
	}
	return *bySerial.Machine, nil
}

// findSku finds a SKU by its id, or by its name at the site; nil where there is
// none.
func (a *app) findSku(ctx context.Context, arg string) (*client.SkuFields, error) {
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	if prefix, ok := fleet.IDPrefix(arg); ok && prefix == fleet.PrefixSku {
		found, err := client.SkuById(ctx, gql, arg)
		if err != nil {
			return nil, err
		}
		for _, edge := range found.Skus.Edges {
			return edge.Node, nil
		}
		return nil, nil //nolint:nilnil // stated above
	}
	site, err := a.site(ctx)
	if err != nil {
		return nil, err
	}
	found, err := client.SkuByName(ctx, gql, site.Name, arg)
	if err != nil {
		return nil, err
	}
	return found.Sku, nil
}

// sku is findSku for a command that needs the SKU.
func (a *app) sku(ctx context.Context, arg string) (client.SkuFields, error) {
	found, err := a.findSku(ctx, arg)
	if err != nil {
		return client.SkuFields{}, err
	}
	if found == nil {
		return client.SkuFields{}, fleet.Missing("sku", "SKU_NOT_FOUND", "SKU ID not found: %s", arg)
	}
	return *found, nil
}

// isMac tells whether text is a MAC address in a usual notation: octets with
// colons or dashes, groups of four with dots, or twelve digits.
func isMac(text string) bool {
	if mac, err := net.ParseMAC(text); err == nil {
		return len(mac) == 6
	}
	raw, err := hex.DecodeString(strings.ToLower(text))
	return err == nil && len(raw) == 6
}
