package sku

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"fleetgraph/fleet"
)

// controllerName recognises a pattern that ends in a kernel controller name,
// which a recorded location never contains (the guide, Updating SKUs That Still
// End in a Controller Name).
var controllerName = regexp.MustCompile(`nvme([0-9]+|(\\d|\[0-9\])[+*]?)\$?$`)

const controllerHint = "the pattern ends in a controller name, which the recorded location never contains; " +
	"end it at /nvme and replace the SKU"

// compareDrives reports how the drives depart from the groups of a version 5 SKU,
// in this order: patterns that are invalid or found nothing, groups that are
// short, drives of the wrong size, drives without a place.
func (r *report) compareDrives(ctx context.Context, groups []group, drives []drive) {
	a := newAssignment(ctx, drives, groups)
	a.placeEligible()
	if a.complete() {
		return
	}
	a.placeFaulty()
	unfound := a.unfoundByGroup(groups)
	for g := range groups {
		r.patternFaults(groups[g], unfound[g])
	}
	for g := range groups {
		r.shortGroup(groups[g], a.placed[g], unfound[g])
	}
	for d := range drives {
		if a.place[d] != nowhere && a.cost(int32(d)) == 1 {
			r.sizeFault(drives[d], groups[a.place[d]])
		}
	}
	for d := range drives {
		if a.place[d] == nowhere {
			r.unplacedDrive(drives[d])
		}
	}
}

func (r *report) patternFaults(g group, unfound []bool) {
	for i, p := range g.patterns {
		if !unfound[i] {
			continue
		}
		m := fleet.Mismatch{
			Kind:     fleet.MismatchMissing,
			Subject:  p.text,
			Expected: new(entryText(g.StorageGroup)),
			Message:  fmt.Sprintf("Expected storage drive at PCI location /%s/ not found", p.text),
		}
		if p.fault != nil {
			m.Attribute = "pci_patterns"
			m.Message = fmt.Sprintf(`Invalid storage PCI pattern "%s": %v`, p.text, p.fault)
		} else if controllerName.MatchString(p.text) {
			m.Hint = controllerHint
		}
		r.add(m)
	}
}

// shortGroup reports a group that got fewer drives than it claims. Where no drive
// has one of its locations, the patterns say so already.
func (r *report) shortGroup(g group, placed int, unfound []bool) {
	if placed >= g.slots() || !g.sizeOnly() && !slices.Contains(unfound, false) {
		return
	}
	where := "but found %d matching the size range"
	if !g.sizeOnly() {
		where = "but matched %d at those PCI locations"
	}
	entry := entryText(g.StorageGroup)
	m := fleet.Mismatch{
		Kind:      fleet.MismatchMissing,
		Subject:   entry,
		Attribute: "count",
		Expected:  new(strconv.Itoa(g.Count)),
		Message:   fmt.Sprintf("Expected %d storage drive(s) (%s) "+where, g.Count, entry, placed),
	}
	if placed > 0 {
		m.Kind, m.Actual = fleet.MismatchDifferent, new(strconv.Itoa(placed))
	}
	r.add(m)
}

func (r *report) sizeFault(d drive, g group) {
	r.add(fleet.Mismatch{
		Kind:      fleet.MismatchDifferent,
		Subject:   d.locationText(),
		Attribute: "size_mb",
		Expected:  new(g.rangeText()),
		Actual:    new(d.sizeText()),
		Message: fmt.Sprintf("Storage drive (path %s, size %s) is outside expected size range %s MB",
			d.locationText(), d.sizeText(), g.rangeText()),
	})
}

func (r *report) unplacedDrive(d drive) {
	r.add(fleet.Mismatch{
		Kind:    fleet.MismatchUnexpected,
		Subject: d.locationText(),
		Actual:  new(d.model + " " + d.sizeText()),
		Message: fmt.Sprintf("Found unexpected storage drive (path %s, size %s)", d.locationText(), d.sizeText()),
	})
}

// compareModels reports storage of versions 1 to 4: drives by model.
func (r *report) compareModels(expected, actual []modelTotal) {
	pairUp(expected, actual, compareModelTotals, func(e, a *modelTotal) {
		switch {
		case a == nil:
			entry := e.text()
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchMissing, Subject: e.model, Expected: new(strconv.Itoa(e.count)),
				Message: "Missing storage config: " + entry,
			})
		case e != nil && e.count != a.count:
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchDifferent, Subject: e.model, Attribute: "count",
				Expected: new(strconv.Itoa(e.count)), Actual: new(strconv.Itoa(a.count)),
				Message: fmt.Sprintf("Expected device count (%d) does not match actual (%d) for storage model (%s)", e.count, a.count, e.model),
			})
		}
	})
	pairUp(expected, actual, compareModelTotals, func(e, a *modelTotal) {
		if e == nil {
			r.add(fleet.Mismatch{
				Kind: fleet.MismatchUnexpected, Subject: a.model, Actual: new(strconv.Itoa(a.count)),
				Message: "Found unexpected storage config: " + a.text(),
			})
		}
	})
}
