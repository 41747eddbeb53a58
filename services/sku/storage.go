package sku

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fleetgraph/fleet"
)

// drive is one NVMe drive of a machine. Size is in MiB, nil where unknown, and
// location is empty where unknown.
type drive struct {
	model    string
	location string
	ascii    bool // see plainASCII
	size     *int64
}

// drivesOf reads storage entries as drives, one each: its first pattern is the
// location, its lower bound the size. They come out in a fixed order.
func drivesOf(entries []fleet.StorageGroup) []drive {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, compareGroups)
	drives := make([]drive, 0, len(entries))
	for _, e := range entries {
		d := drive{model: e.Model, size: e.MinSizeMb}
		if len(e.PciPatterns) > 0 {
			d.location = e.PciPatterns[0]
			d.ascii = plainASCII(d.location)
		}
		drives = append(drives, d)
	}
	return drives
}

func (d drive) locationText() string {
	if d.location == "" {
		return "<unknown>"
	}
	return d.location
}

// sizeText is the size as messages print it. The unit is MiB, written MB.
func (d drive) sizeText() string {
	if d.size == nil {
		return "<unknown>"
	}
	return strconv.FormatInt(*d.size, 10) + " MB"
}

// String describes the drive to a person who exchanges it.
func (d *drive) String() string { return d.sizeText() + " at " + d.locationText() }

// group is a storage entry of an expected SKU with its patterns compiled. A group
// without patterns goes by size alone.
type group struct {
	fleet.StorageGroup
	patterns []*pattern
}

// groupsOf prepares the storage entries of a version 5 SKU, in a fixed order:
// those with patterns first, then those that go by size alone.
func groupsOf(entries []fleet.StorageGroup, patterns *patternCache) []group {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b fleet.StorageGroup) int {
		if sizeOnly := len(a.PciPatterns) == 0; sizeOnly != (len(b.PciPatterns) == 0) {
			if sizeOnly {
				return 1
			}
			return -1
		}
		return compareGroups(a, b)
	})
	groups := make([]group, 0, len(entries))
	for _, e := range entries {
		g := group{StorageGroup: e, patterns: make([]*pattern, 0, len(e.PciPatterns))}
		for i, text := range e.PciPatterns {
			if !slices.Contains(e.PciPatterns[:i], text) {
				g.patterns = append(g.patterns, patterns.compile(text))
			}
		}
		groups = append(groups, g)
	}
	return groups
}

func (g group) sizeOnly() bool { return len(g.patterns) == 0 }

// slots is the number of drives the group claims.
func (g group) slots() int { return max(g.Count, 0) }

// fits tells whether the size is within the bounds. An unknown size fits only
// where there is no bound.
func (g group) fits(size *int64) bool {
	if size == nil {
		return g.MinSizeMb == nil && g.MaxSizeMb == nil
	}
	return (g.MinSizeMb == nil || *size >= *g.MinSizeMb) && (g.MaxSizeMb == nil || *size <= *g.MaxSizeMb)
}

// String describes a drive that the group accepts.
func (g *group) String() string {
	text := "any size"
	switch {
	case g.MinSizeMb != nil && g.MaxSizeMb != nil && *g.MinSizeMb == *g.MaxSizeMb:
		text = boundText(g.MinSizeMb) + " MB"
	case g.MinSizeMb != nil || g.MaxSizeMb != nil:
		text = g.rangeText() + " MB"
	}
	if len(g.patterns) == 0 {
		return text
	}
	locations := make([]string, len(g.patterns))
	for i, p := range g.patterns {
		locations[i] = p.text
	}
	return text + " at " + strings.Join(locations, " or ")
}

// rangeText is the size range as messages print it, with * for an open end.
func (g group) rangeText() string { return boundText(g.MinSizeMb) + "-" + boundText(g.MaxSizeMb) }

func boundText(bound *int64) string {
	if bound == nil {
		return "*"
	}
	return strconv.FormatInt(*bound, 10)
}

// entryText is a storage entry as messages print it.
func entryText(e fleet.StorageGroup) string {
	var b strings.Builder
	fmt.Fprintf(&b, "model: %s count %d", e.Model, e.Count)
	if e.MinSizeMb != nil || e.MaxSizeMb != nil {
		fmt.Fprintf(&b, " size %s-%s MB", boundText(e.MinSizeMb), boundText(e.MaxSizeMb))
	}
	if len(e.PciPatterns) > 0 {
		escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
		b.WriteString(` pci [`)
		for i, p := range e.PciPatterns {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(`"` + escape.Replace(p) + `"`)
		}
		b.WriteString("]")
	}
	return b.String()
}
