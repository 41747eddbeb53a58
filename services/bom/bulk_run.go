package bom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/bulkitem"
	entjob "fleetgraph/ent/job"
	"fleetgraph/ent/machine"
	"fleetgraph/fleet"
	"fleetgraph/internal/jobs"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/job"
	"fleetgraph/services/lifecycle"
)

const (
	// BulkQueue is the queue of RunBulk: what machines wait for does not wait for it.
	BulkQueue = "bulk"
	// bulkSlice is how long one RunBulk works before it leaves the rest to another: less
	// than a stop of the server waits, and other bulk jobs have their turn.
	bulkSlice = 5 * time.Second
	// Progress is recorded when either has passed since the last record.
	progressInterval = time.Second
	progressItems    = 100
)

// RunBulk works on a bulk job. Any number of them may do so at once.
type RunBulk struct {
	JobID string `json:"job_id"`
}

// Kind of the job.
func (RunBulk) Kind() string { return "bulk.run" }

// InsertOpts chooses the queue.
func (RunBulk) InsertOpts() jobs.Options { return jobs.Options{Queue: BulkQueue} }

// ResumeBulk has bulk jobs go on whose RunBulk is gone: the queue gives up what fails,
// or is killed, too often.
type ResumeBulk struct{}

// Kind of the job.
func (ResumeBulk) Kind() string { return "bulk.resume" }

