package main

import (
	"context"
	"fmt"

	"github.com/Khan/genqlient/graphql"
	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/services/sku"
)

func (a *app) skuCreate() *cobra.Command {
	var id string
	var acceptOlder bool
	cmd := &cobra.Command{
		Use:     "create FILE",
		Aliases: []string{"c"},
		Short:   "Creates the SKU or SKUs of a file: all or none",
		Long: "Creates the SKU or SKUs of a file: one SKU, {\"skus\": [...]}, or a list as sku show -f json writes it.\n" +
			"A dash reads the standard input. All are created, or none.",
		Args: cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			documents, err := a.readDocuments(args[0])
			if err != nil {
				return err
			}
			if id != "" {
				if len(documents) > 1 {
					return usagef("ID cannot be specified when creating multiple SKUs")
				}
				documents[0].ID = id
			}
			for _, d := range documents {
				if !sku.ConventionalName(d.ID) {
					a.warn("the name %s does not follow the convention vendor.model.node_type.index, such as dell.r750.gpu.1", d.ID)
				}
			}
			site, err := a.site(ctx)
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			var created []client.SkuFields
			if len(documents) == 1 && !acceptOlder {
				created, err = createSku(ctx, gql, site.Id, documents[0])
			} else {
				created, err = createSkus(ctx, gql, site.Id, documents, acceptOlder)
			}
			if err != nil {
				return err
			}
			return a.showSkus(created)
		}),
	}
	cmd.Flags().StringVar(&id, "id", "", "name of the SKU in place of the file's")
	cmd.Flags().BoolVar(&acceptOlder, "accept-older-versions", false, "accept schema versions before the current one, to move over from another installation")
	return cmd
}

func createSku(ctx context.Context, gql graphql.Client, siteID string, d sku.Document) ([]client.SkuFields, error) {
	made, err := client.CreateSku(ctx, gql, client.CreateSkuInput{
		SiteId: siteID, Name: d.ID, Description: d.Description, DeviceType: d.DeviceType,
		SchemaVersion: &d.SchemaVersion, Components: componentsInput(d.Components), IdempotencyKey: newKey(),
	})
	if err != nil {
		return nil, err
	}
	return []client.SkuFields{made.CreateSku.Sku}, nil
}

func createSkus(ctx context.Context, gql graphql.Client, siteID string, documents []sku.Document, acceptOlder bool) ([]client.SkuFields, error) {
	items := make([]client.CreateSkusItemInput, len(documents))
	for i, d := range documents {
		items[i] = client.CreateSkusItemInput{
			Name: d.ID, Description: d.Description, DeviceType: d.DeviceType,
			SchemaVersion: &documents[i].SchemaVersion, Components: componentsInput(d.Components),
		}
	}
	made, err := client.CreateSkus(ctx, gql, client.CreateSkusInput{
		SiteId: siteID, Skus: items, AcceptOlderVersions: acceptOlder, IdempotencyKey: newKey(),
	})
	if err != nil {
		return nil, err
	}
	return made.CreateSkus.Skus, nil
}

// showSkus lists SKUs that a mutation returned.
func (a *app) showSkus(skus []client.SkuFields) error {
	documents := make([]sku.Document, len(skus))
	for i, s := range skus {
		documents[i] = document(s, nil)
	}
	return a.show(result{data: documents, grid: a.skuGrid(documents)})
}

func (a *app) skuReplace() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "replace FILE",
		Short: "Replaces the hardware of a SKU by a file's and verifies its machines again",
		Long: "Replaces the hardware of the SKU that the file names, and its description and device type where the\n" +
			"file gives them. Every machine that has the SKU is verified again. A dash reads the standard input.",
		Args: cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			d, old, err := a.replacement(ctx, args[0], id)
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			made, err := client.ReplaceSku(ctx, gql, client.ReplaceSkuInput{
				SkuId: old.Id, Components: componentsInput(d.Components), SchemaVersion: &d.SchemaVersion,
				Description: d.Description, DeviceType: d.DeviceType, IdempotencyKey: newKey(),
			})
			if err != nil {
				return err
			}
			return a.showSkus([]client.SkuFields{made.ReplaceSku.Sku})
		}),
	}
	cmd.Flags().StringVar(&id, "id", "", "name of the SKU in place of the file's")
	return cmd
}

