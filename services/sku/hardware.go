package sku

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"fleetgraph/fleet"
)

// hardware is a set of components in the form they are compared in: entries of
// one model are added up, entries that count nothing are gone, and every list is
// sorted by what identifies its entries. Two sets that differ in the order or the
// splitting of their lists only have the same form.
type hardware struct {
	chassis    fleet.Chassis
	cpus       []cpuTotal
	gpus       []gpuTotal
	infiniband []infinibandTotal
	memory     []memoryTotal
	models     []modelTotal // storage, schema versions 1 to 4
	tpm        *fleet.Tpm
}

// cpuTotal is the processors of one model; threads over all of its sockets.
type cpuTotal struct {
	model, vendor    string
	sockets, threads int
}

type gpuTotal struct {
	model, vendor string
	count         int
	memory        []memoryFigure
}

type infinibandTotal struct {
	vendor, model string
	count         int
	inactive      []int // sorted, distinct
}

// memoryTotal is the modules of one type and size, in MiB.
type memoryTotal struct {
	kind     string
	capacity int64
	count    int
}

type modelTotal struct {
	model string
	count int
}

// totalsOf brings components into the form they are compared in at a version.
// Version 5 storage is not part of it: see drivesOf and groupsOf.
func totalsOf(c fleet.SkuComponents, version int) *hardware {
	h := &hardware{
		chassis:    c.Chassis,
		cpus:       cpuTotals(c.Cpus),
		gpus:       gpuTotals(c.Gpus),
		infiniband: infinibandTotals(c.InfinibandDevices),
		memory:     memoryTotals(c.Memory),
	}
	if version >= versionStorage && version < versionLocation {
		h.models = modelTotals(c.Storage)
	}
	if version >= versionTpm {
		h.tpm = c.Tpm
	}
	return h
}

func cpuTotals(cpus []fleet.Cpu) []cpuTotal {
	totals := make([]cpuTotal, 0, len(cpus))
	for _, c := range cpus {
		if c.Count <= 0 {
			continue
		}
		totals = append(totals, cpuTotal{model: c.Model, vendor: c.Vendor, sockets: c.Count, threads: c.Count * c.ThreadCount})
	}
	return mergeTotals(totals,
		compareCpuTotals,
		func(into *cpuTotal, t cpuTotal) {
			into.vendor = min(into.vendor, t.vendor)
			into.sockets += t.sockets
			into.threads += t.threads
		})
}

func gpuTotals(gpus []fleet.Gpu) []gpuTotal {
	totals := make([]gpuTotal, 0, len(gpus))
	for _, g := range gpus {
		if g.Count <= 0 {
			continue
		}
		figure := memoryFigure{text: g.TotalMemory, mib: parseGpuMemory(g.TotalMemory), count: g.Count}
		totals = append(totals, gpuTotal{model: g.Model, vendor: g.Vendor, count: g.Count, memory: []memoryFigure{figure}})
	}
	return mergeTotals(totals,
		compareGpuTotals,
		func(into *gpuTotal, t gpuTotal) {
			into.vendor = min(into.vendor, t.vendor)
			into.count += t.count
			into.memory = append(into.memory, t.memory...)
		})
}

func infinibandTotals(devices []fleet.InfinibandDevice) []infinibandTotal {
	totals := make([]infinibandTotal, 0, len(devices))
	for _, d := range devices {
		if d.Count > 0 {
			totals = append(totals, infinibandTotal{vendor: d.Vendor, model: d.Model, count: d.Count, inactive: slices.Clone(d.InactiveDevices)})
		}
	}
	totals = mergeTotals(totals,
		compareInfinibandTotals,
		func(into *infinibandTotal, t infinibandTotal) {
			into.count += t.count
			into.inactive = append(into.inactive, t.inactive...)
		})
	for i := range totals {
		slices.Sort(totals[i].inactive)
		totals[i].inactive = slices.Compact(totals[i].inactive)
	}
	return totals
}

