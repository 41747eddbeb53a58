package server

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/graph"
)

func (b bench) sendZipped(t *testing.T, body string, header map[string]string) (encoding, content string) {
	t.Helper()
	with := map[string]string{"Accept-Encoding": "gzip"} // given, so that the client does not unzip
	for name, value := range header {
		with[name] = value
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/graphql", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer good")
	request.Header.Set("Content-Type", "application/json")
	for name, value := range with {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Contains(t, response.Header.Get("Vary"), "Accept-Encoding")
	reader := io.Reader(response.Body)
	if encoding = response.Header.Get("Content-Encoding"); encoding == "gzip" {
		reader, err = gzip.NewReader(response.Body)
		require.NoError(t, err)
	}
	read, err := io.ReadAll(reader)
	require.NoError(t, err)
	return encoding, string(read)
}

func TestALargeAnswerIsCompressed(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, func(context.Context) (*graph.Viewer, error) {
		return &graph.Viewer{Name: strings.Repeat("x", 2000)}, nil
	})
	for _, accept := range []string{"application/json", "application/graphql-response+json"} {
		encoding, content := b.sendZipped(t, `{"query":"{viewer{name}}"}`, map[string]string{"Accept": accept})
		require.Equal(t, "gzip", encoding, accept)
		require.Contains(t, content, "xxxx")
	}
	encoding, _ := b.sendZipped(t, `{"query":"{__typename}"}`, nil)
	require.Empty(t, encoding, "a small one is not")
	encoding, _ = b.sendZipped(t, `{"query":"{viewer{name}}"}`, map[string]string{"Accept-Encoding": "gzip;q=0"})
	require.Empty(t, encoding)
}

// The length of a compressed answer tells of a secret in it whether what a caller sent
// is like it. One mutation answers with a secret.
func TestTheAnswerOfAMutationIsNotCompressed(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	name := strings.Repeat("x", 2000)
	encoding, content := b.sendZipped(t, document(`mutation{`+name+`:createSite(input:{name:"a"}){site{id}}}`), nil)
	require.Empty(t, encoding)
	require.Contains(t, content, name)
}

func TestAStreamPassesTheCompressionUntouched(t *testing.T) {
	t.Parallel()
	for header, value := range map[string]string{"Accept": "text/event-stream", "Upgrade": "websocket"} {
		var got http.ResponseWriter
		handler, err := compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w }))
		require.NoError(t, err)
		recorder := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/graphql", nil)
		request.Header.Set("Accept-Encoding", "gzip")
		request.Header.Set(header, value)
		handler.ServeHTTP(recorder, request)
		require.Same(t, recorder, got, header)
	}
}
