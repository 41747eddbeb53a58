package sku

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fleetgraph/fleet"
)

// editor collects the changes that turn a machine into one that matches a SKU.
// Distance is the number of parts they concern. Without spell the edits themselves
// are left out, which is all that ranking SKUs needs.
type editor struct {
	spell     bool
	component fleet.Component
	noun      string
	edits     []fleet.Edit
	distance  int
}

// part is a number of equal parts to take out of a machine or to put in.
type part struct {
	fmt.Stringer
	count int
}

// label and labelFunc name parts that have no type of their own.
type (
	label     string
	labelFunc func() string
)

func (l label) String() string     { return string(l) }
func (f labelFunc) String() string { return f() }

// distance is the number of parts that the edits concern; 0 for a match.
func (e *expectation) distance(ctx context.Context, v *view) int {
	ed := &editor{}
	ed.run(ctx, e, v)
	return ed.distance
}

// edits returns the changes to hardware, in reporting order; none for a match.
func (e *expectation) edits(ctx context.Context, v *view) []fleet.Edit {
	ed := &editor{spell: true, edits: []fleet.Edit{}}
	ed.run(ctx, e, v)
	return ed.edits
}

// run goes through the components. Parts of one component are exchanged before any
// is added or removed, which makes the number of parts concerned the smallest.
func (ed *editor) run(ctx context.Context, e *expectation, v *view) {
	ed.at(fleet.ComponentChassis, "chassis")
	if e.chassis != v.chassis {
		ed.add(fleet.EditReplace, 1, chassisLabel(v.chassis), chassisLabel(e.chassis))
	}
	ed.at(fleet.ComponentCPU, "CPU")
	ed.cpus(e.cpus, v.cpus)
	ed.at(fleet.ComponentGPU, "GPU")
	ed.gpus(e.gpus, v.gpus)
	ed.at(fleet.ComponentInfiniband, "InfiniBand port")
	ed.infiniband(e.infiniband, v.infiniband)
	ed.at(fleet.ComponentMemory, "memory module")
	ed.exchange(differences(e.memory, v.memory, compareMemoryTotals, func(t *memoryTotal) part { return part{t, t.count} }))
	ed.at(fleet.ComponentStorage, "storage drive")
	if e.located() {
		ed.drives(ctx, e.groups, v.drives)
	} else {
		ed.exchange(differences(e.models, v.models, compareModelTotals, func(t *modelTotal) part { return part{t, t.count} }))
	}
	ed.at(fleet.ComponentTPM, "TPM")
	ed.tpm(e.tpm, v.tpm)
}

func (ed *editor) at(component fleet.Component, noun string) { ed.component, ed.noun = component, noun }

// add records one edit; from is nil where something is added, to where it is
// removed.
func (ed *editor) add(action fleet.EditAction, count int, from, to fmt.Stringer) {
	ed.distance += count
	if !ed.spell {
		return
	}
	edit := fleet.Edit{Component: ed.component, Action: action, Count: count}
	words := []string{}
	if to != nil {
		edit.Subject, edit.To = to.String(), new(to.String())
		words = append(words, edit.Subject)
	}
	if from != nil {
		edit.Subject, edit.From = from.String(), new(from.String())
		words = slices.Insert(words, 0, edit.Subject)
	}
	join := " by "
	if action == fleet.EditChange {
		join = " to "
	}
	edit.Message = fmt.Sprintf("%s %d %s: %s", strings.ToLower(string(action)), count, ed.noun, strings.Join(words, join))
	ed.edits = append(ed.edits, edit)
}

