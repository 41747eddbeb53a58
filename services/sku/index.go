package sku

import (
	"context"
	"slices"
	"strings"

	"fleetgraph/fleet"
)

// Index finds the SKUs that a machine matches. SKUs are looked up by the hash of
// all that has to be equal, so the cost of a machine depends on the SKUs for its
// very hardware and not on the number of SKUs. It is safe for concurrent use.
type Index struct {
	expectations []*expectation // by name
	// exact holds version 5 SKUs of which every group has one size only, by a
	// fingerprint with these sizes; open holds all others.
	exact, open map[string][]int32
	versions    [fleet.CurrentSchemaVersion + 1]bool
}

// Hit is a SKU that a machine matches. Notes tell what could not be compared.
type Hit struct {
	Sku   Sku
	Notes []fleet.Note
}

// NewIndex prepares skus for matching; those of a schema version that does not
// exist match nothing and are left out.
func (m *Matcher) NewIndex(skus []Sku) *Index {
	x := &Index{exact: map[string][]int32{}, open: map[string][]int32{}}
	for _, s := range skus {
		if e, err := m.expect(s); err == nil {
			x.expectations = append(x.expectations, e)
		}
	}
	slices.SortStableFunc(x.expectations, func(a, b *expectation) int { return strings.Compare(a.sku.Name, b.sku.Name) })
	for i, e := range x.expectations {
		version := e.sku.SchemaVersion
		x.versions[version] = true
		digest := fingerprint(e.hardware, version, total(e.groups, group.slots))
		bucket := x.open
		if sizes, ok := exactSizes(e.groups); ok && e.located() {
			digest, bucket = appendSizes(digest, sizes), x.exact
		}
		bucket[string(digest)] = append(bucket[string(digest)], int32(i))
	}
	return x
}

// Match returns the SKUs that the machine matches, each at its own schema
// version, by name. The error is that of ctx.
func (x *Index) Match(ctx context.Context, machine *Machine) ([]Hit, error) {
	var found []int32
	for version, present := range x.versions {
		if !present {
			continue
		}
		v := machine.at(version)
		if v.digest == nil {
			v.digest = fingerprint(v.hardware, version, len(v.drives))
			v.sized = appendSizes(v.digest, driveSizes(v.drives))
		}
		for _, bucket := range [][]int32{x.open[string(v.digest)], x.exact[string(v.sized)]} {
			for _, i := range bucket {
				if x.expectations[i].accepts(ctx, v) {
					found = append(found, i)
				}
			}
		}
	}
	slices.Sort(found)
	hits := make([]Hit, 0, len(found))
	for _, i := range found {
		e := x.expectations[i]
		v := machine.at(e.sku.SchemaVersion)
		hits = append(hits, Hit{Sku: e.sku, Notes: e.notes(v)})
	}
	return hits, ctx.Err()
}

// exactSizes returns the size of every drive that the groups claim, where each
// group accepts one size only.
func exactSizes(groups []group) (sizes []int64, ok bool) {
	const most = 4096 // drives; a larger SKU is found without its sizes
	for _, g := range groups {
		if g.MinSizeMb == nil || g.MaxSizeMb == nil || *g.MinSizeMb != *g.MaxSizeMb || len(sizes)+g.slots() > most {
			return nil, false
		}
		for range g.slots() {
			sizes = append(sizes, *g.MinSizeMb)
		}
	}
	return sizes, true
}

// driveSizes returns the known sizes; a drive of unknown size fits no group that
// has a bound, so a machine with one is found by no sizes that it lacks.
func driveSizes(drives []drive) []int64 {
	sizes := make([]int64, 0, len(drives))
	for _, d := range drives {
		if d.size != nil {
			sizes = append(sizes, *d.size)
		}
	}
	return sizes
}
