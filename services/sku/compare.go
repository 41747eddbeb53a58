package sku

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fleetgraph/fleet"
)

// report collects the differences of one comparison. Component is the one that is
// being compared.
type report struct {
	fleet.Comparison
	component fleet.Component
}

func (r *report) add(m fleet.Mismatch) {
	m.Component = r.component
	r.Mismatches = append(r.Mismatches, m)
}

// missingLast moves the parts that are missing behind those that are present.
func (r *report) missingLast(start int) {
	missing := func(m fleet.Mismatch) int {
		if m.Kind == fleet.MismatchMissing {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(r.Mismatches[start:], func(a, b fleet.Mismatch) int { return missing(a) - missing(b) })
}

// compare reports every difference between a machine and a SKU, component by
// component in reporting order.
func (e *expectation) compare(ctx context.Context, actual *hardware, drives []drive) fleet.Comparison {
	r := &report{Comparison: fleet.Comparison{Mismatches: []fleet.Mismatch{}}}
	steps := []struct {
		component fleet.Component
		compare   func()
	}{
		{fleet.ComponentChassis, func() { r.compareChassis(e.chassis, actual.chassis) }},
		{fleet.ComponentCPU, func() { r.compareCpus(e.cpus, actual.cpus) }},
		{fleet.ComponentGPU, func() { r.compareGpus(e.gpus, actual.gpus) }},
		{fleet.ComponentInfiniband, func() { r.compareInfiniband(e.infiniband, actual.infiniband) }},
		{fleet.ComponentMemory, func() { r.compareMemory(e.memory, actual.memory) }},
		{fleet.ComponentStorage, func() {
			if e.located() {
				r.compareDrives(ctx, e.groups, drives)
			} else {
				r.compareModels(e.models, actual.models)
			}
		}},
		{fleet.ComponentTPM, func() { r.compareTpm(e.tpm, actual.tpm) }},
	}
	for _, step := range steps {
		r.component = step.component
		step.compare()
	}
	r.Match = len(r.Mismatches) == 0
	return r.Comparison
}

func (r *report) compareChassis(expected, actual fleet.Chassis) {
	attribute := func(name, expected, actual string) {
		if expected != actual {
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchDifferent, Attribute: name, Expected: &expected, Actual: &actual,
				Message: fmt.Sprintf(`Actual chassis %s "%s" does not match expected "%s"`, name, actual, expected),
			})
		}
	}
	attribute("vendor", expected.Vendor, actual.Vendor)
	attribute("model", expected.Model, actual.Model)
	attribute("architecture", expected.Architecture, actual.Architecture)
}

// compareCpus compares sockets and threads by model. Threads are compared per
// socket, so that a missing processor is one difference and not two.
func (r *report) compareCpus(expected, actual []cpuTotal) {
	start := len(r.Mismatches)
	pairUp(expected, actual, compareCpuTotals, func(e, a *cpuTotal) {
		switch {
		case e == nil:
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchUnexpected, Subject: a.model, Actual: new(strconv.Itoa(a.sockets)),
				Message: fmt.Sprintf("Unexpected CPU config (%dx%s/%s) found", a.sockets, a.vendor, a.model),
			})
		case a == nil:
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchMissing, Subject: e.model, Expected: new(strconv.Itoa(e.sockets)),
				Message: fmt.Sprintf("Missing CPU config: %dx%s/%s", e.sockets, e.vendor, e.model),
			})
		default:
			suffix := suffixOf(len(expected)+len(actual) > 2, " for CPU model (%s)", e.model)
			if e.sockets != a.sockets {
				r.different(e.model, "count", strconv.Itoa(e.sockets), strconv.Itoa(a.sockets),
					"Number of CPUs (%[2]s) does not match expected (%[1]s)"+suffix)
			}
			if !e.sameThreads(*a) {
				r.different(e.model, "thread_count", e.threadsText(), a.threadsText(),
					"Number of CPU threads (%[2]s) does not match expected (%[1]s)"+suffix)
			}
		}
	})
	r.missingLast(start)
}

