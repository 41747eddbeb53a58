package sku

import (
	"cmp"
	"slices"

	"fleetgraph/fleet"
)

// First schema versions of what a SKU records: before versionDisks partitions
// count as drives, from versionNvme on the NVMe controllers are the source, from
// versionTpm on there is a TPM, from versionLocation on a drive has a size and a
// PCI location.
const (
	versionStorage  = 1
	versionDisks    = 2
	versionNvme     = 3
	versionTpm      = 4
	versionLocation = 5
)

// gpuVendor is the vendor of every generated GPU: the host agent finds them with
// NVIDIA's tool.
const gpuVendor = "NVIDIA"

// Generate describes a machine as a SKU of the given schema version. Ports is the
// last observation of the fabric; nil means that there is none, and then no
// InfiniBand port is active. Lists come out sorted, so equal machines give equal
// components. The error is INVALID_ARGUMENT for a version that does not exist.
func Generate(inventory fleet.Inventory, ports []fleet.FabricPort, version int) (fleet.SkuComponents, error) {
	return generate(inventory, ports, version, false)
}

// generate is Generate; with everyMemory set, GPUs of one model are kept apart by
// their memory figures at every version, which is what a comparison needs.
func generate(inventory fleet.Inventory, ports []fleet.FabricPort, version int, everyMemory bool) (fleet.SkuComponents, error) {
	if !Supported(version) {
		return fleet.SkuComponents{}, versionError(version)
	}
	components := fleet.SkuComponents{
		Chassis:           fleet.Chassis{Architecture: inventory.MachineType},
		Cpus:              generateCpus(inventory.CpuInfo),
		Gpus:              generateGpus(inventory.Gpus),
		InfinibandDevices: generateInfiniband(inventory.InfinibandInterfaces, ports),
		Storage:           generateStorage(inventory, version),
		Memory:            generateMemory(inventory.MemoryDevices),
	}
	if version >= versionDisks && !everyMemory {
		components.Gpus = mergeGpuMemory(components.Gpus)
	}
	if dmi := inventory.DmiData; dmi != nil {
		components.Chassis.Vendor, components.Chassis.Model = dmi.SysVendor, dmi.ProductName
	}
	if tpm := inventory.TpmDescription; tpm != nil && version >= versionTpm {
		components.Tpm = &fleet.Tpm{Vendor: tpm.Vendor, Version: tpm.TpmSpec}
	}
	return components, nil
}

func generateCpus(infos []fleet.CpuInfo) []fleet.Cpu {
	cpus := make([]fleet.Cpu, 0, len(infos))
	for _, info := range infos {
		cpus = append(cpus, fleet.Cpu{Vendor: info.Vendor, Model: info.Model, ThreadCount: info.Threads, Count: info.Sockets})
	}
	slices.SortFunc(cpus, func(a, b fleet.Cpu) int {
		return cmp.Or(cmp.Compare(a.Vendor, b.Vendor), cmp.Compare(a.Model, b.Model),
			cmp.Compare(a.ThreadCount, b.ThreadCount), cmp.Compare(a.Count, b.Count))
	})
	return cpus
}

func generateGpus(devices []fleet.GpuDevice) []fleet.Gpu {
	gpus := make([]fleet.Gpu, 0, 1)
	for _, d := range devices {
		same := func(g fleet.Gpu) bool { return g.Model == d.Name && g.TotalMemory == d.TotalMemory }
		if i := slices.IndexFunc(gpus, same); i >= 0 {
			gpus[i].Count++
			continue
		}
		gpus = append(gpus, fleet.Gpu{Vendor: gpuVendor, Model: d.Name, TotalMemory: d.TotalMemory, Count: 1})
	}
	slices.SortFunc(gpus, func(a, b fleet.Gpu) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.TotalMemory, b.TotalMemory))
	})
	return gpus
}

// mergeGpuMemory joins the entries of a model whose memory figures are equal
// within the tolerance of a comparison, under the most frequent figure; ECC set
// differently on one GPU changes its figure. Entries that differ by more stay
// apart, since one figure would describe another machine. The input is sorted.
func mergeGpuMemory(gpus []fleet.Gpu) []fleet.Gpu {
	merged := gpus[:0]
	for len(gpus) > 0 {
		n := 1
		for n < len(gpus) && gpus[n].Model == gpus[0].Model {
			n++
		}
		model := gpus[:n]
		gpus = gpus[n:]
		if !alikeMemory(model) {
			merged = append(merged, model...)
			continue
		}
		most, count := model[0], 0
		for _, g := range model {
			count += g.Count
			if g.Count > most.Count {
				most = g
			}
		}
		most.Count = count
		merged = append(merged, most)
	}
	return merged
}

func generateMemory(devices []fleet.MemoryDevice) []fleet.Memory {
	type module struct {
		kind string
		size int64
	}
	counts := make(map[module]int, 1)
	for _, d := range devices {
		if d.SizeMb == nil {
			continue
		}
		m := module{size: *d.SizeMb}
		if d.MemType != nil {
			m.kind = *d.MemType
		}
		counts[m]++
	}
	memory := make([]fleet.Memory, 0, len(counts))
	for m, n := range counts {
		memory = append(memory, fleet.Memory{MemoryType: m.kind, CapacityMb: m.size, Count: n})
	}
	slices.SortFunc(memory, func(a, b fleet.Memory) int {
		return cmp.Or(cmp.Compare(a.MemoryType, b.MemoryType), cmp.Compare(a.CapacityMb, b.CapacityMb))
	})
	return memory
}

// generateInfiniband groups the ports by description. A port's index within its
// group follows the slot text; ports of one slot, or of none, follow their path.
// A port without a description is not recorded.
func generateInfiniband(interfaces []fleet.InfinibandInterface, ports []fleet.FabricPort) []fleet.InfinibandDevice {
	active := make(map[string]bool, len(ports))
	for _, p := range ports {
		active[p.Guid] = p.Lid != fleet.InactiveLid
	}
	sorted := make([]fleet.InfinibandInterface, 0, len(interfaces))
	for _, i := range interfaces {
		if i.PciProperties != nil && i.PciProperties.Description != nil {
			sorted = append(sorted, i)
		}
	}
	slices.SortStableFunc(sorted, func(a, b fleet.InfinibandInterface) int {
		return cmp.Or(cmp.Compare(slot(a), slot(b)),
			cmp.Compare(a.PciProperties.Path, b.PciProperties.Path), cmp.Compare(a.Guid, b.Guid))
	})
	devices := make([]fleet.InfinibandDevice, 0, 2)
	for _, port := range sorted {
		model := *port.PciProperties.Description
		i := slices.IndexFunc(devices, func(d fleet.InfinibandDevice) bool { return d.Model == model })
		if i < 0 {
			i = len(devices)
			devices = append(devices, fleet.InfinibandDevice{Vendor: port.PciProperties.Vendor, Model: model, InactiveDevices: []int{}})
		}
		if !active[port.Guid] {
			devices[i].InactiveDevices = append(devices[i].InactiveDevices, devices[i].Count)
		}
		devices[i].Count++
	}
	slices.SortFunc(devices, func(a, b fleet.InfinibandDevice) int {
		return cmp.Or(cmp.Compare(a.Vendor, b.Vendor), cmp.Compare(a.Model, b.Model))
	})
	return devices
}

func slot(i fleet.InfinibandInterface) string {
	if i.PciProperties.Slot == nil {
		return ""
	}
	return *i.PciProperties.Slot
}
