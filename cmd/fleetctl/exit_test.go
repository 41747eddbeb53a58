package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// closedServer is the URL of a server that refuses connections.
func closedServer(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return "http://" + listener.Addr().String()
}

// The words of the guide, and of the original's own tests of its command line.
func TestCommandLinesThatAreAccepted(t *testing.T) {
	t.Parallel()
	url := closedServer(t)
	for _, line := range []string{
		"sku show", "sku show dell.r750.gpu.1", "sku s", "sku show --limit 5",
		"sku show-machines dell.r750.gpu.1", "sku show-machines",
		"sku generate machine-1", "sku generate machine-1 --id dell.r750.gpu.1", "sku g machine-1", "-f json sku generate machine-1",
		"sku create testdata/xe9680_8gpu.v5.json", "sku c testdata/xe9680_8gpu.v5.json --id dell.xe9680.gpu.1",
		"sku create --accept-older-versions testdata/full_sku_data_v4.json",
		"sku replace testdata/xe9680_8gpu.v5.json", "sku replace testdata/xe9680_8gpu.v5.json --id a",
		"sku preview-replace testdata/xe9680_8gpu.v5.json", "sku explain machine-1 --first 5",
		"sku delete dell.r750.gpu.1", "sku d dell.r750.gpu.1",
		"sku assign dell.r750.gpu.1 machine-1", "sku assign dell.r750.gpu.1 machine-1 --force", "sku a dell.r750.gpu.1 machine-1",
		"sku unassign machine-1", "sku unassign machine-1 --force", "sku u machine-1", "sku verify machine-1", "sku v machine-1",
		"sku update-metadata dell.r750.gpu.1 --description text --device-type gpu", "sku update-metadata dell.r750.gpu.1 --device-type gpu",
		"sku bulk-update-metadata testdata/metadata.csv",
		"site show", "site show pdx1", "site create pdx1 --description text", "site update pdx1 --name pdx2",
		"machine show", "machine show machine-1", "machine show --state READY --sku a --serial b", "machine show --state SkuMissing --unassigned",
		"machine report testdata/x86_info.json --bmc-mac c4:5a:b1:c8:38:0d --name a --ib-lids 946dae03002ac752=1",
		"machine history machine-1 --limit 3",
		"token show", "token show a", "token s a", "token list", "token ls", "token issue a --role viewer --all-sites", "token issue a --role operator --site a --site b --expires-in 30d",
		"token issue a --role agent --site a --bmc-mac c4:5a:b1:c8:38:0d", "token issue a --role agent --machine b", "token revoke a",
		"whoami", "login --token secret",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.env["FLEETGRAPH_URL"] = url
			got := s.run(t, strings.Fields(line)...)
			require.Equal(t, exitUnreachable, got.code, got.stderr)
			require.Contains(t, got.stderr, "connection refused")
			require.Empty(t, got.stdout)
		})
	}
}

func TestCommandLinesThatAreRefused(t *testing.T) {
	t.Parallel()
	url := closedServer(t)
	for _, line := range []string{
		"", "sku", "nonsense", "sku nonsense", "sku show a b", "sku show --limit -1", "sku show --nonsense",
		"sku generate", "sku generate a --inventory b", "sku generate a --schema-version 4",
		"sku generate --inventory testdata/x86_info.json --schema-version 6",
		"sku generate --inventory testdata/x86_info.json --ib-lids a=b",
		"sku generate --inventory testdata/x86_info.json --ib-lids a=70000",
		"sku create", "sku assign a", "sku unassign", "sku verify", "sku delete",
		"sku create testdata/two_skus.json --id a", "sku replace testdata/two_skus.json",
		"sku update-metadata a", "sku update-metadata", "sku diff --actual a",
		"site create", "site update a", "machine report testdata/x86_info.json", "machine report testdata/x86_info.json --bmc-mac zz",
		"machine show --state nonsense", "machine show --sku a --unassigned", "machine show --state READY,SKU_MISSING",
		"token show a b", "token list a", "token revoke", "token issue a", "token issue a --role nonsense --all-sites", "token issue a --role viewer", "token issue a --role agent",
		"token issue a --role viewer --all-sites --site a", "token issue a --role viewer --all-sites --expires-in soon",
		"token issue a --role viewer --machine b", "whoami -f nonsense", "whoami --timeout soon", "whoami --timeout 0s", "whoami --url nonsense",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.env["FLEETGRAPH_URL"] = url
			got := s.run(t, strings.Fields(line)...)
			require.Equal(t, exitUsage, got.code, got.stderr)
			require.Contains(t, got.stderr, "error: ")
			require.Empty(t, got.stdout)
		})
	}
}

