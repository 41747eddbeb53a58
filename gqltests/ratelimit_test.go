package gqltests_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
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

// TestWhoGuessesTokensLocksNobodyOut has more failures than an address may have, and
// somebody new behind the same address.
func TestWhoGuessesTokensLocksNobodyOut(t *testing.T) {
	t.Parallel()
	b := limited(t, server.Rate{Failures: 0.01})
	b.must(t, `{ viewer { name } }`, nil, nil)
	id, revoked := b.issue(t, variables{"name": "revoked", "role": "VIEWER"})
	fresh := b.issueToken(t, variables{"name": "fresh", "role": "VIEWER"})
	b.mustAs(t, revoked, `{ viewer { name } }`, nil, nil)
	b.must(t, revokeToken, variables{"input": variables{"tokenId": id}}, nil)
	require.Equal(t, 401, b.do(t, revoked, `{ viewer { name } }`, nil).Status)

	const guessers, guesses = 150, 20 // more than may wait at one time
	var all sync.WaitGroup
	var unknown, tooMany atomic.Int64
	for range guessers {
		all.Go(func() {
			for range guesses {
				response := b.ask(t, http.MethodGet, "/jobs", func(r *http.Request) {
					r.SetBasicAuth("x", "fgt_guess")
					r.Header.Set("X-Forwarded-For", "192.0.2.7") // is the client's own text
				})
				switch response.status {
				case http.StatusUnauthorized:
					unknown.Add(1)
				case http.StatusTooManyRequests:
					requireRetryAfter(t, response.header)
					tooMany.Add(1)
				}
			}
		})
	}
	for range 5 {
		b.must(t, `{ viewer { name } }`, nil, nil) // who was in stays in
	}
	require.Eventually(t, func() bool {
		return b.do(t, fresh, `{ viewer { name } }`, nil).Status == 200
	}, polling, tick, "and who is new comes in, at once or when they try again")
	all.Wait()
	require.EqualValues(t, guessers*guesses, unknown.Load()+tooMany.Load())
	t.Logf("%d guesses looked up, %d refused", unknown.Load(), tooMany.Load())
	require.Equal(t, 401, b.do(t, revoked, `{ viewer { name } }`, nil).Status)
	require.Equal(t, 401, b.do(t, "", `{ viewer { name } }`, nil).Status, "without a token there is nothing to look up")
}

func requireRetryAfter(t *testing.T, header http.Header) {
	t.Helper()
	if header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
