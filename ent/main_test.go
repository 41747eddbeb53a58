package ent_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/ent"
	"fleetgraph/ent/relay"
	"fleetgraph/fleet"
	"fleetgraph/graph"
	"fleetgraph/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m, createTables)) }

// createTables makes the tables from the entities themselves, so that these tests
// need no migration.
func createTables(ctx context.Context, url string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db)))
	return client.Schema.Create(ctx)
}

// recorder is a driver that keeps the statements that pass.
type recorder struct {
	dialect.Driver
	mu         sync.Mutex
	statements []string
}

func (r *recorder) Query(ctx context.Context, query string, args, v any) error {
	r.mu.Lock()
	r.statements = append(r.statements, query)
	r.mu.Unlock()
	return r.Driver.Query(ctx, query, args, v)
}

// take returns the statements since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.statements
	r.statements = nil
	return s
}

// world is a database with a graph over it.
type world struct {
	*ent.Client
	sql  *recorder
	exec *executor.Executor
	made int
}

func setup(t *testing.T) *world {
	t.Helper()
	db, err := sql.Open("pgx", testdb.New(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	rec := &recorder{Driver: entsql.OpenDB(dialect.Postgres, db)}
	w := &world{Client: ent.NewClient(ent.Driver(rec)), sql: rec}
	w.exec = executor.New(graph.NewExecutableSchema(graph.Config{Resolvers: root{client: w.Client}}))
	w.exec.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error {
		shown := graphql.DefaultErrorPresenter(ctx, err)
		if e, ok := fleet.AsError(err); ok {
			shown.Extensions = map[string]any{"code": e.Code, "reason": e.Reason, "field": e.Field}
		}
		return shown
	})
	return w
}

// root resolves no more than the entities themselves. What a test does not touch is
// a nil interface.
type root struct {
	graph.ResolverRoot
	client *ent.Client
}

func (r root) Query() graph.QueryResolver     { return query{client: r.client} }
func (r root) Machine() graph.MachineResolver { return machines{} }

type machines struct{ graph.MachineResolver }

func (machines) LastVerification(_ context.Context, m *ent.Machine) (*graph.SkuVerification, error) {
	if m.LastVerifiedAt == nil || m.LastVerificationMatch == nil {
		return nil, nil
	}
	return &graph.SkuVerification{At: *m.LastVerifiedAt, Match: *m.LastVerificationMatch}, nil
}

// SkuComparison reads the SKU that should have been loaded whole, and says so by the
// version.
func (machines) SkuComparison(ctx context.Context, m *ent.Machine) (*fleet.Comparison, error) {
	row, err := m.Sku(ctx)
	if err != nil || row == nil {
		return nil, err
	}
	return &fleet.Comparison{Match: row.SchemaVersion == 4}, nil
}

type query struct {
	graph.QueryResolver
	client *ent.Client
}

func (q query) Node(ctx context.Context, id string) (ent.Noder, error) {
	n, err := q.client.Noder(ctx, id)
	return n, ent.MaskNotFound(err)
}

func (q query) Nodes(ctx context.Context, ids []string) ([]ent.Noder, error) {
	return q.client.Noders(ctx, ids)
}

func (q query) Sites(ctx context.Context, after *relay.Cursor, first *int, before *relay.Cursor, last *int, orderBy *ent.SiteOrder, where *ent.SiteWhereInput) (*ent.SiteConnection, error) {
	return q.client.Site.Query().Paginate(ctx, after, first, before, last, ent.WithSiteOrder(orderBy), ent.WithSiteFilter(where.Filter))
}

func (q query) Skus(ctx context.Context, after *relay.Cursor, first *int, before *relay.Cursor, last *int, orderBy *ent.SkuOrder, where *ent.SkuWhereInput) (*ent.SkuConnection, error) {
	return q.client.Sku.Query().Paginate(ctx, after, first, before, last, ent.WithSkuOrder(orderBy), ent.WithSkuFilter(where.Filter))
}

func (q query) Machines(ctx context.Context, after *relay.Cursor, first *int, before *relay.Cursor, last *int, orderBy *ent.MachineOrder, where *ent.MachineWhereInput) (*ent.MachineConnection, error) {
	return q.client.Machine.Query().Paginate(ctx, after, first, before, last, ent.WithMachineOrder(orderBy), ent.WithMachineFilter(where.Filter))
}

// run executes a document and returns its data and errors.
func (w *world) run(t *testing.T, document string, variables map[string]any) (map[string]any, gqlerror.List) {
	t.Helper()
	ctx := graphql.StartOperationTrace(t.Context())
	op, errs := w.exec.CreateOperationContext(ctx, &graphql.RawParams{Query: document, Variables: variables})
	require.Empty(t, errs, document)
	handler, ctx := w.exec.DispatchOperation(ctx, op)
	response := handler(ctx)
	var data map[string]any
	if len(response.Data) > 0 {
		require.NoError(t, json.Unmarshal(response.Data, &data))
	}
	return data, response.Errors
}

// data executes a document that must succeed.
func (w *world) data(t *testing.T, document string, variables map[string]any) map[string]any {
	t.Helper()
	data, errs := w.run(t, document, variables)
	require.Empty(t, errs, document)
	return data
}

// refused executes a document that must fail with one error, and returns its
// extensions.
func (w *world) refused(t *testing.T, document string, variables map[string]any) map[string]any {
	t.Helper()
	_, errs := w.run(t, document, variables)
	require.Len(t, errs, 1, document)
	require.NotContains(t, errs[0].Message, "SQLSTATE")
	return errs[0].Extensions
}

// at reads a path such as "sites.edges.0.node.name" out of data.
func at(t *testing.T, data any, path string) any {
	t.Helper()
	for _, step := range strings.Split(path, ".") {
		switch d := data.(type) {
		case map[string]any:
			require.Contains(t, d, step, path)
			data = d[step]
		case []any:
			var i int
			_, err := fmt.Sscan(step, &i)
			require.NoError(t, err, path)
			require.Less(t, i, len(d), path)
			data = d[i]
		default:
			require.Failf(t, "no such path", "%s at %s in %v", path, step, data)
		}
	}
	return data
}

// column reads the same path below every item of a list.
func column(t *testing.T, data any, list, path string) []any {
	t.Helper()
	items, ok := at(t, data, list).([]any)
	require.True(t, ok, list)
	values := []any{}
	for _, item := range items {
		values = append(values, at(t, item, path))
	}
	return values
}

// id makes ids that sort in the order in which they were made: those of one
// millisecond do not.
func (w *world) id(prefix string) string {
	w.made++
	return fmt.Sprintf("%s_0%025d", prefix, w.made)
}

func (w *world) site(t *testing.T) *ent.Site {
	t.Helper()
	id := w.id(fleet.PrefixSite)
	return w.Site.Create().SetID(id).SetName(fmt.Sprintf("site-%03d", w.made)).SetDescription("hall").SaveX(t.Context())
}

func (w *world) sku(t *testing.T, site *ent.Site) *ent.Sku {
	t.Helper()
	id := w.id(fleet.PrefixSku)
	return w.Sku.Create().SetID(id).SetSite(site).SetName(fmt.Sprintf("sku-%03d", w.made)).SetDescription("kind").
		SetSchemaVersion(4).SetComponents(fleet.SkuComponents{}).SetMatchKey("k").SaveX(t.Context())
}

// machine makes a machine whose times come from a small set, so that orders have
// ties.
func (w *world) machine(t *testing.T, site *ent.Site, sku *ent.Sku) *ent.Machine {
	t.Helper()
	id := w.id(fleet.PrefixMachine)
	when := time.Date(2026, 1, 1, 0, 0, w.made%3, 123456000, time.UTC)
	create := w.Machine.Create().SetID(id).SetSite(site).SetName(fmt.Sprintf("m-%03d", w.made)).
		SetBmcMACAddress(fmt.Sprintf("02:00:00:00:%02x:%02x", w.made/256, w.made%256)).
		SetKind(fleet.KindHost).SetVendor("v").SetSerialNumber(fmt.Sprintf("s%d", w.made%2)).
		SetCreatedAt(when).SetUpdatedAt(when).SetStateChangedAt(when).
		SetInventoryDocument(json.RawMessage(`{"a":1}`)).
		SetLastVerifiedAt(when).SetLastVerificationMatch(true)
	if sku != nil {
		create.SetSku(sku).SetSkuName(sku.Name)
	}
	return create.SaveX(t.Context())
}