func TestSeveralSkusCannotShareAnID(t *testing.T) {
	t.Parallel()
	got := setup(t).run(t, "sku", "create", "testdata/two_skus.json", "--id", "a")
	require.Equal(t, outcome{exitUsage, "", "error: ID cannot be specified when creating multiple SKUs\n"}, got)
}

func TestWithoutAServerTheErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	got := setup(t).run(t, "whoami")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "fleetctl login --url URL")
}

func TestAUsageErrorHasTheFormThatWasAskedFor(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"sku", "--nonsense", "-f", "json"}, {"-fjson", "nonsense"}, {"whoami", "--format=json", "x"}} {
		got := setup(t).run(t, args...)
		require.Equal(t, exitUsage, got.code)
		require.Equal(t, "USAGE", errorOf(t, got)["reason"])
	}
}

func errorOf(t *testing.T, o outcome) map[string]any {
	t.Helper()
	var e struct {
		Error map[string]any `json:"error"`
	}
	require.NoError(t, json.Unmarshal([]byte(o.stderr), &e), o.stderr)
	return e.Error
}

func TestTheServersErrorsKeepTheirCodeAndReason(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.serve(t, func(w http.ResponseWriter, _ call) {
		reply(w, `{"data":null,"errors":[{"message":"the SKU is in use by\u001b[2J 23 machines","path":["deleteSku"],
			"extensions":{"code":"FAILED_PRECONDITION","reason":"SKU_IN_USE","field":"skuId","details":{"count":23,"first":["a","b"]}}}]}`)
	})
	got := s.run(t, "whoami")
	require.Equal(t, outcome{
		exitFailed, "",
		"error: the SKU is in use by\\x1b[2J 23 machines (FAILED_PRECONDITION SKU_IN_USE field=skuId)\n  count: 23\n  first: a, b\n",
	}, got)

	got = s.run(t, "whoami", "-f", "json")
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, map[string]any{
		"code": "FAILED_PRECONDITION", "reason": "SKU_IN_USE", "field": "skuId",
		"message": "the SKU is in use by\x1b[2J 23 machines", "details": map[string]any{"count": 23.0, "first": []any{"a", "b"}},
	}, errorOf(t, got))
}

func TestExitCodeOfWhatTheServerAnswers(t *testing.T) {
	t.Parallel()
	graphqlError := func(code string) string {
		return fmt.Sprintf(`{"errors":[{"message":"no","extensions":{"code":%q,"reason":"R"}}]}`, code)
	}
	for _, test := range []struct {
		name, kind, body string
		status, code     int
		reason           string
		calls            int
	}{
		{"unauthenticated", "application/graphql-response+json", graphqlError("UNAUTHENTICATED"), 401, exitFailed, "R", 1},
		{"a code of the future", "application/json", graphqlError("TEAPOT"), 200, exitFailed, "R", 1},
		{"aborted is not repeated", "application/json", graphqlError("ABORTED"), 200, exitFailed, "R", 1},
		{"unavailable is repeated", "application/json", graphqlError("UNAVAILABLE"), 200, exitUnreachable, "R", 3},
		{"bad gateway is repeated", "text/html", "<html>", 502, exitUnreachable, "UNREACHABLE", 3},
		{"service unavailable", "text/html", "<html>", 503, exitUnreachable, "UNREACHABLE", 3},
		{"gateway timeout", "text/html", "<html>", 504, exitUnreachable, "UNREACHABLE", 3},
		{"another server", "text/html", "<html>", 200, exitFailed, "NOT_GRAPHQL", 1},
		{"not found", "text/plain", "no", 404, exitFailed, "NOT_GRAPHQL", 1},
		{"redirect", "text/plain", "no", 302, exitFailed, "NOT_GRAPHQL", 1},
		{"unauthorized by a proxy", "text/plain", "no", 401, exitFailed, "HTTP_401", 1},
		{"neither data nor errors", "application/json", "{}", 200, exitFailed, "NOT_GRAPHQL", 1},
		{"data of another form", "application/json", `{"data":{"viewer":7}}`, 200, exitFailed, "RESPONSE_INVALID", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			calls := 0
			s.serve(t, func(w http.ResponseWriter, _ call) {
				calls++
				w.Header().Set("Content-Type", test.kind)
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			})
			got := s.run(t, "whoami", "-f", "json")
			require.Equal(t, test.code, got.code, got.stderr)
			require.Equal(t, test.reason, errorOf(t, got)["reason"])
			require.Equal(t, test.calls, calls)
		})
	}
}

