package lifecycle

import (
	"context"
	"strings"
	"time"
	"unicode"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/workitem"
	"fleetgraph/fleet"
	"fleetgraph/services/access"
)

// retryWork is how long after a failure work is wanted again.
const retryWork = time.Minute

// workRetention is how long work that ended is kept, as long as idempotency keys.
const workRetention = 24 * time.Hour

// maxWorkError bounds an agent's explanation, in bytes.
const maxWorkError = 4096

// wanted is what a machine's position wants of its host; empty for nothing.
func wanted(m *ent.Machine, config Configuration) fleet.WorkKind {
	switch at := Position(m); {
	case at == fleet.BomPosition(fleet.SubUpdatingInventory):
		return fleet.WorkRefreshInventory
	case at.Sub == fleet.SubRebooting:
		return fleet.WorkReboot
	case at.State == fleet.StateCleanup && config.Validation.Cleanup == fleet.CleanupAgent:
		return fleet.WorkCleanup
	default:
		return ""
	}
}

// reconcileWork makes kind the one thing that is wanted of m's host: what is open
// besides ends, and what is not open yet is opened; reported tells that an inventory
// has just arrived, whoever sent it. Ended items are kept for a while,
// for the agent whose answer was lost; the history keeps what they led to.
func reconcileWork(ctx context.Context, tx *ent.Client, m *ent.Machine, kind fleet.WorkKind, reported bool, now time.Time) error {
	open, err := tx.WorkItem.Query().Where(workitem.MachineID(m.ID), workitem.FinishedAtIsNil()).All(ctx)
	if err != nil {
		return err
	}
	for _, item := range open {
		if item.Kind == kind {
			return nil // at most one is open
		}
		outcome := fleet.WorkSuperseded
		if item.Kind == fleet.WorkRefreshInventory && reported {
			outcome = fleet.WorkSucceeded
		}
		if err := endWork(ctx, tx, item.ID, outcome, "", now); err != nil {
			return err
		}
	}
	if kind == "" {
		return nil
	}
	if _, err := tx.WorkItem.Delete().Where(workitem.MachineID(m.ID), workitem.FinishedAtLT(now.Add(-workRetention))).Exec(ctx); err != nil {
		return err
	}
	return tx.WorkItem.Create().SetSiteID(m.SiteID).SetMachineID(m.ID).SetKind(kind).SetRequestedAt(now).Exec(ctx)
}

func endWork(ctx context.Context, tx *ent.Client, id string, outcome fleet.WorkOutcome, reason string, now time.Time) error {
	return tx.WorkItem.Update().Where(workitem.ID(id)).
		SetOutcome(outcome).SetError(reason).SetFinishedAt(now).Exec(ctx)
}

// ClaimWork hands the agent of a machine what is wanted of its host, empty where
// nothing is. Until it is finished the same item is handed out again, so that an
// agent that restarted, or whose answer was lost, goes on with it.
func (s *Service) ClaimWork(ctx context.Context, machineID, key string) (workID string, err error) {
	if err := requireAgent(ctx); err != nil {
		return "", err
	}
	if err := fleet.CheckID("machineId", fleet.PrefixMachine, machineID); err != nil {
		return "", err
	}
	out, err := access.Run(ctx, s.client, access.Mutation{Name: "claimWork", Key: key, Input: machineID}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		m, err := Lock(ctx, tx, machineID)
		if err != nil {
			return nil, err
		}
		item, err := tx.WorkItem.Query().Where(workitem.MachineID(m.ID), workitem.FinishedAtIsNil()).Only(ctx)
		if ent.IsNotFound(err) {
			return []string{}, nil
		}
		if err != nil {
			return nil, err
		}
		if item.ClaimedAt == nil {
			err = tx.WorkItem.Update().Where(workitem.ID(item.ID)).SetClaimedAt(s.now()).Exec(ctx)
		}
		return []string{item.ID}, err
	})
	if err != nil || len(out.Result) == 0 {
		return "", err
	}
	return out.Result[0], nil
}

// FinishWork is the input of Service.FinishWork.
type FinishWork struct {
	WorkID  string
	Outcome fleet.WorkOutcome // WorkSucceeded or WorkFailed
	Error   string
	Key     string `json:"-"`
}

