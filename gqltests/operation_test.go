package gqltests_test

import (
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// asked is an answer of a page that is not the graph's.
type asked struct {
	status int
	header http.Header
	body   string
}

func (b *bundle) ask(t *testing.T, method, path string, prepare func(*http.Request)) asked {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.url+path, nil)
	require.NoError(t, err)
	if prepare != nil {
		prepare(request)
	}
	response, err := b.http.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return asked{response.StatusCode, response.Header, string(body)}
}

func TestTheMetricsTellWhatStandsWhere(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.newSku(t, l.site, `odd "name"\`, l.components)
	var found struct{ Sku struct{ ID string } }
	l.must(t, `query($name: String!) { sku(site: "dc1", name: $name) { id } }`, variables{"name": `odd "name"\`}, &found)
	l.must(t, updateMetadata, variables{"input": variables{"skuId": found.Sku.ID, "deviceType": "storage"}}, nil)
	l.arrives(t, readyMac, l.good)
	l.arrives(t, waitingMac, l.other)
	l.arrives(t, "02:00:00:00:00:03", inventory(t, "upstream/dpu_info.json"))
	l.expect(t, readyMac, "no-sku")
	l.expect(t, waitingMac, `odd "name"\`)

	got := l.ask(t, http.MethodGet, "/metrics", nil)
	require.Equal(t, 200, got.status)
	for _, line := range []string{
		`carbide_hosts_by_sku_count{device_type="storage",fresh="true",site="dc1",sku="odd \"name\"\\"} 1`,
		`carbide_hosts_by_sku_count{device_type="unknown",fresh="true",site="dc1",sku="unknown"} 1`,
		`carbide_site_exploration_expected_machines_sku_count{device_type="unknown",site="dc1",sku_id="no-sku"} 1`,
		`carbide_site_exploration_expected_machines_sku_count{device_type="storage",site="dc1",sku_id="odd \"name\"\\"} 1`,
		`carbide_machines_per_state{fresh="true",site="dc1",state="ready",substate=""} 2`,
		`carbide_machines_per_state{fresh="true",site="dc1",state="bom_validating",substate="waiting_for_sku_assignment"} 1`,
		`fleetgraph_machines_oldest_in_state_seconds{site="dc1",state="ready",substate=""} `,
		`fleetgraph_database_connections_max `,
		`go_goroutines `,
	} {
		require.Contains(t, got.body, "\n"+line)
	}

	// A scrape that came from elsewhere needs a viewer of all sites.
	elsewhere := func(token string) asked {
		return l.ask(t, http.MethodGet, "/metrics", func(r *http.Request) {
			r.Header.Set("X-Forwarded-For", "192.0.2.1")
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
		})
	}
	require.Equal(t, 401, elsewhere("").status)
	require.Equal(t, 403, elsewhere(l.issueToken(t, variables{"name": "bound", "role": "VIEWER", "siteIds": []string{l.site}})).status)
	require.Equal(t, 403, elsewhere(l.issueToken(t, variables{"name": "agent", "role": "AGENT", "siteId": l.site, "bmcMacAddress": readyMac})).status)
	require.Equal(t, 200, elsewhere(l.issueToken(t, variables{"name": "scraper", "role": "VIEWER"})).status)
}

func TestTheJobsPageIsForAdminsOfAllSites(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	basic := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth("anyone", token) }
	}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	for _, path := range []string{"/jobs", "/jobs/", "/jobs/api/jobs", "/jobs/assets/none.js"} {
		got := h.ask(t, http.MethodGet, path, nil)
		require.Equal(t, 401, got.status, path)
		require.Contains(t, got.header.Get("WWW-Authenticate"), "Basic realm=")
		for _, token := range []string{h.viewer, h.allViewer, h.siteOperator, h.allOperator, h.siteAdmin, h.agent} {
			require.Equal(t, 403, h.ask(t, http.MethodGet, path, basic(token)).status, path)
			require.Equal(t, 403, h.ask(t, http.MethodGet, path, bearer(token)).status, path)
		}
		for _, token := range []string{h.expired, h.revoked, "x"} {
			require.Equal(t, 401, h.ask(t, http.MethodGet, path, basic(token)).status, path)
		}
	}
	page := h.ask(t, http.MethodGet, "/jobs/", basic(h.admin))
	require.Equal(t, 200, page.status)
	require.Contains(t, page.body, "<title>River</title>")
	require.NotContains(t, page.header.Get("Content-Security-Policy"), "http")
	assets := regexp.MustCompile(`"(/jobs/assets/[^"]+)"`).FindAllStringSubmatch(page.body, -1)
	require.NotEmpty(t, assets, page.body)
	for _, asset := range assets {
		require.Equal(t, 200, h.ask(t, http.MethodGet, asset[1], basic(h.admin)).status, asset[1])
	}

	jobs := h.ask(t, http.MethodGet, "/jobs/api/jobs?state=completed", bearer(h.admin))
	require.Equal(t, 200, jobs.status)
	require.Contains(t, jobs.body, `"sku.evaluate"`)
	require.Equal(t, "no-store", jobs.header.Get("Cache-Control"))

	// A browser sends its password along whoever asks: only the page itself may.
	retry := func(origin string) int {
		return h.ask(t, http.MethodPost, "/jobs/api/jobs/retry", func(r *http.Request) {
			basic(h.admin)(r)
			r.Header.Set("Origin", origin)
		}).status
	}
	require.Equal(t, 403, retry("https://elsewhere.example"))
	require.NotContains(t, []int{401, 403}, retry(h.url))
}
