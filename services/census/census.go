// Package census counts the fleet for its operators: how many machines stand where,
// and since when. It reads the tables, so that every process tells the same.
package census

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Unknown stands for a SKU, or a device type, that there is none of.
const Unknown = "unknown"

// BySku is how many machines of a site have, or are expected to have, a SKU.
type BySku struct {
	Site, Sku, DeviceType string
	Count                 int64
}

// ByState is how many machines of a site are in a state, lower case, and how long
// the one has been there that is longest in it. SubState is empty where the state has
// none.
type ByState struct {
	Site, State, SubState string
	Count                 int64
	Oldest                time.Duration
}

// Jobs is how many jobs of a kind are in a state of the job queue.
type Jobs struct {
	Kind, State string
	Count       int64
}

// OpenJobs is how many jobs of a kind that people submitted at a site are in a state
// that is not their end, lower case, and how long ago the first of them was submitted.
type OpenJobs struct {
	Site, Kind, State string
	Count             int64
	Oldest            time.Duration
}

// Figures are all counts at one time.
type Figures struct {
	Hosts    []BySku
	Expected []BySku
	States   []ByState
	Jobs     []Jobs
	Open     []OpenJobs
}

const bySku = `
	SELECT s.name, coalesce(m.sku_name, '` + Unknown + `'), coalesce(nullif(k.device_type, ''), '` + Unknown + `'), count(*)
	FROM %s m JOIN sites s ON s.id = m.site_id LEFT JOIN skus k ON k.id = m.sku_id
	%s GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`

const byState = `
	SELECT s.name, lower(m.state), coalesce(lower(m.sub_state), ''), count(*), extract(epoch FROM now() - min(m.state_changed_at))::float8
	FROM machines m JOIN sites s ON s.id = m.site_id GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`

const jobs = `
	SELECT kind, state::text, count(*) FROM river_job
	WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'discarded') GROUP BY 1, 2 ORDER BY 1, 2`

const openJobs = `
	SELECT s.name, lower(j.kind), lower(j.state), count(*), extract(epoch FROM now() - min(j.created_at))::float8
	FROM jobs j JOIN sites s ON s.id = j.site_id WHERE j.finished_at IS NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`

// Take counts, in five statements.
func Take(ctx context.Context, pool *pgxpool.Pool) (f Figures, err error) {
	if f.Hosts, err = skus(ctx, pool, fmt.Sprintf(bySku, "machines", "WHERE m.kind = 'HOST'")); err != nil {
		return f, err
	}
	if f.Expected, err = skus(ctx, pool, fmt.Sprintf(bySku, "expected_machines", "")); err != nil {
		return f, err
	}
	f.States, err = collect(ctx, pool, byState, func(row pgx.CollectableRow) (s ByState, err error) {
		var seconds float64
		err = row.Scan(&s.Site, &s.State, &s.SubState, &s.Count, &seconds)
		s.Oldest = max(0, time.Duration(seconds*float64(time.Second)))
		return s, err
	})
	if err != nil {
		return f, err
	}
	f.Jobs, err = collect(ctx, pool, jobs, func(row pgx.CollectableRow) (j Jobs, err error) {
		err = row.Scan(&j.Kind, &j.State, &j.Count)
		return j, err
	})
	if err != nil {
		return f, err
	}
	f.Open, err = collect(ctx, pool, openJobs, func(row pgx.CollectableRow) (j OpenJobs, err error) {
		var seconds float64
		err = row.Scan(&j.Site, &j.Kind, &j.State, &j.Count, &seconds)
		j.Oldest = max(0, time.Duration(seconds*float64(time.Second)))
		return j, err
	})
	return f, err
}

func skus(ctx context.Context, pool *pgxpool.Pool, query string) ([]BySku, error) {
	return collect(ctx, pool, query, func(row pgx.CollectableRow) (s BySku, err error) {
		err = row.Scan(&s.Site, &s.Sku, &s.DeviceType, &s.Count)
		return s, err
	})
}

func collect[T any](ctx context.Context, pool *pgxpool.Pool, query string, scan pgx.RowToFunc[T]) ([]T, error) {
	rows, err := pool.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("census: %w", err)
	}
	out, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("census of %s: %w", strings.Fields(query)[1], err)
	}
	return out, nil
}