func TestATimeOutIsUnreachable(t *testing.T) {
	t.Parallel()
	s := setup(t)
	release := make(chan struct{})
	s.serve(t, func(http.ResponseWriter, call) { <-release })
	t.Cleanup(func() { close(release) })
	got := s.run(t, "whoami", "--timeout", "50ms")
	require.Equal(t, exitUnreachable, got.code)
	require.Contains(t, got.stderr, "no answer within 50ms")
}

func TestANameThatDoesNotResolveIsUnreachable(t *testing.T) {
	t.Parallel()
	got := setup(t).run(t, "whoami", "--url", "http://no-such-host.invalid")
	require.Equal(t, exitUnreachable, got.code, got.stderr)
}

// A connection that breaks leaves it open whether a mutation happened: it is sent
// again with the same idempotency key, and the server answers once more.
func TestABrokenConnectionRepeatsTheMutationWithItsKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	var mu sync.Mutex
	var keys []string
	s.serve(t, func(w http.ResponseWriter, c call) {
		var input struct {
			IdempotencyKey string `json:"idempotencyKey"`
		}
		_ = json.Unmarshal(c.Variables["input"], &input)
		mu.Lock()
		keys = append(keys, input.IdempotencyKey)
		broken := len(keys) < 3
		mu.Unlock()
		if broken {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = connection.Close()
			}
			return
		}
		reply(w, `{"data":{"createSite":{"site":{"id":"site_1","createdAt":"2026-09-20T08:15:30Z","name":"pdx1","description":"","revision":1,"updatedAt":"2026-09-20T08:15:30Z"}}}}`)
	})
	got := s.run(t, "site", "create", "pdx1", "-f", "csv")
	require.Equal(t, outcome{exitDone, "Name,Description,Created\npdx1,,2026-09-20T08:15:30Z\n", ""}, got)
	require.Len(t, keys, 3)
	require.NotEmpty(t, keys[0])
	require.Equal(t, []string{keys[0], keys[0], keys[0]}, keys)

	keys = nil
	require.Equal(t, exitDone, s.run(t, "site", "create", "pdx1").code)
	require.Len(t, keys, 3)
}

func TestAnUnknownSkuIsAnEmptyResult(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.serve(t, func(w http.ResponseWriter, c call) {
		switch c.Operation {
		case "ListSites":
			reply(w, `{"data":{"sites":{"edges":[{"node":{"id":"site_1","createdAt":"2026-09-20T08:15:30Z","name":"pdx1","description":"","revision":1,"updatedAt":"2026-09-20T08:15:30Z"}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}}`)
		default:
			reply(w, `{"data":{"sku":null}}`)
		}
	})
	require.Equal(t, outcome{exitDone, "", "no SKU no-such-sku\n"}, s.run(t, "sku", "show", "no-such-sku"))
	require.Equal(t, outcome{exitDone, "[]\n", ""}, s.run(t, "sku", "show", "no-such-sku", "-f", "json"))
	got := s.run(t, "sku", "delete", "no-such-sku")
	require.Equal(t, outcome{exitFailed, "", "error: SKU ID not found: no-such-sku (NOT_FOUND SKU_NOT_FOUND field=sku)\n"}, got)
}

func TestSeveralSitesNeedAChoice(t *testing.T) {
	t.Parallel()
	s := setup(t)
	site := `{"node":{"id":"site_1","createdAt":"2026-09-20T08:15:30Z","name":"pdx1","description":"","revision":1,"updatedAt":"2026-09-20T08:15:30Z"}}`
	s.serve(t, func(w http.ResponseWriter, _ call) {
		reply(w, `{"data":{"sites":{"edges":[`+site+`,`+site+`],"pageInfo":{"hasNextPage":false,"endCursor":null}}}}`)
	})
	got := s.run(t, "sku", "show")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "pass --site NAME")
}

