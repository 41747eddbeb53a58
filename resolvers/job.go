package resolvers

import (
	"context"
	"fmt"

	"fleetgraph/ent"
	"fleetgraph/ent/job"
	"fleetgraph/ent/machine"
	"fleetgraph/fleet"
	"fleetgraph/graph"
	"fleetgraph/services/bom"
)

// job loads the job of a mutation's payload.
func (r *Resolver) job(ctx context.Context, id string) (*ent.Job, error) {
	query, err := r.Client.Job.Query().Where(job.ID(id)).CollectOne(ctx, "job")
	if err != nil {
		return nil, err
	}
	row, err := query.Only(ctx)
	return row, gone(err, id)
}

// bulk is what both bulk mutations answer.
type bulk struct {
	job     *ent.BulkJob
	matched int
	preview *graph.BulkPreview
}

// bulk submits a bulk change, or says what it would do.
func (r *Resolver) bulk(ctx context.Context, in bom.Bulk, dryRun bool) (b bulk, err error) {
	if dryRun {
		p, err := r.Bom.PreviewBulk(ctx, in)
		if err != nil {
			return b, err
		}
		b.matched = p.Matched
		b.preview, err = r.bulkPreview(ctx, p)
		return b, err
	}
	id, matched, err := r.Bom.SubmitBulk(ctx, in)
	if err != nil {
		return b, err
	}
	row, err := r.job(ctx, id)
	return bulk{job: &ent.BulkJob{Job: row}, matched: matched}, err
}

func (r *Resolver) bulkPreview(ctx context.Context, p bom.BulkPreview) (*graph.BulkPreview, error) {
	ids := make([]string, len(p.Items))
	for i, item := range p.Items {
		ids[i] = item.MachineID
	}
	query, err := r.Client.Machine.Query().Where(machine.IDIn(ids...)).CollectPath(ctx, "preview", "items", "machine")
	if err != nil {
		return nil, err
	}
	rows, err := query.All(ctx)
	rows, err = inOrder(ids, rows, func(m *ent.Machine) string { return m.ID }, err)
	if err != nil {
		return nil, err
	}
	items := make([]*graph.BulkPreviewItem, len(p.Items))
	for i, item := range p.Items {
		items[i] = &graph.BulkPreviewItem{Machine: rows[i], MachineName: item.MachineName, Outcome: item.Outcome}
		if fault := item.Fault; fault != nil {
			items[i].Reason, items[i].Message = &fault.Reason, fault.Message
			if item.Outcome == fleet.BulkFailed {
				items[i].Code = new(string(fault.Code))
			}
		}
	}
	return &graph.BulkPreview{Succeeded: p.Succeeded, Failed: p.Failed, Skipped: p.Skipped, Items: items}, nil
}

// summary words a bulk job.
func summary(j *ent.BulkJob) string {
	what := "assign the SKU " + derefOr(j.SkuName, "")
	switch {
	case j.Operation == fleet.BulkUnassignSku && j.SkuName == nil:
		what = "take the SKU away"
	case j.Operation == fleet.BulkUnassignSku:
		what = "take the SKU " + *j.SkuName + " away"
	}
	return fmt.Sprintf("%s: %d of %d machines done, of which %d succeeded, %d failed, %d skipped",
		what, done(j), j.Total, j.Succeeded, j.Failed, j.Skipped)
}

func done(j *ent.BulkJob) int { return j.Succeeded + j.Failed + j.Skipped }
