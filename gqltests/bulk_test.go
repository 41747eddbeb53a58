package gqltests_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/internal/testdb"
)

const (
	bulkPreview = `matched preview { succeeded failed skipped items { machineName outcome code reason message machine { id name } } }`
	bulkAssign  = `mutation($input: BulkAssignSkuInput!) { bulkAssignSku(input: $input) { job { id state total } ` + bulkPreview + ` } }`
	bulkTake    = `mutation($input: BulkUnassignSkuInput!) { bulkUnassignSku(input: $input) { job { id state total } ` + bulkPreview + ` } }`
	cancelJob   = `mutation($input: CancelJobInput!) { cancelJob(input: $input) { job { id state } } }`
	jobByID     = `query($id: ID!) { job(id: $id) { ` + jobFields + ` } }`
	jobFields   = `__typename id kind state actor siteId site { name } createdAt startedAt finishedAt summary failure { code reason message }
		... on BulkJob { operation skuId skuName sku { name } force total done succeeded failed skipped }`
)

type bulkAnswer struct {
	Job     *bulkJob
	Matched int
	Preview *struct {
		Succeeded, Failed, Skipped int
		Items                      []bulkItem
	}
}

type bulkJob struct {
	Typename                                string `json:"__typename"`
	ID, Kind, State, Actor, Summary         string
	StartedAt, FinishedAt                   *time.Time
	Failure                                 *struct{ Code, Reason, Message string }
	Operation, SkuID, SkuName               string
	Sku                                     *struct{ Name string }
	Force                                   bool
	Total, Done, Succeeded, Failed, Skipped int
}

type bulkItem struct {
	MachineName, Outcome, Code, Reason, Message string
	Machine                                     *struct{ ID, Name string }
}

// floor is a lab with an operator, and machines that wait for a SKU.
type floor struct {
	*lab
	operator string
	pattern  string // id of a machine that waits for an assignment
	sku      string // id of a SKU that none matches
}

func newFloor(t *testing.T) *floor {
	t.Helper()
	f := &floor{lab: newLab(t, nil)}
	f.settleFloor(t)
	return f
}

func (f *floor) settleFloor(t *testing.T) {
	t.Helper()
	f.operator = f.issueToken(t, variables{"name": "olga", "role": "OPERATOR", "siteIds": []string{f.site}})
	f.sku = f.newSku(t, f.site, "spare", ofChassis(f.components, "Spare"))
	f.pattern = f.report(t, f.site, "02:ff:00:00:00:01", "pattern", f.other).ID
}

// machines stores n machines that are as the pattern is, named from prefix-00001 on,
// and returns their ids by name.
func (f *floor) machines(t *testing.T, prefix string, n int) []string {
	t.Helper()
	rows, err := f.sql(t).Query(t.Context(), `INSERT INTO machines SELECT (jsonb_populate_record(m, jsonb_build_object(
		'id', 'machine_' || lpad(i::text, 21, '0') || translate(left(md5($3), 5), 'il', 'jk'), 'name', $3 || '-' || lpad(i::text, 5, '0'),
		'bmc_mac_address', '02:' || substr(md5($3 || i), 1, 2) || ':' || substr(md5($3 || i), 3, 2) || ':' || substr(md5($3 || i), 5, 2) || ':' ||
			substr(md5($3 || i), 7, 2) || ':' || substr(md5($3 || i), 9, 2)))).*
		FROM machines m, generate_series(1, $2::int) i WHERE m.id = $1 RETURNING id`, f.pattern, n, prefix)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Len(t, ids, n)
	return ids
}

// assignment is the input that assigns the spare SKU to the machines of a prefix.
func (f *floor) assignment(prefix string) variables {
	return variables{"siteId": f.site, "skuId": f.sku, "where": variables{"nameHasPrefix": prefix + "-"}}
}

func (f *floor) bulk(t *testing.T, token, document string, input variables) bulkAnswer {
	t.Helper()
	var out struct{ BulkAssignSku, BulkUnassignSku *bulkAnswer }
	f.mustAs(t, token, document, variables{"input": input}, &out)
	if out.BulkAssignSku != nil {
		return *out.BulkAssignSku
	}
	return *out.BulkUnassignSku
}

