package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func persisted(hash string) string {
	return fmt.Sprintf(`{"persistedQuery":{"version":1,"sha256Hash":%q}}`, hash)
}

func TestAQueryIsKnownByItsHashOnceItWasSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	const query = "query($yes:Boolean!){viewer{name @include(if:$yes)}}"
	extension := persisted(hashOf(query))
	byHash := `{"variables":{"yes":true},"extensions":` + extension + `}`

	got := b.send(t, http.MethodPost, "/graphql", byHash, nil)
	require.Equal(t, http.StatusOK, got.status)
	require.JSONEq(t, `{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND","reason":"PERSISTED_QUERY_NOT_FOUND"}}]}`, got.body)

	both := `{"query":` + strings.TrimSuffix(strings.TrimPrefix(document(query), `{"query":`), "}") + `,"variables":{"yes":true},"extensions":` + extension + `}`
	want := `{"data":{"viewer":{"name":"tester"}}}`
	require.JSONEq(t, want, b.send(t, http.MethodPost, "/graphql", both, nil).body)
	require.JSONEq(t, want, b.send(t, http.MethodPost, "/graphql", byHash, nil).body)
	require.JSONEq(t, want, b.send(t, http.MethodGet, "/graphql?variables="+url.QueryEscape(`{"yes":true}`)+"&extensions="+url.QueryEscape(extension), "", nil).body)

	stranger := b.send(t, http.MethodPost, "/graphql", byHash, map[string]string{"Authorization": "Bearer bad"})
	stranger.requireError(t, "UNAUTHENTICATED", "TOKEN_INVALID", "")
}

func TestAMutationByHashIsNotRunByGet(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	const mutation = `mutation{createSite(input:{name:"a"}){site{id}}}`
	body := strings.TrimSuffix(document(mutation), "}") + `,"extensions":` + persisted(hashOf(mutation)) + "}"
	b.send(t, http.MethodPost, "/graphql", body, nil)
	got := b.send(t, http.MethodGet, "/graphql?extensions="+url.QueryEscape(persisted(hashOf(mutation))), "", nil)
	require.Equal(t, http.StatusMethodNotAllowed, got.status)
}

func TestAPersistedQueryThatCannotBe(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	const query = "{viewer{name}}"
	for name, c := range map[string]struct{ query, extension, reason, field string }{
		"another hash":     {query, persisted(hashOf("{viewer{role}}")), "PERSISTED_QUERY_MISMATCH", "extensions.persistedQuery.sha256Hash"},
		"upper case":       {query, persisted(strings.ToUpper(hashOf(query))), "PERSISTED_QUERY_INVALID", "extensions.persistedQuery.sha256Hash"},
		"the same alone":   {"", persisted(strings.ToUpper(hashOf(query))), "PERSISTED_QUERY_INVALID", "extensions.persistedQuery.sha256Hash"},
		"no hash":          {"", `{"persistedQuery":{"version":1}}`, "PERSISTED_QUERY_INVALID", "extensions.persistedQuery.sha256Hash"},
		"too short a hash": {"", persisted("abcd"), "PERSISTED_QUERY_INVALID", "extensions.persistedQuery.sha256Hash"},
		"another version":  {"", `{"persistedQuery":{"version":2,"sha256Hash":"` + hashOf(query) + `"}}`, "PERSISTED_QUERY_INVALID", "extensions.persistedQuery.version"},
		"no object":        {"", `{"persistedQuery":7}`, "PERSISTED_QUERY_INVALID", "extensions.persistedQuery.version"},
		"null":             {"", `{"persistedQuery":null}`, "QUERY_MISSING", "query"},
	} {
		body := strings.TrimSuffix(document(c.query), "}") + `,"extensions":` + c.extension + "}"
		got := b.send(t, http.MethodPost, "/graphql", body, nil)
		got.requireError(t, "INVALID_ARGUMENT", c.reason, c.field)
		require.NotContains(t, got.body, "tester", name)
	}
}

func TestWhatIsRefusedIsNotKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{Aliases: 1}, nil)
	for _, query := range []string{"{nothing}", "{viewer{", "{a:viewer{b:name}}", "{viewer{...a}} fragment a on Viewer{...a}"} {
		body := strings.TrimSuffix(document(query), "}") + `,"extensions":` + persisted(hashOf(query)) + "}"
		require.NotEmpty(t, b.send(t, http.MethodPost, "/graphql", body, nil).Errors)
		got := b.send(t, http.MethodPost, "/graphql", `{"extensions":`+persisted(hashOf(query))+`}`, nil)
		require.Equal(t, "PersistedQueryNotFound", got.Errors[0].Message, query)
	}
}

func TestACacheIsBoundedInEntriesAndBytes(t *testing.T) {
	t.Parallel()
	c := newTextCache(cacheSize{entries: 3, bytes: 10, longest: 6}, func(_, text string) int { return len(text) })
	has := func(keys ...string) {
		t.Helper()
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			_, ok := c.Get(t.Context(), key)
			require.Equal(t, strings.Contains(strings.Join(keys, ""), key), ok, key)
		}
	}
	c.Add(t.Context(), "a", "1234567") // too long
	has()
	c.Add(t.Context(), "a", "1234")
	c.Add(t.Context(), "a", "1234") // is there
	c.Add(t.Context(), "b", "1234")
	has("a", "b")
	c.Add(t.Context(), "c", "123") // the bytes
	has("b", "c")
	c.Add(t.Context(), "d", "1")
	has("b", "c", "d")
	c.Add(t.Context(), "e", "1") // the entries
	has("c", "d", "e")
	require.Equal(t, 5, c.bytes)
}