func memoryTotals(memory []fleet.Memory) []memoryTotal {
	totals := make([]memoryTotal, 0, len(memory))
	for _, m := range memory {
		if m.Count > 0 {
			totals = append(totals, memoryTotal{kind: m.MemoryType, capacity: m.CapacityMb, count: m.Count})
		}
	}
	return mergeTotals(totals,
		compareMemoryTotals,
		func(into *memoryTotal, t memoryTotal) { into.count += t.count })
}

func modelTotals(groups []fleet.StorageGroup) []modelTotal {
	totals := make([]modelTotal, 0, len(groups))
	for _, g := range groups {
		if g.Count > 0 {
			totals = append(totals, modelTotal{model: g.Model, count: g.Count})
		}
	}
	return mergeTotals(totals,
		compareModelTotals,
		func(into *modelTotal, t modelTotal) { into.count += t.count })
}

func compareCpuTotals(a, b cpuTotal) int { return cmp.Compare(a.model, b.model) }

func compareGpuTotals(a, b gpuTotal) int { return cmp.Compare(a.model, b.model) }

func compareInfinibandTotals(a, b infinibandTotal) int {
	return cmp.Or(cmp.Compare(a.vendor, b.vendor), cmp.Compare(a.model, b.model))
}

func compareMemoryTotals(a, b memoryTotal) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.capacity, b.capacity))
}

func compareModelTotals(a, b modelTotal) int { return cmp.Compare(a.model, b.model) }

// sameThreads tells whether the threads per socket are the same. The products are
// compared in 128 bits, so no figure overflows.
func (t cpuTotal) sameThreads(other cpuTotal) bool {
	high, low := bits.Mul64(uint64(t.threads), uint64(other.sockets))
	otherHigh, otherLow := bits.Mul64(uint64(other.threads), uint64(t.sockets))
	return high == otherHigh && low == otherLow
}

// threadsText is the threads per socket, a fraction where the sockets differ.
func (t cpuTotal) threadsText() string {
	return strconv.FormatFloat(float64(t.threads)/float64(t.sockets), 'f', -1, 64)
}

func (t infinibandTotal) text() string {
	indexes := make([]string, 0, len(t.inactive))
	for _, i := range t.inactive {
		indexes = append(indexes, strconv.Itoa(i))
	}
	return fmt.Sprintf("count: %d, inactive_devices: [%s]", t.count, strings.Join(indexes, ", "))
}

func (t memoryTotal) String() string { return fmt.Sprintf("%s %d MiB", t.kind, t.capacity) }

func (t memoryTotal) total() int64 { return t.capacity * int64(t.count) }

func (t modelTotal) text() string { return fmt.Sprintf("model: %s count %d", t.model, t.count) }

func (t modelTotal) String() string { return t.model }

// mergeTotals sorts totals by order and adds up those that are equal under it.
func mergeTotals[T any](totals []T, order func(a, b T) int, add func(into *T, t T)) []T {
	slices.SortStableFunc(totals, order)
	merged := totals[:0]
	for _, t := range totals {
		if n := len(merged); n > 0 && order(merged[n-1], t) == 0 {
			add(&merged[n-1], t)
		} else {
			merged = append(merged, t)
		}
	}
	return merged
}

// pairUp walks two lists that are sorted by order and calls visit for each entry
// of either, with nil for the side that has none.
func pairUp[T any](expected, actual []T, order func(a, b T) int, visit func(expected, actual *T)) {
	for i, j := 0, 0; i < len(expected) || j < len(actual); {
		side := -1
		switch {
		case i == len(expected):
			side = 1
		case j < len(actual):
			side = order(expected[i], actual[j])
		}
		switch {
		case side < 0:
			visit(&expected[i], nil)
			i++
		case side > 0:
			visit(nil, &actual[j])
			j++
		default:
			visit(&expected[i], &actual[j])
			i++
			j++
		}
	}
}
