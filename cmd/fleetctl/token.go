package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Tokens: who may call the server"}
	cmd.AddCommand(a.tokenShow(), a.tokenList(), a.tokenIssue(), a.tokenRevoke())
	return cmd
}

// tokenView is a token as scripts read it.
type tokenView struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	Role          fleet.Role `json:"role"`
	AllSites      bool       `json:"all_sites"`
	Sites         []string   `json:"sites"`
	MachineID     *string    `json:"machine_id"`
	BmcMacAddress *string    `json:"bmc_mac_address"`
	Created       time.Time  `json:"created"`
	IssuedBy      string     `json:"issued_by"`
	Expires       *time.Time `json:"expires"`
	Revoked       *time.Time `json:"revoked"`
	LastUsed      *time.Time `json:"last_used"`
}

// tokenViews names the sites of tokens.
func (a *app) tokenViews(ctx context.Context, tokens ...client.TokenFields) ([]tokenView, error) {
	sites, err := a.sites(ctx, 0)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, s := range sites {
		names[s.Id] = s.Name
	}
	views := make([]tokenView, len(tokens))
	for i, t := range tokens {
		views[i] = tokenView{
			ID: t.Id, Name: t.Name, Role: t.Role, AllSites: t.AllSites, Sites: []string{},
			MachineID: t.MachineId, BmcMacAddress: t.BmcMacAddress, Created: t.CreatedAt, IssuedBy: t.IssuedBy,
			Expires: t.ExpiresAt, Revoked: t.RevokedAt, LastUsed: t.LastUsedAt,
		}
		for _, id := range t.SiteIds {
			views[i].Sites = append(views[i].Sites, first(names[id], id))
		}
	}
	return views, nil
}

func (t tokenView) sites() cell {
	if t.AllSites {
		return text("all")
	}
	return cell(t.Sites)
}

func (t tokenView) boundTo() cell {
	if t.MachineID != nil {
		return text(*t.MachineID)
	}
	return optional(t.BmcMacAddress)
}

// when is a moment that may never come.
func when(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return moment(*t)
}

func (a *app) tokenGrid(tokens []tokenView) *grid {
	g := &grid{headers: []string{"Name", "Role", "Sites", "Machine", "Expires", "Revoked", "Last Used"}}
	if a.flags.extended || a.format == formatCSV {
		g.headers = append(g.headers, "ID", "Issued By", "Created")
	}
	for _, t := range tokens {
		revoked := cell{}
		if t.Revoked != nil {
			revoked = text(when(t.Revoked))
		}
		row := []cell{text(t.Name), text(string(t.Role)), t.sites(), t.boundTo(), text(when(t.Expires)), revoked, text(when(t.LastUsed))}
		if a.flags.extended || a.format == formatCSV {
			row = append(row, text(t.ID), text(t.IssuedBy), text(moment(t.Created)))
		}
		g.add(row...)
	}
	return g
}

func (a *app) tokenShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show [TOKEN]",
		Aliases: []string{"s"},
		Short:   "Lists the issued tokens, without their secrets, or shows one",
		Long: "Lists the issued tokens, without their secrets, or shows one, which is given by its id or, among those not\n" +
			"revoked, its name. When a token was last used is known to the minute.",
		Args: cobra.MaximumNArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			if len(args) == 1 {
				return a.showToken(ctx, args[0])
			}
			return a.listTokens(ctx)
		}),
		ValidArgsFunction: a.completeArgs(a.tokenNames),
	}
}

func (a *app) tokenList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "Lists the issued tokens, without their secrets",
		Args:    cobra.NoArgs,
		RunE:    a.work(func(ctx context.Context, _ []string) error { return a.listTokens(ctx) }),
	}
}

// tokens reads at most limit tokens, 0 for all.
func (a *app) tokens(ctx context.Context, limit int) ([]client.TokenFields, error) {
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	var tokens []client.TokenFields
	err = pages(limit, func(n int, after *string) (int, client.Page, error) {
		found, err := client.ListTokens(ctx, gql, n, after)
		if err != nil {
			return 0, client.Page{}, err
		}
		for _, edge := range found.Tokens.Edges {
			tokens = append(tokens, *edge.Node)
		}
		return len(found.Tokens.Edges), found.Tokens.PageInfo, nil
	})
	return tokens, err
}

