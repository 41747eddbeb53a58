package resolvers

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/job"
	"fleetgraph/ent/relay"
	"fleetgraph/fleet"
	"fleetgraph/graph"
	"fleetgraph/internal/live"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

func isEndOfJob(t *ent.Transition) bool {
	return t.ToState != nil && fleet.JobState(*t.ToState).HasEnded()
}

// followJob opens the stream of a job.
func (r *Resolver) followJob(ctx context.Context, id string, after *relay.Cursor) (live.Source, error) {
	if _, err := access.Require(ctx, fleet.RoleViewer); err != nil {
		return nil, err
	}
	if err := fleet.CheckID("id", fleet.PrefixJob, id); err != nil {
		return nil, err
	}
	row, err := orNull(r.Client.Job.Query().Where(job.ID(id)).Only(ctx))
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, jobMissing(id)
	}
	return r.followObject(ctx, id, after, isEndOfJob, row.State.HasEnded())
}

// jobEvent is the graph's form of an event of a job's stream.
func (r *Resolver) jobEvent(ctx context.Context, id string, e live.Event) (graph.JobEvent, error) {
	t, at := changeOf(e)
	var row *ent.Job
	load := func() error {
		query, err := r.Client.Job.Query().Where(job.ID(id)).CollectOne(ctx, "job")
		if err != nil {
			return err
		}
		row, err = orNull(query.Only(ctx))
		return err
	}
	if at != nil {
		err := r.settle(ctx, at, func() (err error) {
			if err := load(); err != nil {
				return err
			}
			at.ended, err = r.Client.Job.Query().Where(job.ID(id), job.FinishedAtNotNil()).Exist(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
		if row == nil {
			return nil, jobMissing(id)
		}
		return graph.JobSnapshot{Job: row.Variant(), Cursor: at.stream.Cursor(at.number)}, nil
	}
	var of ent.AnyJob
	if relay.Selects(ctx, "job") {
		if err := load(); err != nil {
			return nil, err
		}
		if row != nil {
			of = row.Variant()
		}
	}
	cursor := events.OfObject(id).CursorOf(t)
	if isEndOfJob(t) {
		return graph.JobEnd{Transition: t, Job: of, Cursor: cursor}, nil
	}
	return graph.JobChange{Transition: t, Job: of, Cursor: cursor}, nil
}
