package gqltests_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/server"
)

// limited has a server with bounds.
func limited(t *testing.T, rate server.Rate) *bundle {
	t.Helper()
	return setupWith(t, server.Config{Rate: rate, Logger: slog.New(slog.DiscardHandler)})
}

// retryAfter is the header of that name in the answer to an operation.
func (b *bundle) retryAfter(t *testing.T, token, document string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/graphql", bytes.NewReader([]byte(`{"query":"`+document+`"}`)))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := b.http.Do(request)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.Header.Get("Retry-After")
}

// requireLimited checks a refusal and returns when it says to try again.
func requireLimited(t *testing.T, a answer) time.Duration {
	t.Helper()
	require.Equal(t, 429, a.Status, "%s", a.raw)
	require.Len(t, a.Errors, 1)
	require.Equal(t, []string{"RESOURCE_EXHAUSTED", "RATE_LIMITED"}, []string{a.Errors[0].Extensions.Code, a.Errors[0].Extensions.Reason})
	text, ok := a.Errors[0].Extensions.Details["retryAfter"].(string)
	require.True(t, ok)
	wait, err := fleet.ParseDuration(text)
	require.NoError(t, err)
	require.Positive(t, wait)
	return wait
}

func TestOperationsOfATokenAreLimited(t *testing.T) {
	t.Parallel()
	b := limited(t, server.Rate{Operations: 0.01, Burst: 4})
	other := b.issueToken(t, variables{"name": "other", "role": "VIEWER"})
	for range 3 {
		b.must(t, `{ viewer { name } }`, nil, nil)
	}
	for _, document := range []string{`{ viewer { name } }`, `mutation { createSite(input: {name: "a"}) { site { id } } }`, `nonsense`} {
		a := b.do(t, b.admin, document, nil)
		wait := requireLimited(t, a)
		require.InDelta(t, 100, wait.Seconds(), 20)
		require.InDelta(t, 0.01, a.Errors[0].Extensions.Details["operationsPerSecond"], 1e-9)
		require.Nil(t, a.Data)
		seconds, err := strconv.Atoi(b.retryAfter(t, b.admin, `{viewer{name}}`))
		require.NoError(t, err)
		require.InDelta(t, 100, seconds, 20)
	}
	for range 4 {
		b.mustAs(t, other, `{ viewer { name } }`, nil, nil)
	}
	requireLimited(t, b.do(t, other, `{ viewer { name } }`, nil))
	require.Zero(t, b.count(t, `SELECT count(*) FROM sites`))
}

func TestATokenWithinTheLimitIsNeverRefused(t *testing.T) {
	t.Parallel()
	b := limited(t, server.DefaultRate())
	for range 300 {
		b.must(t, `{ viewer { name } }`, nil, nil)
	}
}

func TestWhoGuessesTokensDoesNotReachTheDatabase(t *testing.T) {
	t.Parallel()
	b := limited(t, server.Rate{Failures: 0.01})
	b.must(t, `{ viewer { name } }`, nil, nil)
	id, revoked := b.issue(t, variables{"name": "revoked", "role": "VIEWER"})
	fresh := b.issueToken(t, variables{"name": "fresh", "role": "VIEWER"})
	b.mustAs(t, revoked, `{ viewer { name } }`, nil, nil)
	b.must(t, revokeToken, variables{"input": variables{"tokenId": id}}, nil)
	require.Equal(t, 401, b.do(t, revoked, `{ viewer { name } }`, nil).Status)

	guess := func(header string) answer {
		return b.do(t, "fgt_"+header, `{ viewer { name } }`, nil)
	}
	requireLimited(t, guess("a"))
	require.Zero(t, b.statements.during(func() {
		for range 20 {
			requireLimited(t, guess("b"))
		}
		requireLimited(t, b.do(t, revoked, `{ viewer { name } }`, nil))
		elsewhere := b.ask(t, http.MethodGet, "/jobs", func(r *http.Request) {
			r.SetBasicAuth("x", "fgt_c")
			r.Header.Set("X-Forwarded-For", "192.0.2.7") // is the client's own text
		})
		require.Equal(t, 429, elsewhere.status)
		require.NotEmpty(t, elsewhere.header.Get("Retry-After"))
	}))
	// Nobody is locked out who was in.
	b.must(t, `{ viewer { name } }`, nil, nil)
	requireLimited(t, b.do(t, fresh, `{ viewer { name } }`, nil))
	require.Equal(t, 401, b.do(t, "", `{ viewer { name } }`, nil).Status, "without a token there is nothing to look up")
}
