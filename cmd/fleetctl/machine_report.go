package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

func (a *app) machineReport() *cobra.Command {
	var mac, name, lids string
	cmd := &cobra.Command{
		Use:   "report FILE --bmc-mac MAC",
		Short: "Stores a machine's inventory, creating the machine at first sight",
		Long: "Stores the hardware inventory in a file as that of the machine with this BMC at the site, which is created\n" +
			"at first sight. A dash reads the standard input.",
		Example: "  fleetctl machine report inventory.json --bmc-mac c4:5a:b1:c8:38:0d --ib-lids 946dae03002ac752=1,946dae03002ac753=0xffff",
		Args:    cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			if !isMac(mac) {
				return usagef("--bmc-mac: %q is not a MAC address", mac)
			}
			ports, err := parseLids(lids)
			if err != nil {
				return err
			}
			inventory, err := a.readFile(args[0])
			if err != nil {
				return err
			}
			if !json.Valid(inventory) {
				return fmt.Errorf("%s: %w", args[0], fleet.Invalid("inventory", "INVENTORY_INVALID", "malformed JSON"))
			}
			return a.reportInventory(ctx, client.ReportInventoryInput{BmcMacAddress: mac, Inventory: inventory, FabricPorts: fabricPorts(ports)}, name)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&mac, "bmc-mac", "", "`MAC` address of the machine's BMC: its identity at the site")
	f.StringVar(&name, "name", "", "name of the machine (default: kept, or made from the MAC address at first sight)")
	f.StringVar(&lids, "ib-lids", "", "state of the InfiniBand ports as `GUID=LID,…` (default: the last known state is kept)")
	_ = cmd.MarkFlagRequired("bmc-mac")
	return cmd
}

func fabricPorts(ports []fleet.FabricPort) []client.FabricPortInput {
	var input []client.FabricPortInput
	for _, p := range ports {
		input = append(input, client.FabricPortInput(p))
	}
	return input
}

// reportInventory sends one inventory and shows the machine after it.
func (a *app) reportInventory(ctx context.Context, input client.ReportInventoryInput, name string) error {
	site, err := a.site(ctx)
	if err != nil {
		return err
	}
	gql, err := a.api()
	if err != nil {
		return err
	}
	input.SiteId = site.Id
	input.IdempotencyKey = newKey()
	if name != "" {
		input.Name = &name
	}
	done, err := client.ReportInventory(ctx, gql, input)
	if err != nil {
		return err
	}
	m := done.ReportInventory.Machine
	verb := "updated"
	if done.ReportInventory.Created {
		verb = "created"
	}
	data := struct {
		Machine machineView `json:"machine"`
		Created bool        `json:"created"`
	}{newMachineView(m), done.ReportInventory.Created}
	return a.show(result{data: data, page: func(p *page) {
		p.field("Machine", fmt.Sprintf("%s (%s)", m.Name, verb))
		p.field("ID", m.Id)
		p.field("State", stateText(m))
		p.optional("SKU", m.SkuName)
	}})
}