func (a *app) tokenNames(ctx context.Context) ([]string, error) {
	tokens, err := a.tokens(ctx, pageSize)
	found := []string{}
	for _, t := range tokens {
		if t.RevokedAt == nil {
			found = append(found, t.Name)
		}
	}
	return found, err
}

func (a *app) listTokens(ctx context.Context) error {
	tokens, err := a.tokens(ctx, 0)
	if err != nil {
		return err
	}
	views, err := a.tokenViews(ctx, tokens...)
	if err != nil {
		return err
	}
	return a.show(result{data: views, grid: a.tokenGrid(views)})
}

func (a *app) showToken(ctx context.Context, arg string) error {
	token, err := a.token(ctx, arg)
	if err != nil {
		return err
	}
	views, err := a.tokenViews(ctx, token)
	if err != nil {
		return err
	}
	t := views[0]
	return a.show(result{data: t, grid: a.tokenGrid(views), page: func(p *page) {
		t.describe(p)
		p.field("Issued By", t.IssuedBy)
		p.field("Created", moment(t.Created))
		p.field("Revoked", when(t.Revoked))
		p.field("Last Used", when(t.LastUsed))
	}})
}

// describe shows what a token is for.
func (t tokenView) describe(p *page) {
	p.field("Name", t.Name)
	p.field("ID", t.ID)
	p.field("Role", string(t.Role))
	p.field("Sites", strings.Join(t.sites(), ", "))
	if bound := t.boundTo()[0]; bound != "" {
		p.field("Machine", bound)
	}
	p.field("Expires", when(t.Expires))
}

// tokenRequest is what the flags of `token issue` say.
type tokenRequest struct {
	role, machine, mac, expires string
	sites                       []string
	allSites                    bool
}

func (a *app) tokenIssue() *cobra.Command {
	var r tokenRequest
	cmd := &cobra.Command{
		Use:   "issue NAME --role ROLE (--site SITE… | --all-sites | --machine MACHINE | --bmc-mac MAC)",
		Short: "Issues a token and shows its secret, once",
		Example: "  fleetctl token issue grafana --role viewer --all-sites --expires-in 90d\n" +
			"  fleetctl token issue dgx-17-agent --role agent --site pdx1 --bmc-mac c4:5a:b1:c8:38:0d",
		Args: cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			input, err := r.input(args[0])
			if err != nil {
				return err
			}
			if err := a.bindToken(ctx, r, &input); err != nil {
				return err
			}
			return a.issueToken(ctx, input)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.role, "role", "", "what the bearer may do: viewer, operator, admin or agent")
	f.StringArrayVar(&r.sites, "site", nil, "bind the token to this `site`; may be repeated")
	f.BoolVar(&r.allSites, "all-sites", false, "do not bind the token to sites")
	f.StringVar(&r.machine, "machine", "", "for an agent: its `machine`")
	f.StringVar(&r.mac, "bmc-mac", "", "for an agent whose machine does not exist yet: the `MAC` address of its BMC")
	f.StringVar(&r.expires, "expires-in", "", "how long the token is valid, such as 12h or 30d (default: until revoked)")
	_ = cmd.MarkFlagRequired("role")
	cmd.MarkFlagsMutuallyExclusive("site", "all-sites")
	cmd.MarkFlagsMutuallyExclusive("machine", "bmc-mac")
	a.completeWords(cmd, "role", "viewer", "operator", "admin", "agent")
	a.completeNames(cmd, "site", a.siteNames)
	a.completeNames(cmd, "machine", a.machineNames)
	return cmd
}

