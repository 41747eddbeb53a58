package bom

import (
	"context"
	"log/slog"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
	"fleetgraph/services/lifecycle"
	"fleetgraph/services/sku"
)

// inventoryOverdue is how long a machine may wait for a fresh inventory before an
// alert says so.
const inventoryOverdue = 5 * time.Minute

// maxRecordedMismatch bounds the mismatches in one history row; the alert has them
// all.
const maxRecordedMismatch = 100

// step is one look at a machine: what is known of it, and what was found out.
type step struct {
	s       *Service
	tx      *ent.Client
	m       *ent.Machine
	config  lifecycle.Configuration
	trigger *lifecycle.Trigger
	now     time.Time
	facts   facts

	sku        *ent.Sku          // the assigned one, where it exists and was looked at
	matches    []*ent.Sku        // by name, after askMatch
	comparison *fleet.Comparison // after askVerdict
	generated  map[string]any    // what the history says of it, after askGeneration
}

// Step makes the next move of m through BOM validation; see lifecycle.Validator.
func (s *Service) Step(ctx context.Context, tx *ent.Client, m *ent.Machine, config lifecycle.Configuration, trigger *lifecycle.Trigger) (moved bool, err error) {
	st := &step{s: s, tx: tx, m: m, config: config, trigger: trigger, now: s.now()}
	if m.State == fleet.StateAllocated || m.State == fleet.StateValidating {
		return false, st.recordChange(ctx)
	}
	if err := st.gather(ctx); err != nil {
		return false, err
	}
	for {
		d := decide(lifecycle.Position(m), st.facts)
		if d.stays() {
			return false, st.stay(ctx)
		}
		if d.ask == askNothing {
			return true, st.perform(ctx, d)
		}
		if err := st.find(ctx, d.ask); err != nil {
			return false, err
		}
	}
}

// Due is when m is to be looked at although nothing happens; see
// lifecycle.Validator. Intervals count from the last attempt in vain; one that was
// not made for other reasons is not tried again at once.
func (s *Service) Due(m *ent.Machine, config lifecycle.Configuration) *time.Time {
	after := func(last *time.Time, interval fleet.Duration) *time.Time {
		now := s.now()
		if last != nil && last.Add(time.Duration(interval)).After(now) {
			return new(last.Add(time.Duration(interval)))
		}
		return new(now.Add(time.Duration(interval))) // never in the past, which would starve others
	}
	at := lifecycle.Position(m)
	switch {
	case !config.Bom.Enabled || m.Kind == fleet.KindDPU:
		return nil
	case at == fleet.BomPosition(fleet.SubUpdatingInventory):
		if due := m.StateChangedAt.Add(inventoryOverdue); s.now().Before(due) {
			return &due
		}
		return nil // the alert stands
	case at == fleet.BomPosition(fleet.SubSkuMissing) && config.Bom.AutoGenerateMissingSku:
		return after(m.LastGenerateAttemptAt, config.Bom.AutoGenerateMissingSkuInterval)
	case at == fleet.BomPosition(fleet.SubWaitingForSkuAssignment), at.State == fleet.StateReady && m.SkuName == nil:
		return after(m.LastMatchAttemptAt, config.Bom.FindMatchInterval)
	default:
		return nil
	}
}

// gather collects the facts that cost little.
func (st *step) gather(ctx context.Context) error {
	m := st.m
	due := func(last *time.Time, interval fleet.Duration) bool {
		return last == nil || !st.now.Before(last.Add(time.Duration(interval)))
	}
	st.facts = facts{
		config: st.config.Bom, onward: st.config.Onward(m.RunContext), dpu: m.Kind == fleet.KindDPU,
		fresh:           st.trigger.Before != nil,
		verifyRequested: m.VerifyRequestedAt != nil,
		matchDue:        !st.trigger.Timer || due(m.LastMatchAttemptAt, st.config.Bom.FindMatchInterval),
		generateDue: st.config.Bom.AutoGenerateMissingSku &&
			due(m.LastGenerateAttemptAt, st.config.Bom.AutoGenerateMissingSkuInterval),
	}
	if err := st.resolveSku(ctx); err != nil {
		return err
	}
	if m.State != fleet.StateReady || st.facts.sku != skuPresent || !st.config.Bom.Enabled {
		return nil
	}
	if st.trigger.Configured {
		return st.reconsider(ctx)
	}
	if st.trigger.Before == nil {
		return nil
	}
	changed, err := st.changed(ctx)
	st.facts.changed = len(changed) > 0
	return err
}

// reconsider holds a READY machine against its SKU by its last inventory: a site that
// did not validate, or let a mismatch pass, may do otherwise now.
func (st *step) reconsider(ctx context.Context) error {
	row, err := st.assigned(ctx)
	if err != nil {
		return err
	}
	comparison, err := st.s.compare(ctx, st.m, row)
	st.facts.changed = comparison != nil && !comparison.Match
	return err
}

