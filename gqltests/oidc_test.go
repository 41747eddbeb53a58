package gqltests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/internal/openid/openidtest"
	"fleetgraph/server"
)

// oidcFile is a file that accepts a provider's tokens.
func oidcFile(t *testing.T, p *openidtest.Provider) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oidc.toml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
[[issuer]]
url = %q
audience = %q
[[issuer.grant]]
claim = "realm_access.roles"
value = "watch-here"
role = "viewer"
sites = ["here"]
[[issuer.grant]]
claim = "groups"
value = "here-ops"
role = "operator"
sites = ["here", "nowhere"]
[[issuer.grant]]
claim = "groups"
value = "later-ops"
role = "operator"
sites = ["later"]
[[issuer.grant]]
claim = "groups"
value = "all-watch"
role = "viewer"
sites = ["*"]
[[issuer.grant]]
claim = "email"
value = "root@example.com"
role = "admin"
sites = ["*"]
[[issuer.grant]]
claim = "groups"
value = "nowhere"
role = "admin"
sites = ["nowhere"]
`, p.URL, openidtest.Audience), 0o600))
	return path
}

// vouched is a server that accepts tokens of an issuer.
type vouched struct {
	*bundle
	issuer      *openidtest.Provider
	log         *journal
	here, there string
}

func newVouched(t *testing.T, p *openidtest.Provider) *vouched {
	t.Helper()
	v := &vouched{issuer: p, log: &journal{}}
	v.bundle = setupWith(t, server.Config{OIDCConfigFile: oidcFile(t, p), Logger: v.log.logger(t)})
	v.here, v.there = v.createSite(t, "here"), v.createSite(t, "there")
	return v
}

func (v *vouched) token(t *testing.T, subject string, groups ...string) string {
	t.Helper()
	return v.issuer.Token(t, subject, map[string]any{"groups": groups, "preferred_username": subject + "-name"})
}

// who is what tests look at of the viewer.
type who struct {
	TokenID, Name, Role string
	AllSites            bool
	Sites               []struct{ Name string }
	ExpiresAt           time.Time
}

func (v *vouched) who(t *testing.T, token string) who {
	t.Helper()
	var out struct{ Viewer who }
	v.mustAs(t, token, `{ viewer { tokenId name role allSites sites { name } expiresAt } }`, nil, &out)
	return out.Viewer
}

func (w who) siteNames() []string {
	out := []string{}
	for _, s := range w.Sites {
		out = append(out, s.Name)
	}
	return out
}

func TestClaimsBecomeARoleAtSites(t *testing.T) {
	t.Parallel()
	v := newVouched(t, openidtest.New(t))
	for name, c := range map[string]struct {
		claims   map[string]any
		role     string
		allSites bool
		sites    []string
	}{
		"a nested claim":                          {map[string]any{"realm_access": map[string]any{"roles": []string{"x", "watch-here"}}}, "VIEWER", false, []string{"here"}},
		"a text instead of a list":                {map[string]any{"groups": "here-ops"}, "OPERATOR", false, []string{"here"}},
		"all sites":                               {map[string]any{"groups": []string{"all-watch"}}, "VIEWER", true, []string{}},
		"the highest role":                        {map[string]any{"groups": []string{"all-watch", "here-ops"}}, "OPERATOR", false, []string{"here"}},
		"the sites of all grants of a role":       {map[string]any{"groups": []string{"later-ops", "here-ops"}}, "OPERATOR", false, []string{"here"}},
		"a site that is not there":                {map[string]any{"groups": []string{"nowhere"}}, "ADMIN", false, []string{}},
		"an address that was verified":            {map[string]any{"email": "root@example.com", "email_verified": true}, "ADMIN", true, []string{}},
		"an address that was verified, as a text": {map[string]any{"email": "root@example.com", "email_verified": "true"}, "ADMIN", true, []string{}},
	} {
		got := v.who(t, v.issuer.Token(t, "u", c.claims))
		require.Equal(t, []any{c.role, c.allSites, c.sites}, []any{got.Role, got.AllSites, got.siteNames()}, name)
	}
	for name, claims := range map[string]map[string]any{
		"nothing":                         {},
		"other groups":                    {"groups": []string{"here-ops-", "HERE-OPS", "", "*"}},
		"a group in another claim":        {"roles": []string{"here-ops"}},
		"a claim of another form":         {"groups": map[string]any{"here-ops": true}},
		"an address that is not verified": {"email": "root@example.com", "email_verified": false},
		"an address of unknown standing":  {"email": "root@example.com"},
	} {
		a := v.do(t, v.issuer.Token(t, "u", claims), `{ viewer { name } }`, nil)
		require.Equal(t, 403, a.Status, name)
		require.Equal(t, []string{"PERMISSION_DENIED", "NO_GRANT"}, []string{a.Errors[0].Extensions.Code, a.Errors[0].Extensions.Reason}, name)
	}

	// A site that comes to be, or gets another name, counts shortly after.
	later := v.createSite(t, "later")
	both := v.token(t, "u", "later-ops", "here-ops")
	require.Eventually(t, func() bool { return len(v.who(t, both).Sites) == 2 }, 30*time.Second, 100*time.Millisecond)
	v.must(t, `mutation($input: UpdateSiteInput!) { updateSite(input: $input) { site { id } } }`, variables{"input": variables{"siteId": later, "name": "gone"}}, nil)
	require.Eventually(t, func() bool { return len(v.who(t, both).Sites) == 1 }, 30*time.Second, 100*time.Millisecond)
}

func TestACallerByOIDCIsBoundLikeAnyOther(t *testing.T) {
	t.Parallel()
	v := newVouched(t, openidtest.New(t))
	operator, nobody := v.token(t, "olga", "here-ops"), v.token(t, "nina", "nowhere")
	m := v.report(t, v.there, readyMac, "there-node", inventory(t, "composed/r760_9nvme.json"))
	report := func(site string) variables {
		return variables{"input": variables{"siteId": site, "bmcMacAddress": waitingMac, "name": "node", "inventory": inventory(t, "composed/r760_9nvme.json"), "idempotencyKey": "k"}}
	}
	var created struct{ ReportInventory struct{ Machine machine } }
	v.mustAs(t, operator, reportInventory, report(v.here), &created)
	for _, caller := range []string{operator, nobody} {
		a := v.do(t, caller, `query($id: ID!) { node(id: $id) { id } site(name: "there") { id } machines(where: {name: "there-node"}) { totalCount } }`, variables{"id": m.ID})
		require.JSONEq(t, `{"data": {"node": null, "site": null, "machines": {"totalCount": 0}}}`, string(a.raw))
	}
	require.Equal(t, "SITE_NOT_FOUND", v.refused(t, operator, reportInventory, variables{"input": merged(report(v.there)["input"].(variables), variables{"idempotencyKey": "other"})}).Extensions.Reason)
	require.Equal(t, "ROLE_TOO_SMALL", v.refused(t, operator, `mutation { createSite(input: {name: "a"}) { site { id } } }`, nil).Extensions.Reason)
	require.Equal(t, "SITES_TOO_WIDE", v.refused(t, nobody, `mutation { createSite(input: {name: "a"}) { site { id } } }`, nil).Extensions.Reason)
	a := v.do(t, nobody, `{ sites { totalCount } machines { totalCount } skus { totalCount } transitions { totalCount } tokens { totalCount } expectedMachines { totalCount } }`, nil)
	require.JSONEq(t, `{"data": {"sites": {"totalCount": 0}, "machines": {"totalCount": 0}, "skus": {"totalCount": 0}, "transitions": {"totalCount": 0}, "tokens": {"totalCount": 0}, "expectedMachines": {"totalCount": 0}}}`, string(a.raw))

	// The history has the name; a fresh token of the same person is the same caller.
	history := v.history(t, created.ReportInventory.Machine.ID)
	require.Equal(t, "olga-name", history[0].Actor)
	again := v.token(t, "olga", "here-ops")
	require.NotEqual(t, operator, again)
	count := len(history)
	v.mustAs(t, again, reportInventory, report(v.here), nil)
	require.Len(t, v.history(t, created.ReportInventory.Machine.ID), count, "the same key, the same result")
	first, second := v.who(t, operator), v.who(t, again)
	require.Equal(t, first.TokenID, second.TokenID)
	require.Regexp(t, `^oidc:[0-9a-f]{32}$`, first.TokenID)
	require.NotEqual(t, first.TokenID, v.who(t, v.token(t, "other", "here-ops")).TokenID)
	require.WithinDuration(t, time.Now().Add(time.Hour), first.ExpiresAt, time.Minute)

	require.NotContains(t, v.log.String(), operator)
	attempts := 0
	for _, line := range v.log.audited(t) {
		if line.Caller == "olga-name" {
			attempts++
			require.Equal(t, first.TokenID, line.TokenID)
		}
	}
	require.Equal(t, 4, attempts)
}

func TestTheNameOfACallerByOIDC(t *testing.T) {
	t.Parallel()
	v := newVouched(t, openidtest.New(t))
	for want, claims := range map[string]map[string]any{
		"given":         {"preferred_username": "given", "email": "e@example.com"},
		"e@example.com": {"preferred_username": "a\u202eb", "email": "e@example.com"},
		"sub-1":         {"preferred_username": strings.Repeat("x", 129), "email": ""},
		"sub-2":         {"preferred_username": "system:advance", "sub": "sub-2"},
	} {
		require.Equal(t, want, v.who(t, v.issuer.Token(t, "sub-1", merged(claims, variables{"groups": "all-watch"}))).Name)
	}
	odd := v.who(t, v.issuer.Token(t, "a\nb", map[string]any{"groups": "all-watch"}))
	require.Equal(t, odd.TokenID, odd.Name)
}

func TestTokensOfAnIssuerThatAreRefused(t *testing.T) {
	t.Parallel()
	v := newVouched(t, openidtest.New(t))
	other := openidtest.New(t)
	claims := v.issuer.Claims("u", map[string]any{"groups": "all-watch"})
	for name, token := range map[string]string{
		"TOKEN_EXPIRED":  v.issuer.Token(t, "u", map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
		"wrong audience": v.issuer.Token(t, "u", map[string]any{"groups": "all-watch", "aud": "other"}),
		"unknown issuer": other.Token(t, "u", map[string]any{"groups": "all-watch"}),
		"wrong key":      openidtest.Sign(t, jose.RS256, other.Key(), claims),
		"HS256":          openidtest.Sign(t, jose.HS256, []byte(strings.Repeat("k", 32)), claims),
		"no token":       "eyJhbGciOiJub25lIn0.e30.",
		"an old secret":  strings.TrimPrefix(v.admin, "fgt_"),
		"an id":          fleet.NewID(fleet.PrefixToken),
	} {
		a := v.do(t, token, `{ viewer { name } }`, nil)
		require.Equal(t, 401, a.Status, name)
		reason := "TOKEN_INVALID"
		if strings.HasPrefix(name, "TOKEN_") {
			reason = name
		}
		require.Equal(t, []string{"UNAUTHENTICATED", reason}, []string{a.Errors[0].Extensions.Code, a.Errors[0].Extensions.Reason}, name)
		require.NotContains(t, v.log.String(), token)
	}
	require.Equal(t, "all-watch-name", v.who(t, v.token(t, "all-watch", "all-watch")).Name)
	v.issuer.Rotate(t)
	require.Equal(t, "all-watch-name", v.who(t, v.token(t, "all-watch", "all-watch")).Name)
}

func TestTheServerStartsWithoutItsIssuerAndFindsItLater(t *testing.T) {
	t.Parallel()
	p := openidtest.Down(t)
	v := newVouched(t, p)
	token := v.token(t, "u", "all-watch")
	a := v.do(t, token, `{ viewer { name } }`, nil)
	require.Equal(t, 503, a.Status)
	require.Equal(t, []string{"UNAVAILABLE", "ISSUER_UNAVAILABLE"}, []string{a.Errors[0].Extensions.Code, a.Errors[0].Extensions.Reason})
	require.NotContains(t, string(a.raw), p.URL, "the cause is logged")
	v.must(t, `{ viewer { name } }`, nil, nil)
	p.Start(t)
	require.Eventually(t, func() bool { return v.do(t, token, `{ viewer { name } }`, nil).Status == 200 }, 30*time.Second, 100*time.Millisecond)
}
