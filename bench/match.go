package main

import (
	"context"
	"fmt"
	"time"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

const machinesToMatch = 10_000

// benchMatch matches 10,000 machines against 500 SKUs and against ten times as
// many: the cost of a machine should not grow with the SKUs.
func benchMatch(ctx context.Context, rounds int) ([]Row, error) {
	few, err := matchCost(ctx, 500, rounds)
	if err != nil {
		return nil, err
	}
	many, err := matchCost(ctx, 5000, rounds)
	if err != nil {
		return nil, err
	}
	name := func(skus int) string { return fmt.Sprintf("match %d machines against %d SKUs", machinesToMatch, skus) }
	return []Row{
		{Name: name(500), Figure: few, Unit: "µs a machine"},
		{Name: name(5000), Figure: many, Unit: "µs a machine", Ratio: many / few, Beside: "500 SKUs", Want: "about 1"},
	}, nil
}

// matchCost is the median time to match one machine, in microseconds. Each machine
// matches exactly one SKU.
func matchCost(ctx context.Context, kinds, rounds int) (float64, error) {
	skus := make([]sku.Sku, kinds)
	for k := range skus {
		components, err := sku.Generate(hardware(k), nil, fleet.CurrentSchemaVersion)
		if err != nil {
			return 0, err
		}
		skus[k] = sku.Sku{Name: fmt.Sprintf("kind.%05d", k), SchemaVersion: fleet.CurrentSchemaVersion, Components: components}
	}
	index := sku.NewMatcher(sku.DefaultLimits()).NewIndex(skus)
	inventories := make([]fleet.Inventory, machinesToMatch)
	for i := range inventories {
		inventories[i] = hardware(i % kinds)
	}
	var costs []float64
	for range rounds {
		start := time.Now()
		for i := range inventories {
			hits, err := index.Match(ctx, sku.NewMachine(inventories[i], nil))
			if err != nil {
				return 0, err
			}
			if len(hits) != 1 || hits[0].Sku.Name != skus[i%kinds].Name {
				return 0, fmt.Errorf("machine %d matches %d SKUs", i, len(hits))
			}
		}
		costs = append(costs, float64(time.Since(start).Microseconds())/machinesToMatch)
	}
	return median(costs), nil
}

// hardware is the inventory of a machine of one kind: 8 GPUs, 32 modules of memory
// and 8 drives, told apart by chassis model, drive sizes and sockets.
func hardware(kind int) fleet.Inventory {
	inventory := fleet.Inventory{
		MachineType: "x86_64",
		DmiData:     &fleet.DmiData{SysVendor: "Dell Inc.", ProductName: fmt.Sprintf("PowerEdge R%d", 700+kind%50), ProductSerial: fmt.Sprintf("S%06d", kind)},
		CpuInfo: []fleet.CpuInfo{{
			Model: "Intel(R) Xeon(R) Platinum 8480+", Vendor: "GenuineIntel", Sockets: 1 + kind/50%4, Cores: 56, Threads: 112,
		}},
		TpmDescription: &fleet.TpmDescription{Vendor: "NPCT75x", TpmSpec: "2.0"},
	}
	for range 8 {
		inventory.Gpus = append(inventory.Gpus, fleet.GpuDevice{Name: "NVIDIA H100 80GB HBM3", TotalMemory: "81559 MiB"})
	}
	for range 32 {
		inventory.MemoryDevices = append(inventory.MemoryDevices, fleet.MemoryDevice{SizeMb: new(int64(65536)), MemType: new("DDR5")})
	}
	for d := range 8 {
		inventory.NvmeDevices = append(inventory.NvmeDevices, fleet.NvmeDevice{
			Model: "KIOXIA KCD8DRUG7T68", SizeMb: new(int64(1_000_000 + kind/200*1000)),
			PciPath: new(fmt.Sprintf("/devices/pci0000:64/0000:64:%02x.0/0000:%02x:00.0/nvme/nvme%d", d, 0x65+d, d)),
		})
	}
	return inventory
}
