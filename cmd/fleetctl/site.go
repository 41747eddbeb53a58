package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

func (a *app) siteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "site", Short: "Sites: the data halls of the fleet"}
	cmd.AddCommand(a.siteShow(), a.siteCreate(), a.siteUpdate(), a.siteConfigCommand())
	return cmd
}

// siteView is a site as scripts read it.
type siteView struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Revision    int       `json:"revision"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
}

func newSiteView(s client.SiteFields) siteView {
	return siteView{s.Id, s.Name, s.Description, s.Revision, s.CreatedAt, s.UpdatedAt}
}

func siteGrid(sites []siteView) *grid {
	g := &grid{headers: []string{"Name", "Description", "Created"}}
	for _, s := range sites {
		g.add(text(s.Name), text(s.Description), text(moment(s.Created)))
	}
	return g
}

func (a *app) siteShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show [NAME]",
		Aliases: []string{"s"},
		Short:   "Lists the sites, or shows one",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			if len(args) == 1 {
				return a.showSite(ctx, args[0])
			}
			sites, err := a.sites(ctx, 0)
			if err != nil {
				return err
			}
			views := make([]siteView, len(sites))
			for i, s := range sites {
				views[i] = newSiteView(s)
			}
			return a.show(result{data: views, grid: siteGrid(views)})
		}),
		ValidArgsFunction: a.completeArgs(a.siteNames),
	}
}

// sites reads the sites by name, at most limit of them unless it is 0.
func (a *app) sites(ctx context.Context, limit int) ([]client.SiteFields, error) {
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	var sites []client.SiteFields
	err = pages(limit, func(n int, after *string) (int, client.Page, error) {
		found, err := client.ListSites(ctx, gql, n, after)
		if err != nil {
			return 0, client.Page{}, err
		}
		for _, edge := range found.Sites.Edges {
			sites = append(sites, *edge.Node)
		}
		return len(found.Sites.Edges), found.Sites.PageInfo, nil
	})
	return sites, err
}

func (a *app) showSite(ctx context.Context, name string) error {
	gql, err := a.api()
	if err != nil {
		return err
	}
	found, err := client.GetSiteDetail(ctx, gql, name)
	if err != nil {
		return err
	}
	if found.Site == nil {
		return fleet.Missing("site", "SITE_NOT_FOUND", "site not found: %s", name)
	}
	s := *found.Site
	data := struct {
		siteView
		Machines     int `json:"machines"`
		Skus         int `json:"skus"`
		HealthAlerts int `json:"health_alerts"`
	}{newSiteView(s.SiteFields), s.Machines.TotalCount, s.Skus.TotalCount, s.HealthAlerts.TotalCount}
	return a.show(result{
		data: data,
		page: func(p *page) {
			sitePage(p, data.siteView)
			p.field("Machines", strconv.Itoa(data.Machines))
			p.field("SKUs", strconv.Itoa(data.Skus))
			p.field("Health Alerts", strconv.Itoa(data.HealthAlerts))
		},
		grid: siteGrid([]siteView{data.siteView}),
	})
}

func sitePage(p *page, s siteView) {
	p.field("Name", s.Name)
	p.field("ID", s.ID)
	p.field("Description", s.Description)
	p.field("Created At", moment(s.Created))
	p.field("Updated At", moment(s.Updated))
	p.field("Revision", strconv.Itoa(s.Revision))
}

func (a *app) siteCreate() *cobra.Command {
	var description string
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:     "create NAME",
		Aliases: []string{"c"},
		Short:   "Creates a site",
		Args:    cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			gql, err := a.api()
			if err != nil {
				return err
			}
			input := client.CreateSiteInput{Name: args[0], IdempotencyKey: newKey()}
			if cmd.Flags().Changed("description") {
				input.Description = &description
			}
			done, err := client.CreateSite(ctx, gql, input)
			if err != nil {
				return err
			}
			return a.showOneSite(done.CreateSite.Site)
		}),
	}
	cmd.Flags().StringVar(&description, "description", "", "free text for people")
	return cmd
}

func (a *app) siteUpdate() *cobra.Command {
	var name, description string
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "update NAME",
		Short: "Changes the name and the description of a site",
		Args:  cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			input := client.UpdateSiteInput{IdempotencyKey: newKey()}
			if cmd.Flags().Changed("name") {
				input.Name = &name
			}
			if cmd.Flags().Changed("description") {
				input.Description = &description
			}
			if input.Name == nil && input.Description == nil {
				return usagef("give --name, --description or both")
			}
			site, err := a.siteNamed(ctx, args[0])
			if err != nil {
				return err
			}
			input.SiteId = site.Id
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.UpdateSite(ctx, gql, input)
			if err != nil {
				return err
			}
			return a.showOneSite(done.UpdateSite.Site)
		}),
		ValidArgsFunction: a.completeArgs(a.siteNames),
	}
	cmd.Flags().StringVar(&name, "name", "", "new name")
	cmd.Flags().StringVar(&description, "description", "", "new description")
	return cmd
}

func (a *app) showOneSite(s client.SiteFields) error {
	view := newSiteView(s)
	return a.show(result{data: view, page: func(p *page) { sitePage(p, view) }, grid: siteGrid([]siteView{view})})
}