// replacement reads the file of a SKU that exists already, and that SKU.
func (a *app) replacement(ctx context.Context, file, id string) (sku.Document, client.SkuFields, error) {
	d, err := a.readDocument(file, id)
	if err != nil {
		return sku.Document{}, client.SkuFields{}, err
	}
	old, err := a.sku(ctx, d.ID)
	return d, old, err
}

// preview is what a replacement would change, as scripts read it.
type preview struct {
	Sku         string      `json:"sku_id"`
	Starts      matchChange `json:"starts"`
	Stops       matchChange `json:"stops"`
	DuplicateOf *string     `json:"duplicate_of"`
}

type matchChange struct {
	Count    int          `json:"count"`
	Machines []machineRef `json:"machines"`
}

type machineRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func newMatchChange(c client.MatchChangeFields) matchChange {
	change := matchChange{Count: c.Count, Machines: []machineRef{}}
	for _, m := range c.Machines {
		change.Machines = append(change.Machines, machineRef{m.Id, m.Name})
	}
	return change
}

func (a *app) skuPreviewReplace() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "preview-replace FILE",
		Short: "Shows which machines would start or stop matching if a SKU were replaced by a file",
		Args:  cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			d, old, err := a.replacement(ctx, args[0], id)
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			found, err := client.PreviewSkuReplace(ctx, gql, old.Id, componentsInput(d.Components))
			if err != nil {
				return err
			}
			data := preview{
				Sku:    old.Name,
				Starts: newMatchChange(found.PreviewSkuReplace.Starts),
				Stops:  newMatchChange(found.PreviewSkuReplace.Stops),
			}
			if twin := found.PreviewSkuReplace.DuplicateOf; twin != nil {
				data.DuplicateOf = &twin.Name
			}
			return a.show(result{data: data, page: func(p *page) { previewPage(p, data) }, grid: previewGrid(data)})
		}),
	}
	cmd.Flags().StringVar(&id, "id", "", "name of the SKU in place of the file's")
	return cmd
}

func previewGrid(data preview) *grid {
	g := &grid{headers: []string{"Change", "Machine ID", "Name"}}
	for _, m := range data.Starts.Machines {
		g.add(text("starts"), text(m.ID), text(m.Name))
	}
	for _, m := range data.Stops.Machines {
		g.add(text("stops"), text(m.ID), text(m.Name))
	}
	return g
}

func previewPage(p *page, data preview) {
	p.field("SKU", data.Sku)
	if data.DuplicateOf != nil {
		p.field("Refused", fmt.Sprintf("the SKU %s describes the same hardware", *data.DuplicateOf))
	}
	changePage(p, "Would start matching", data.Starts)
	changePage(p, "Would stop matching", data.Stops)
}

func changePage(p *page, title string, change matchChange) {
	g := &grid{headers: []string{"Machine ID", "Name"}}
	for _, m := range change.Machines {
		g.add(text(m.ID), text(m.Name))
	}
	if more := change.Count - len(change.Machines); more > 0 {
		g.add(text(fmt.Sprintf("and %d more", more)), text(""))
	}
	p.section(fmt.Sprintf("%s (%d)", title, change.Count), g)
}

func (a *app) skuDelete() *cobra.Command {
	return &cobra.Command{
		Use:     "delete SKU",
		Aliases: []string{"d"},
		Short:   "Deletes a SKU that no machine has",
		Args:    cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			s, err := a.sku(ctx, args[0])
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			if _, err := client.DeleteSku(ctx, gql, client.DeleteSkuInput{SkuId: s.Id, IdempotencyKey: newKey()}); err != nil {
				return err
			}
			a.note("deleted the SKU %s", s.Name)
			return a.show(result{data: map[string]string{"deleted_sku_id": s.Name}})
		}),
		ValidArgsFunction: a.completeArgs(a.skuNames),
	}
}
