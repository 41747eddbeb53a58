// Package gqltests tests the product from outside: GraphQL documents in, golden
// JSON out, over real HTTP, on a real Postgres with a fresh database for each test.
package gqltests_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"fleetgraph/internal/seal"
	"fleetgraph/internal/testdb"
	"fleetgraph/migrate"
	"fleetgraph/server"
	"fleetgraph/services/access"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { os.Exit(testdb.Main(m, migrate.ApplyURL)) }

// bundle is one server on a database of its own, with its first admin's token.
type bundle struct {
	url        string
	database   string
	admin      string
	statements *counter
	http       *http.Client
	stop       func() // of the server, which the end of the test does otherwise
}

// setup starts a server, which ends with the test.
func setup(t *testing.T) *bundle {
	t.Helper()
	key, err := seal.NewKey()
	require.NoError(t, err)
	return setupWith(t, server.Config{EncryptionKey: string(key), Logger: slog.New(slog.DiscardHandler)})
}

// setupWith is setup with settings of the server.
func setupWith(t *testing.T, cfg server.Config) *bundle {
	t.Helper()
	b := &bundle{database: testdb.New(t), statements: &counter{}, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}}
	tokenFile := filepath.Join(t.TempDir(), "token")
	cfg.Listen, cfg.DatabaseURL, cfg.AdminTokenFile = "127.0.0.1:0", b.database, tokenFile
	cfg.Output, cfg.Tracer = io.Discard, b.statements
	srv, err := server.New(t.Context(), cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		b.http.CloseIdleConnections()
		stop()
		require.NoError(t, <-ended)
	})
	t.Cleanup(b.stop)
	b.url = "http://" + srv.Addr().String()
	secret, err := os.ReadFile(tokenFile)
	require.NoError(t, err)
	b.admin = strings.TrimSpace(string(secret))
	return b
}

// variables are those of an operation.
type variables map[string]any

// answer is a GraphQL response.
type answer struct {
	Status int                        `json:"-"`
	Data   map[string]json.RawMessage `json:"data"`
	Errors []fault                    `json:"errors"`
	raw    []byte
}

// fault is one error of a response.
type fault struct {
	Message    string `json:"message"`
	Path       []any  `json:"path"`
	Extensions struct {
		Code    string         `json:"code"`
		Reason  string         `json:"reason"`
		Field   string         `json:"field"`
		Details map[string]any `json:"details"`
	} `json:"extensions"`
}

// do sends an operation with a token, "" for none.
func (b *bundle) do(t *testing.T, token, document string, vars variables) answer {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": document, "variables": vars})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/graphql", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := b.http.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	a := answer{Status: response.StatusCode}
	a.raw, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(a.raw, &a), "%s", a.raw)
	return a
}

// must sends an operation as the admin, expects it to succeed, and decodes data
// into out, unless that is nil.
func (b *bundle) must(t *testing.T, document string, vars variables, out any) {
	t.Helper()
	b.mustAs(t, b.admin, document, vars, out)
}

func (b *bundle) mustAs(t *testing.T, token, document string, vars variables, out any) {
	t.Helper()
	a := b.do(t, token, document, vars)
	require.Empty(t, a.Errors, "%s", a.raw)
	if out != nil {
		data, err := json.Marshal(a.Data)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, out), "%s", data)
	}
}

// refused sends an operation, expects it to fail with one error, and returns that.
func (b *bundle) refused(t *testing.T, token, document string, vars variables) fault {
	t.Helper()
	a := b.do(t, token, document, vars)
	require.Len(t, a.Errors, 1, "%s", a.raw)
	return a.Errors[0]
}

// createSite creates a site whose machines are validated, and returns its id.
func (b *bundle) createSite(t *testing.T, name string) string {
	t.Helper()
	var out struct {
		CreateSite struct{ Site struct{ ID string } }
	}
	b.must(t, `mutation($input: CreateSiteInput!) { createSite(input: $input) { site { id } } }`,
		variables{"input": variables{"name": name}}, &out)
	b.configureSite(t, out.CreateSite.Site.ID, variables{"enabled": true})
	return out.CreateSite.Site.ID
}

// configureSite edits a site's bomValidation.
func (b *bundle) configureSite(t *testing.T, id string, config variables) {
	t.Helper()
	b.must(t, `mutation($input: UpdateSiteInput!) { updateSite(input: $input) { site { id } } }`,
		variables{"input": variables{"siteId": id, "bomValidation": config}}, nil)
	b.settle(t)
}

