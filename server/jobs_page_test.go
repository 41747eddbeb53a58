package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// createSite returns the id of a new site.
func (r running) createSite(t *testing.T, name string) string {
	t.Helper()
	var out struct {
		Data struct {
			CreateSite struct{ Site struct{ ID string } }
		}
	}
	r.query(t, fmt.Sprintf(`mutation { createSite(input: {name: %q}) { site { id } } }`, name), &out)
	return out.Data.CreateSite.Site.ID
}

// issue returns a new token of a role, of one site or of all.
func (r running) issue(t *testing.T, role, siteID string) string {
	t.Helper()
	sites := ""
	if siteID != "" {
		sites = fmt.Sprintf(", siteIds: [%q]", siteID)
	}
	var out struct {
		Data struct{ IssueToken struct{ Secret string } }
	}
	r.query(t, fmt.Sprintf(`mutation { issueToken(input: {name: %q, role: %s%s}) { secret } }`, strings.ToLower(role), role, sites), &out)
	require.NotEmpty(t, out.Data.IssueToken.Secret)
	return out.Data.IssueToken.Secret
}

// send sends a request; prepare may change it. It follows no redirect.
func (r running) send(t *testing.T, method, path, body string, prepare func(*http.Request)) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if prepare != nil {
		prepare(request)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	out := answer{status: response.StatusCode, header: response.Header, body: string(content)}
	if strings.HasPrefix(out.body, `{"errors"`) {
		require.NoError(t, json.Unmarshal(content, &out), out.body)
	}
	return out
}

func withBasic(token string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth("anyone", token) }
}

func withBearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func TestJobsAreForAdminsOfAllSites(t *testing.T) {
	t.Parallel()
	r := start(t, Config{})
	site := r.createSite(t, "here")
	siteAdmin, viewer, operator := r.issue(t, "ADMIN", site), r.issue(t, "VIEWER", ""), r.issue(t, "OPERATOR", "")
	for _, path := range []string{"/jobs/", "/jobs/api/jobs", "/jobs/api/queues", "/jobs/icon.svg", "/jobs/assets/none.js", "/jobs/jobs/1"} {
		for name, c := range map[string]struct {
			prepare      func(*http.Request)
			status       int
			code, reason string
		}{
			"anonymous":     {nil, 401, "UNAUTHENTICATED", "TOKEN_MISSING"},
			"no password":   {withBasic(""), 401, "UNAUTHENTICATED", "TOKEN_MISSING"},
			"unknown":       {withBasic("fgt_none"), 401, "UNAUTHENTICATED", "TOKEN_INVALID"},
			"two headers":   {func(q *http.Request) { withBasic(r.token)(q); q.Header.Add("Authorization", "Bearer "+r.token) }, 401, "UNAUTHENTICATED", "TOKEN_MISSING"},
			"token as name": {func(q *http.Request) { q.SetBasicAuth(r.token, "") }, 401, "UNAUTHENTICATED", "TOKEN_MISSING"},
			"viewer":        {withBasic(viewer), 403, "PERMISSION_DENIED", "ROLE_TOO_SMALL"},
			"operator":      {withBearer(operator), 403, "PERMISSION_DENIED", "ROLE_TOO_SMALL"},
			"site's admin":  {withBasic(siteAdmin), 403, "PERMISSION_DENIED", "SITES_TOO_NARROW"},
		} {
			got := r.send(t, http.MethodGet, path, "", c.prepare)
			require.Equal(t, c.status, got.status, name+path)
			got.requireError(t, c.code, c.reason, "")
			if c.status == http.StatusUnauthorized {
				require.Contains(t, got.header.Get("WWW-Authenticate"), `Basic realm="fleetgraph jobs`, name)
			}
		}
	}
}

