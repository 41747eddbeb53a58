package expected

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/expectedmachine"
	"fleetgraph/fleet"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// Edit is one edit of Update.
type Edit struct {
	ID               string
	Fields           Fields
	ExpectedRevision *int
}

// Update is the input of Service.Update.
type Update struct {
	SiteID          string // of a batch; one entry tells its own
	Edits           []Edit
	AllowUnknownSku bool
	Batch           bool   // refusals list every faulty item
	Key             string `json:"-"`
}

// Update edits entries, all or none, and returns their ids in order. In a batch all
// are of one site and set the same fields. An edit that changes nothing leaves the
// revision and the history alone. The machine that was seen stays as it is: an entry
// of another BMC refers to that BMC's machine, or none.
func (s *Service) Update(ctx context.Context, in Update) ([]string, error) {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return nil, err
	}
	name, f := "updateExpectedMachine", single()
	if in.Batch {
		name, f = "updateExpectedMachines", batchOf("updates")
		err = fleet.CheckID("siteId", fleet.PrefixSite, in.SiteID)
		if err == nil {
			err = checkBatch(f.list, len(in.Edits))
		}
	} else {
		err = fleet.CheckID("expectedMachineId", fleet.PrefixExpected, in.Edits[0].ID)
	}
	if err != nil {
		return nil, err
	}
	out, err := access.Run(ctx, s.client, access.Mutation{Name: name, Key: in.Key, Input: in, Box: s.box}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		siteID := in.SiteID
		var err error
		if in.Batch {
			err = lockSite(ctx, tx, siteID)
		} else {
			siteID, err = lockSiteOf(ctx, tx, in.Edits[0].ID)
		}
		if err != nil {
			return nil, err
		}
		return s.update(ctx, tx, siteID, c.Name, in, f)
	})
	if err != nil {
		return nil, err
	}
	return out.Result, nil
}

func (s *Service) update(ctx context.Context, tx *ent.Client, siteID, actor string, in Update, f form) ([]string, error) {
	ids, items := make([]string, len(in.Edits)), make([]Fields, len(in.Edits))
	for i, e := range in.Edits {
		ids[i], items[i] = e.ID, e.Fields
	}
	found := faults{}
	if err := checkEdits(ids, items, found); err != nil {
		return nil, err
	}
	if err := checkItems(items, found); err != nil {
		return nil, err
	}
	present, err := entries(ctx, tx, siteID, in.Edits, found)
	if err != nil {
		return nil, err
	}
	if err := checkTaken(ctx, tx, siteID, items, ids, found); err != nil {
		return nil, err
	}
	around, err := s.settle(ctx, tx, siteID, items, found, f, in.AllowUnknownSku)
	if err != nil {
		return nil, err
	}
	var history []events.Transition
	for i := range items {
		details, err := s.edit(ctx, tx, present[ids[i]], &items[i], around)
		if err != nil {
			return nil, err
		}
		if details != nil {
			history = append(history, s.event(siteID, ids[i], actor, "EXPECTED_MACHINE_UPDATED", *details))
		}
	}
	return ids, events.AppendAll(ctx, tx, history)
}

// entries loads the entries that are edited, by id. One that is not there, or of
// another revision, is a fault.
func entries(ctx context.Context, tx *ent.Client, siteID string, edits []Edit, found faults) (map[string]*ent.ExpectedMachine, error) {
	ids := make([]string, 0, len(edits))
	for i, e := range edits {
		if found[i] == nil {
			ids = append(ids, e.ID)
		}
	}
	rows, err := tx.ExpectedMachine.Query().Where(expectedmachine.SiteID(siteID), expectedmachine.IDIn(ids...)).All(ctx)
	if err != nil {
		return nil, err
	}
	present := make(map[string]*ent.ExpectedMachine, len(rows))
	for _, row := range rows {
		present[row.ID] = row
	}
	for i, e := range edits {
		if found[i] != nil {
			continue
		}
		row, ok := present[e.ID]
		if !ok {
			found[i] = missing(e.ID)
		} else if err := found.add(i, fleet.CheckRevision(e.ExpectedRevision, row.Revision)); err != nil {
			return nil, err
		}
	}
	return present, nil
}

// checkEdits checks what a batch of edits has beyond its entries.
func checkEdits(ids []string, items []Fields, found faults) error {
	seen := make(map[string]bool, len(ids))
	for i, id := range ids {
		if err := found.add(i, fleet.CheckID("expectedMachineId", fleet.PrefixExpected, id)); err != nil {
			return err
		}
		if seen[id] {
			if err := found.add(i, fleet.Invalid("expectedMachineId", "DUPLICATE", "the batch edits %s twice", fleet.Quoted(id))); err != nil {
				return err
			}
		}
		seen[id] = true
		if items[i].given() != items[0].given() {
			if err := found.add(i, fleet.Invalid("patch", "BATCH_FIELDS_DIFFER", "every item of a batch sets the same fields: this one differs from the first")); err != nil {
				return err
			}
		}
	}
	return nil
}

// edited is the history of an edit.
type edited struct {
	Before             record `json:"before"`
	After              record `json:"after"`
	CredentialsChanged bool   `json:"credentialsChanged"`
}

// edit writes one edit; nil where it changes nothing. New credentials are taken for a
// change: nobody compares secrets.
func (s *Service) edit(ctx context.Context, tx *ent.Client, row *ent.ExpectedMachine, f *Fields, around surroundings) (*edited, error) {
	out := edited{Before: recordOf(row)}
	out.After = out.Before.edited(f)
	out.CredentialsChanged = f.setsCredentials() || f.forgetsCredentials() && len(row.BmcCredentials) > 0
	same, err := out.Before.equal(out.After)
	if err != nil || same && !out.CredentialsChanged {
		return nil, err
	}
	update := tx.ExpectedMachine.Update().Where(expectedmachine.ID(row.ID)).AddRevision(1).SetUpdatedAt(s.now())
	out.After.write(update.Mutation())
	switch {
	case f.setsCredentials():
		sealed, err := s.seal(row.ID, f)
		if err != nil {
			return nil, err
		}
		update.SetBmcCredentials(sealed)
	case f.forgetsCredentials():
		update.ClearBmcCredentials()
	}
	if f.SkuName.Value != nil {
		write(idOf(around.skus, *f.SkuName.Value), update.Mutation().SetSkuID, update.Mutation().ClearSkuID)
	}
	if out.After.BmcMacAddress != out.Before.BmcMacAddress {
		write(idOf(around.machines, out.After.BmcMacAddress), update.Mutation().SetMachineID, update.Mutation().ClearMachineID)
	}
	return &out, taken(update.Exec(ctx))
}

func idOf(ids map[string]string, key string) *string {
	if id, ok := ids[key]; ok {
		return &id
	}
	return nil
}
