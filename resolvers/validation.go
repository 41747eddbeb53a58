package resolvers

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/validationtest"
	"fleetgraph/graph"
	"fleetgraph/services/validation"
)

// validationTest loads the test of a mutation's payload.
func (r *Resolver) validationTest(ctx context.Context, id string) (*ent.ValidationTest, error) {
	query, err := r.Client.ValidationTest.Query().Where(validationtest.ID(id)).CollectOne(ctx, "test")
	if err != nil {
		return nil, err
	}
	row, err := query.Only(ctx)
	return row, gone(err, id)
}

// effectiveEnabled is the graph's form of what decides whether a test is enabled. The
// test comes with its site.
func effectiveEnabled(t *ent.ValidationTest) *graph.EffectiveEnabled {
	enabled, cause := validation.Enablement(t.Edges.Site.MachineValidation, t)
	return &graph.EffectiveEnabled{Enabled: enabled, Cause: cause}
}

// testVerdicts is the graph's form of verdicts, whose tests are loaded as selected.
func (r *Resolver) testVerdicts(ctx context.Context, verdicts []validation.Verdict) ([]*graph.TestVerdict, error) {
	ids := make([]string, len(verdicts))
	for i, v := range verdicts {
		ids[i] = v.Test.ID
	}
	query, err := r.Client.ValidationTest.Query().Where(validationtest.IDIn(ids...)).CollectPath(ctx, "test")
	if err != nil {
		return nil, err
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*ent.ValidationTest, len(rows))
	for _, row := range rows {
		byID[row.ID] = row
	}
	out := make([]*graph.TestVerdict, 0, len(verdicts))
	for _, v := range verdicts {
		row := byID[v.Test.ID]
		if row == nil {
			continue // deleted meanwhile
		}
		verdict := &graph.TestVerdict{Test: row.Variant(), Selected: v.Exclusion == "", Message: v.Message}
		if v.Exclusion != "" {
			verdict.Exclusion = new(v.Exclusion)
		}
		out = append(out, verdict)
	}
	return out, nil
}
