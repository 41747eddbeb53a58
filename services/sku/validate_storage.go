package sku

import (
	"fmt"

	"fleetgraph/fleet"
)

// storage checks the storage entries (the guide, Storage Drive Locations, for
// patterns and bounds).
func (v *validator) storage(groups []fleet.StorageGroup, version int) {
	patterns, steps := 0, 0
	for i, g := range groups {
		if v.err != nil {
			return
		}
		at := entry("storage", i)
		if patterns += len(g.PciPatterns); patterns > v.limits.PatternsPerSku {
			v.refuse(at+".pciPatterns", "PATTERNS_TOO_MANY", "more than %d PCI patterns in one SKU", v.limits.PatternsPerSku)
			return
		}
		for j, text := range g.PciPatterns {
			steps += v.pattern(fmt.Sprintf("%s.pciPatterns.%d", at, j), text)
		}
		if steps > v.limits.StepsPerSku {
			v.refuse(at+".pciPatterns", "PATTERN_TOO_COSTLY",
				"the PCI patterns of the SKU take %d steps, more than %d: %d for an instruction of a regular expression, 1 for a plain character",
				steps, v.limits.StepsPerSku, instructionSteps)
		}
		v.bounds(at, g, version)
		v.text(at+".model", g.Model)
		if v.current && (g.Count < 1 || g.Count > maxGroupCount) {
			v.refuse(at+".count", "STORAGE_COUNT_OUT_OF_RANGE", "storage count %d is not from 1 to %d", g.Count, maxGroupCount)
		}
		v.number(at+".count", int64(g.Count), maxCount)
	}
}

// pattern checks one pattern and returns its steps.
func (v *validator) pattern(field, text string) int {
	if v.err != nil {
		return 0
	}
	if v.current && text == "" {
		v.refuse(field, "PATTERN_EMPTY", "storage PCI pattern must not be empty, it would match every drive")
		return 0
	}
	p := compilePattern(text, v.limits)
	if p.fault != nil {
		v.refuse(field, "PATTERN_INVALID", "invalid storage PCI pattern %s: %v", fleet.Quoted(text), p.fault)
	}
	v.text(field, text)
	return p.steps
}

func (v *validator) bounds(at string, g fleet.StorageGroup, version int) {
	low, high := g.MinSizeMb, g.MaxSizeMb
	if low != nil && high != nil && *low > *high {
		v.refuse(at+".minSizeMb", "SIZE_RANGE_INVALID",
			`storage entry (model "%s") has min_size_mb (%d) greater than max_size_mb (%d)`, g.Model, *low, *high)
	}
	if version >= versionLocation && low == nil && high == nil && len(g.PciPatterns) == 0 {
		v.refuse(at, "STORAGE_UNCONSTRAINED",
			`v5 storage entry (model "%s") has no size bounds or PCI patterns; re-enumerate the machine's hardware before creating this SKU`, g.Model)
	}
	if low != nil {
		v.number(at+".minSizeMb", *low, maxSizeMb)
	}
	if high != nil {
		v.number(at+".maxSizeMb", *high, maxSizeMb)
	}
}