// FinishWork ends a claimed item. The machine goes on where that was waited for;
// after a failure the same is wanted again a minute later. A repeat of the same
// outcome changes nothing; another outcome is FAILED_PRECONDITION, reason
// WORK_FINISHED. A refresh of the inventory succeeds by ReportInventory only:
// otherwise FAILED_PRECONDITION, reason INVENTORY_NOT_REPORTED.
func (s *Service) FinishWork(ctx context.Context, in FinishWork) error {
	if err := requireAgent(ctx); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	_, err := access.Run(ctx, s.client, access.Mutation{Name: "finishWork", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		item, err := tx.WorkItem.Query().Where(workitem.ID(in.WorkID)).Only(ctx)
		if ent.IsNotFound(err) {
			return nil, workMissing(in.WorkID)
		}
		if err != nil {
			return nil, err
		}
		m, err := Lock(ctx, tx, item.MachineID)
		if err != nil {
			return nil, err
		}
		if item, err = tx.WorkItem.Query().Where(workitem.ID(in.WorkID)).Only(ctx); err != nil { // as it is under the lock
			return nil, err
		}
		return []string{item.ID}, s.finish(ctx, tx, m, item, in)
	})
	return err
}

func (in FinishWork) check() error {
	if err := fleet.CheckID("workId", fleet.PrefixWork, in.WorkID); err != nil {
		return err
	}
	switch {
	case len(in.Error) > maxWorkError:
		return fleet.Invalid("error", "TEXT_TOO_LONG", "an error has at most %d bytes", maxWorkError)
	case in.Outcome == fleet.WorkSucceeded && in.Error != "":
		return fleet.Invalid("error", "ERROR_NOT_ALLOWED", "work that succeeded has no error")
	case strings.ContainsFunc(in.Error, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return fleet.Invalid("error", "TEXT_INVALID", "an error has no control characters but line breaks and tabs")
	}
	return nil
}

func (s *Service) finish(ctx context.Context, tx *ent.Client, m *ent.Machine, item *ent.WorkItem, in FinishWork) error {
	switch {
	case item.Outcome != nil && *item.Outcome == in.Outcome:
		return nil // a repeat
	case item.Outcome != nil:
		return fleet.Precondition("WORK_FINISHED", "the work has ended already: %s", *item.Outcome)
	case item.ClaimedAt == nil:
		return fleet.Precondition("WORK_NOT_CLAIMED", "the work has not been claimed")
	case in.Outcome == fleet.WorkFailed:
		return s.workFailed(ctx, tx, m, item, in.Error)
	case item.Kind == fleet.WorkRefreshInventory:
		return fleet.Precondition("INVENTORY_NOT_REPORTED", "a refresh succeeds by reporting the inventory")
	}
	now := s.now()
	if err := endWork(ctx, tx, item.ID, fleet.WorkSucceeded, "", now); err != nil {
		return err
	}
	change := Change{At: now}
	var err error
	switch item.Kind {
	case fleet.WorkCleanup:
		err = cleaned(ctx, tx, m, change)
	case fleet.WorkReboot:
		change.Event = fleet.EventRebooted
		err = Move(ctx, tx, m, fleet.MachinePosition{State: fleet.StateValidating, Sub: fleet.SubRunning}, change)
	case fleet.WorkRefreshInventory:
	}
	if err != nil {
		return err
	}
	return Advance(ctx, tx, s.validator, m, Trigger{}, s.now)
}

// workFailed ends an item and has the machine looked at again later, which opens the
// next.
func (s *Service) workFailed(ctx context.Context, tx *ent.Client, m *ent.Machine, item *ent.WorkItem, reason string) error {
	now := s.now()
	if err := endWork(ctx, tx, item.ID, fleet.WorkFailed, reason, now); err != nil {
		return err
	}
	if err := tx.Machine.Update().Where(machine.ID(m.ID)).SetAttendAt(now.Add(retryWork)).Exec(ctx); err != nil {
		return err
	}
	return Record(ctx, tx, m, nil, nil, Change{
		Event: fleet.EventWorkFailed, Message: reason, At: now, Details: map[string]any{"kind": item.Kind},
	})
}

// Work loads the item of this id.
func (s *Service) Work(ctx context.Context, id string) (*ent.WorkItem, error) {
	item, err := s.client.WorkItem.Query().Where(workitem.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, workMissing(id)
	}
	return item, err
}

// requireAgent lets agents pass, and nobody else. An agent sees its own machine and
// its work only: any other is not found.
func requireAgent(ctx context.Context) error {
	c, ok := access.From(ctx)
	if !ok {
		return access.Missing()
	}
	if c.Role != fleet.RoleAgent {
		return fleet.Denied("ROLE_TOO_SMALL", "this needs role %s; the token %q has role %s", fleet.RoleAgent, c.Name, c.Role).
			WithDetails(map[string]any{"required": fleet.RoleAgent, "role": c.Role})
	}
	return nil
}

func workMissing(id string) error {
	return fleet.Missing("workId", "WORK_NOT_FOUND", "work not found: %s", id)
}
