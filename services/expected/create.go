package expected

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/fleet"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// maxBatch bounds the entries of one batch.
const maxBatch = 100

// Create is the input of Service.Create.
type Create struct {
	SiteID          string
	Items           []Fields
	AllowUnknownSku bool   // SkuName may name a SKU that does not exist yet
	Batch           bool   // refusals list every faulty item
	Key             string `json:"-"`
}

// Create creates entries at one site, all or none, and returns their ids in order. A
// BMC that has an entry is ALREADY_EXISTS, reason MAC_TAKEN; a SKU that the site does
// not have INVALID_ARGUMENT, reason SKU_NOT_FOUND. In a batch both are among the
// faults of INVALID_ARGUMENT, reason BATCH_INVALID.
func (s *Service) Create(ctx context.Context, in Create) ([]string, error) {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return nil, err
	}
	if err := fleet.CheckID("siteId", fleet.PrefixSite, in.SiteID); err != nil {
		return nil, err
	}
	name, f := "createExpectedMachine", single()
	if in.Batch {
		name, f = "createExpectedMachines", batchOf("expectedMachines")
		if err := checkBatch(f.list, len(in.Items)); err != nil {
			return nil, err
		}
	}
	out, err := access.Run(ctx, s.client, access.Mutation{Name: name, Key: in.Key, Input: in, Box: s.box}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		if err := lockSite(ctx, tx, in.SiteID); err != nil {
			return nil, err
		}
		found := faults{}
		if err := checkItems(in.Items, found); err != nil {
			return nil, err
		}
		if err := checkTaken(ctx, tx, in.SiteID, in.Items, nil, found); err != nil {
			return nil, err
		}
		around, err := s.settle(ctx, tx, in.SiteID, in.Items, found, f, in.AllowUnknownSku)
		if err != nil {
			return nil, err
		}
		made, err := s.insert(ctx, tx, in.SiteID, in.Items, around)
		if err != nil {
			return nil, err
		}
		ids, history := make([]string, len(made)), make([]events.Transition, len(made))
		for i, row := range made {
			ids[i] = row.id
			history[i] = s.event(in.SiteID, row.id, c.Name, "EXPECTED_MACHINE_CREATED", row.history())
		}
		return ids, events.AppendAll(ctx, tx, history)
	})
	if err != nil {
		return nil, err
	}
	return out.Result, nil
}

func checkBatch(field string, n int) error {
	if n == 0 || n > maxBatch {
		return fleet.Invalid(field, "BATCH_SIZE", "1 to %d expected machines go into one batch", maxBatch)
	}
	return nil
}

// settle looks up what entries refer to, and refuses them with the faults found so
// far and those of their SKUs.
func (s *Service) settle(ctx context.Context, tx *ent.Client, siteID string, items []Fields, found faults, f form, allowUnknownSku bool) (surroundings, error) {
	sound := make([]Fields, 0, len(items)) // what has a fault may not even be storable
	for i := range items {
		if found[i] == nil {
			sound = append(sound, items[i])
		}
	}
	around, err := lookUp(ctx, tx, siteID, sound)
	if err != nil {
		return surroundings{}, err
	}
	if !allowUnknownSku {
		around.checkSkus(items, found, f)
	}
	if err := f.refusal(found); err != nil {
		return surroundings{}, err
	}
	return around, s.needKey(items)
}

// made is an entry that was inserted.
type made struct {
	id          string
	record      record
	credentials bool
}

// created is the history of an entry's making.
type created struct {
	record
	CredentialsChanged bool `json:"credentialsChanged"`
}

func (m made) history() created { return created{m.record, m.credentials} }

// insertChunk is how many entries one statement inserts: at most 65535 parameters fit
// into one, and an entry has some 25.
const insertChunk = 1000

// insert stores checked entries.
func (s *Service) insert(ctx context.Context, tx *ent.Client, siteID string, items []Fields, around surroundings) ([]made, error) {
	out := make([]made, 0, len(items))
	for start := 0; start < len(items); start += insertChunk {
		part := items[start:min(start+insertChunk, len(items))]
		rows := make([]*ent.ExpectedMachineCreate, len(part))
		for i := range part {
			row, err := s.row(tx, siteID, &part[i], around)
			if err != nil {
				return nil, err
			}
			rows[i] = row.create
			out = append(out, row.made)
		}
		if err := tx.ExpectedMachine.CreateBulk(rows...).Exec(ctx); err != nil {
			return nil, taken(err)
		}
	}
	return out, nil
}

type newRow struct {
	made
	create *ent.ExpectedMachineCreate
}

func (s *Service) row(tx *ent.Client, siteID string, f *Fields, around surroundings) (newRow, error) {
	now := s.now()
	out := newRow{made: made{id: fleet.NewID(fleet.PrefixExpected), record: newRecord().edited(f), credentials: f.setsCredentials()}}
	out.create = tx.ExpectedMachine.Create().SetID(out.id).SetSiteID(siteID).SetCreatedAt(now).SetUpdatedAt(now)
	out.record.write(out.create.Mutation())
	if out.credentials {
		sealed, err := s.seal(out.id, f)
		if err != nil {
			return newRow{}, err
		}
		out.create.SetBmcCredentials(sealed)
	}
	if name := out.record.SkuName; name != nil {
		if id, ok := around.skus[*name]; ok {
			out.create.SetSkuID(id)
		}
	}
	if id, ok := around.machines[out.record.BmcMacAddress]; ok {
		out.create.SetMachineID(id)
	}
	return out, nil
}