func (f *floor) job(t *testing.T, id string) bulkJob {
	t.Helper()
	var out struct{ Job bulkJob }
	f.must(t, jobByID, variables{"id": id}, &out)
	require.Equal(t, out.Job.Done, out.Job.Succeeded+out.Job.Failed+out.Job.Skipped)
	return out.Job
}

// ends waits until a job is in a state.
func (f *floor) ends(t *testing.T, id, state string) bulkJob {
	t.Helper()
	var j bulkJob
	require.Eventually(t, func() bool {
		j = f.job(t, id)
		return j.FinishedAt != nil
	}, 3*polling, tick)
	require.Equal(t, state, j.State, j.Summary)
	return j
}

// items are those of a job, in the order of the graph.
func (f *floor) items(t *testing.T, id string) []bulkItem {
	t.Helper()
	items, after := []bulkItem{}, ""
	for {
		var out struct {
			Node struct {
				Items struct {
					TotalCount int
					Nodes      []bulkItem
					PageInfo   struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}
		}
		vars := variables{"id": id}
		if after != "" {
			vars["after"] = after
		}
		f.must(t, `query($id: ID!, $after: Cursor) { node(id: $id) { ... on BulkJob { items(first: 200, after: $after) {
			totalCount pageInfo { hasNextPage endCursor } nodes { machineName outcome code reason message machine { id name } } } } } }`, vars, &out)
		page := out.Node.Items
		items, after = append(items, page.Nodes...), page.PageInfo.EndCursor
		if !page.PageInfo.HasNextPage {
			require.Len(t, items, page.TotalCount)
			return items
		}
	}
}

// held is a lock on a machine's row, which a job stops at.
type held struct{ tx pgx.Tx }

func (f *floor) hold(t *testing.T, machineID string) held {
	t.Helper()
	tx, err := f.sql(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM machines WHERE id = $1 FOR NO KEY UPDATE`, machineID)
	require.NoError(t, err)
	return held{tx}
}

func (h held) release(t *testing.T) {
	t.Helper()
	require.NoError(t, h.tx.Rollback(t.Context()))
}

// send sends an operation as the operator, from any goroutine.
func (f *floor) send(ctx context.Context, document string, vars variables) error {
	body, err := json.Marshal(map[string]any{"query": document, "variables": vars})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+f.operator)
	response, err := f.http.Do(request)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(response.Body)
	if err == nil && bytes.Contains(content, []byte(`"errors"`)) {
		err = fmt.Errorf("%s", content)
	}
	return errors.Join(err, response.Body.Close())
}

// waiting waits until n transactions wait for a lock.
func (f *floor) waiting(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return f.blocked(t) >= n }, polling, tick)
}

// blocked is how many transactions wait for a lock.
func (f *floor) blocked(t *testing.T) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.database)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n))
	return n
}

// once fails unless each machine that a job changed was changed by it once, and the
// histories of the job and its machines have no gap.
func (f *floor) once(t *testing.T, jobID, cause string) {
	t.Helper()
	for name, query := range map[string]string{
		"an item succeeded, and its machine was not changed once": `SELECT count(*) FROM bulk_items i WHERE job_id = $1 AND outcome = 'SUCCEEDED' AND 1 <>
			(SELECT count(*) FROM transitions t WHERE t.subject_id = i.machine_id AND t.cause = $2 AND t.details->>'job' = $1)`,
		"a machine was changed, and its item did not succeed": `SELECT count(*) FROM transitions t WHERE t.cause = $2 AND t.details->>'job' = $1
			AND NOT EXISTS (SELECT FROM bulk_items i WHERE i.job_id = $1 AND i.machine_id = t.subject_id AND outcome = 'SUCCEEDED')`,
		"the counts are not those of the items": `SELECT count(*) FROM jobs j WHERE j.id = $1 AND $2 <> '' AND (total, succeeded, failed, skipped) <> (SELECT count(*),
			count(*) FILTER (WHERE outcome = 'SUCCEEDED'), count(*) FILTER (WHERE outcome = 'FAILED'), count(*) FILTER (WHERE outcome = 'SKIPPED') FROM bulk_items i WHERE i.job_id = j.id)`,
		"a history has a gap": `SELECT count(*) FROM (SELECT sequence - lag(sequence, 1, 0) OVER (PARTITION BY subject_id ORDER BY sequence) AS step
			FROM transitions WHERE ($1 <> '' OR $2 <> '') AND subject_id NOT IN (SELECT id FROM machines WHERE name = 'pattern')) s WHERE step <> 1`,
	} {
		require.Zero(t, f.count(t, query, jobID, cause), name)
	}
}

func TestABulkAssignmentChangesEachMachineOnceAndTellsWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	ids := f.machines(t, "a", 204)
	f.machines(t, "b", 3)
	for i, id := range ids[:3] { // the first has the SKU, the second another, the third is in a tenant's hands
		_, err := f.sql(t).Exec(t.Context(), []string{
			`UPDATE machines SET sku_id = $2, sku_name = 'spare' WHERE id = $1`,
			`UPDATE machines SET sku_name = 'other' WHERE id = $1 AND $2 <> ''`,
			`UPDATE machines SET state = 'ALLOCATED', sub_state = NULL WHERE id = $1 AND $2 <> ''`,
		}[i], id, f.sku)
		require.NoError(t, err)
	}

	content := f.fingerprint(t)
	f.mustAs(t, f.operator, `{ viewer { name } }`, nil, nil)
	before := content()
	dry := f.bulk(t, f.operator, bulkAssign, merged(f.assignment("a"), variables{"dryRun": true, "idempotencyKey": "k"}))
	require.Equal(t, before, content(), "a dry run writes nothing")
	require.Nil(t, dry.Job)
	require.Equal(t, 204, dry.Matched)
	require.Equal(t, []int{201, 2, 1}, []int{dry.Preview.Succeeded, dry.Preview.Failed, dry.Preview.Skipped})
	require.Len(t, dry.Preview.Items, 200, "a page")

	hold := f.hold(t, ids[203])
	done := f.bulk(t, f.operator, bulkAssign, merged(f.assignment("a"), variables{"idempotencyKey": "k"}))
	require.Equal(t, 204, done.Matched)
	require.Nil(t, done.Preview)
	require.Equal(t, 204, done.Job.Total)
	require.Eventually(t, func() bool { return f.job(t, done.Job.ID).Done == 203 }, polling, tick)
	// What is gone when its turn comes is skipped.
	_, err := hold.tx.Exec(t.Context(), `DELETE FROM machines WHERE id = $1`, ids[203])
	require.NoError(t, err)
	require.NoError(t, hold.tx.Commit(t.Context()))

	j := f.ends(t, done.Job.ID, "SUCCEEDED")
	require.Equal(t, []int{204, 204, 200, 2, 2}, []int{j.Total, j.Done, j.Succeeded, j.Failed, j.Skipped})
	require.Equal(t, []string{"BulkJob", "BULK", "olga", "ASSIGN_SKU", "spare"}, []string{j.Typename, j.Kind, j.Actor, j.Operation, j.SkuName})
	require.Equal(t, "assign the SKU spare: 204 of 204 machines done, of which 200 succeeded, 2 failed, 2 skipped", j.Summary)
	require.NotNil(t, j.StartedAt)
	require.Nil(t, j.Failure)
	require.Equal(t, "spare", j.Sku.Name)

	items := f.items(t, j.ID)
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = item.MachineName
	}
	require.True(t, slices.IsSorted(names))
	require.Equal(t, []string{"SKIPPED", "", "SKU_ALREADY_ASSIGNED"}, []string{items[0].Outcome, items[0].Code, items[0].Reason})
	require.Equal(t, []string{"FAILED", "FAILED_PRECONDITION", "SKU_ALREADY_ASSIGNED", "The specified machine already has a SKU assigned (other)"},
		[]string{items[1].Outcome, items[1].Code, items[1].Reason, items[1].Message})
	require.Equal(t, []string{"FAILED", "FAILED_PRECONDITION", "MACHINE_STATE"}, []string{items[2].Outcome, items[2].Code, items[2].Reason})
	require.Equal(t, []string{"SKIPPED", "MACHINE_DELETED"}, []string{items[203].Outcome, items[203].Reason})
	require.Nil(t, items[203].Machine)
	require.Equal(t, "a-00001", items[0].Machine.Name)
	require.Equal(t, items[1:3], dry.Preview.Items[:2], "the dry run told the refusals first, and the same")
	require.Equal(t, items[0], dry.Preview.Items[2])

	f.once(t, j.ID, "SKU_ASSIGNED")
	require.Equal(t, 200, f.count(t, `SELECT count(*) FROM machines WHERE sku_name = 'spare' AND sub_state = 'UPDATING_INVENTORY'`))
	changed := f.history(t, ids[10])
	require.Equal(t, []string{"SKU_ASSIGNED", "olga", "VERIFY_REQUESTED", "olga"}, []string{changed[0].Cause, changed[0].Actor, changed[1].Cause, changed[1].Actor})
	require.Equal(t, j.ID, changed[0].Details["job"])

	history := f.history(t, j.ID)
	told := causes(history)
	require.Equal(t, []string{"SUBMITTED", "STARTED", "PROGRESS"}, told[:3])
	require.Equal(t, "SUCCEEDED", told[len(told)-1])
	require.Less(t, len(history), 40, "progress is told now and then")
	require.Equal(t, []string{"olga", "PENDING", "system:bulk.run", "RUNNING"}, []string{history[0].Actor, history[0].ToState, history[1].Actor, history[1].ToState})
	require.InDelta(t, 204, history[len(history)-1].Details["done"], 0)
	require.Equal(t, map[string]any{"nameHasPrefix": "a-"}, history[0].Details["where"])

	repeat := f.bulk(t, f.operator, bulkAssign, merged(f.assignment("a"), variables{"idempotencyKey": "k"}))
	require.Equal(t, []any{j.ID, 204}, []any{repeat.Job.ID, repeat.Matched})
	fault := f.refused(t, f.operator, bulkAssign, variables{"input": merged(f.assignment("b"), variables{"idempotencyKey": "k"})})
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", fault.Extensions.Reason)
}

func TestABulkUnassignmentTakesOnlyTheSkuThatWasAskedFor(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	ids := f.machines(t, "a", 5)
	_, err := f.sql(t).Exec(t.Context(), `UPDATE machines SET sku_id = $1, sku_name = 'spare', state = 'READY', sub_state = NULL WHERE id = ANY($2)`, f.sku, ids[:4])
	require.NoError(t, err)
	other := f.newSku(t, f.site, "other", ofChassis(f.components, "Other"))
	for query, id := range map[string]string{
		`UPDATE machines SET sku_id = '` + other + `', sku_name = 'other' WHERE id = $1`: ids[1],
		`UPDATE machines SET state = 'VALIDATING', sub_state = 'RUNNING' WHERE id = $1`:  ids[2],
	} {
		_, err := f.sql(t).Exec(t.Context(), query, id)
		require.NoError(t, err)
	}
	input := variables{"siteId": f.site, "skuId": f.sku, "where": variables{"nameHasPrefix": "a-"}}
	dry := f.bulk(t, f.operator, bulkTake, merged(input, variables{"dryRun": true}))
	j := f.ends(t, f.bulk(t, f.operator, bulkTake, input).Job.ID, "SUCCEEDED")
	outcomes := func(items []bulkItem) (out []string) {
		for _, item := range items {
			out = append(out, item.MachineName+" "+item.Outcome+" "+item.Reason)
		}
		slices.Sort(out)
		return out
	}
	want := []string{"a-00001 SUCCEEDED ", "a-00002 SKIPPED OTHER_SKU", "a-00003 FAILED MACHINE_STATE", "a-00004 SUCCEEDED ", "a-00005 SKIPPED NO_SKU"}
	require.Equal(t, want, outcomes(f.items(t, j.ID)))
	require.Equal(t, want, outcomes(dry.Preview.Items))
	f.once(t, j.ID, "SKU_UNASSIGNED")

	forced := f.ends(t, f.bulk(t, f.admin, bulkTake, variables{"siteId": f.site, "where": variables{"nameHasPrefix": "a-"}, "force": true}).Job.ID, "SUCCEEDED")
	require.Equal(t, []int{2, 0, 3}, []int{forced.Succeeded, forced.Failed, forced.Skipped})
	require.Equal(t, "take the SKU away: 5 of 5 machines done, of which 2 succeeded, 0 failed, 3 skipped", forced.Summary)
	require.Empty(t, forced.SkuName)
	require.Zero(t, f.count(t, `SELECT count(*) FROM machines WHERE name LIKE 'a-%' AND sku_name IS NOT NULL`))
}

func TestACancelledJobBeginsNothingMore(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	ids := f.machines(t, "a", 120)
	hold := f.hold(t, ids[49])
	id := f.bulk(t, f.operator, bulkAssign, f.assignment("a")).Job.ID
	require.Eventually(t, func() bool { return f.job(t, id).Done == 49 }, polling, tick)
	input := variables{"input": variables{"jobId": id, "idempotencyKey": "stop"}}
	cancelled := make(chan error, 1)
	go func() { cancelled <- f.send(t.Context(), cancelJob, input) }()
	// The job waits for the machine and the cancel for the job, unless the worker's time
	// was over first: then the cancel waits for nothing.
	require.Eventually(t, func() bool { return f.blocked(t) >= 2 || len(cancelled) > 0 }, polling, tick)
	hold.release(t)
	require.NoError(t, <-cancelled)
	j := f.ends(t, id, "CANCELLED")
	// What was under way is ended. Postgres lets who asks for a row's lock pass those that
	// are about to wake for it, so a machine or two may follow before the cancel has it.
	require.Equal(t, j.Done, j.Succeeded)
	require.GreaterOrEqual(t, j.Done, 49)
	require.Less(t, j.Done, 120)
	rest := f.items(t, id)[j.Done:]
	for _, item := range rest {
		require.Equal(t, []string{"CANCELLED", "JOB_ENDED"}, []string{item.Outcome, item.Reason})
	}
	f.once(t, id, "SKU_ASSIGNED")
	history := f.history(t, id)
	last := history[len(history)-1]
	require.Equal(t, []string{"CANCELLED", "olga", "CANCELLED"}, []string{last.Cause, last.Actor, last.ToState})
	require.InDelta(t, len(rest), last.Details["cancelled"], 0)
	require.Equal(t, j.Done, f.count(t, `SELECT count(*) FROM transitions WHERE cause = 'SKU_ASSIGNED'`))

	require.NoError(t, f.send(t.Context(), cancelJob, input), "the same call again")
	fault := f.refused(t, f.operator, cancelJob, variables{"input": variables{"jobId": id}})
	require.Equal(t, []string{"FAILED_PRECONDITION", "JOB_ENDED"}, []string{fault.Extensions.Code, fault.Extensions.Reason})
}

func TestAJobThatWaitsForItsTurnCanBeCancelledAndOneWhoseSkuIsDeletedFails(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	first := f.machines(t, "a", 1)
	f.machines(t, "b", 3)
	gone := f.newSku(t, f.site, "gone", ofChassis(f.components, "Gone"))
	hold := f.hold(t, first[0])
	running := f.bulk(t, f.operator, bulkAssign, f.assignment("a")).Job.ID
	f.waiting(t, 1)
	pending := f.bulk(t, f.operator, bulkAssign, f.assignment("b")).Job.ID
	failing := f.bulk(t, f.operator, bulkAssign, merged(f.assignment("b"), variables{"skuId": gone})).Job.ID
	require.Equal(t, "PENDING", f.job(t, pending).State)
	f.mustAs(t, f.operator, cancelJob, variables{"input": variables{"jobId": pending}}, nil)
	f.must(t, deleteSku, variables{"input": variables{"skuId": gone}}, nil)
	hold.release(t)
	f.ends(t, running, "SUCCEEDED")
	j := f.ends(t, pending, "CANCELLED")
	require.Nil(t, j.StartedAt)
	require.Zero(t, j.Done)
	j = f.ends(t, failing, "FAILED")
	require.Equal(t, []string{"NOT_FOUND", "SKU_NOT_FOUND"}, []string{j.Failure.Code, j.Failure.Reason})
	require.Equal(t, "gone", j.SkuName)
	require.Nil(t, j.Sku)
	for _, id := range []string{pending, failing} {
		for _, item := range f.items(t, id) {
			require.Equal(t, "CANCELLED", item.Outcome)
		}
	}
	require.Equal(t, 1, f.count(t, `SELECT count(*) FROM machines WHERE sku_name IS NOT NULL AND site_id = $1`, f.site))

	// The queue lost a job: it goes on all the same.
	hold = f.hold(t, first[0])
	blocked := f.bulk(t, f.admin, bulkAssign, merged(f.assignment("a"), variables{"force": true})).Job.ID
	f.waiting(t, 1)
	lost := f.bulk(t, f.operator, bulkAssign, f.assignment("b")).Job.ID
	_, err := f.sql(t).Exec(t.Context(), `DELETE FROM river_job WHERE kind = 'bulk.run' AND args->>'job_id' = $1`, lost)
	require.NoError(t, err)
	_, err = f.sql(t).Exec(t.Context(), `INSERT INTO river_job (kind, args, max_attempts) VALUES ('bulk.resume', '{}', 1)`)
	require.NoError(t, err)
	hold.release(t)
	f.ends(t, blocked, "SUCCEEDED")
	require.Equal(t, 3, f.ends(t, lost, "SUCCEEDED").Succeeded)
}

func TestABulkFilterFindsNothingBeyondItsSite(t *testing.T) {
	t.Parallel()
	h := newFullHall(t)
	submit := func(token string, where variables) bulkAnswer {
		var out struct{ BulkAssignSku bulkAnswer }
		h.mustAs(t, token, bulkAssign, variables{"input": variables{"siteId": h.here.id, "skuId": h.here.spare, "where": where, "dryRun": true}}, &out)
		return out.BulkAssignSku
	}
	for _, token := range []string{h.siteOperator, h.admin} {
		require.Equal(t, 1, submit(token, variables{"name": "here-waiting"}).Matched)
		require.Zero(t, submit(token, variables{"name": "there-waiting"}).Matched)
		require.Zero(t, submit(token, variables{"siteId": h.there.id}).Matched)
		require.Zero(t, submit(token, variables{"hasSiteWith": []any{variables{"name": "there"}}}).Matched)
		require.Zero(t, submit(token, variables{"hasSkuWith": []any{variables{"id": h.there.sku}}}).Matched)
		require.NotZero(t, submit(token, variables{"hasSkuWith": []any{variables{"id": h.here.sku}}}).Matched)
	}
	theirs := h.there.job
	for _, token := range []string{h.siteOperator, h.viewer, h.agent} {
		a := h.do(t, token, `query($id: ID!, $item: ID!) { job(id: $id) { id } node(id: $id) { id } item: node(id: $item) { id } jobs(where: {id: $id}) { totalCount } }`,
			variables{"id": theirs, "item": h.there.item})
		require.JSONEq(t, `{"data": {"job": null, "node": null, "item": null, "jobs": {"totalCount": 0}}}`, string(a.raw))
	}
	h.mustAs(t, h.viewer, jobByID, variables{"id": h.here.job}, nil)
	for _, id := range []string{"", "x", fleet.NewID(fleet.PrefixJob), h.here.sku, "job_\x00"} {
		require.JSONEq(t, `{"data": {"job": null}}`, string(h.do(t, h.admin, `query($id: ID!) { job(id: $id) { id } }`, variables{"id": id}).raw))
	}
}

func TestABulkJobIsBounded(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.machines(t, "a", 10_001)
	fault := f.refused(t, f.operator, bulkAssign, variables{"input": f.assignment("a")})
	require.Equal(t, []string{"RESOURCE_EXHAUSTED", "TOO_MANY_MACHINES"}, []string{fault.Extensions.Code, fault.Extensions.Reason})
	require.Equal(t, map[string]any{"count": 10_001.0, "limit": 10_000.0}, fault.Extensions.Details)
	require.Zero(t, f.count(t, `SELECT count(*) FROM jobs`))

	_, err := f.sql(t).Exec(t.Context(), `INSERT INTO jobs (id, created_at, kind, actor, operation, site_id)
		SELECT 'job_' || lpad(i::text, 26, '0'), now(), 'BULK', 'x', 'ASSIGN_SKU', $1 FROM generate_series(1, 50) i`, f.site)
	require.NoError(t, err)
	fault = f.refused(t, f.operator, bulkAssign, variables{"input": merged(f.assignment("a"), variables{"where": variables{"name": "a-00001"}})})
	require.Equal(t, []string{"RESOURCE_EXHAUSTED", "TOO_MANY_JOBS"}, []string{fault.Extensions.Code, fault.Extensions.Reason})
}

func TestAListOfJobsCostsTheSameHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.machines(t, "a", 2)
	const list = `query($n: Int) { jobs(first: $n, orderBy: {field: CREATED_AT, direction: DESC}) { totalCount nodes { ` + jobFields + ` ... on BulkJob { items(first: 1) { totalCount nodes { machineName machine { name } } } } } } }`
	for range 5 {
		f.ends(t, f.bulk(t, f.admin, bulkAssign, merged(f.assignment("a"), variables{"force": true})).Job.ID, "SUCCEEDED")
	}
	var first, all int64
	first = f.statements.during(func() { f.must(t, list, variables{"n": 1}, nil) })
	all = f.statements.during(func() { f.must(t, list, variables{"n": 5}, nil) })
	require.Equal(t, first, all)
	require.Less(t, all, int64(12))
}

// TestABulkJobOutlivesTheProcessesThatWorkOnIt kills the only process that works on a
// job, has two others work on it at once, and kills one of these.
func TestABulkJobOutlivesTheProcessesThatWorkOnIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "fleetgraph")
	text, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/fleetgraph").CombinedOutput()
	require.NoError(t, err, "%s", text)
	f := &floor{lab: &lab{bundle: &bundle{database: testdb.New(t), http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}}}}
	t.Cleanup(f.http.CloseIdleConnections)
	tokenFile := filepath.Join(dir, "token")
	first := startProcess(t, binary, f.database, tokenFile)
	secret, err := os.ReadFile(tokenFile)
	require.NoError(t, err)
	f.url, f.admin = first.url, strings.TrimSpace(string(secret))
	f.good, f.other = inventory(t, "composed/r760_9nvme.json"), inventory(t, "composed/xe9680_8gpu.json")
	f.site = f.createSite(t, "dc1")
	f.components = f.generate(t, f.report(t, f.createSite(t, "sample"), readyMac, "sample", f.good).ID)
	f.settleFloor(t)
	const total = 1500
	f.machines(t, "a", total)

	id := f.bulk(t, f.operator, bulkAssign, f.assignment("a")).Job.ID
	conn := f.sql(t)
	done := func() (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT succeeded + failed + skipped FROM jobs WHERE id = $1`, id).Scan(&n))
		return n
	}
	reaches := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return done() >= n }, 3*polling, tick)
	}
	reaches(100)
	first.kill()
	interrupted := done()
	require.Less(t, interrupted, total, "killed in the middle")

	second, third := startProcess(t, binary, f.database, filepath.Join(dir, "none")), startProcess(t, binary, f.database, filepath.Join(dir, "none"))
	f.url = third.url
	// Two workers at once, without waiting until the first one's is rescued.
	for range 2 {
		_, err := conn.Exec(t.Context(), `INSERT INTO river_job (kind, args, max_attempts, queue) VALUES ('bulk.run', jsonb_build_object('job_id', $1::text), 25, 'bulk')`, id)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { // each looks for work once a second, and has one worker
		return f.count(t, `SELECT count(DISTINCT attempted_by[1]) FROM river_job WHERE kind = 'bulk.run' AND id > (SELECT min(id) FROM river_job WHERE kind = 'bulk.run')`) == 2
	}, polling, tick, "both work")
	reaches(interrupted + 200)
	second.kill()
	require.Less(t, done(), total, "killed in the middle")
	j := f.ends(t, id, "SUCCEEDED")
	require.Equal(t, []int{total, total}, []int{j.Total, j.Succeeded})
	f.once(t, id, "SKU_ASSIGNED")
	require.Equal(t, total, f.count(t, `SELECT count(*) FROM transitions WHERE cause = 'SKU_ASSIGNED'`))
}

// park stores a job that nobody works on, with one item, and returns their ids.
func (h *hall) park(t *testing.T, p place) (jobID, itemID string) {
	t.Helper()
	jobID, itemID = fleet.NewID(fleet.PrefixJob), fleet.NewID(fleet.PrefixBulkItem)
	for _, statement := range []struct {
		sql  string
		args []any
	}{
		{`INSERT INTO jobs (id, created_at, kind, actor, operation, total, site_id) VALUES ($1, now(), 'BULK', 'x', 'UNASSIGN_SKU', 1, $2)`, []any{jobID, p.id}},
		{`INSERT INTO bulk_items (id, site_id, job_id, machine_id, machine_name) VALUES ($1, $2, $3, $4, 'm')`, []any{itemID, p.id, jobID, p.ready.ID}},
		{`INSERT INTO river_job (kind, args, max_attempts, queue, state, scheduled_at) VALUES ('bulk.run', jsonb_build_object('job_id', $1::text), 25, 'bulk', 'scheduled', now() + interval '1 day')`, []any{jobID}},
	} {
		_, err := h.sql(t).Exec(context.WithoutCancel(t.Context()), statement.sql, statement.args...)
		require.NoError(t, err, statement.sql)
	}
	return jobID, itemID
}
