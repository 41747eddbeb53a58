package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/graph"
)

// What a page of another site makes a browser send without asking this server first:
// GET and POST with the headers that the Fetch standard calls safe-listed. None of it
// runs anything, whatever else the browser adds by itself.
func TestNoSimpleRequestOfAnotherSiteRunsAnOperation(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	b := newBench(t, Limits{}, func(context.Context) (*graph.Viewer, error) {
		runs.Add(1)
		return &graph.Viewer{}, nil
	})
	const query = `{"query":"{viewer{name}}"}`
	for name, c := range map[string]struct {
		method, path, body string
		header             map[string]string
		status             int
	}{
		"image or link": {http.MethodGet, "/graphql?query=" + url.QueryEscape("{viewer{name}}"), "", nil, http.StatusUnauthorized},
		"token in URL":  {http.MethodGet, "/graphql?query=%7Bviewer%7Bname%7D%7D&access_token=good&token=good&authorization=Bearer+good", "", nil, http.StatusUnauthorized},
		"cookie":        {http.MethodPost, "/graphql", query, map[string]string{"Cookie": "token=good; Authorization=Bearer good"}, http.StatusUnauthorized},
		"form":          {http.MethodPost, "/graphql", "query=%7Bviewer%7Bname%7D%7D", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, http.StatusUnauthorized},
		"multipart":     {http.MethodPost, "/graphql", query, map[string]string{"Content-Type": "multipart/form-data; boundary=x"}, http.StatusUnauthorized},
		"plain text":    {http.MethodPost, "/graphql", query, map[string]string{"Content-Type": "text/plain"}, http.StatusUnauthorized},
		"password that the browser keeps": {
			http.MethodPost, "/graphql", query, map[string]string{"Content-Type": "text/plain", "Authorization": "Basic YWRtaW46Z29vZA=="}, http.StatusUnauthorized,
		},
		"even with a token, text/plain": {http.MethodPost, "/graphql", query, map[string]string{"Content-Type": "text/plain", "Authorization": "Bearer good"}, http.StatusUnsupportedMediaType},
	} {
		header := map[string]string{"Authorization": "", "Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
		for key, value := range c.header {
			header[key] = value
		}
		got := b.send(t, c.method, c.path, c.body, header)
		require.Equal(t, c.status, got.status, name)
		require.Empty(t, got.header.Get("Access-Control-Allow-Origin"), name)
	}
	// The preflight of any other request is answered without leave.
	preflight := b.send(t, http.MethodOptions, "/graphql", "", map[string]string{
		"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type",
	})
	for name := range preflight.header {
		require.NotContains(t, name, "Access-Control", name)
	}
	require.Zero(t, runs.Load())
}

func TestABodyThatSaysItIsTooLargeIsNotRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	body := &unread{}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/graphql", body)
	require.NoError(t, err)
	request.ContentLength = 1 << 40
	request.Header.Set("Authorization", "Bearer good")
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Expect", "100-continue") // the client sends the body when it is asked to
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
	require.True(t, response.Close)
	require.Zero(t, body.reads.Load())
}

// TestWhatARequestSaysOfItsLengthCostsNothing counts what is allocated, so it runs beside
// no other test.
func TestWhatARequestSaysOfItsLengthCostsNothing(t *testing.T) { //nolint:paralleltest // see above
	handler := newBenchHandler(t, Config{}, nil, io.Discard)
	for _, accept := range []string{typeJSON, typeGraphQL, typeEvents} {
		const requests = 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range requests {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", strings.NewReader("{"))
			request.ContentLength = DefaultLimits().BodyBytes
			request.Header.Set("Authorization", "Bearer good")
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", accept)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			require.Contains(t, answer.Body.String(), "REQUEST_MALFORMED")
		}
		runtime.ReadMemStats(&after)
		require.Less(t, (after.TotalAlloc-before.TotalAlloc)/requests, uint64(DefaultLimits().BodyBytes)/64, accept)
	}
}

// unread is a body that counts how often it is read.
type unread struct{ reads atomic.Int64 }

func (u *unread) Read(p []byte) (int, error) {
	u.reads.Add(1)
	return len(p), nil
}