// settle waits until the work that follows changes of SKUs and sites is done, and no job
// is under way.
func (b *bundle) settle(t *testing.T) {
	t.Helper()
	conn := b.sql(t)
	require.Eventually(t, func() bool {
		var open int
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM river_job
			WHERE kind IN ('sku.evaluate', 'site.evaluate', 'bulk.run') AND state IN ('available', 'running', 'retryable', 'scheduled')
				AND scheduled_at < now() + interval '1 hour'`).Scan(&open))
		return open == 0
	}, polling, tick)
}

// How long what happens by itself may take, and how often tests look.
const (
	polling = 20 * time.Second
	tick    = 20 * time.Millisecond
)

// issueToken issues a token and returns its secret.
func (b *bundle) issueToken(t *testing.T, input variables) string {
	t.Helper()
	var out struct{ IssueToken struct{ Secret string } }
	b.must(t, `mutation($input: IssueTokenInput!) { issueToken(input: $input) { secret } }`, variables{"input": input}, &out)
	require.NotEmpty(t, out.IssueToken.Secret)
	return out.IssueToken.Secret
}

// machine is what tests look at of a machine.
type machine struct {
	ID, Name, State, SubState, SkuName string
}

// report reports an inventory and returns the machine.
func (b *bundle) report(t *testing.T, siteID, mac, name string, inventory json.RawMessage) machine {
	t.Helper()
	var out struct{ ReportInventory struct{ Machine machine } }
	b.must(t, `mutation($input: ReportInventoryInput!) { reportInventory(input: $input) { machine { id name state subState skuName } } }`,
		variables{"input": variables{"siteId": siteID, "bmcMacAddress": mac, "name": name, "inventory": inventory}}, &out)
	return out.ReportInventory.Machine
}

// createSku makes a SKU from a machine's inventory and returns its id.
func (b *bundle) createSku(t *testing.T, siteID, machineID, name string) string {
	t.Helper()
	var out struct {
		CreateSku struct{ Sku struct{ ID string } }
	}
	b.must(t, `mutation($input: CreateSkuInput!) { createSku(input: $input) { sku { id } } }`,
		variables{"input": variables{"siteId": siteID, "name": name, "components": b.generate(t, machineID)}}, &out)
	b.settle(t)
	return out.CreateSku.Sku.ID
}

const componentFields = `
	chassis { vendor model architecture } cpus { vendor model threadCount count } gpus { vendor model totalMemory count }
	infinibandDevices { vendor model count inactiveDevices } storage { model count minSizeMb maxSizeMb pciPatterns }
	memory { memoryType capacityMb count } tpm { vendor version }`

// generate returns the components that a SKU of this machine would have, as an
// input.
func (b *bundle) generate(t *testing.T, machineID string) map[string]any {
	t.Helper()
	var out struct {
		GenerateSku struct{ Components map[string]any }
	}
	b.must(t, `query($id: ID!) { generateSku(machineId: $id) { components {`+componentFields+`} } }`, variables{"id": machineID}, &out)
	return out.GenerateSku.Components
}

// inventory reads a sample inventory.
func inventory(t *testing.T, name string) json.RawMessage {
	t.Helper()
	return read(t, filepath.Join("..", "services", "sku", "testdata", "inventories", name))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// golden compares JSON with the file testdata/<name>.json, after ids and times were
// replaced by what does not change between runs. -update rewrites the file.
func golden(t *testing.T, name string, data []byte) {
	t.Helper()
	var tidy bytes.Buffer
	require.NoError(t, json.Indent(&tidy, normalise(data), "", "  "))
	tidy.WriteByte('\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, tidy.Bytes(), 0o600))
		return
	}
	require.Equal(t, string(read(t, path)), tidy.String(), "go test ./gqltests -update rewrites %s", path)
}

var (
	idForm     = regexp.MustCompile(`"([a-z]+)_[0-9a-hjkmnp-tv-z]{26}"`)
	cursorForm = regexp.MustCompile(`"(cursor|startCursor|endCursor)":\s*"[^"]+"`)
	timeForm   = regexp.MustCompile(`"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)
)

func normalise(data []byte) []byte {
	seen := map[string]string{}
	count := map[string]int{}
	data = idForm.ReplaceAllFunc(data, func(id []byte) []byte {
		if seen[string(id)] == "" {
			prefix := string(idForm.FindSubmatch(id)[1])
			count[prefix]++
			seen[string(id)] = `"` + prefix + "_" + strconv.Itoa(count[prefix]) + `"`
		}
		return []byte(seen[string(id)])
	})
	data = cursorForm.ReplaceAll(data, []byte(`"$1":"CURSOR"`))
	return timeForm.ReplaceAll(data, []byte(`"TIME"`))
}

// counter counts SQL statements.
type counter struct{ n atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if ofRequest(ctx) {
		c.n.Add(1)
	}
	return ctx
}

// ofRequest tells whether a statement is of a request: it has a caller, and that is
// no job, whose kind would be its name, and not the feed. The job queue's own have
// none, and come whenever they come.
func ofRequest(ctx context.Context) bool {
	caller, ok := access.From(ctx)
	switch {
	case !ok || caller.Name == "system:events":
		return false
	default:
		return !strings.HasPrefix(caller.Name, "system:") || !strings.Contains(caller.Name, ".")
	}
}

func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// during returns how many statements fn made the server send.
func (c *counter) during(fn func()) int64 {
	before := c.n.Load()
	fn()
	return c.n.Load() - before
}
