// Package job is the life of jobs, whatever their kind: the one writer of a job's
// state, and its end by a person. What a kind of job does is another's.
package job

import (
	"context"
	"time"

	"fleetgraph/ent"
	entjob "fleetgraph/ent/job"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// Change is what happens to a job, beside its state. Details must marshal to JSON.
type Change struct {
	Event   fleet.JobEvent
	Message string
	Details any
	At      time.Time
}

// Lock loads and locks the job of this id: INVALID_ARGUMENT for what is no job's id,
// NOT_FOUND, reason JOB_NOT_FOUND, where there is none that the caller may see. Who
// locks SKUs too locks them before, who locks machines after.
func Lock(ctx context.Context, tx *ent.Client, id string) (*ent.Job, error) {
	if err := fleet.CheckID("jobId", fleet.PrefixJob, id); err != nil {
		return nil, err
	}
	j, err := tx.Job.Query().Where(entjob.ID(id), pgdb.ForNoKeyUpdate).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, fleet.Missing("jobId", "JOB_NOT_FOUND", "job not found: %s", id)
	}
	return j, err
}

// Submitted records that j, which has just been inserted, was submitted.
func Submitted(ctx context.Context, tx *ent.Client, j *ent.Job, c Change) error {
	c.Event = fleet.EventJobSubmitted
	return record(ctx, tx, j, nil, c)
}

// Move takes j, which the caller has locked, along the table because of c.Event,
// writes what else changes with it, and records it. j's state is what is written.
// FAILED_PRECONDITION, reason JOB_ENDED, for a job that has ended, JOB_STATE where the
// table has no such transition; ABORTED, reason STATE_CHANGED, where another was faster.
func Move(ctx context.Context, tx *ent.Client, j *ent.Job, c Change, set ...func(*ent.JobUpdate)) error {
	from := j.State
	to, ok := fleet.NextJobState(from, c.Event)
	switch {
	case !ok && from.HasEnded():
		return fleet.Precondition("JOB_ENDED", "the job has ended: it is %s", from).WithDetails(map[string]any{"state": from})
	case !ok:
		return fleet.Precondition("JOB_STATE", "a job that is %s has no transition for %s", from, c.Event)
	}
	update := tx.Job.Update().Where(entjob.ID(j.ID), entjob.StateEQ(from)).SetState(to)
	if j.StartedAt == nil && to == fleet.JobRunning {
		update.SetStartedAt(c.At)
		j.StartedAt = &c.At
	}
	if to.HasEnded() {
		update.SetFinishedAt(c.At)
		j.FinishedAt = &c.At
	}
	for _, more := range set {
		more(update)
	}
	n, err := update.Save(ctx)
	if err != nil {
		return err
	}
	if n != 1 {
		return fleet.Conflict("STATE_CHANGED", "the job left %s meanwhile", from)
	}
	j.State = to
	return record(ctx, tx, j, new(string(from)), c)
}

func record(ctx context.Context, tx *ent.Client, j *ent.Job, from *string, c Change) error {
	return events.Append(ctx, tx, events.Transition{
		SiteID: &j.SiteID, SubjectType: fleet.SubjectJob, SubjectID: j.ID, From: from, To: new(string(j.State)),
		Cause: string(c.Event), Actor: access.Actor(ctx), Message: c.Message, Details: c.Details, At: c.At,
	})
}

// An Ender settles, in the transaction that cancels a job of its kind, what has not
// been begun of it, and returns the details for the history.
type Ender func(ctx context.Context, tx *ent.Client, j *ent.Job, at time.Time) (details any, err error)

// Service is what people may do with a job of any kind.
type Service struct {
	client *ent.Client
	now    func() time.Time
	enders map[fleet.JobKind]Ender
}

// New returns the service on client, with now as its clock and an ender for each kind
// of job that can be cancelled.
func New(client *ent.Client, now func() time.Time, enders map[fleet.JobKind]Ender) *Service {
	return &Service{client: client, now: now, enders: enders}
}

// Cancel stops a job. What a worker is doing at the moment is awaited; nothing is
// begun after Cancel has returned.
func (s *Service) Cancel(ctx context.Context, id, key string) error {
	if _, err := access.Require(ctx, fleet.RoleOperator); err != nil {
		return err
	}
	if err := fleet.CheckID("jobId", fleet.PrefixJob, id); err != nil {
		return err
	}
	_, err := access.Run(ctx, s.client, access.Mutation{Name: "cancelJob", Key: key, Input: id}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		j, err := Lock(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		change := Change{Event: fleet.EventJobCancelled, At: s.now()}
		end, ok := s.enders[j.Kind]
		if !ok {
			return nil, fleet.Precondition("JOB_KIND", "a job of kind %s cannot be cancelled", j.Kind)
		}
		if !j.State.HasEnded() {
			if change.Details, err = end(ctx, tx, j, change.At); err != nil {
				return nil, err
			}
		}
		return []string{j.ID}, Move(ctx, tx, j, change)
	})
	return err
}
