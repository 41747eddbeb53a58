package sku

// placeFaulty extends the assignment to the most drives with the fewest size
// faults. Each round adds one drive along a cheapest augmenting path, which keeps
// the assignment cheapest among those of its size; since it starts from one
// without faults, it ends with a cheapest largest one.
func (a *assignment) placeFaulty() {
	search := newPathSearch(a)
	for {
		free := search.cheapest()
		if free == nowhere {
			return
		}
		a.shift(free, search.from)
	}
}

// pathSearch finds cheapest augmenting paths by relaxation (Bellman and Ford with
// a queue). Costs along a path are the faults that a move makes less those it
// mends; there is no negative cycle because the assignment is always a cheapest
// one of its size.
type pathSearch struct {
	a        *assignment
	distance []int   // by group, unreached where no path is known
	from     []int32 // by group: the drive that would move in
	cost     []int   // by drive: cost of its present place
	queued   []bool  // by group
}

const unreached = int(^uint(0) >> 1)

func newPathSearch(a *assignment) *pathSearch {
	return &pathSearch{
		a:        a,
		distance: make([]int, len(a.capacity)),
		from:     make([]int32, len(a.capacity)),
		cost:     make([]int, len(a.place)),
		queued:   make([]bool, len(a.capacity)),
	}
}

// cheapest returns the group with a free slot that a cheapest path from an
// unplaced drive leads to, or nowhere. The path is in from.
func (s *pathSearch) cheapest() int32 {
	for g := range s.distance {
		s.distance[g] = unreached
	}
	var queue []int32
	relax := func(d int32, base int) {
		for cost, groups := range [2][]int32{s.a.eligible.of(d), s.a.faulty.of(d)} {
			for _, g := range groups {
				if g == s.a.place[d] || base+cost >= s.distance[g] {
					continue
				}
				s.distance[g], s.from[g] = base+cost, d
				if !s.queued[g] {
					s.queued[g] = true
					queue = append(queue, g)
				}
			}
		}
	}
	for d, g := range s.a.place {
		if g == nowhere {
			relax(int32(d), 0)
		} else {
			s.cost[d] = s.a.cost(int32(d))
		}
	}
	for i := 0; i < len(queue); i++ {
		g := queue[i]
		s.queued[g] = false
		if s.a.placed[g] < s.a.capacity[g] {
			continue
		}
		for d := s.a.first[g]; d != nowhere; d = s.a.next[d] {
			relax(d, s.distance[g]-s.cost[d])
		}
	}
	best := nowhere
	for g := range s.distance {
		if s.a.placed[g] < s.a.capacity[g] && s.distance[g] != unreached && (best == nowhere || s.distance[g] < s.distance[best]) {
			best = int32(g)
		}
	}
	return best
}
