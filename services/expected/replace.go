package expected

import (
	"context"
	"fmt"
	"strconv"

	"fleetgraph/ent"
	"fleetgraph/ent/expectedmachine"
	"fleetgraph/fleet"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// maxReplace bounds the entries of one replacement: the largest site, in a request of
// some megabytes.
const maxReplace = 10_000

// Replace is the input of Service.Replace.
type Replace struct {
	SiteID          string
	Items           []Fields
	ExpectedCount   int
	AllowUnknownSku bool
	Key             string `json:"-"`
}

// Replaced tells what a replacement did.
type Replaced struct{ Deleted, Created int }

// Replace deletes all entries of a site and creates others, in one transaction. Unless
// the site has ExpectedCount of them it is ABORTED, reason COUNT_CONFLICT: somebody
// has edited what the caller has not seen.
func (s *Service) Replace(ctx context.Context, in Replace) (Replaced, error) {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return Replaced{}, err
	}
	if err := fleet.CheckID("siteId", fleet.PrefixSite, in.SiteID); err != nil {
		return Replaced{}, err
	}
	if len(in.Items) > maxReplace {
		return Replaced{}, fleet.Invalid("expectedMachines", "BATCH_SIZE", "at most %d expected machines can be given at once", maxReplace)
	}
	out, err := access.Run(ctx, s.client, access.Mutation{Name: "replaceAllExpectedMachines", Key: in.Key, Input: in, Box: s.box}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		if err := lockSite(ctx, tx, in.SiteID); err != nil {
			return nil, err
		}
		found := faults{}
		if err := checkItems(in.Items, found); err != nil {
			return nil, err
		}
		around, err := s.settle(ctx, tx, in.SiteID, in.Items, found, wholeSite(), in.AllowUnknownSku)
		if err != nil {
			return nil, err
		}
		deleted, err := s.deleteAll(ctx, tx, c.Name, in)
		if err != nil {
			return nil, err
		}
		if _, err := s.insert(ctx, tx, in.SiteID, in.Items, around); err != nil {
			return nil, err
		}
		err = events.Append(ctx, tx, events.Transition{
			SiteID: &in.SiteID, SubjectType: fleet.SubjectSite, SubjectID: in.SiteID,
			Cause: "EXPECTED_MACHINES_REPLACED", Actor: c.Name, At: s.now(),
			Details: map[string]any{"deletedCount": deleted, "createdCount": len(in.Items)},
		})
		return []string{strconv.Itoa(deleted), strconv.Itoa(len(in.Items))}, err
	})
	if err != nil {
		return Replaced{}, err
	}
	return replaced(out.Result)
}

func replaced(result []string) (out Replaced, err error) {
	if len(result) != 2 {
		return Replaced{}, fmt.Errorf("result of a replacement has %d words", len(result))
	}
	if out.Deleted, err = strconv.Atoi(result[0]); err != nil {
		return Replaced{}, fmt.Errorf("result of a replacement: %w", err)
	}
	if out.Created, err = strconv.Atoi(result[1]); err != nil {
		return Replaced{}, fmt.Errorf("result of a replacement: %w", err)
	}
	return out, nil
}

// deleteAll deletes all entries of a site, whose number it checks, and keeps what they
// were in the history.
func (s *Service) deleteAll(ctx context.Context, tx *ent.Client, actor string, in Replace) (int, error) {
	rows, err := tx.ExpectedMachine.Query().Where(expectedmachine.SiteID(in.SiteID)).Order(ent.Asc(expectedmachine.FieldID)).All(ctx)
	if err != nil {
		return 0, err
	}
	if len(rows) != in.ExpectedCount {
		e := fleet.Conflict("COUNT_CONFLICT", "the site has %d expected machines, not %d: nothing was replaced", len(rows), in.ExpectedCount)
		e.Field = "expectedCount"
		return 0, e.WithDetails(map[string]any{"expected": in.ExpectedCount, "present": len(rows)})
	}
	history := make([]events.Transition, len(rows))
	for i, row := range rows {
		history[i] = s.event(in.SiteID, row.ID, actor, "EXPECTED_MACHINE_DELETED", recordOf(row))
	}
	if err := events.AppendAll(ctx, tx, history); err != nil {
		return 0, err
	}
	return tx.ExpectedMachine.Delete().Where(expectedmachine.SiteID(in.SiteID)).Exec(ctx)
}
