package bom

import (
	"context"
	"slices"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/relay"
	"fleetgraph/fleet"
)

// BulkPreview is what a bulk change would do now: to how many machines, and to the first
// ones of them.
type BulkPreview struct {
	Matched, Succeeded, Failed, Skipped int
	Items                               []BulkPreviewItem
}

// BulkPreviewItem is what would become of a machine. Fault says why it would not be changed,
// and is nil where it would.
type BulkPreviewItem struct {
	MachineID, MachineName string
	Outcome                fleet.BulkOutcome
	Fault                  *fleet.Error
}

// PreviewBulk tells what SubmitBulk would lead to, by the checks that each machine has
// to pass when its turn comes. It writes nothing.
func (s *Service) PreviewBulk(ctx context.Context, in Bulk) (BulkPreview, error) {
	filter, err := in.check(ctx)
	if err != nil {
		return BulkPreview{}, err
	}
	row, err := in.subject(ctx, s.client, false)
	if err != nil {
		return BulkPreview{}, err
	}
	machines, err := in.machines(ctx, s.client, filter, machine.FieldID, machine.FieldSiteID, machine.FieldName, machine.FieldKind,
		machine.FieldState, machine.FieldSubState, machine.FieldSkuID, machine.FieldSkuName)
	if err != nil {
		return BulkPreview{}, err
	}
	j := &ent.Job{SiteID: in.SiteID, Operation: in.Operation, SkuID: in.SkuID, Force: in.Force}
	if row != nil {
		j.SkuName = &row.Name
	}
	p := BulkPreview{Matched: len(machines)}
	// What goes wrong is what a preview is read for.
	order := []fleet.BulkOutcome{fleet.BulkFailed, fleet.BulkSkipped, fleet.BulkSucceeded}
	items := map[fleet.BulkOutcome][]BulkPreviewItem{}
	for _, m := range machines {
		v := judge(j, m, row)
		items[v.outcome] = append(items[v.outcome], BulkPreviewItem{m.ID, m.Name, v.outcome, v.fault})
	}
	p.Failed, p.Skipped, p.Succeeded = len(items[order[0]]), len(items[order[1]]), len(items[order[2]])
	for _, outcome := range order {
		p.Items = slices.Concat(p.Items, items[outcome])
	}
	p.Items = p.Items[:min(len(p.Items), relay.MaxPageSize)]
	return p, nil
}
