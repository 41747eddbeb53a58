package sku

import (
	"context"
	"slices"
)

// An assignment places drives in the slots of groups, one slot a drive. A group
// is one node with a capacity, so a count of 1024 costs no more than a count of 1.
//
// A drive is eligible for a group when its location and its size are right. It
// may be placed in a group of patterns with the wrong size, which is a size fault;
// in a group that goes by size alone a wrong size is no place at all.
//
// Two assignments matter. The largest one without size faults decides the match
// and the number of drives to exchange. The reported one places as many drives as
// possible and, among those, has the fewest size faults.
type assignment struct {
	capacity []int // by group: its slots
	eligible edges // groups of the right location and size
	faulty   edges // groups of the right location and the wrong size
	// unfound tells of every pattern, group after group, that no drive has its
	// location.
	unfound []bool

	place []int32 // by drive: its group, or nowhere
	// The drives of a group are a list: the first, and after each the next one.
	first, next []int32
	placed      []int // by group: its drives
}

// edges lists groups by drive, in one slice: those of drive d are to[at[d]:at[d+1]].
type edges struct {
	to []int32
	at []int32
}

func (e *edges) of(d int32) []int32 { return e.to[e.at[d]:e.at[d+1]] }

const nowhere = int32(-1)

// newAssignment works out which drive may go where. No drive has a place yet. This is
// what takes time: it stops when ctx ends, and what follows from it is then void,
// which the exported functions see to.
func newAssignment(ctx context.Context, drives []drive, groups []group) *assignment {
	d, g := len(drives), len(groups)
	numbers := make([]int32, 2*d+g)
	a := &assignment{
		capacity: make([]int, g),
		placed:   make([]int, g),
		place:    numbers[:d],
		next:     numbers[d : 2*d],
		first:    numbers[2*d:],
		eligible: edges{at: make([]int32, 1, d+1), to: make([]int32, 0, d)},
		faulty:   edges{at: make([]int32, 1, d+1)},
		unfound:  make([]bool, total(groups, func(g group) int { return len(g.patterns) })),
	}
	for i := range a.unfound {
		a.unfound[i] = true
	}
	for i := range a.place {
		a.place[i] = nowhere
	}
	for i := range groups {
		a.capacity[i], a.first[i] = groups[i].slots(), nowhere
	}
	for i := range drives {
		if ctx.Err() == nil {
			a.connect(&drives[i], groups)
		}
		a.eligible.at = append(a.eligible.at, int32(len(a.eligible.to)))
		a.faulty.at = append(a.faulty.at, int32(len(a.faulty.to)))
	}
	return a
}

// connect adds the groups that one drive may go to.
func (a *assignment) connect(d *drive, groups []group) {
	unfound := a.unfound
	for i := range groups {
		g := &groups[i]
		located := g.sizeOnly()
		for p, pattern := range g.patterns {
			if pattern.match(d) {
				located, unfound[p] = true, false
			}
		}
		unfound = unfound[len(g.patterns):]
		switch {
		case !located:
		case g.fits(d.size):
			a.eligible.to = append(a.eligible.to, int32(i))
		case !g.sizeOnly():
			a.faulty.to = append(a.faulty.to, int32(i))
		}
	}
}

// complete tells whether every drive and every slot is placed and every pattern
// has found a drive.
func (a *assignment) complete() bool {
	slots := 0
	for g := range a.capacity {
		slots += a.capacity[g]
		if a.placed[g] != a.capacity[g] {
			return false
		}
	}
	return slots == len(a.place) && !slices.Contains(a.unfound, true)
}

// unfoundByGroup splits unfound by group.
func (a *assignment) unfoundByGroup(groups []group) [][]bool {
	split := make([][]bool, 0, len(groups))
	rest := a.unfound
	for i := range groups {
		n := len(groups[i].patterns)
		split, rest = append(split, rest[:n]), rest[n:]
	}
	return split
}

// cost is 1 where a drive has the wrong size for the group it is placed in.
func (a *assignment) cost(d int32) int {
	if slices.Contains(a.faulty.of(d), a.place[d]) {
		return 1
	}
	return 0
}

// placeEligible finds a largest assignment without size faults, by augmenting
// paths from each drive in turn. A drive that is placed stays placed, so earlier
// drives win.
func (a *assignment) placeEligible() {
	// dead groups are those that a failed search has seen: no path from them will
	// ever lead to a free slot, so later searches leave them out.
	dead := make([]bool, len(a.capacity))
	seen := make([]bool, len(a.capacity))
	from := make([]int32, len(a.capacity))
	var queue, visited []int32
	for d := range a.place {
		queue = append(queue[:0], int32(d))
		visited = visited[:0]
		free := nowhere
	search:
		for i := 0; i < len(queue); i++ {
			for _, g := range a.eligible.of(queue[i]) {
				if dead[g] || seen[g] {
					continue
				}
				seen[g], from[g] = true, queue[i]
				visited = append(visited, g)
				if a.placed[g] < a.capacity[g] {
					free = g
					break search
				}
				for m := a.first[g]; m != nowhere; m = a.next[m] {
					queue = append(queue, m)
				}
			}
		}
		for _, g := range visited {
			seen[g] = false
			dead[g] = free == nowhere
		}
		if free != nowhere {
			a.shift(free, from)
		}
	}
}

// shift moves drives along the path that ends in group g: from[g] goes to g, the
// drive that the path came through goes to where that one was, and so on up to a
// drive that had no place.
func (a *assignment) shift(g int32, from []int32) {
	for g != nowhere {
		d := from[g]
		previous := a.place[d]
		if previous != nowhere {
			a.leave(d, previous)
		}
		a.place[d] = g
		a.next[d], a.first[g] = a.first[g], d
		a.placed[g]++
		g = previous
	}
}

// leave takes a drive out of the list of its group.
func (a *assignment) leave(d, g int32) {
	link := &a.first[g]
	for *link != d {
		link = &a.next[*link]
	}
	*link = a.next[d]
	a.placed[g]--
}
