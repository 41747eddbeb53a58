package sku

import (
	"cmp"
	"slices"
	"strings"

	"fleetgraph/fleet"
)

// generateStorage records the drives as the version does: not at all, block
// devices by model, NVMe controllers by model, or NVMe drives one by one.
func generateStorage(inventory fleet.Inventory, version int) []fleet.StorageGroup {
	switch {
	case version < versionStorage:
		return []fleet.StorageGroup{}
	case version >= versionLocation:
		return generateDrives(inventory.NvmeDevices)
	}
	counts := make(map[string]int, 2)
	if version >= versionNvme {
		for _, d := range inventory.NvmeDevices {
			counts[d.Model]++
		}
	} else {
		for _, d := range inventory.BlockDevices {
			if version < versionDisks || d.DeviceType == "disk" {
				counts[d.Model]++
			}
		}
	}
	groups := make([]fleet.StorageGroup, 0, len(counts))
	for model, n := range counts {
		groups = append(groups, fleet.StorageGroup{Model: model, Count: n})
	}
	slices.SortFunc(groups, compareGroups)
	return groups
}

// generateDrives records one entry a drive, its size as both bounds and its
// location as the only pattern (the guide, Storage Drive Locations).
func generateDrives(devices []fleet.NvmeDevice) []fleet.StorageGroup {
	groups := make([]fleet.StorageGroup, 0, len(devices))
	for _, d := range devices {
		group := fleet.StorageGroup{Model: d.Model, Count: 1, MinSizeMb: d.SizeMb, MaxSizeMb: d.SizeMb}
		if d.PciPath != nil && *d.PciPath != "" {
			group.PciPatterns = []string{location(*d.PciPath)}
		}
		groups = append(groups, group)
	}
	slices.SortFunc(groups, compareGroups)
	return groups
}

// location is a controller's device path without its last node, the kernel's
// controller name, which can change between boots. A path of one node is kept.
func location(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return path
}

// compareGroups is the order of storage entries: model, count, bounds (absent
// first), patterns.
func compareGroups(a, b fleet.StorageGroup) int {
	return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Count, b.Count),
		compareBounds(a.MinSizeMb, b.MinSizeMb), compareBounds(a.MaxSizeMb, b.MaxSizeMb),
		slices.Compare(a.PciPatterns, b.PciPatterns))
}

func compareBounds(a, b *int64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*a, *b)
}