// input checks the flags against each other.
func (r tokenRequest) input(name string) (client.IssueTokenInput, error) {
	role, ok := wordOf(r.role, fleet.Role("").Values())
	isAgent := fleet.Role(role) == fleet.RoleAgent
	bound := r.machine != "" || r.mac != ""
	switch {
	case !ok:
		return client.IssueTokenInput{}, usagef("--role: %q is no role, expected viewer, operator, admin or agent", r.role)
	case isAgent && (!bound || r.allSites || len(r.sites) > 1):
		return client.IssueTokenInput{}, usagef("an agent's token is for one machine: give --machine or --bmc-mac, and at most one --site")
	case !isAgent && bound:
		return client.IssueTokenInput{}, usagef("--machine and --bmc-mac are for agents")
	case !isAgent && !r.allSites && len(r.sites) == 0:
		return client.IssueTokenInput{}, usagef("give --site or --all-sites")
	case r.mac != "" && !isMac(r.mac):
		return client.IssueTokenInput{}, usagef("--bmc-mac: %q is not a MAC address", r.mac)
	}
	input := client.IssueTokenInput{Name: name, Role: fleet.Role(role), IdempotencyKey: newKey()}
	if r.expires != "" {
		if _, err := fleet.ParseDuration(r.expires); err != nil {
			return client.IssueTokenInput{}, usagef("--expires-in: %v", err)
		}
		input.ExpiresIn = &r.expires
	}
	return input, nil
}

// bindToken looks up what the token is bound to.
func (a *app) bindToken(ctx context.Context, r tokenRequest, input *client.IssueTokenInput) error {
	if input.Role != fleet.RoleAgent {
		for _, name := range r.sites {
			site, err := a.siteNamed(ctx, name)
			if err != nil {
				return err
			}
			input.SiteIds = append(input.SiteIds, site.Id)
		}
		return nil
	}
	if len(r.sites) == 1 {
		a.flags.site = r.sites[0]
	}
	if r.machine != "" {
		m, err := a.machine(ctx, r.machine)
		input.MachineId = &m.Id
		return err
	}
	site, err := a.site(ctx)
	input.SiteId, input.BmcMacAddress = &site.Id, &r.mac
	return err
}

func (a *app) issueToken(ctx context.Context, input client.IssueTokenInput) error {
	gql, err := a.api()
	if err != nil {
		return err
	}
	done, err := client.IssueToken(ctx, gql, input)
	if err != nil {
		return err
	}
	token := done.IssueToken.Token
	if done.IssueToken.Secret == nil {
		// The connection broke after the server had answered; it does not say a secret twice.
		return errors.New("the token " + token.Id + " was issued, but its secret was lost with the connection: revoke it and issue another")
	}
	views, err := a.tokenViews(ctx, token)
	if err != nil {
		return err
	}
	t := views[0]
	data := struct {
		tokenView
		Secret string `json:"secret"`
	}{t, *done.IssueToken.Secret}
	g := a.tokenGrid(views)
	g.headers = append(g.headers, "Secret")
	g.rows[0] = append(g.rows[0], text(data.Secret))
	return a.show(result{data: data, grid: g, page: func(p *page) {
		t.describe(p)
		p.field("Secret", data.Secret)
	}})
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke TOKEN",
		Short: "Revokes a token, which is given by its id or its name, at once",
		Args:  cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			gql, err := a.api()
			if err != nil {
				return err
			}
			token, err := a.token(ctx, args[0])
			if err != nil {
				return err
			}
			done, err := client.RevokeToken(ctx, gql, client.RevokeTokenInput{TokenId: token.Id, IdempotencyKey: newKey()})
			if err != nil {
				return err
			}
			views, err := a.tokenViews(ctx, done.RevokeToken.Token)
			if err != nil {
				return err
			}
			a.note("revoked the token %s", views[0].Name)
			return a.show(result{data: views[0]})
		}),
		ValidArgsFunction: a.completeArgs(a.tokenNames),
	}
}

// token finds a token by its id or, among those not revoked, by its name.
func (a *app) token(ctx context.Context, arg string) (client.TokenFields, error) {
	gql, err := a.api()
	if err != nil {
		return client.TokenFields{}, err
	}
	found, err := client.FindTokens(ctx, gql, arg, arg)
	if err != nil {
		return client.TokenFields{}, err
	}
	var ids []string
	for _, edge := range found.Tokens.Edges {
		if edge.Node.Id == arg {
			return *edge.Node, nil
		}
		ids = append(ids, edge.Node.Id)
	}
	switch len(ids) {
	case 0:
		return client.TokenFields{}, fleet.Missing("token", "TOKEN_NOT_FOUND", "token not found: %s", arg)
	case 1:
		return *found.Tokens.Edges[0].Node, nil
	default:
		return client.TokenFields{}, fleet.Invalid("token", "TOKEN_AMBIGUOUS", "several tokens have the name %s, give one of their ids: %s", arg, strings.Join(ids, ", "))
	}
}
