package bom

import (
	"context"
	"log/slog"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/predicate"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
	"fleetgraph/internal/jobs"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/lifecycle"
	"fleetgraph/services/sku"
)

// jobPage is how many machines one job looks at; the next ones are another job's, so
// that none runs for long and several processes share the work.
const jobPage = 200

// attendRetry is when a machine is looked at again after that failed.
const attendRetry = time.Minute

// A Queue takes jobs into the transaction of ctx: they exist if it commits. Holds tells
// whether it has one with these arguments that is yet to end.
type Queue interface {
	Insert(ctx context.Context, args ...jobs.Args) error
	Holds(ctx context.Context, args jobs.Args) (bool, error)
}

// EvaluateSku looks at the machines that a new or replaced SKU concerns, from the id
// After on.
type EvaluateSku struct {
	SkuID string `json:"sku_id"`
	After string `json:"after,omitempty"`
}

// Kind of the job.
func (EvaluateSku) Kind() string { return "sku.evaluate" }

// EvaluateSite looks at every machine of a site that is not allocated, from the id
// After on, since the site's configuration has changed.
type EvaluateSite struct {
	SiteID string `json:"site_id"`
	After  string `json:"after,omitempty"`
}

// Kind of the job.
func (EvaluateSite) Kind() string { return "site.evaluate" }

// AttendMachines looks at the machines that are due although nothing happened.
type AttendMachines struct{}

// Kind of the job.
func (AttendMachines) Kind() string { return "machine.attend" }

func (s *Service) skuChanged(ctx context.Context, id string) error {
	return s.queue.Insert(ctx, EvaluateSku{SkuID: id})
}

// SiteConfigured has every machine of a site looked at again; it is called in the
// transaction that changes the site's configuration.
func (s *Service) SiteConfigured(ctx context.Context, _ *ent.Client, siteID string) error {
	return s.queue.Insert(ctx, EvaluateSite{SiteID: siteID})
}

// EvaluateSku does that job: the machines with the SKU are verified where that was
// asked for, those that name it are linked with it, and those without one that match
// it are taken on.
func (s *Service) EvaluateSku(ctx context.Context, args EvaluateSku) error {
	row, err := s.client.Sku.Query().Where(entsku.ID(args.SkuID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil // deleted since
	}
	if err != nil {
		return err
	}
	concerned := machine.And(machine.SiteID(row.SiteID), machine.KindEQ(fleet.KindHost), machine.Or(
		machine.And(machine.SkuID(row.ID), machine.VerifyRequestedAtNotNil()),
		machine.And(machine.SkuName(row.Name), machine.SkuIDIsNil()),
		machine.And(machine.SkuNameIsNil(), machine.MatchKeyIn(row.MatchKey, ""), machine.Or(
			machine.StateEQ(fleet.StateReady), machine.SubStateEQ(fleet.SubWaitingForSkuAssignment))),
	))
	last, err := s.page(ctx, concerned, args.After, lifecycle.Trigger{}, func(m *ent.Machine) bool {
		return m.SkuName != nil || s.matchesOne(ctx, m, described(row))
	})
	if err != nil || last == "" {
		return err
	}
	return s.enqueue(ctx, EvaluateSku{SkuID: args.SkuID, After: last})
}

// matchesOne tells whether a machine matches a SKU now. A machine that cannot be
// compared is looked at, which reports why.
func (s *Service) matchesOne(ctx context.Context, m *ent.Machine, row sku.Sku) bool {
	hw, err := hardware(m)
	if err != nil {
		return true
	}
	if hw == nil {
		return false
	}
	comparison, err := s.matcher.Compare(ctx, hw, row)
	return err != nil || comparison.Match
}

// EvaluateSite does that job.
func (s *Service) EvaluateSite(ctx context.Context, args EvaluateSite) error {
	concerned := machine.And(machine.SiteID(args.SiteID), machine.StateNEQ(fleet.StateAllocated))
	last, err := s.page(ctx, concerned, args.After, lifecycle.Trigger{Configured: true}, func(*ent.Machine) bool { return true })
	if err != nil || last == "" {
		return err
	}
	return s.enqueue(ctx, EvaluateSite{SiteID: args.SiteID, After: last})
}

// page looks at the machines after an id that are concerned and taken, and returns
// the last id; empty at the end.
func (s *Service) page(ctx context.Context, concerned predicate.Machine, after string, trigger lifecycle.Trigger, taken func(*ent.Machine) bool) (last string, err error) {
	rows, err := s.client.Machine.Query().Where(concerned, machine.IDGT(after)).
		Order(ent.Asc(machine.FieldID)).Limit(jobPage).All(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range rows {
		if !taken(m) {
			continue
		}
		if err := s.attend(ctx, m.ID, trigger); err != nil {
			return "", err
		}
	}
	if len(rows) < jobPage {
		return "", nil
	}
	return rows[len(rows)-1].ID, nil
}

func (s *Service) enqueue(ctx context.Context, args jobs.Args) error {
	return pgdb.InTx(ctx, s.client, func(ctx context.Context, _ *ent.Client) error { return s.queue.Insert(ctx, args) })
}

// AttendMachines does that job: those that are due longest come first, and what is
// left over comes next time.
func (s *Service) AttendMachines(ctx context.Context, _ AttendMachines) error {
	ids, err := s.client.Machine.Query().Where(machine.AttendAtLTE(s.now())).
		Order(ent.Asc(machine.FieldAttendAt)).Limit(jobPage).IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.attend(ctx, id, lifecycle.Trigger{Timer: true}); err != nil {
			return err
		}
	}
	return nil
}

// attend takes one machine as far as it can go, in a transaction of its own. A
// failure is that machine's: it is logged, and tried again later. It returns an error
// only where ctx has ended.
func (s *Service) attend(ctx context.Context, id string, trigger lifecycle.Trigger) error {
	err := pgdb.InTx(ctx, s.client, func(ctx context.Context, tx *ent.Client) error {
		m, err := lifecycle.Lock(ctx, tx, id)
		if err != nil {
			return err
		}
		if trigger.Timer && (m.AttendAt == nil || m.AttendAt.After(s.now())) {
			return nil // another was faster
		}
		return lifecycle.Advance(ctx, tx, s, m, trigger, s.now)
	})
	if fault, ok := fleet.AsError(err); err == nil || ok && fault.Code == fleet.NotFound || ctx.Err() != nil {
		return ctx.Err() // a machine that was deleted meanwhile needs nothing
	}
	s.logger.ErrorContext(ctx, "a machine could not be looked at", slog.String("machine_id", id), slog.Any("err", err))
	err = s.client.Machine.Update().Where(machine.ID(id)).SetAttendAt(s.now().Add(attendRetry)).Exec(access.AsSystem(ctx, "bom"))
	if err != nil {
		s.logger.ErrorContext(ctx, "a machine's next look could not be noted", slog.String("machine_id", id), slog.Any("err", err))
	}
	return ctx.Err()
}
