package bom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/bulkitem"
	entjob "fleetgraph/ent/job"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/predicate"
	"fleetgraph/ent/relay"
	"fleetgraph/ent/site"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/job"
)

const (
	// maxBulk bounds the machines of one bulk job: they are inserted in one transaction
	// (1 s for so many).
	maxBulk = 10_000
	// maxOpenBulk bounds the bulk jobs of a site that have not ended. Two that are
	// submitted at once may pass it.
	maxOpenBulk = 50
	// bulkInsert is how many items one statement writes: at most 65535 parameters fit
	// into one, and an item has some 8.
	bulkInsert = 1000
	// maxRecordedFilter bounds the filter in a job's history, in bytes; a longer one is
	// left out.
	maxRecordedFilter = 16 << 10
)

// Bulk is the input of Service.SubmitBulk and Service.PreviewBulk. SkuID nil means any
// SKU, for an operation that takes one away.
type Bulk struct {
	SiteID    string
	Operation fleet.BulkOperation
	SkuID     *string
	Where     *ent.MachineWhereInput
	All       bool
	Force     bool
	Key       string `json:"-"`
}

// SubmitBulk submits a job that changes the machines of a site that a filter finds, and
// returns its id and their number. What the caller may do is judged now: the job does it
// later in the caller's name, whatever becomes of the caller's token.
// RESOURCE_EXHAUSTED, reason TOO_MANY_MACHINES or TOO_MANY_JOBS.
func (s *Service) SubmitBulk(ctx context.Context, in Bulk) (id string, matched int, err error) {
	filter, err := in.check(ctx)
	if err != nil {
		return "", 0, err
	}
	mutation := access.Mutation{Name: "bulkAssignSku", Key: in.Key, Input: in}
	if in.Operation == fleet.BulkUnassignSku {
		mutation.Name = "bulkUnassignSku"
	}
	out, err := access.Run(ctx, s.client, mutation, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		row, err := in.subject(ctx, tx, true)
		if err != nil {
			return nil, err
		}
		open, err := tx.Job.Query().Where(entjob.SiteID(in.SiteID), entjob.KindEQ(fleet.JobBulk), entjob.FinishedAtIsNil()).Count(ctx)
		if err != nil {
			return nil, err
		}
		if open >= maxOpenBulk {
			return nil, exhausted("TOO_MANY_JOBS", "%d bulk jobs of the site have not ended, of at most %d", open, maxOpenBulk)
		}
		machines, err := in.machines(ctx, tx, filter, machine.FieldID, machine.FieldName)
		if err != nil {
			return nil, err
		}
		j, err := s.insertBulk(ctx, tx, in, row, machines)
		if err != nil {
			return nil, err
		}
		return []string{j.ID}, s.queue.Insert(ctx, RunBulk{JobID: j.ID})
	})
	if err != nil {
		return "", 0, err
	}
	j, err := s.client.Job.Query().Where(entjob.ID(out.Result[0])).Select(entjob.FieldTotal).Only(ctx)
	if err != nil {
		return "", 0, err
	}
	return out.Result[0], j.Total, nil
}

// check checks what needs no database, and returns the filter.
func (in Bulk) check(ctx context.Context) (predicate.Machine, error) {
	if err := requireForce(ctx, in.Force); err != nil {
		return nil, err
	}
	if err := fleet.CheckID("siteId", fleet.PrefixSite, in.SiteID); err != nil {
		return nil, err
	}
	if in.SkuID != nil {
		if err := fleet.CheckID("skuId", fleet.PrefixSku, *in.SkuID); err != nil {
			return nil, err
		}
	}
	if err := relay.CheckWhere(in.Where); err != nil {
		return nil, err
	}
	filter, err := in.Where.P()
	switch empty := errors.Is(err, ent.ErrEmptyMachineWhereInput); {
	case empty && in.All:
		return machine.SiteID(in.SiteID), nil
	case empty:
		// A program may have built it from nothing, and would change a whole site.
		return nil, fleet.Invalid("where", "FILTER_EMPTY", "the filter has no condition; with all: true it stands for every machine of the site")
	case err != nil:
		return nil, err
	case in.All:
		return nil, fleet.Invalid("all", "FILTER_NOT_EMPTY", "all is for a filter without conditions")
	}
	return filter, nil
}

// subject loads the SKU, nil where none was given, and has it stay when lock is set.
func (in Bulk) subject(ctx context.Context, client *ent.Client, lock bool) (*ent.Sku, error) {
	known, err := client.Site.Query().Where(site.ID(in.SiteID)).Exist(ctx)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fleet.Missing("siteId", "SITE_NOT_FOUND", "site not found: %s", in.SiteID)
	}
	if in.SkuID == nil {
		return nil, nil //nolint:nilnil // stated above
	}
	query := client.Sku.Query().Where(entsku.ID(*in.SkuID), entsku.SiteID(in.SiteID))
	if lock {
		query.ForShare()
	}
	row, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, fleet.Missing("skuId", "SKU_NOT_FOUND", "SKU ID not found: %s", *in.SkuID)
	}
	return row, err
}

