package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

func (a *app) skuGenerate() *cobra.Command {
	var id, inventory, lids string
	var version int
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:     "generate (MACHINE | --inventory FILE)",
		Aliases: []string{"g"},
		Short:   "Shows what a SKU made from a machine would be",
		Long: "Shows what a SKU made from a machine's inventory would be. It creates nothing and assigns nothing.\n" +
			"With --inventory the inventory comes from a file and no server is needed.",
		Example: "  fleetctl sku generate dgx-17 --id dell.xe9680.gpu.1 -f json -o dell.xe9680.gpu.1.json\n" +
			"  fleetctl sku generate --inventory inventory.json --schema-version 4",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case inventory == "" && len(args) != 1:
				return errors.New("expected one machine, or --inventory FILE")
			case inventory != "" && len(args) != 0:
				return errors.New("a machine and --inventory exclude each other")
			case inventory == "" && (cmd.Flags().Changed("schema-version") || cmd.Flags().Changed("ib-lids")):
				return errors.New("--schema-version and --ib-lids need --inventory")
			}
			return nil
		},
		RunE: a.work(func(ctx context.Context, args []string) error {
			var d sku.Document
			var err error
			if inventory != "" {
				d, err = a.generateOffline(inventory, lids, id, version)
			} else {
				d, err = a.generate(ctx, args[0], id)
			}
			if err != nil {
				return err
			}
			return a.show(result{
				data: d,
				page: func(p *page) { a.skuPage(p, d, nil) },
				grid: a.skuGrid([]sku.Document{d}),
			})
		}),
		ValidArgsFunction: a.completeArgs(a.machineNames),
	}
	f := cmd.Flags()
	f.StringVar(&id, "id", "", "name of the SKU (default: proposed by the convention vendor.model.node_type.index)")
	f.StringVar(&inventory, "inventory", "", "take the inventory from this `file`")
	f.IntVar(&version, "schema-version", fleet.CurrentSchemaVersion, "with --inventory: schema version of the SKU")
	f.StringVar(&lids, "ib-lids", "", "with --inventory: state of the InfiniBand ports as `GUID=LID,…`; without it all are inactive")
	return cmd
}

func (a *app) generate(ctx context.Context, machine, id string) (sku.Document, error) {
	m, err := a.machine(ctx, machine)
	if err != nil {
		return sku.Document{}, err
	}
	gql, err := a.api()
	if err != nil {
		return sku.Document{}, err
	}
	var name *string
	if id != "" {
		name = &id
	}
	made, err := client.GenerateSku(ctx, gql, m.Id, name)
	if err != nil {
		return sku.Document{}, err
	}
	draft := made.GenerateSku
	now := a.now().UTC()
	return sku.Document{
		ID:            draft.Name,
		Description:   &draft.Description,
		Created:       &now,
		Components:    components(draft.Components),
		SchemaVersion: draft.SchemaVersion,
	}, nil
}

func (a *app) generateOffline(file, lids, id string, version int) (sku.Document, error) {
	if !sku.Supported(version) {
		return sku.Document{}, usagef("--schema-version is %d, expected %d to %d", version, fleet.OldestSchemaVersion, fleet.CurrentSchemaVersion)
	}
	ports, err := parseLids(lids)
	if err != nil {
		return sku.Document{}, err
	}
	data, err := a.readFile(file)
	if err != nil {
		return sku.Document{}, err
	}
	inventory, err := fleet.ParseInventory(data)
	if err != nil {
		return sku.Document{}, fmt.Errorf("%s: %w", file, err)
	}
	c, err := sku.Generate(inventory, ports, version)
	if err != nil {
		return sku.Document{}, fmt.Errorf("%s: %w", file, err)
	}
	if id == "" {
		id = sku.ProposeName(c, func(string) bool { return false })
	}
	now := a.now().UTC()
	description := sku.Describe(c)
	return sku.Document{ID: id, Description: &description, Created: &now, Components: c, SchemaVersion: version}, nil
}
