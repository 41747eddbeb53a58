package sku_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

// random makes small machines and SKUs from few values, so that near matches and
// exact matches are both frequent.
type random struct{ *rand.Rand }

func pick[T any](r random, values ...T) T { return values[r.IntN(len(values))] }

func (r random) machine() (fleet.Inventory, []fleet.FabricPort) {
	inventory := fleet.Inventory{
		MachineType: pick(r, "x86_64", "x86_64", "aarch64"),
		DmiData:     &fleet.DmiData{SysVendor: pick(r, "Dell Inc.", ""), ProductName: pick(r, "R760", "R760", "XE9680")},
	}
	for range r.IntN(3) {
		inventory.CpuInfo = append(inventory.CpuInfo, fleet.CpuInfo{Model: pick(r, "A", "B"), Sockets: 1 + r.IntN(2), Threads: pick(r, 20, 40)})
	}
	for range r.IntN(4) {
		inventory.Gpus = append(inventory.Gpus, fleet.GpuDevice{Name: pick(r, "H100", "H100", "L40"), TotalMemory: pick(r, "80000 MiB", "76000 MiB", "40000 MiB", "[N/A]")})
	}
	for range r.IntN(4) {
		inventory.MemoryDevices = append(inventory.MemoryDevices, fleet.MemoryDevice{SizeMb: pick(r, nil, new(int64(16)), new(int64(32))), MemType: pick(r, nil, new("DDR5"))})
	}
	var ports []fleet.FabricPort
	for i := range r.IntN(4) {
		guid := fmt.Sprint("guid", i)
		inventory.InfinibandInterfaces = append(inventory.InfinibandInterfaces, fleet.InfinibandInterface{
			Guid:          guid,
			PciProperties: &fleet.PciProperties{Vendor: "mlx", Description: new(pick(r, "CX5", "CX7")), Slot: new(fmt.Sprint("0000:0", i))},
		})
		if r.IntN(2) == 0 {
			ports = append(ports, fleet.FabricPort{Guid: guid, Lid: pick(r, 1, 0xffff)})
		}
	}
	if r.IntN(2) == 0 {
		inventory.TpmDescription = &fleet.TpmDescription{TpmSpec: pick(r, "1.2", "2.0")}
	}
	for i := range r.IntN(5) {
		drive := fleet.NvmeDevice{Model: pick(r, "M", "N"), SizeMb: pick(r, nil, new(int64(100)), new(int64(100)), new(int64(200)))}
		if r.IntN(6) > 0 {
			drive.PciPath = new(fmt.Sprintf("/devices/0%d.%d/nvme/nvme%d", r.IntN(3), r.IntN(2), i))
		}
		inventory.NvmeDevices = append(inventory.NvmeDevices, drive)
		inventory.BlockDevices = append(inventory.BlockDevices, fleet.BlockDevice{Model: drive.Model, DeviceType: pick(r, "disk", "partition")})
	}
	return inventory, ports
}

// sku returns a SKU that is often the machine's own, often nearly so, and whose
// lists are split and shuffled.
func (r random) sku(inventory fleet.Inventory, ports []fleet.FabricPort, name string) sku.Sku {
	version := pick(r, 0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5)
	c, _ := sku.Generate(inventory, ports, version)
	if r.IntN(8) == 0 {
		other, otherPorts := r.machine()
		o, _ := sku.Generate(other, otherPorts, version)
		switch r.IntN(6) {
		case 0:
			c.Chassis = o.Chassis
		case 1:
			c.Cpus = o.Cpus
		case 2:
			c.Gpus = o.Gpus
		case 3:
			c.Memory = o.Memory
		case 4:
			c.InfinibandDevices = o.InfinibandDevices
		case 5:
			c.Storage, c.Tpm = o.Storage, o.Tpm
		}
	}
	if version == 5 && r.IntN(3) > 0 {
		c.Storage = r.groups()
	}
	for i := range c.Gpus {
		if r.IntN(6) == 0 {
			c.Gpus[i].TotalMemory = pick(r, "80000 MiB", "71112 MiB", "70000 MiB", "", "40000 MiB")
		}
	}
	for i := range c.Cpus {
		if c.Cpus[i].Count == 2 && r.IntN(2) == 0 {
			c.Cpus[i].Count = 1
			c.Cpus = append(c.Cpus, c.Cpus[i])
		}
	}
	return sku.Sku{Name: name, SchemaVersion: version, Components: r.shuffleComponents(c)}
}

func (r random) groups() []fleet.StorageGroup {
	patterns := []string{"/nvme", `/00\.0/`, "/01.", "0[12]", `\.1/nvme$`, "/02.1/", "/devices/00.0/nvme", "none"}
	groups := []fleet.StorageGroup{}
	for range r.IntN(4) {
		g := fleet.StorageGroup{Model: pick(r, "", "M"), Count: r.IntN(3)}
		if r.IntN(2) == 0 {
			g.MinSizeMb = new(pick[int64](r, 50, 100, 150))
		}
		if r.IntN(2) == 0 {
			g.MaxSizeMb = new(pick[int64](r, 150, 200, 250))
		}
		for range r.IntN(3) {
			g.PciPatterns = append(g.PciPatterns, pick(r, patterns...))
		}
		groups = append(groups, g)
	}
	return groups
}

func shuffled[T any](r random, items []T) []T {
	items = slices.Clone(items)
	r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items
}

func (r random) shuffleComponents(c fleet.SkuComponents) fleet.SkuComponents {
	c.Cpus, c.Gpus, c.Memory = shuffled(r, c.Cpus), shuffled(r, c.Gpus), shuffled(r, c.Memory)
	c.InfinibandDevices, c.Storage = shuffled(r, c.InfinibandDevices), shuffled(r, c.Storage)
	for i := range c.InfinibandDevices {
		c.InfinibandDevices[i].InactiveDevices = shuffled(r, c.InfinibandDevices[i].InactiveDevices)
	}
	return c
}