// ResumeBulk does that job.
func (s *Service) ResumeBulk(ctx context.Context, _ ResumeBulk) error {
	ids, err := s.client.Job.Query().Where(entjob.KindEQ(fleet.JobBulk), entjob.FinishedAtIsNil()).IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		err := pgdb.InTx(ctx, s.client, func(ctx context.Context, _ *ent.Client) error {
			held, err := s.queue.Holds(ctx, RunBulk{JobID: id})
			if err != nil || held {
				return err
			}
			return s.queue.Insert(ctx, RunBulk{JobID: id})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bulkRun is one slice of a bulk job. Each machine has a transaction of its own, which
// holds the lock of the job's row: so a machine is changed and marked once, whoever
// else works on the job, and nothing is begun after the job has ended.
type bulkRun struct {
	*Service
	job      *ent.Job // what of it never changes
	recorded time.Time
	items    int // since recorded
}

// RunBulk does that job.
func (s *Service) RunBulk(ctx context.Context, args RunBulk) error {
	r := &bulkRun{Service: s, recorded: s.now()}
	ended, err := r.begin(ctx, args.JobID)
	for end := s.now().Add(bulkSlice); err == nil && !ended; {
		if s.now().After(end) {
			return s.enqueue(ctx, args)
		}
		ended, err = r.step(ctx)
	}
	if pgdb.Retryable(err) {
		return s.enqueue(ctx, args) // a lost race, after InTx has tried again in vain
	}
	return err
}

// begin loads the job, and starts it where nobody has.
func (r *bulkRun) begin(ctx context.Context, id string) (ended bool, err error) {
	err = pgdb.InTx(ctx, r.client, func(ctx context.Context, tx *ent.Client) error {
		j, err := job.Lock(ctx, tx, id)
		if err != nil {
			return err
		}
		if j.State == fleet.JobPending {
			err = job.Move(ctx, tx, j, job.Change{Event: fleet.EventJobStarted, At: r.now()})
		}
		r.job, ended = j, j.State.HasEnded()
		return err
	})
	return ended, err
}

// step settles the next machine, or ends the job where there is none.
func (r *bulkRun) step(ctx context.Context) (ended bool, err error) {
	item, err := r.client.BulkItem.Query().Where(bulkitem.JobID(r.job.ID), bulkitem.OutcomeEQ(fleet.BulkPending)).
		Order(ent.Asc(bulkitem.FieldID)).First(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return false, err
	}
	if item == nil {
		return true, r.underLock(ctx, "", func(ctx context.Context, tx *ent.Client, j *ent.Job, _ *ent.Sku) error {
			return job.Move(ctx, tx, j, job.Change{Event: fleet.EventJobSucceeded, At: r.now(), Details: counts(j)})
		})
	}
	skuID, err := r.skuOf(ctx, item)
	if err != nil {
		return false, err
	}
	err = r.underLock(ctx, skuID, func(ctx context.Context, tx *ent.Client, j *ent.Job, row *ent.Sku) error {
		if j.Operation == fleet.BulkAssignSku && row == nil {
			ended = true
			return r.giveUp(ctx, tx, j)
		}
		return r.change(ctx, tx, j, row, item)
	})
	var refused machineError
	if errors.As(err, &refused) && ctx.Err() == nil && !pgdb.Retryable(err) && !pgdb.Unavailable(err) {
		// What it had written is undone; that it failed is kept.
		v := verdict{fleet.BulkFailed, r.told(ctx, item, refused.error)}
		return false, r.underLock(ctx, "", func(ctx context.Context, tx *ent.Client, j *ent.Job, _ *ent.Sku) error {
			if marked, err := r.mark(ctx, tx, item, v); err != nil || !marked {
				return err
			}
			return r.count(ctx, tx, j, v)
		})
	}
	return ended || errors.Is(err, errEnded), ignoreEnded(err)
}

// errEnded undoes nothing: it says that the job has ended meanwhile.
var errEnded = errors.New("the job has ended")

func ignoreEnded(err error) error {
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// machineError is an error of the change of a machine itself.
type machineError struct{ error }

// Unwrap returns the error.
func (e machineError) Unwrap() error { return e.error }

// skuOf is the id of the SKU that a machine's change needs; empty for none.
func (r *bulkRun) skuOf(ctx context.Context, item *ent.BulkItem) (string, error) {
	if r.job.Operation == fleet.BulkAssignSku {
		return derefID(r.job.SkuID), nil
	}
	if item.MachineID == nil {
		return "", nil
	}
	m, err := r.client.Machine.Query().Where(machine.ID(*item.MachineID)).Select(machine.FieldSkuID).Only(ctx)
	if ent.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return derefID(m.SkuID), nil
}

func derefID(id *string) string {
	if id == nil {
		return ""
	}
	return *id
}

// underLock runs fn in a transaction that holds the locks of the SKU, if one is given
// and exists, and of the job: errEnded where that has ended.
func (r *bulkRun) underLock(ctx context.Context, skuID string, fn func(context.Context, *ent.Client, *ent.Job, *ent.Sku) error) error {
	return pgdb.InTx(ctx, r.client, func(ctx context.Context, tx *ent.Client) error {
		var row *ent.Sku
		if skuID != "" {
			var err error
			if row, err = keepSku(ctx, tx, skuID); err != nil {
				return err
			}
		}
		j, err := job.Lock(ctx, tx, r.job.ID)
		if err != nil {
			return err
		}
		if j.State.HasEnded() {
			return errEnded
		}
		return fn(ctx, tx, j, row)
	})
}

// change settles one machine.
func (r *bulkRun) change(ctx context.Context, tx *ent.Client, j *ent.Job, row *ent.Sku, item *ent.BulkItem) error {
	m, err := r.machine(ctx, tx, item)
	if err != nil {
		return err
	}
	v := verdict{fleet.BulkSkipped, fleet.Missing("", "MACHINE_DELETED", "the machine was deleted meanwhile")}
	if m != nil {
		v = judge(j, m, row)
	}
	// Before the change: whoever marks the item makes it.
	if marked, err := r.mark(ctx, tx, item, v); err != nil || !marked {
		return err
	}
	if v.outcome == fleet.BulkSucceeded {
		if err := r.apply(access.OnBehalf(ctx, RunBulk{}.Kind(), j.Actor), tx, j, m, row); err != nil {
			return machineError{err}
		}
	}
	return r.count(ctx, tx, j, v)
}

// machine loads and locks the machine of an item, nil where it was deleted.
func (r *bulkRun) machine(ctx context.Context, tx *ent.Client, item *ent.BulkItem) (*ent.Machine, error) {
	if item.MachineID == nil {
		return nil, nil //nolint:nilnil // stated above
	}
	m, err := lifecycle.Lock(ctx, tx, *item.MachineID)
	if fault, ok := fleet.AsError(err); ok && fault.Code == fleet.NotFound {
		return nil, nil //nolint:nilnil // stated above
	}
	return m, err
}

func (r *bulkRun) apply(ctx context.Context, tx *ent.Client, j *ent.Job, m *ent.Machine, row *ent.Sku) error {
	if j.Operation == fleet.BulkAssignSku {
		return r.assign(ctx, tx, m, row, assignment(j, m))
	}
	return r.unassign(ctx, tx, m, unassignment(j, m))
}

// mark writes an item's outcome, and tells whether it had none.
func (r *bulkRun) mark(ctx context.Context, tx *ent.Client, item *ent.BulkItem, v verdict) (bool, error) {
	update := tx.BulkItem.Update().Where(bulkitem.ID(item.ID), bulkitem.OutcomeEQ(fleet.BulkPending)).
		SetOutcome(v.outcome).SetFinishedAt(r.now())
	if v.fault != nil {
		update.SetReason(v.fault.Reason).SetMessage(v.fault.Message)
	}
	if v.fault != nil && v.outcome == fleet.BulkFailed {
		update.SetCode(string(v.fault.Code))
	}
	n, err := update.Save(ctx)
	return n == 1, err
}

// count adds an outcome to the job's counts, and records the progress now and then.
func (r *bulkRun) count(ctx context.Context, tx *ent.Client, j *ent.Job, v verdict) error {
	var add func(*ent.JobUpdate)
	switch v.outcome {
	case fleet.BulkSucceeded:
		j.Succeeded++
		add = func(u *ent.JobUpdate) { u.AddSucceeded(1) }
	case fleet.BulkFailed:
		j.Failed++
		add = func(u *ent.JobUpdate) { u.AddFailed(1) }
	case fleet.BulkSkipped:
		j.Skipped++
		add = func(u *ent.JobUpdate) { u.AddSkipped(1) }
	case fleet.BulkPending, fleet.BulkCancelled:
		return fmt.Errorf("an item of %s has the outcome %s", j.ID, v.outcome)
	}
	now := r.now()
	if r.items++; r.items < progressItems && now.Sub(r.recorded) < progressInterval {
		update := tx.Job.Update().Where(entjob.ID(j.ID))
		add(update)
		return update.Exec(ctx)
	}
	r.items, r.recorded = 0, now
	return job.Move(ctx, tx, j, job.Change{Event: fleet.EventJobProgress, At: now, Details: counts(j)}, add)
}

// giveUp ends a job whose SKU was deleted.
func (r *bulkRun) giveUp(ctx context.Context, tx *ent.Client, j *ent.Job) error {
	at := r.now()
	details, err := r.CancelBulk(ctx, tx, j, at)
	if err != nil {
		return err
	}
	failure := &fleet.JobFailure{Code: string(fleet.NotFound), Reason: "SKU_NOT_FOUND", Message: "the SKU was deleted meanwhile"}
	return job.Move(ctx, tx, j, job.Change{Event: fleet.EventJobFailed, Message: failure.Message, Details: details, At: at},
		func(u *ent.JobUpdate) { u.SetFailure(failure) })
}

// told is what an item says of an error of its machine's change: one that is not meant
// for people is logged instead.
func (r *bulkRun) told(ctx context.Context, item *ent.BulkItem, err error) *fleet.Error {
	if fault, ok := fleet.AsError(err); ok && fault.Code != fleet.Internal {
		return fault
	}
	r.logger.ErrorContext(ctx, "a machine could not be changed by its job", slog.String("job", item.JobID), slog.String("machine_id", derefID(item.MachineID)), slog.Any("err", err))
	return &fleet.Error{Code: fleet.Internal, Reason: "INTERNAL", Message: "the machine could not be changed; the server's log says why"}
}