// resolveSku tells whether m's SKU exists. One that was named before it existed is
// linked from here on.
func (st *step) resolveSku(ctx context.Context) error {
	m := st.m
	switch {
	case m.SkuName == nil:
		st.facts.sku = skuNone
		return nil
	case m.SkuID != nil:
		st.facts.sku = skuPresent
		return nil
	}
	id, err := st.tx.Sku.Query().Where(entsku.SiteID(m.SiteID), entsku.Name(*m.SkuName)).OnlyID(ctx)
	if ent.IsNotFound(err) {
		st.facts.sku = skuMissing
		return nil
	}
	if err != nil {
		return err
	}
	m.SkuID, st.facts.sku = &id, skuPresent
	return st.tx.Machine.Update().Where(machine.ID(m.ID)).SetSkuID(id).Exec(ctx)
}

func (st *step) assigned(ctx context.Context) (*ent.Sku, error) {
	if st.sku == nil {
		row, err := findSku(ctx, st.tx, *st.m.SkuID, false)
		if err != nil {
			return nil, err
		}
		st.sku = row
	}
	return st.sku, nil
}

// changed lists the components in which the inventory that has just arrived differs
// from the one before, as far as the SKU compares them.
func (st *step) changed(ctx context.Context) ([]fleet.Component, error) {
	if st.trigger.Before == nil {
		return nil, nil
	}
	before, err := hardware(st.trigger.Before)
	if err != nil || before == nil {
		return nil, err
	}
	after, err := hardware(st.m)
	if err != nil || after == nil {
		return nil, err
	}
	row, err := st.assigned(ctx)
	if err != nil {
		return nil, err
	}
	return sku.Changed(before, after, row.SchemaVersion)
}

// recordChange notes that the hardware of a machine is no longer what it was; nothing
// else happens to an allocated one until it is released, and to one that is being
// tested until it is READY, when it is verified again.
func (st *step) recordChange(ctx context.Context) error {
	if st.m.SkuID == nil || !st.config.Bom.Enabled {
		return nil
	}
	changed, err := st.changed(ctx)
	if err != nil || len(changed) == 0 {
		return err
	}
	if st.m.State == fleet.StateValidating { // its verification was of other hardware
		st.m.VerifyRequestedAt = &st.now
		if err := st.tx.Machine.Update().Where(machine.ID(st.m.ID)).SetVerifyRequestedAt(st.now).Exec(ctx); err != nil {
			return err
		}
	}
	return lifecycle.Record(ctx, st.tx, st.m, nil, nil, lifecycle.Change{
		Event: fleet.EventInventoryChanged, At: st.now, Details: map[string]any{"components": changed},
	})
}

// find answers a question.
func (st *step) find(ctx context.Context, ask question) (err error) {
	switch ask {
	case askMatch:
		if st.matches, err = st.s.matches(ctx, st.tx, st.m); err != nil {
			return err
		}
		st.facts.match = answerOf(len(st.matches) > 0)
		if len(st.matches) == 0 {
			st.trigger.Timer = true // an attempt was made: the next one is the interval's
			st.m.LastMatchAttemptAt = &st.now
			return st.tx.Machine.Update().Where(machine.ID(st.m.ID)).SetLastMatchAttemptAt(st.now).Exec(ctx)
		}
	case askVerdict:
		row, err := st.assigned(ctx)
		if err != nil {
			return err
		}
		if st.comparison, err = st.s.compare(ctx, st.m, row); err != nil {
			return err
		}
		if st.comparison == nil { // no inventory: nothing of the SKU is there
			st.comparison = &fleet.Comparison{}
		}
		st.facts.verdict = answerOf(st.comparison.Match)
	case askGeneration:
		st.generated, err = st.s.generateMissing(ctx, st.tx, st.m, st.now)
		st.facts.generated = answerOf(st.generated != nil)
		return err
	case askNothing:
	}
	return nil
}

