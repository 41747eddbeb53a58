package main

import (
	"context"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/services/sku"
)

func (a *app) skuShow() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "show [SKU]",
		Aliases: []string{"s"},
		Short:   "Lists the SKUs of the site, or shows one",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			if limit < 0 {
				return usagef("--limit must not be negative")
			}
			if len(args) == 1 {
				return a.showSku(ctx, args[0])
			}
			skus, err := a.skus(ctx, limit)
			if err != nil {
				return err
			}
			documents, _, err := a.documents(ctx, skus, a.wantsMachines())
			if err != nil {
				return err
			}
			return a.show(result{data: list(documents), grid: a.skuGrid(documents)})
		}),
		ValidArgsFunction: a.completeArgs(a.skuNames),
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "list at most so many SKUs; 0 lists all")
	return cmd
}

// wantsMachines tells whether the output names the machines of SKUs; reading
// them costs further calls.
func (a *app) wantsMachines() bool {
	return a.flags.extended || a.format == formatJSON || a.format == formatYAML
}

// showSku shows one SKU. One that does not exist is an empty result and no
// error, as a script that looks whether it exists expects.
func (a *app) showSku(ctx context.Context, arg string) error {
	found, err := a.findSku(ctx, arg)
	if err != nil {
		return err
	}
	if found == nil {
		a.note("no SKU %s", arg)
		return a.show(result{data: []sku.Document{}, page: func(*page) {}, grid: a.skuGrid(nil)})
	}
	documents, machines, err := a.documents(ctx, []client.SkuFields{*found}, a.wantsMachines())
	if err != nil {
		return err
	}
	return a.show(result{
		data: documents,
		page: func(p *page) { a.skuPage(p, documents[0], machines[found.Id]) },
		grid: a.skuGrid(documents),
	})
}

// skus reads the SKUs of the site by name, at most limit of them unless it is 0.
func (a *app) skus(ctx context.Context, limit int) ([]client.SkuFields, error) {
	site, err := a.site(ctx)
	if err != nil {
		return nil, err
	}
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	var skus []client.SkuFields
	err = pages(limit, func(n int, after *string) (int, client.Page, error) {
		found, err := client.ListSkus(ctx, gql, site.Id, n, after)
		if err != nil {
			return 0, client.Page{}, err
		}
		for _, edge := range found.Skus.Edges {
			skus = append(skus, *edge.Node)
		}
		return len(found.Skus.Edges), found.Skus.PageInfo, nil
	})
	return skus, err
}

// documents gives SKUs the form of files, and the machines of each by the SKU's
// id where withMachines asks for them.
func (a *app) documents(ctx context.Context, skus []client.SkuFields, withMachines bool) ([]sku.Document, map[string][]client.SkuMachine, error) {
	var machines map[string][]client.SkuMachine
	if withMachines {
		var err error
		if machines, err = a.machinesOf(ctx, skus); err != nil {
			return nil, nil, err
		}
	}
	documents := make([]sku.Document, len(skus))
	for i, s := range skus {
		documents[i] = document(s, machines[s.Id])
	}
	return documents, machines, nil
}

// machinesOf reads the machines that have one of skus, by the SKU's id.
func (a *app) machinesOf(ctx context.Context, skus []client.SkuFields) (map[string][]client.SkuMachine, error) {
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	machines := map[string][]client.SkuMachine{}
	for start := 0; start < len(skus); start += pageSize {
		var ids []string
		for _, s := range skus[start:min(start+pageSize, len(skus))] {
			ids = append(ids, s.Id)
		}
		err := pages(0, func(n int, after *string) (int, client.Page, error) {
			found, err := client.MachinesOfSkus(ctx, gql, ids, n, after)
			if err != nil {
				return 0, client.Page{}, err
			}
			for _, edge := range found.Machines.Edges {
				if id := edge.Node.SkuId; id != nil {
					machines[*id] = append(machines[*id], *edge.Node)
				}
			}
			return len(found.Machines.Edges), found.Machines.PageInfo, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return machines, nil
}

// assignment is a SKU and its machines as scripts read it.
type assignment struct {
	Sku        string   `json:"sku_id"`
	MachineIDs []string `json:"associated_machine_ids"`
}

func (a *app) skuShowMachines() *cobra.Command {
	return &cobra.Command{
		Use:   "show-machines [SKU]",
		Short: "Shows which machines have a SKU",
		Args:  cobra.MaximumNArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			skus, err := a.skusOf(ctx, args)
			if err != nil {
				return err
			}
			machines, err := a.machinesOf(ctx, skus)
			if err != nil {
				return err
			}
			g := &grid{headers: []string{"SKU ID", "Assigned Machine IDs"}}
			if a.flags.extended {
				g.headers = append(g.headers, "Names")
			}
			data := make([]assignment, len(skus))
			for i, s := range skus {
				data[i] = assignment{Sku: s.Name, MachineIDs: []string{}}
				names := cell{}
				for _, m := range machines[s.Id] {
					data[i].MachineIDs = append(data[i].MachineIDs, m.Id)
					names = append(names, m.Name)
				}
				row := []cell{text(s.Name), cell(data[i].MachineIDs)}
				if a.flags.extended {
					row = append(row, names)
				}
				g.add(row...)
			}
			return a.show(result{data: data, grid: g})
		}),
		ValidArgsFunction: a.completeArgs(a.skuNames),
	}
}

// skusOf is the SKU that args name, or all of the site.
func (a *app) skusOf(ctx context.Context, args []string) ([]client.SkuFields, error) {
	if len(args) == 0 {
		return a.skus(ctx, 0)
	}
	found, err := a.findSku(ctx, args[0])
	if err != nil {
		return nil, err
	}
	if found == nil {
		a.note("no SKU %s", args[0])
		return nil, nil
	}
	return []client.SkuFields{*found}, nil
}