func TestBulkUpdateReportsEachLine(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.env["FLEETGRAPH_SITE"] = "pdx1"
	sku := `{"id":"sku_1","createdAt":"2026-09-20T08:15:30Z","name":"a","description":"","deviceType":null,"schemaVersion":5,
		"components":{"chassis":{"vendor":"","model":"","architecture":""},"cpus":[],"gpus":[],"infinibandDevices":[],"storage":[],"memory":[],"tpm":null}}`
	var inputs []string
	s.serve(t, func(w http.ResponseWriter, c call) {
		switch c.Operation {
		case "GetSite":
			reply(w, `{"data":{"site":{"id":"site_1","createdAt":"2026-09-20T08:15:30Z","name":"pdx1","description":"","revision":1,"updatedAt":"2026-09-20T08:15:30Z"}}}`)
		case "SkuByName":
			if string(c.Variables["name"]) == `"unknown"` {
				reply(w, `{"data":{"sku":null}}`)
				return
			}
			reply(w, `{"data":{"sku":`+sku+`}}`)
		default:
			var input map[string]any
			_ = json.Unmarshal(c.Variables["input"], &input)
			delete(input, "idempotencyKey")
			text, _ := json.Marshal(input)
			inputs = append(inputs, string(text))
			reply(w, `{"data":{"updateSkuMetadata":{"sku":`+sku+`}}}`)
		}
	})
	s.stdin = "a,gpu,\nunknown,gpu,text\na\nb,,\"two\nlines\"\nb,,,\n\"c,\n"
	got := s.run(t, "sku", "bulk-update-metadata", "-")
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, []string{`{"deviceType":"gpu","skuId":"sku_1"}`, `{"description":"two\nlines","skuId":"sku_1"}`}, inputs)
	golden(t, "bulk_errors.txt", got.stderr)
	got = s.run(t, "sku", "bulk-update-metadata", "-", "-f", "json")
	require.Equal(t, exitFailed, got.code)
	golden(t, "bulk_errors.json", got.stdout)
	s.stdin = "a,gpu,\n"
	require.Equal(t, outcome{exitDone, "", "updated 1 of 1 SKUs\n"}, s.run(t, "sku", "bulk-update-metadata", "-"))
}

func TestCompletionScriptsAndWords(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := setup(t).run(t, "completion", shell)
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Contains(t, got.stdout, "fleetctl")
	}
	got := setup(t).run(t, "__complete", "machine", "show", "--state", "REA")
	require.Contains(t, got.stdout, "READY")
	got = setup(t).run(t, "__complete", "sku", "")
	for _, word := range []string{"show", "show-machines", "generate", "create", "replace", "delete", "assign", "unassign", "verify", "update-metadata", "bulk-update-metadata", "explain", "preview-replace", "diff"} {
		require.Contains(t, got.stdout, word+"\t")
	}
}

func TestTheServerIsOnlyWaitedForInWorthwhileCases(t *testing.T) {
	t.Parallel()
	started := time.Now()
	got := setup(t).run(t, "whoami", "--url", closedServer(t))
	require.Equal(t, exitUnreachable, got.code)
	require.Less(t, time.Since(started), retryDelay)
}

func TestATokenWhoseSecretWasLostIsAnError(t *testing.T) {
	t.Parallel()
	s := setup(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `{"data":{"issueToken":{"secret":null,"token":{"id":"token_9","createdAt":"2026-09-20T08:15:30Z","name":"a","role":"VIEWER","allSites":true,"siteIds":[],"issuedBy":"ops"}}}}`)
	}))
	t.Cleanup(server.Close)
	got := s.run(t, "token", "issue", "a", "--role", "viewer", "--all-sites", "--url", server.URL)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "token_9 was issued, but its secret was lost")
}

func TestAServerThatWantsFewerOperationsIsWaitedForAsItSays(t *testing.T) {
	t.Parallel()
	refuse := func(w http.ResponseWriter, retryAfter string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"errors":[{"message":"too many operations","extensions":{"code":"RESOURCE_EXHAUSTED","reason":"RATE_LIMITED","details":{"retryAfter":"` + retryAfter + `"}}}]}`))
	}
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls <= 2*maxRetries {
			refuse(w, "3ms")
			return
		}
		reply(w, viewerReply)
	}))
	t.Cleanup(server.Close)
	got := setup(t).run(t, "whoami", "--url", server.URL)
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, 2*maxRetries+1, calls)

	strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, "2m") }))
	t.Cleanup(strict.Close)
	got = setup(t).run(t, "whoami", "--url", strict.URL)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "RESOURCE_EXHAUSTED RATE_LIMITED")
}