func (r random) shuffleInventory(i fleet.Inventory) fleet.Inventory {
	i.CpuInfo, i.Gpus, i.MemoryDevices = shuffled(r, i.CpuInfo), shuffled(r, i.Gpus), shuffled(r, i.MemoryDevices)
	i.BlockDevices, i.NvmeDevices = shuffled(r, i.BlockDevices), shuffled(r, i.NvmeDevices)
	i.InfinibandInterfaces = shuffled(r, i.InfinibandInterfaces)
	return i
}

// TestComparisonAgreesWithExhaustion runs 100,000 pairs of a machine and a SKU
// against the oracle: the same verdict, the same assignment figures, and the same
// result in whatever order lists come. With -short it runs 10,000.
func TestComparisonAgreesWithExhaustion(t *testing.T) {
	t.Parallel()
	const skusEach = 4
	machines := 25_000
	if testing.Short() {
		machines = 2_500
	}
	r := random{rand.New(rand.NewPCG(1, 5))}
	matcher := sku.NewMatcher(sku.DefaultLimits())
	matched, partial := 0, 0
	for range machines {
		inventory, ports := r.machine()
		machine := sku.NewMachine(inventory, ports)
		skus := make([]sku.Sku, skusEach)
		want := []string{}
		for i := range skus {
			s := r.sku(inventory, ports, fmt.Sprint("sku", i))
			skus[i] = s
			got, err := matcher.Compare(t.Context(), machine, s)
			require.NoError(t, err)
			if match := judge(inventory, ports, s.Components, s.SchemaVersion); match != got.Match {
				require.Failf(t, "verdict", "oracle says %v\nmachine %+v\nports %v\nsku %+v\n%+v", match, inventory, ports, s, got.Mismatches)
			}
			if got.Match {
				matched++
				want = append(want, s.Name)
				require.Equal(t, sku.Key(s.Components), machine.Key())
			}
			if s.SchemaVersion == 5 {
				if v := judgeDrives(s.Components.Storage, inventory.NvmeDevices); !v.match {
					partial++
					requireAssignment(t, v, got)
				}
			}
			other := s
			other.Components = r.shuffleComponents(s.Components)
			again, err := matcher.Compare(t.Context(), sku.NewMachine(r.shuffleInventory(inventory), shuffled(r, ports)), other)
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
		requireSearch(t, matcher, machine, skus, want)
	}
	require.Greater(t, matched, machines*skusEach/20)
	require.Greater(t, partial, machines*skusEach/20)
}

// requireAssignment checks that the reported assignment is one that places the
// most drives with the fewest size faults.
func requireAssignment(t *testing.T, v verdict, got fleet.Comparison) {
	t.Helper()
	unplaced, faults := 0, 0
	for _, m := range got.Mismatches {
		if m.Component != fleet.ComponentStorage {
			continue
		}
		if m.Kind == fleet.MismatchUnexpected {
			unplaced++
		}
		if m.Attribute == "size_mb" {
			faults++
		}
	}
	require.Equal(t, v.drives-v.placed, unplaced)
	require.Equal(t, v.faults, faults)
}

// requireSearch checks that an index finds the matching SKUs and no others, and
// that explanations agree with comparisons and come in order.
func requireSearch(t *testing.T, matcher *sku.Matcher, machine *sku.Machine, skus []sku.Sku, want []string) {
	t.Helper()
	index := matcher.NewIndex(skus)
	got := []string{}
	hits, err := index.Match(t.Context(), machine)
	require.NoError(t, err)
	for _, hit := range hits {
		got = append(got, hit.Sku.Name)
	}
	require.Equal(t, want, got)
	all, err := index.Explain(t.Context(), machine, len(skus))
	require.NoError(t, err)
	require.Len(t, all, len(skus))
	for i, c := range all {
		require.Equal(t, c.Comparison.Match, c.Distance == 0)
		require.Equal(t, c.Distance == 0, len(c.Edits) == 0)
		if i > 0 {
			before := all[i-1]
			require.True(t, before.Distance < c.Distance || before.Distance == c.Distance && strings.Compare(before.Sku.Name, c.Sku.Name) < 0)
		}
	}
	two, err := index.Explain(t.Context(), machine, 2)
	require.NoError(t, err)
	require.Equal(t, all[:2], two)
}

// TestDriveEditsAreTheFewest checks the number of drives to exchange against the
// oracle: as many as the largest assignment without faults leaves over.
func TestDriveEditsAreTheFewest(t *testing.T) {
	t.Parallel()
	r := random{rand.New(rand.NewPCG(2, 5))}
	matcher := sku.NewMatcher(sku.DefaultLimits())
	for range 20_000 {
		inventory, ports := r.machine()
		c, err := sku.Generate(inventory, ports, 5)
		require.NoError(t, err)
		c.Storage = r.groups()
		explained, err := matcher.Explain(t.Context(), sku.NewMachine(inventory, ports), []sku.Sku{{Name: "s", SchemaVersion: 5, Components: c}}, 1)
		require.NoError(t, err)
		require.Len(t, explained, 1)
		exchanged := 0
		for _, e := range explained[0].Edits {
			if e.Component == fleet.ComponentStorage && e.Action != fleet.EditChange {
				exchanged += e.Count
			}
		}
		v := judgeDrives(c.Storage, inventory.NvmeDevices)
		require.Equal(t, max(v.drives, v.slots)-v.eligible, exchanged)
	}
}
