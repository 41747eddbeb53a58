package server

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/access"
)

const goodIssuer = `
[[issuer]]
url = "https://login.example.com/realms/fleet"
audience = "fleetgraph"
name_claim = "upn"
[[issuer.grant]]
claim = "groups"
value = "fleet-admins"
role = "admin"
sites = ["*"]
[[issuer.grant]]
claim = "realm_access.roles"
value = "watch"
role = "Viewer"
sites = ["pdx1", "pdx2"]
`

func TestTheFileOfIssuers(t *testing.T) {
	t.Parallel()
	issuers, err := readIssuers("", time.Now)
	require.NoError(t, err)
	require.Empty(t, issuers)
	path := filepath.Join(t.TempDir(), "oidc.toml")
	require.NoError(t, os.WriteFile(path, []byte(goodIssuer+"[[issuer]]\nurl = \"http://127.0.0.1:1\"\naudience = \"a\"\n[[issuer.grant]]\nclaim = \"iss\"\nvalue = \"v\"\nrole = \"operator\"\nsites = [\"a\"]\n"), 0o600))
	issuers, err = readIssuers(path, time.Now)
	require.NoError(t, err)
	require.Len(t, issuers, 2)
	require.Equal(t, "https://login.example.com/realms/fleet", issuers[0].URL())
	require.Equal(t, []string{"upn", "sub"}, issuers[0].NameClaims)
	require.Equal(t, []access.Grant{
		{Claim: "groups", Value: "fleet-admins", Role: fleet.RoleAdmin, Sites: []string{"*"}},
		{Claim: "realm_access.roles", Value: "watch", Role: fleet.RoleViewer, Sites: []string{"pdx1", "pdx2"}},
	}, issuers[0].Grants)
	require.Equal(t, []string{"preferred_username", "email", "sub"}, issuers[1].NameClaims)
}

func TestTheFileOfIssuersIsRefusedWithWhatIsWrong(t *testing.T) {
	t.Parallel()
	const head = "[[issuer]]\nurl = \"https://a.example\"\naudience = \"a\"\n"
	const grant = "[[issuer.grant]]\nclaim = \"c\"\nvalue = \"v\"\n"
	for text, message := range map[string]string{
		"":                             "there is no [[issuer]]",
		"issuers = 1":                  "line 1: unknown key issuers",
		head + "client_secret = \"x\"": "line 4: unknown key issuer.client_secret",
		head + grant + "rolle = \"admin\"\nsites = [\"*\"]": "line 7: unknown key issuer.grant.rolle",
		"[[issuer]]\nurl = 7":                               "line 2: ",
		"[[issuer":                                          "line 1: ",
		"[[issuer]]\nurl = \"http://a.example\"":            `issuer 1: url: "http://a.example": https is required, but for a loopback address`,
		"[[issuer]]\naudience = \"a\"":                      `issuer 1: url: "": not an absolute URL`,
		"[[issuer]]\nurl = \"https://a.example\"":           "issuer 1: audience: is required",
		head: "issuer 1: there is no [[issuer.grant]]",
		head + "[[issuer.grant]]\nvalue = \"v\"\nrole = \"admin\"\nsites = [\"*\"]": "issuer 1: grant 1: claim: is required",
		head + "[[issuer.grant]]\nclaim = \"c\"\nrole = \"admin\"\nsites = [\"*\"]": "issuer 1: grant 1: value: is required",
		head + grant + "role = \"agent\"\nsites = [\"*\"]":                          "issuer 1: grant 1: role: agents have issued tokens",
		head + grant + "role = \"root\"\nsites = [\"*\"]":                           `issuer 1: grant 1: role: "root" is not viewer, operator or admin`,
		head + grant + "sites = [\"*\"]":                                            `issuer 1: grant 1: role: "" is not viewer`,
		head + grant + "role = \"admin\"":                                           "issuer 1: grant 1: sites: name at least one",
		head + grant + "role = \"admin\"\nsites = [\" \"]":                          "issuer 1: grant 1: sites: sites must not begin",
		goodIssuer + goodIssuer:                                                     "issuer 2: url: https://login.example.com/realms/fleet has an [[issuer]] already",
	} {
		_, err := parseIssuers([]byte(text), time.Now)
		require.ErrorContains(t, err, message, text)
	}
	missing := filepath.Join(t.TempDir(), "none.toml")
	require.Contains(t, failsToStart(t, Config{OIDCConfigFile: missing}), "OIDC configuration: open "+missing)
}
