package sku

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strings"

	"fleetgraph/fleet"
)

// Candidate is a SKU that a machine could come to match. Edits change the machine
// into one that does; Distance is the number of parts they concern, 0 for a match.
type Candidate struct {
	Sku        Sku
	Comparison fleet.Comparison
	Edits      []fleet.Edit
	Distance   int
}

// Explain returns the first SKUs that are nearest to the machine: by distance,
// then by name. Preparing skus costs time in proportion to their number; an Index
// does it once.
func (m *Matcher) Explain(ctx context.Context, machine *Machine, skus []Sku, first int) ([]Candidate, error) {
	return m.NewIndex(skus).Explain(ctx, machine, first)
}

// Explain returns the first SKUs that are nearest to the machine: by distance,
// then by name. SKUs are looked at in the order of a lower bound of their distance,
// which totals alone give, and only as long as one may still be nearer than what
// has been found. The error is that of ctx.
func (x *Index) Explain(ctx context.Context, machine *Machine, first int) ([]Candidate, error) {
	first = min(first, len(x.expectations))
	if first <= 0 {
		return []Candidate{}, nil
	}
	type bounded struct{ distance, sku int }
	order := make([]bounded, len(x.expectations))
	for i, e := range x.expectations {
		v := machine.at(e.sku.SchemaVersion)
		order[i] = bounded{distance: e.lowerBound(v), sku: i}
	}
	slices.SortFunc(order, func(a, b bounded) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.sku, b.sku))
	})
	type ranked struct {
		distance int
		*expectation
	}
	nearest := make([]ranked, 0, first+1)
	for _, o := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(nearest) == first && o.distance > nearest[first-1].distance {
			break
		}
		e := x.expectations[o.sku]
		r := ranked{e.distance(ctx, machine.at(e.sku.SchemaVersion)), e}
		at := sort.Search(len(nearest), func(i int) bool {
			n := nearest[i]
			return cmp.Or(cmp.Compare(n.distance, r.distance), strings.Compare(n.sku.Name, e.sku.Name)) > 0
		})
		if at < first {
			nearest = slices.Insert(nearest, at, r)
			nearest = nearest[:min(len(nearest), first)]
		}
	}
	candidates := make([]Candidate, 0, len(nearest))
	for _, n := range nearest {
		v := machine.at(n.sku.SchemaVersion)
		candidates = append(candidates, Candidate{
			Sku: n.sku, Comparison: n.compare(ctx, v.hardware, v.drives), Edits: n.edits(ctx, v), Distance: n.distance,
		})
	}
	return candidates, ctx.Err()
}

// lowerBound is a number of parts that no set of edits can stay below: whatever
// the models are, a surplus of parts has to go and a lack has to be filled.
func (e *expectation) lowerBound(v *view) int {
	bound := 0
	if e.chassis != v.chassis {
		bound++
	}
	if (e.tpm == nil) != (v.tpm == nil) || e.tpm != nil && e.tpm.Version != v.tpm.Version {
		bound++
	}
	bound += gap(e.cpus, v.cpus, func(t cpuTotal) int { return t.sockets })
	bound += gap(e.gpus, v.gpus, func(t gpuTotal) int { return t.count })
	bound += gap(e.infiniband, v.infiniband, func(t infinibandTotal) int { return t.count })
	bound += gap(e.memory, v.memory, func(t memoryTotal) int { return t.count })
	bound += gap(e.models, v.models, func(t modelTotal) int { return t.count })
	if e.located() {
		slots := total(e.groups, group.slots)
		bound += max(slots, len(v.drives)) - min(slots, len(v.drives))
	}
	return bound
}

func gap[T any](expected, actual []T, count func(T) int) int {
	e, a := total(expected, count), total(actual, count)
	return max(e, a) - min(e, a)
}
