package sku

import (
	"context"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"fleetgraph/fleet"
)

// Duplicate returns the SKU among existing, the first by name, that describes the
// hardware of candidate already. Two relations make a duplicate: the candidate
// lists concrete drives and a machine with them matches the existing SKU at its
// version, or both constrain storage alike and everything else is equal. A
// candidate that accepts other drives than the existing SKU is none.
//
// The caller leaves out the SKU that is being replaced. Existing SKUs of a version
// that does not exist are no duplicates. The error is that of ctx.
func (m *Matcher) Duplicate(ctx context.Context, candidate Sku, existing []Sku) (duplicate Sku, found bool, err error) {
	key := Key(candidate.Components)
	for _, s := range existing {
		if found && s.Name >= duplicate.Name || !Supported(s.SchemaVersion) || Key(s.Components) != key {
			continue
		}
		if m.sameHardware(ctx, candidate, s) {
			duplicate, found = s, true
		}
	}
	return duplicate, found, ctx.Err()
}

// CheckDuplicate refuses a candidate that Duplicate finds a SKU for:
// ALREADY_EXISTS, with the id and the schema version of that SKU in the details.
func (m *Matcher) CheckDuplicate(ctx context.Context, candidate Sku, existing []Sku) error {
	duplicate, found, err := m.Duplicate(ctx, candidate, existing)
	if err != nil || !found {
		return err
	}
	message := "Specified SKU matches SKU with ID: " + duplicate.Name
	if duplicate.SchemaVersion < candidate.SchemaVersion {
		message += fmt.Sprintf(" (schema version %d); upgrade it with sku replace", duplicate.SchemaVersion)
	}
	return fleet.Exists("components", "SKU_DUPLICATE", "%s", message).
		WithDetails(map[string]any{"id": duplicate.Name, "schemaVersion": duplicate.SchemaVersion})
}

// sameHardware compares the candidate as a machine with an existing SKU of a
// supported version.
func (m *Matcher) sameHardware(ctx context.Context, candidate, existing Sku) bool {
	actual := candidate.Components
	if existing.SchemaVersion >= versionLocation {
		drives, concrete := concreteDrives(actual.Storage)
		switch {
		case concrete:
			actual.Storage = drives
		case sameConstraints(actual.Storage, existing.Components.Storage):
			actual.Storage, existing.Components.Storage = nil, nil
		default:
			return false
		}
	}
	comparison, err := m.CompareComponents(ctx, actual, existing)
	return err == nil && comparison.Match
}

// concreteDrives lists the drives that groups describe, one an entry, where they
// describe particular drives: each group has one size and either no pattern or as
// many literal locations as drives. Generated SKUs do.
func concreteDrives(groups []fleet.StorageGroup) (drives []fleet.StorageGroup, concrete bool) {
	for _, g := range groups {
		if g.MinSizeMb == nil || g.MaxSizeMb == nil || *g.MinSizeMb != *g.MaxSizeMb || g.Count > maxGroupCount {
			return nil, false
		}
		locations := make([][]string, 0, g.Count)
		for _, text := range g.PciPatterns {
			location, ok := literalLocation(text)
			if !ok {
				return nil, false
			}
			locations = append(locations, []string{location})
		}
		if len(locations) == 0 {
			locations = make([][]string, max(g.Count, 0))
		}
		if len(locations) != g.Count {
			return nil, false
		}
		for _, location := range locations {
			drives = append(drives, fleet.StorageGroup{
				Model: g.Model, Count: 1, MinSizeMb: g.MinSizeMb, MaxSizeMb: g.MaxSizeMb, PciPatterns: location,
			})
		}
	}
	return drives, true
}

// literalLocation returns the device path that a pattern stands for: a path as it
// is, with its dots escaped or not, anchored or not.
func literalLocation(pattern string) (string, bool) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	nodes := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		nodes = tree.Sub
	}
	var path strings.Builder
	for i, node := range nodes {
		switch {
		case node.Op == syntax.OpLiteral && node.Flags&syntax.FoldCase == 0:
			path.WriteString(string(node.Rune))
		case node.Op == syntax.OpAnyCharNotNL:
			path.WriteByte('.')
		case node.Op == syntax.OpBeginText && i == 0, node.Op == syntax.OpEndText && i == len(nodes)-1:
		default:
			return "", false
		}
	}
	return path.String(), strings.HasPrefix(path.String(), "/devices/")
}

// sameConstraints tells whether two lists of groups claim the same drives in the
// same numbers, whatever their models, their order, and how equal groups are split.
func sameConstraints(a, b []fleet.StorageGroup) bool {
	x, y := constraints(a), constraints(b)
	if len(x) != len(y) {
		return false
	}
	for key, count := range x {
		if other, ok := y[key]; !ok || other != count {
			return false
		}
	}
	return true
}

func constraints(groups []fleet.StorageGroup) map[string]int {
	counts := make(map[string]int, len(groups))
	for _, g := range groups {
		patterns := make([]string, 0, len(g.PciPatterns))
		for _, text := range g.PciPatterns {
			patterns = append(patterns, plainForm(text))
		}
		slices.Sort(patterns)
		key := []byte(boundText(g.MinSizeMb) + "-" + boundText(g.MaxSizeMb))
		for _, p := range slices.Compact(patterns) {
			key = appendText(key, p)
		}
		counts[string(key)] += g.Count
	}
	return counts
}

// plainForm is one way of writing a pattern, so that \. and [.] are equal.
func plainForm(pattern string) string {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return pattern
	}
	return tree.Simplify().String()
}