// perform makes the move of a decision with everything that goes with it.
func (st *step) perform(ctx context.Context, d decision) error {
	m := st.m
	change := lifecycle.Change{Event: d.event, At: st.now}
	var set []func(*ent.MachineUpdate)
	alert := ""
	switch d.event {
	case fleet.EventSkuMatched:
		change.Details, set = st.matched()
	case fleet.EventSkuVerified, fleet.EventSkuMismatch, fleet.EventMismatchAllowed:
		if st.comparison != nil {
			change.Message, change.Details, set = st.verified()
		}
		if d.event == fleet.EventSkuMismatch {
			alert = change.Message
		}
		if d.event == fleet.EventMismatchAllowed {
			st.s.logger.WarnContext(ctx, "the hardware differs from the SKU, and the site lets the machine go on",
				slog.String("machine", m.Name), slog.String("sku", *m.SkuName), slog.String("differences", change.Message))
		}
	case fleet.EventSkuMissing, fleet.EventMissingAllowed:
		change.Message = "The assigned sku " + *m.SkuName + " does not exist"
		change.Details = map[string]any{"sku": *m.SkuName}
		if d.event == fleet.EventSkuMissing {
			alert = change.Message
		}
		set = append(set, st.requestServed())
	case fleet.EventSkuGenerationAttempted:
		change.Details = st.generated
		if text, ok := st.generated["error"].(string); ok {
			change.Message = text
		}
	case fleet.EventSkuMatchFound:
		change.Details = st.matchDetails()
	case fleet.EventInventoryChanged:
		components, err := st.changed(ctx)
		if err != nil {
			return err
		}
		change.Details = map[string]any{"components": components}
	case fleet.EventDpuReported:
		if m.SkuName != nil {
			change.Details = map[string]any{"sku": *m.SkuName}
			set = append(set, withoutSku(m))
		}
		m.RunContext = nil
	default: // says all by itself
	}
	if d.to.State == fleet.StateReady {
		m.RunContext = nil
	}
	if err := st.alerts(ctx, d.event, alert); err != nil {
		return err
	}
	return lifecycle.Move(ctx, st.tx, m, d.to, change, set...)
}

// matched assigns the matching SKU with the smallest name, which counts as a
// verification.
func (st *step) matched() (details map[string]any, set []func(*ent.MachineUpdate)) {
	m, taken := st.m, st.matches[0]
	m.SkuID, m.SkuName = &taken.ID, &taken.Name
	return st.matchDetails(), []func(*ent.MachineUpdate){
		func(u *ent.MachineUpdate) { u.SetSkuID(taken.ID).SetSkuName(taken.Name) },
		st.lastVerified(true), st.requestServed(),
	}
}

func (st *step) matchDetails() map[string]any {
	taken := st.matches[0]
	others := make([]string, 0, len(st.matches)-1)
	for _, row := range st.matches[1:] {
		others = append(others, row.Name)
	}
	return map[string]any{"sku": taken.Name, "skuRevision": taken.Revision, "alsoMatching": others}
}

func (st *step) verified() (message string, details map[string]any, set []func(*ent.MachineUpdate)) {
	c := st.comparison
	st.trigger.Before, st.trigger.Configured = nil, false // what has changed is judged
	details = map[string]any{"sku": st.sku.Name, "skuRevision": st.sku.Revision}
	if !c.Match {
		message = messages(c.Mismatches)
		details["mismatches"] = c.Mismatches[:min(len(c.Mismatches), maxRecordedMismatch)]
		details["mismatchCount"] = len(c.Mismatches)
	}
	return message, details, []func(*ent.MachineUpdate){st.lastVerified(c.Match), st.requestServed()}
}

func (st *step) lastVerified(match bool) func(*ent.MachineUpdate) {
	return func(u *ent.MachineUpdate) { u.SetLastVerifiedAt(st.now).SetLastVerificationMatch(match) }
}

// requestServed: a verification has begun after everything that asked for one, since
// both have the machine locked.
func (st *step) requestServed() func(*ent.MachineUpdate) {
	st.m.VerifyRequestedAt = nil
	return func(u *ent.MachineUpdate) { u.ClearVerifyRequestedAt() }
}

// withoutSku takes the SKU of a machine away, and with it the last verdict and any
// request for the next.
func withoutSku(m *ent.Machine) func(*ent.MachineUpdate) {
	m.SkuID, m.SkuName, m.VerifyRequestedAt = nil, nil, nil
	return func(u *ent.MachineUpdate) {
		u.ClearSkuID().ClearSkuName().ClearLastVerifiedAt().ClearLastVerificationMatch().ClearVerifyRequestedAt()
	}
}

// stay does what a machine that stays where it is needs.
func (st *step) stay(ctx context.Context) error {
	m := st.m
	overdue := m.State == fleet.StateBomValidating && *m.SubState == fleet.SubUpdatingInventory &&
		!st.now.Before(m.StateChangedAt.Add(inventoryOverdue))
	if !overdue {
		return nil
	}
	text := "no inventory has arrived since " + m.StateChangedAt.UTC().Format(time.RFC3339)
	raised, err := setAlert(ctx, st.tx, m, alertOverdue, text, st.now)
	if err != nil || !raised {
		return err
	}
	return lifecycle.Record(ctx, st.tx, m, nil, nil, lifecycle.Change{
		Event: fleet.EventInventoryOverdue, Message: text, At: st.now,
	})
}