func TestThePageOfJobsAndItsData(t *testing.T) {
	t.Parallel()
	r := start(t, Config{})
	bare := r.send(t, http.MethodGet, "/jobs", "", withBasic(r.token))
	require.Equal(t, "/jobs/", bare.header.Get("Location"))

	page := r.send(t, http.MethodGet, "/jobs/", "", func(q *http.Request) { withBasic(r.token)(q); q.Header.Set("Accept", "text/html") })
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.header.Get("Content-Type"), "text/html")
	policy := page.header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'; script-src 'self';")
	require.NotContains(t, policy, "http")
	require.NotContains(t, page.body, "://", "everything comes from this server")
	found := 0
	for part := range strings.SplitSeq(page.body, `"`) {
		if !strings.HasPrefix(part, "/jobs/") || part == "/jobs/api" {
			continue
		}
		found++
		file := r.send(t, http.MethodGet, part, "", withBasic(r.token))
		require.Equal(t, http.StatusOK, file.status, part)
		require.NotContains(t, file.header.Get("Content-Type"), "text/html", part)
		require.Equal(t, policy, file.header.Get("Content-Security-Policy"))
	}
	require.Equal(t, 5, found, "its script, its style sheet and its icons")
	require.Equal(t, "image/svg+xml", r.send(t, http.MethodGet, "/jobs/icon.svg", "", withBasic(r.token)).header.Get("Content-Type"))

	var list struct{ Data []struct{ Kind string } }
	require.Eventually(t, func() bool {
		got := r.send(t, http.MethodGet, "/jobs/api/jobs?state=completed", "", withBearer(r.token))
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
		require.NoError(t, json.Unmarshal([]byte(got.body), &list))
		return len(list.Data) > 0
	}, 20*time.Second, 50*time.Millisecond, "the jobs that come by themselves")
	require.Contains(t, []string{"machine.attend", "idempotency.sweep"}, list.Data[0].Kind)
}

func TestJobsAreChangedFromTheirOwnPageOnly(t *testing.T) {
	t.Parallel()
	r := start(t, Config{})
	from := func(header ...string) func(*http.Request) {
		return func(q *http.Request) {
			withBasic(r.token)(q)
			for i := 0; i < len(header); i += 2 {
				q.Header.Set(header[i], header[i+1])
			}
		}
	}
	const pause, resume = "/jobs/api/queues/default/pause", "/jobs/api/queues/default/resume"
	paused := func() bool {
		var queue struct {
			PausedAt *time.Time `json:"paused_at"`
		}
		got := r.send(t, http.MethodGet, "/jobs/api/queues/default", "", withBearer(r.token))
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.NoError(t, json.Unmarshal([]byte(got.body), &queue))
		return queue.PausedAt != nil
	}
	require.Eventually(t, func() bool {
		return r.send(t, http.MethodGet, "/jobs/api/queues/default", "", withBearer(r.token)).status == http.StatusOK
	}, 20*time.Second, 20*time.Millisecond)

	for name, headers := range map[string][]string{
		"another site":             {"Sec-Fetch-Site", "cross-site", "Origin", "https://example.com"},
		"a neighbour":              {"Sec-Fetch-Site", "same-site"},
		"an older browser":         {"Origin", "https://example.com"},
		"a page without an origin": {"Origin", "null"},
	} {
		for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch} {
			got := r.send(t, method, pause, "{}", from(headers...))
			require.Equal(t, http.StatusForbidden, got.status, name)
			got.requireError(t, "PERMISSION_DENIED", "CROSS_ORIGIN", "")
		}
		require.False(t, paused(), name)
	}
	for _, prepare := range []func(*http.Request){
		from("Sec-Fetch-Site", "same-origin", "Origin", r.url), from("Origin", r.url), from(), withBearer(r.token),
	} {
		got := r.send(t, http.MethodPut, pause, "{}", prepare)
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.True(t, paused())
		require.Equal(t, http.StatusOK, r.send(t, http.MethodPut, resume, "{}", prepare).status)
		require.False(t, paused())
	}
	require.Equal(t, http.StatusUnauthorized, r.send(t, http.MethodPut, pause, "{}", nil).status)
}