// different adds a difference of one attribute. Format takes the expected and the
// actual value; percent signs of values that it contains are doubled.
func (r *report) different(subject, attribute, expected, actual, format string) {
	r.add(fleet.Mismatch{
		Kind: fleet.MismatchDifferent, Subject: subject, Attribute: attribute, Expected: &expected, Actual: &actual,
		Message: fmt.Sprintf(format, expected, actual),
	})
}

// suffixOf names the part in a message where there is more than one of its kind.
func suffixOf(several bool, format string, args ...any) string {
	if !several {
		return ""
	}
	return strings.ReplaceAll(fmt.Sprintf(format, args...), "%", "%%")
}

func (r *report) compareInfiniband(expected, actual []infinibandTotal) {
	start := len(r.Mismatches)
	pairUp(expected, actual, compareInfinibandTotals, func(e, a *infinibandTotal) {
		switch {
		case e == nil:
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchUnexpected, Subject: a.model, Actual: new(strconv.Itoa(a.count)),
				Message: fmt.Sprintf(`Unexpected %d InfiniBand devices of Vendor: "%s" and Model: "%s"`, a.count, a.vendor, a.model),
			})
		case a == nil:
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchMissing, Subject: e.model, Expected: new(strconv.Itoa(e.count)),
				Message: fmt.Sprintf(`Missing %d InfiniBand devices of Vendor: "%s" and Model: "%s"`, e.count, e.vendor, e.model),
			})
		case e.count != a.count || !slices.Equal(e.inactive, a.inactive):
			attribute := "count"
			if e.count == a.count {
				attribute = "inactive_devices"
			}
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchDifferent, Subject: e.model, Attribute: attribute, Expected: new(e.text()), Actual: new(a.text()),
				Message: fmt.Sprintf(`Configuration mismatch for InfiniBand devices of Vendor: "%s" and Model: "%s". Expected "%s". Actual "%s". `,
					e.vendor, e.model, e.text(), a.text()),
			})
		}
	})
	r.missingLast(start)
}

// compareMemory compares modules by type and size. The figures of a message are
// MiB, of the modules that it names or of all where there is one kind only.
func (r *report) compareMemory(expected, actual []memoryTotal) {
	start := len(r.Mismatches)
	kinds := 0
	pairUp(expected, actual, compareMemoryTotals, func(_, _ *memoryTotal) { kinds++ })
	pairUp(expected, actual, compareMemoryTotals, func(e, a *memoryTotal) {
		var has, wants memoryTotal
		if m := (fleet.Mismatch{Kind: fleet.MismatchDifferent, Attribute: "count"}); e == nil || a == nil || e.count != a.count {
			if a != nil {
				has, m.Subject, m.Actual = *a, a.String(), new(strconv.Itoa(a.count))
			} else {
				m.Kind = fleet.MismatchMissing
			}
			if e != nil {
				wants, m.Subject, m.Expected = *e, e.String(), new(strconv.Itoa(e.count))
			} else {
				m.Kind = fleet.MismatchUnexpected
			}
			m.Message = fmt.Sprintf("Actual memory (%d) differs from expected (%d)", has.total(), wants.total())
			if kinds > 1 {
				m.Message += fmt.Sprintf(" for memory modules (%s)", m.Subject)
			}
			r.add(m)
		}
	})
	r.missingLast(start)
}

func (r *report) compareTpm(expected, actual *fleet.Tpm) {
	switch {
	case expected == nil && actual == nil:
	case actual == nil:
		r.add(fleet.Mismatch{
			Kind: fleet.MismatchMissing, Attribute: "version", Expected: &expected.Version,
			Message: "Missing a TPM module: version: " + expected.Version,
		})
	case expected == nil:
		r.add(fleet.Mismatch{
			Kind: fleet.MismatchUnexpected, Attribute: "version", Actual: &actual.Version,
			Message: "Found unexpected TPM config: version: " + actual.Version,
		})
	case expected.Version != actual.Version:
		r.add(fleet.Mismatch{
			Kind: fleet.MismatchDifferent, Attribute: "version", Expected: &expected.Version, Actual: &actual.Version,
			Message: fmt.Sprintf("Expected TPM version (%s) does not match actual (%s)", expected.Version, actual.Version),
		})
	}
}