// exchange replaces parts as long as there are both some to take out and some to
// put in, and then removes or adds the rest.
func (ed *editor) exchange(out, in []part) {
	for len(out) > 0 && len(in) > 0 {
		n := min(out[0].count, in[0].count)
		ed.add(fleet.EditReplace, n, out[0], in[0])
		if out[0].count -= n; out[0].count == 0 {
			out = out[1:]
		}
		if in[0].count -= n; in[0].count == 0 {
			in = in[1:]
		}
	}
	for _, p := range out {
		ed.add(fleet.EditRemove, p.count, p, nil)
	}
	for _, p := range in {
		ed.add(fleet.EditAdd, p.count, nil, p)
	}
}

// differences lists what two sorted lists have too much and too little of.
func differences[T any](expected, actual []T, order func(a, b T) int, describe func(*T) part) (out, in []part) {
	pairUp(expected, actual, order, func(e, a *T) {
		var wants, has part
		if e != nil {
			wants = describe(e)
		}
		if a != nil {
			has = describe(a)
		}
		switch {
		case has.count > wants.count:
			has.count -= wants.count
			out = append(out, has)
		case wants.count > has.count:
			wants.count -= has.count
			in = append(in, wants)
		}
	})
	return out, in
}

func (ed *editor) cpus(expected, actual []cpuTotal) {
	ed.exchange(differences(expected, actual, compareCpuTotals, func(t *cpuTotal) part { return part{label(t.model), t.sockets} }))
	pairUp(expected, actual, compareCpuTotals, func(e, a *cpuTotal) {
		if e != nil && a != nil && !e.sameThreads(*a) {
			threads := func(t *cpuTotal) labelFunc {
				return func() string { return t.model + " with " + t.threadsText() + " threads" }
			}
			ed.add(fleet.EditChange, min(e.sockets, a.sockets), threads(a), threads(e))
		}
	})
}

func (ed *editor) gpus(expected, actual []gpuTotal) {
	ed.exchange(differences(expected, actual, compareGpuTotals, func(t *gpuTotal) part { return part{label(t.model), t.count} }))
	pairUp(expected, actual, compareGpuTotals, func(e, a *gpuTotal) {
		if e == nil || a == nil {
			return
		}
		faults, _ := compareGpuMemory(e.memory, a.memory)
		for _, f := range faults {
			ed.add(fleet.EditReplace, f.count, label(e.model+" of "+f.actual), label(e.model+" of "+f.expected))
		}
	})
}

// infiniband exchanges ports and then changes the state of those whose activity
// differs. Ports that are added or removed take their state with them.
func (ed *editor) infiniband(expected, actual []infinibandTotal) {
	ed.exchange(differences(expected, actual, compareInfinibandTotals,
		func(t *infinibandTotal) part { return part{label(t.vendor + " " + t.model), t.count} }))
	pairUp(expected, actual, compareInfinibandTotals, func(e, a *infinibandTotal) {
		if e == nil || a == nil {
			return
		}
		changed := 0
		differ := func(xs, ys []int) {
			for _, i := range xs {
				if _, both := slices.BinarySearch(ys, i); !both && (e.count == a.count || i < min(e.count, a.count)) {
					changed++
				}
			}
		}
		differ(e.inactive, a.inactive)
		differ(a.inactive, e.inactive)
		if changed > 0 {
			state := func(t *infinibandTotal) labelFunc { return func() string { return t.model + " " + t.text() } }
			ed.add(fleet.EditChange, changed, state(a), state(e))
		}
	})
}

func (ed *editor) tpm(expected, actual *fleet.Tpm) {
	version := func(t *fleet.Tpm) label { return label("version " + t.Version) }
	switch {
	case expected == nil && actual == nil:
	case actual == nil:
		ed.add(fleet.EditAdd, 1, nil, version(expected))
	case expected == nil:
		ed.add(fleet.EditRemove, 1, version(actual), nil)
	case expected.Version != actual.Version:
		ed.add(fleet.EditReplace, 1, version(actual), version(expected))
	}
}

func chassisLabel(c fleet.Chassis) labelFunc {
	return func() string { return fmt.Sprintf("%s %s (%s)", c.Vendor, c.Model, c.Architecture) }
}