// machines loads columns of the hosts of the site that the filter finds, by name.
func (in Bulk) machines(ctx context.Context, client *ent.Client, filter predicate.Machine, columns ...string) ([]*ent.Machine, error) {
	query := client.Machine.Query().Where(machine.SiteID(in.SiteID), machine.KindEQ(fleet.KindHost), filter)
	rows, err := query.Clone().Order(ent.Asc(machine.FieldName, machine.FieldID)).Limit(maxBulk + 1).Select(columns...).All(ctx)
	if err != nil || len(rows) <= maxBulk {
		return rows, err
	}
	count, err := query.Count(ctx)
	if err != nil {
		return nil, err
	}
	return nil, exhausted("TOO_MANY_MACHINES", "the filter finds %d machines, of at most %d in one job", count, maxBulk).
		WithDetails(map[string]any{"count": count, "limit": maxBulk})
}

func exhausted(reason, format string, args ...any) *fleet.Error {
	e := fleet.Precondition(reason, format, args...)
	e.Code = fleet.ResourceExhausted
	return e
}

// insertBulk stores a job with its items.
func (s *Service) insertBulk(ctx context.Context, tx *ent.Client, in Bulk, row *ent.Sku, machines []*ent.Machine) (*ent.Job, error) {
	now := s.now()
	create := tx.Job.Create().SetSiteID(in.SiteID).SetKind(fleet.JobBulk).SetActor(access.Actor(ctx)).SetCreatedAt(now).
		SetOperation(in.Operation).SetForce(in.Force).SetTotal(len(machines))
	if row != nil {
		create.SetSkuID(row.ID).SetSkuName(row.Name)
	}
	j, err := create.Save(ctx)
	if err != nil {
		return nil, err
	}
	// Ids of one millisecond have no order; sorted, they have that of the names.
	ids := make([]string, len(machines))
	for i := range ids {
		ids[i] = fleet.NewID(fleet.PrefixBulkItem)
	}
	slices.Sort(ids)
	for part := range slices.Chunk(machines, bulkInsert) {
		items := make([]*ent.BulkItemCreate, len(part))
		for i, m := range part {
			items[i] = tx.BulkItem.Create().SetID(ids[i]).SetSiteID(j.SiteID).SetJobID(j.ID).SetMachineID(m.ID).SetMachineName(m.Name)
		}
		ids = ids[len(part):]
		if err := tx.BulkItem.CreateBulk(items...).Exec(ctx); err != nil {
			if _, kind := pgdb.Constraint(err); kind == pgdb.KindForeignKey {
				return nil, fleet.Conflict("MACHINE_DELETED", "a machine that the filter found was deleted meanwhile; try again")
			}
			return nil, err
		}
	}
	details := map[string]any{"operation": j.Operation, "sku": j.SkuName, "force": j.Force, "total": j.Total}
	where, err := json.Marshal(in.Where)
	if err != nil {
		return nil, fmt.Errorf("record a filter: %w", err)
	}
	if len(where) <= maxRecordedFilter {
		details["where"] = json.RawMessage(where)
	}
	return j, job.Submitted(ctx, tx, j, job.Change{At: now, Details: details})
}

// verdict is what becomes of a machine; fault says why it is not changed, and is nil
// where it is.
type verdict struct {
	outcome fleet.BulkOutcome
	fault   *fleet.Error
}

// judge says what becomes of m in j. row is j's SKU where one is to be assigned.
func judge(j *ent.Job, m *ent.Machine, row *ent.Sku) verdict {
	skip := func(reason, format string, args ...any) verdict {
		return verdict{fleet.BulkSkipped, fleet.Precondition(reason, format, args...)}
	}
	var err error
	if j.Operation == fleet.BulkAssignSku {
		if !j.Force && m.SkuID != nil && row != nil && *m.SkuID == row.ID {
			return skip("SKU_ALREADY_ASSIGNED", "the machine has the SKU already")
		}
		err = checkAssign(m, row, assignment(j, m))
	} else {
		switch {
		case m.SkuName == nil:
			return skip("NO_SKU", "the machine has no SKU")
		case j.SkuName != nil && *m.SkuName != *j.SkuName:
			return skip("OTHER_SKU", "the machine has another SKU: %s", *m.SkuName)
		}
		err = checkUnassign(m, unassignment(j, m))
	}
	if fault, ok := fleet.AsError(err); ok {
		return verdict{fleet.BulkFailed, fault}
	}
	return verdict{outcome: fleet.BulkSucceeded}
}

func assignment(j *ent.Job, m *ent.Machine) Assign {
	in := Assign{MachineID: m.ID, Force: j.Force, job: j.ID}
	if j.SkuID != nil {
		in.SkuID = *j.SkuID
	}
	return in
}

func unassignment(j *ent.Job, m *ent.Machine) Unassign {
	return Unassign{MachineID: m.ID, Force: j.Force, job: j.ID}
}

// CancelBulk is the job.Ender of bulk jobs.
func (s *Service) CancelBulk(ctx context.Context, tx *ent.Client, j *ent.Job, at time.Time) (any, error) {
	n, err := tx.BulkItem.Update().Where(bulkitem.JobID(j.ID), bulkitem.OutcomeEQ(fleet.BulkPending)).
		SetOutcome(fleet.BulkCancelled).SetReason("JOB_ENDED").SetMessage("the job ended before the machine's turn").SetFinishedAt(at).Save(ctx)
	if err != nil {
		return nil, err
	}
	details := counts(j)
	details["cancelled"] = n
	return details, nil
}

// counts is how far a bulk job is, for its history.
func counts(j *ent.Job) map[string]any {
	return map[string]any{
		"total": j.Total, "done": j.Succeeded + j.Failed + j.Skipped,
		"succeeded": j.Succeeded, "failed": j.Failed, "skipped": j.Skipped,
	}
}
