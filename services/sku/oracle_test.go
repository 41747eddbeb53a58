package sku_test

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fleetgraph/fleet"
)

// The oracle decides by exhaustion what the package decides by algorithms, from
// the rules alone. It shares no code with the package and is slow.

// verdict of the oracle on version 5 storage. Placed and faults are those of an
// assignment that places the most drives with the fewest size faults; eligible is
// the most drives that can be placed without a fault.
type verdict struct {
	match                    bool
	placed, faults, eligible int
	slots, drives            int
}

func judgeDrives(groups []fleet.StorageGroup, devices []fleet.NvmeDevice) verdict {
	v := verdict{drives: len(devices)}
	free := make([]int, len(groups))
	allFound := true
	paths := make([]string, len(devices))
	for d, device := range devices {
		if device.PciPath != nil && *device.PciPath != "" {
			paths[d] = *device.PciPath
			if i := strings.LastIndex(paths[d], "/"); i > 0 {
				paths[d] = paths[d][:i]
			}
		}
	}
	matches := func(pattern, path string) bool {
		return path != "" && regexp.MustCompile(pattern).MatchString(path)
	}
	for g, group := range groups {
		free[g] = group.Count
		v.slots += group.Count
		for _, p := range group.PciPatterns {
			found := false
			for _, path := range paths {
				found = found || matches(p, path)
			}
			allFound = allFound && found
		}
	}
	inBounds := func(g fleet.StorageGroup, size *int64) bool {
		if size == nil {
			return g.MinSizeMb == nil && g.MaxSizeMb == nil
		}
		return (g.MinSizeMb == nil || *g.MinSizeMb <= *size) && (g.MaxSizeMb == nil || *size <= *g.MaxSizeMb)
	}
	kind := make([][]int, len(devices)) // 0 impossible, 1 eligible, 2 size fault
	for d, device := range devices {
		kind[d] = make([]int, len(groups))
		for g, group := range groups {
			located := len(group.PciPatterns) == 0
			for _, p := range group.PciPatterns {
				located = located || matches(p, paths[d])
			}
			switch {
			case located && inBounds(group, device.SizeMb):
				kind[d][g] = 1
			case located && len(group.PciPatterns) > 0:
				kind[d][g] = 2
			}
		}
	}
	var try func(d, placed, faults int)
	try = func(d, placed, faults int) {
		if d == len(devices) {
			if placed > v.placed || placed == v.placed && faults < v.faults {
				v.placed, v.faults = placed, faults
			}
			if faults == 0 {
				v.eligible = max(v.eligible, placed)
			}
			return
		}
		try(d+1, placed, faults)
		for g := range groups {
			if free[g] > 0 && kind[d][g] > 0 {
				free[g]--
				try(d+1, placed+1, faults+kind[d][g]-1)
				free[g]++
			}
		}
	}
	v.faults = len(devices) + 1
	v.placed = -1
	try(0, 0, 0)
	v.match = allFound && v.eligible == v.drives && v.eligible == v.slots
	return v
}

// judge tells whether a machine matches components at a version.
func judge(inventory fleet.Inventory, ports []fleet.FabricPort, c fleet.SkuComponents, version int) bool {
	return c.Chassis == fleet.Chassis{Vendor: inventory.DmiData.SysVendor, Model: inventory.DmiData.ProductName, Architecture: inventory.MachineType} &&
		judgeCpus(inventory, c) && judgeGpus(inventory, c) && judgeMemory(inventory, c) && judgeInfiniband(inventory, ports, c) &&
		judgeStorage(inventory, c, version) && (version < 4 || judgeTpm(inventory, c))
}

func judgeCpus(inventory fleet.Inventory, c fleet.SkuComponents) bool {
	has, wants := map[string][2]int{}, map[string][2]int{}
	for _, cpu := range inventory.CpuInfo {
		has[cpu.Model] = [2]int{has[cpu.Model][0] + cpu.Sockets, has[cpu.Model][1] + cpu.Sockets*cpu.Threads}
	}
	for _, cpu := range c.Cpus {
		wants[cpu.Model] = [2]int{wants[cpu.Model][0] + cpu.Count, wants[cpu.Model][1] + cpu.Count*cpu.ThreadCount}
	}
	return maps.Equal(has, wants)
}

