package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

// maxToken is the number of bytes of the longest token that is read.
const maxToken = 64 << 10

func (a *app) loginCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "login",
		Short: "Checks a token and stores it with the server's URL",
		Long: "Checks a token with the server and stores it with the URL, and with the site where --site gives one, for\n" +
			"later commands. The token is --token, else read from the standard input, which is asked for without echo\n" +
			"at a terminal.",
		Example: "  fleetctl login --url https://fleet.example\n" +
			"  fleetctl login --url https://fleet.example --site pdx1 < token.txt",
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			stored, err := a.storedConfig()
			if err != nil {
				return err
			}
			stored.URL = first(a.flags.url, a.getenv("FLEETGRAPH_URL"), stored.URL)
			stored.Site = first(a.flags.site, stored.Site)
			server, err := endpoint(stored.URL)
			if err != nil {
				return err
			}
			if stored.Token = a.flags.token; stored.Token == "" {
				if stored.Token, err = a.readToken(); err != nil {
					return err
				}
			}
			if isOpen(server) {
				a.warn("%s is not encrypted: the token can be read on the way", server)
			}
			a.flags.token = stored.Token
			viewer, err := a.viewer(ctx)
			if err != nil {
				return err
			}
			if err := a.storeConfig(stored); err != nil {
				return err
			}
			a.note("logged in at %s as %s (%s)", server, viewer.Name, viewer.Role)
			return a.show(result{data: viewer})
		}),
	}
}

// readToken reads a token from the standard input, without echo where that is a
// terminal.
func (a *app) readToken() (string, error) {
	var data []byte
	var err error
	if file, ok := a.stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprint(a.stderr, "Token: ")
		data, err = term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(a.stderr)
	} else {
		data, err = io.ReadAll(io.LimitReader(a.stdin, maxToken))
	}
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", usagef("expected a token: pass --token, or write it to the standard input")
	}
	return token, nil
}

// isOpen tells whether a token sent to server can be read on the way.
func isOpen(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "https" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// viewerView is the caller as scripts read it.
type viewerView struct {
	TokenID  string     `json:"token_id"`
	Name     string     `json:"name"`
	Role     fleet.Role `json:"role"`
	AllSites bool       `json:"all_sites"`
	Sites    []string   `json:"sites"`
	Machine  *string    `json:"machine"`
	Expires  *time.Time `json:"expires"`
}

// viewer asks the server who is calling.
func (a *app) viewer(ctx context.Context) (viewerView, error) {
	gql, err := a.api()
	if err != nil {
		return viewerView{}, err
	}
	found, err := client.WhoAmI(ctx, gql)
	if err != nil {
		return viewerView{}, err
	}
	v := found.Viewer
	view := viewerView{TokenID: v.TokenId, Name: v.Name, Role: v.Role, AllSites: v.AllSites, Sites: []string{}, Expires: v.ExpiresAt}
	for _, s := range v.Sites {
		view.Sites = append(view.Sites, s.Name)
	}
	if v.Machine != nil {
		view.Machine = &v.Machine.Name
	}
	return view, nil
}

func (a *app) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Forgets the stored token",
		Long:  "Forgets the stored token. It stays valid: fleetctl token revoke ends it.",
		Args:  cobra.NoArgs,
		RunE: a.work(func(context.Context, []string) error {
			stored, err := a.storedConfig()
			if err != nil {
				return err
			}
			if stored.Token == "" {
				a.note("not logged in")
				return nil
			}
			stored.Token = ""
			if err := a.storeConfig(stored); err != nil {
				return err
			}
			a.note("logged out")
			return nil
		}),
	}
}

func (a *app) whoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Shows who the server takes the caller for",
		Args:  cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			v, err := a.viewer(ctx)
			if err != nil {
				return err
			}
			settings, err := a.settings()
			if err != nil {
				return err
			}
			sites := strings.Join(v.Sites, ", ")
			if v.AllSites {
				sites = "all"
			}
			g := &grid{headers: []string{"Name", "Role", "Sites", "Expires"}}
			g.add(text(v.Name), text(string(v.Role)), text(sites), text(when(v.Expires)))
			return a.show(result{data: v, grid: g, page: func(p *page) {
				p.field("Server", settings.URL)
				p.field("Name", v.Name)
				p.field("Role", string(v.Role))
				p.field("Sites", sites)
				if v.Machine != nil {
					p.field("Machine", *v.Machine)
				}
				p.field("Expires", when(v.Expires))
			}})
		}),
	}
}
