package sku

import (
	"context"
	"slices"

	"fleetgraph/fleet"
)

// drives exchanges the drives that a largest assignment without size faults leaves
// over for those that it lacks, first those of the right location and the wrong
// size. Patterns that then find no drive take one move each.
func (ed *editor) drives(ctx context.Context, groups []group, drives []drive) {
	a := newAssignment(ctx, drives, groups)
	a.placeEligible()
	if a.complete() {
		return
	}
	lacking := make([]int, len(groups))
	for g := range groups {
		lacking[g] = a.capacity[g] - a.placed[g]
	}
	incoming := slices.Clone(lacking)
	var out, in []part
	for d := range drives {
		if a.place[d] != nowhere {
			continue
		}
		right := slices.IndexFunc(a.faulty.of(int32(d)), func(g int32) bool { return lacking[g] > 0 })
		if right < 0 {
			out = append(out, part{&drives[d], 1})
			continue
		}
		g := a.faulty.of(int32(d))[right]
		lacking[g]--
		ed.add(fleet.EditReplace, 1, &drives[d], &groups[g])
	}
	for g := range groups {
		if lacking[g] > 0 {
			in = append(in, part{&groups[g], lacking[g]})
		}
	}
	ed.exchange(out, in)
	for g, unfound := range a.unfoundByGroup(groups) {
		for i, p := range groups[g].patterns {
			if !unfound[i] {
				continue
			}
			// A drive that comes in anyway goes to the location that lacks one.
			if incoming[g]--; incoming[g] < 0 {
				ed.add(fleet.EditChange, 1, label("location of a drive"), label(p.text))
			}
		}
	}
}
