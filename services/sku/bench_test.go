package sku_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

// site makes machines of many kinds: 50 chassis models, each with drives of
// several sizes and numbers.
func site(kinds int) []fleet.Inventory {
	inventories := make([]fleet.Inventory, kinds)
	for k := range inventories {
		inventory := fleet.Inventory{
			MachineType: "x86_64",
			DmiData:     &fleet.DmiData{SysVendor: "Dell Inc.", ProductName: fmt.Sprint("PowerEdge R", 700+k%50)},
			CpuInfo:     []fleet.CpuInfo{{Model: "Intel(R) Xeon(R) Platinum 8480+", Vendor: "GenuineIntel", Sockets: 2, Cores: 56, Threads: 112}},
		}
		for g := range 8 {
			inventory.Gpus = append(inventory.Gpus, fleet.GpuDevice{Name: "NVIDIA H100 80GB HBM3", TotalMemory: "81559 MiB", Serial: strconv.Itoa(g)})
		}
		for range 32 {
			inventory.MemoryDevices = append(inventory.MemoryDevices, fleet.MemoryDevice{SizeMb: new(int64(65536)), MemType: new("DDR5")})
		}
		for d := range 8 + k/50%3 {
			inventory.NvmeDevices = append(inventory.NvmeDevices, fleet.NvmeDevice{
				Model:   "Dell Ent NVMe FIPS CM6 RI 3.84TB",
				SizeMb:  new(int64(3662830 + k)),
				PciPath: new(fmt.Sprintf("/devices/pci0000:48/0000:48:%02d.0/0000:%x:00.0/nvme/nvme%d", d+1, 0x49+d, d)),
			})
		}
		inventories[k] = inventory
	}
	return inventories
}

func siteSkus(tb testing.TB, inventories []fleet.Inventory) []sku.Sku {
	tb.Helper()
	skus := make([]sku.Sku, len(inventories))
	for k, inventory := range inventories {
		components, err := sku.Generate(inventory, nil, fleet.CurrentSchemaVersion)
		require.NoError(tb, err)
		skus[k] = sku.Sku{Name: fmt.Sprintf("sku%05d", k), SchemaVersion: fleet.CurrentSchemaVersion, Components: components}
	}
	return skus
}

// BenchmarkMatch matches 10,000 machines with an index of SKUs; ns/machine must
// not grow with the number of SKUs.
func BenchmarkMatch(b *testing.B) {
	for _, kinds := range []int{500, 5000} {
		b.Run(fmt.Sprintf("10000 machines x %d SKUs", kinds), func(b *testing.B) {
			inventories := site(kinds)
			index := sku.NewMatcher(sku.DefaultLimits()).NewIndex(siteSkus(b, inventories))
			b.ReportAllocs()
			for b.Loop() {
				for m := range 10_000 {
					if hits, err := index.Match(b.Context(), sku.NewMachine(inventories[m%kinds], nil)); err != nil || len(hits) != 1 {
						b.Fatal("one hit expected", len(hits))
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/machine")
		})
	}
}

func BenchmarkNewIndex(b *testing.B) {
	skus := siteSkus(b, site(5000))
	matcher := sku.NewMatcher(sku.DefaultLimits())
	for b.Loop() {
		matcher.NewIndex(skus)
	}
}

func BenchmarkCompare(b *testing.B) {
	inventory := site(1)[0]
	expected := siteSkus(b, []fleet.Inventory{inventory})[0]
	matcher := sku.NewMatcher(sku.DefaultLimits())
	machine := sku.NewMachine(inventory, nil)
	b.ReportAllocs()
	for b.Loop() {
		if c, err := matcher.Compare(b.Context(), machine, expected); err != nil || !c.Match {
			b.Fatal(err, c)
		}
	}
}

// BenchmarkExplain explains a machine that lacks a drive among 10,000 SKUs.
func BenchmarkExplain(b *testing.B) {
	inventories := site(10_000)
	index := sku.NewMatcher(sku.DefaultLimits()).NewIndex(siteSkus(b, inventories))
	inventory := inventories[77]
	inventory.NvmeDevices = inventory.NvmeDevices[1:]
	for b.Loop() {
		machine := sku.NewMachine(inventory, nil)
		if got, err := index.Explain(b.Context(), machine, 3); err != nil || got[0].Distance != 1 || got[0].Sku.Name != "sku00077" {
			b.Fatal(got[0])
		}
	}
}

// BenchmarkLargeAssignment compares 512 drives with groups that share patterns
// and overlap in size, of which half the slots stay empty.
func BenchmarkLargeAssignment(b *testing.B) {
	var inventory fleet.Inventory
	components := fleet.SkuComponents{}
	for d := range 512 {
		inventory.NvmeDevices = append(inventory.NvmeDevices, fleet.NvmeDevice{
			SizeMb:  new(int64(1000 + d)),
			PciPath: new(fmt.Sprintf("/devices/pci0000:%02x/0000:%02x.%d/nvme/nvme%d", d%64, d%64, d/64, d)),
		})
		components.Storage = append(components.Storage, fleet.StorageGroup{
			Count: 2, MinSizeMb: new(int64(1000 + d/2)), MaxSizeMb: new(int64(1040 + d/2)),
			PciPatterns: []string{fmt.Sprintf("pci0000:[0-9a-f]%x/", d%16)},
		})
	}
	matcher := sku.NewMatcher(sku.DefaultLimits())
	machine := sku.NewMachine(inventory, nil)
	expected := sku.Sku{SchemaVersion: 5, Components: components}
	for b.Loop() {
		if _, err := matcher.Compare(b.Context(), machine, expected); err != nil {
			b.Fatal(err)
		}
	}
}
