package census_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/testdb"
	"fleetgraph/migrate"
	"fleetgraph/services/census"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m, migrate.ApplyURL)) }

// bundle is a database that counts what it is asked.
type bundle struct {
	db         *pgdb.DB
	statements atomic.Int64
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{}
	var err error
	b.db, err = pgdb.Open(t.Context(), testdb.New(t), b)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.db.Close()) })
	return b
}

func (b *bundle) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	b.statements.Add(1)
	return ctx
}

func (b *bundle) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (b *bundle) take(t *testing.T) census.Figures {
	t.Helper()
	before := b.statements.Load()
	figures, err := census.Take(t.Context(), b.db.Pool)
	require.NoError(t, err)
	require.Equal(t, before+5, b.statements.Load(), "one statement each")
	return figures
}

func (b *bundle) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := b.db.Pool.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

func (b *bundle) site(t *testing.T, name string) {
	t.Helper()
	b.exec(t, "INSERT INTO sites (id, name, bom_validation, machine_validation, created_at, updated_at) VALUES ($1, $1, '{}', '{}', now(), now())", name)
}

func (b *bundle) sku(t *testing.T, site, name string, deviceType any) {
	t.Helper()
	b.exec(t, `INSERT INTO skus (id, name, device_type, schema_version, components, match_key, site_id, created_at, updated_at)
		VALUES ($1 || '/' || $2, $2, $3, 5, '{}', '', $1, now(), now())`, site, name, deviceType)
}

// machine adds a machine that has been in its state for some seconds; sku is the name
// of one that exists.
func (b *bundle) machine(t *testing.T, site, name, kind, state string, sub, sku any, seconds int) {
	t.Helper()
	b.exec(t, `INSERT INTO machines (id, name, bmc_mac_address, kind, state, sub_state, site_id, sku_id, sku_name, state_changed_at, created_at, updated_at)
		VALUES ($1 || '/' || $2, $2, $2, $3, $4, $5, $1, $1 || '/' || $6, $6, now() - make_interval(secs => $7), now(), now())`,
		site, name, kind, state, sub, sku, seconds)
}

func TestHostsAndExpectedMachinesBySku(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, site := range []string{"east", "west"} {
		b.site(t, site)
		b.sku(t, site, "gpu.1", "gpu")
	}
	b.sku(t, "east", "storage.1", nil)
	b.sku(t, "east", "storage.2", "")
	b.sku(t, "east", "unused.1", "gpu")
	for i, sku := range []any{"gpu.1", "gpu.1", "storage.1", "storage.2", nil, nil} {
		b.machine(t, "east", fmt.Sprint("m", i), "HOST", "READY", nil, sku, 0)
	}
	b.machine(t, "east", "dpu", "DPU", "READY", nil, nil, 0)
	b.machine(t, "west", "m", "HOST", "INGESTING", nil, "gpu.1", 0)
	b.exec(t, "UPDATE machines SET sku_id = NULL, sku_name = 'to.come.1' WHERE id = 'east/m5'")
	b.exec(t, `INSERT INTO expected_machines (id, site_id, bmc_mac_address, fallback_dpu_serial_numbers, labels, host_nics, sku_id, sku_name, created_at, updated_at) VALUES
		('a', 'west', 'a', '[]', '[]', '[]', 'west/gpu.1', 'gpu.1', now(), now()),
		('b', 'west', 'b', '[]', '[]', '[]', 'west/gpu.1', 'gpu.1', now(), now()),
		('c', 'west', 'c', '[]', '[]', '[]', NULL, 'to.come.1', now(), now()),
		('d', 'west', 'd', '[]', '[]', '[]', NULL, NULL, now(), now())`)
	counts := b.take(t)
	require.Equal(t, []census.BySku{
		{"east", "gpu.1", "gpu", 2},
		{"east", "storage.1", "unknown", 1},
		{"east", "storage.2", "unknown", 1},
		{"east", "to.come.1", "unknown", 1},
		{"east", "unknown", "unknown", 1},
		{"west", "gpu.1", "gpu", 1},
	}, counts.Hosts)
	require.Equal(t, []census.BySku{
		{"west", "gpu.1", "gpu", 2},
		{"west", "to.come.1", "unknown", 1},
		{"west", "unknown", "unknown", 1},
	}, counts.Expected)
}

func TestMachinesByStateAndTheOldestInEach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.site(t, "east")
	b.site(t, "west")
	b.machine(t, "east", "a", "HOST", "READY", nil, nil, 60)
	b.machine(t, "east", "b", "DPU", "READY", nil, nil, 7200)
	b.machine(t, "east", "c", "HOST", "BOM_VALIDATING", "SKU_MISSING", nil, 30)
	b.machine(t, "west", "a", "HOST", "BOM_VALIDATING", "SKU_MISSING", nil, -3600) // by a clock that is ahead
	counts := b.take(t)
	require.Len(t, counts.States, 3)
	for i, age := range []float64{30, 7200, 0} {
		require.InDelta(t, age, counts.States[i].Oldest.Seconds(), 25)
		require.GreaterOrEqual(t, counts.States[i].Oldest.Seconds(), age)
		counts.States[i].Oldest = 0
	}
	require.Equal(t, []census.ByState{
		{"east", "bom_validating", "sku_missing", 1, 0},
		{"east", "ready", "", 2, 0},
		{"west", "bom_validating", "sku_missing", 1, 0},
	}, counts.States)
}

func TestJobsByKindAndState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO river_job (kind, args, state, max_attempts, finalized_at)
		SELECT kind, '{}', state::river_job_state, 1, CASE WHEN state IN ('completed', 'cancelled', 'discarded') THEN now() END
		FROM unnest(ARRAY['a.b', 'c.d']) AS kind,
			unnest(ARRAY['available', 'running', 'retryable', 'scheduled', 'discarded', 'completed', 'cancelled', 'pending']) AS state`)
	b.exec(t, "INSERT INTO river_job (kind, args, max_attempts) VALUES ('a.b', '{}', 1)")
	counts := b.take(t)
	require.Equal(t, []census.Jobs{
		{"a.b", "available", 2},
		{"a.b", "discarded", 1},
		{"a.b", "retryable", 1},
		{"a.b", "running", 1},
		{"a.b", "scheduled", 1},
		{"c.d", "available", 1},
		{"c.d", "discarded", 1},
		{"c.d", "retryable", 1},
		{"c.d", "running", 1},
		{"c.d", "scheduled", 1},
	}, counts.Jobs)
}

func TestSubmittedJobsThatHaveNotEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, "INSERT INTO sites (id, created_at, name, bom_validation, machine_validation, updated_at) VALUES ('s', now(), 'east', '{}', '{}', now())")
	b.exec(t, `INSERT INTO jobs (id, created_at, kind, state, actor, finished_at, site_id)
		SELECT state || n, now() - n * interval '1 hour', 'BULK', state, 'x', CASE WHEN state = 'FAILED' THEN now() END, 's'
		FROM unnest(ARRAY['PENDING', 'RUNNING', 'FAILED']) AS state, generate_series(1, 2) AS n`)
	counts := b.take(t)
	for i := range counts.Open {
		require.InDelta(t, 7200, counts.Open[i].Oldest.Seconds(), 25)
		counts.Open[i].Oldest = 0
	}
	require.Equal(t, []census.OpenJobs{{"east", "bulk", "pending", 2, 0}, {"east", "bulk", "running", 2, 0}}, counts.Open)
}