func judgeGpus(inventory fleet.Inventory, c fleet.SkuComponents) bool {
	has, wants := map[string][]string{}, map[string][]string{}
	for _, g := range inventory.Gpus {
		has[g.Name] = append(has[g.Name], g.TotalMemory)
	}
	for _, g := range c.Gpus {
		for range g.Count {
			wants[g.Model] = append(wants[g.Model], g.TotalMemory)
		}
	}
	return maps.EqualFunc(has, wants, func(has, wants []string) bool {
		if len(has) != len(wants) {
			return false
		}
		h, w := figures(has), figures(wants)
		switch {
		case len(h) == 0 || len(w) == 0:
			return true
		case len(h) == len(w):
			return pairs(h, w)
		}
		for _, x := range h {
			if !slices.ContainsFunc(w, func(y int) bool { return pairs([]int{x}, []int{y}) }) {
				return false
			}
		}
		return true
	})
}

// figures reads the figures that the random machines use: "<n> MiB", or garbage.
func figures(texts []string) (mib []int) {
	for _, text := range texts {
		if number, ok := strings.CutSuffix(text, " MiB"); ok {
			if n, err := strconv.Atoi(number); err == nil {
				mib = append(mib, n)
			}
		}
	}
	return mib
}

// pairs tells whether some pairing has every figure within an eighth.
func pairs(has, wants []int) bool {
	if len(has) == 0 {
		return true
	}
	for i, w := range wants {
		difference := has[0] - w
		if max(difference, -difference)*8 > w {
			continue
		}
		if pairs(has[1:], slices.Delete(slices.Clone(wants), i, i+1)) {
			return true
		}
	}
	return false
}

func judgeMemory(inventory fleet.Inventory, c fleet.SkuComponents) bool {
	type module struct {
		kind string
		size int64
	}
	has, wants := map[module]int{}, map[module]int{}
	for _, m := range inventory.MemoryDevices {
		if m.SizeMb != nil {
			kind := ""
			if m.MemType != nil {
				kind = *m.MemType
			}
			has[module{kind, *m.SizeMb}]++
		}
	}
	for _, m := range c.Memory {
		wants[module{m.MemoryType, m.CapacityMb}] += m.Count
	}
	return maps.Equal(has, wants)
}

func judgeInfiniband(inventory fleet.Inventory, ports []fleet.FabricPort, c fleet.SkuComponents) bool {
	type key struct{ vendor, model string }
	type value struct {
		count    int
		inactive string
	}
	interfaces := slices.Clone(inventory.InfinibandInterfaces)
	slices.SortFunc(interfaces, func(a, b fleet.InfinibandInterface) int {
		return strings.Compare(*a.PciProperties.Slot, *b.PciProperties.Slot)
	})
	has, wants := map[key]value{}, map[key]value{}
	text := func(indexes map[int]bool) string { return sprint(slices.Sorted(maps.Keys(indexes))) }
	inactive := map[key]map[int]bool{}
	for _, port := range interfaces {
		k := key{port.PciProperties.Vendor, *port.PciProperties.Description}
		up := slices.ContainsFunc(ports, func(p fleet.FabricPort) bool { return p.Guid == port.Guid && p.Lid != 0xffff })
		if inactive[k] == nil {
			inactive[k] = map[int]bool{}
		}
		if !up {
			inactive[k][has[k].count] = true
		}
		has[k] = value{count: has[k].count + 1, inactive: text(inactive[k])}
	}
	inactive = map[key]map[int]bool{}
	for _, d := range c.InfinibandDevices {
		k := key{d.Vendor, d.Model}
		if inactive[k] == nil {
			inactive[k] = map[int]bool{}
		}
		for _, i := range d.InactiveDevices {
			inactive[k][i] = true
		}
		wants[k] = value{count: wants[k].count + d.Count, inactive: text(inactive[k])}
	}
	return maps.Equal(has, wants)
}

func sprint(indexes []int) string {
	texts := []string{}
	for _, i := range indexes {
		texts = append(texts, strconv.Itoa(i))
	}
	return strings.Join(texts, ",")
}

func judgeTpm(inventory fleet.Inventory, c fleet.SkuComponents) bool {
	if inventory.TpmDescription == nil || c.Tpm == nil {
		return inventory.TpmDescription == nil && c.Tpm == nil
	}
	return inventory.TpmDescription.TpmSpec == c.Tpm.Version
}

func judgeStorage(inventory fleet.Inventory, c fleet.SkuComponents, version int) bool {
	has, wants := map[string]int{}, map[string]int{}
	switch version {
	case 0:
		return true
	case 1, 2:
		for _, b := range inventory.BlockDevices {
			if version == 1 || b.DeviceType == "disk" {
				has[b.Model]++
			}
		}
	case 3, 4:
		for _, n := range inventory.NvmeDevices {
			has[n.Model]++
		}
	default:
		return judgeDrives(c.Storage, inventory.NvmeDevices).match
	}
	for _, s := range c.Storage {
		wants[s.Model] += s.Count
	}
	return maps.Equal(has, wants)
}
