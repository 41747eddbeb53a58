package sku

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fleetgraph/fleet"
)

// compareGpus compares number and memory by model. The vendor is not compared.
func (r *report) compareGpus(expected, actual []gpuTotal) {
	start := len(r.Mismatches)
	pairUp(expected, actual, compareGpuTotals, func(e, a *gpuTotal) {
		switch {
		case e == nil:
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchUnexpected, Subject: a.model, Actual: new(strconv.Itoa(a.count)),
				Message: fmt.Sprintf("Unexpected GPU config (%dx%s/%s) found", a.count, a.vendor, a.model),
			})
		case a == nil:
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchMissing, Subject: e.model, Expected: new(strconv.Itoa(e.count)),
				Message: fmt.Sprintf("Missing GPU config: %dx%s/%s", e.count, e.vendor, e.model),
			})
		default:
			suffix := suffixOf(true, " for gpu model (%s)", e.model)
			if e.count != a.count {
				r.different(e.model, "count", strconv.Itoa(e.count), strconv.Itoa(a.count),
					"Expected gpu count (%s) does not match actual (%s)"+suffix)
			}
			r.compareGpuMemory(e, a, suffix)
		}
	})
	r.missingLast(start)
}

func (r *report) compareGpuMemory(e, a *gpuTotal, suffix string) {
	faults, unread := compareGpuMemory(e.memory, a.memory)
	for _, f := range faults {
		r.different(e.model, "total_memory", f.expected, f.actual,
			"Expected gpu memory (%s) does not match actual (%s)"+suffix)
	}
	if unread {
		r.Notes = append(r.Notes, fleet.Note{
			Component: r.component,
			Message: fmt.Sprintf("memory of gpu model (%s) was not fully compared: a figure cannot be read, expected (%s), actual (%s)",
				e.model, figuresText(e.memory), figuresText(a.memory)),
		})
	}
}

// figuresText lists the distinct memory texts of a model in a fixed order.
func figuresText(figures []memoryFigure) string {
	texts := make([]string, 0, len(figures))
	for _, f := range figures {
		texts = append(texts, f.text)
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ", ")
}
