package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

// skuGrid is the list of SKUs.
func (a *app) skuGrid(documents []sku.Document) *grid {
	g := &grid{headers: []string{"ID", "Description", "Model", "Created"}}
	if a.flags.extended {
		g.headers = append(g.headers, "Schema Version", "Device Type", "Machines")
	}
	for _, d := range documents {
		row := []cell{text(d.ID), optional(d.Description), text(d.Components.Chassis.Model), created(d)}
		if a.flags.extended {
			row = append(row, number(d.SchemaVersion), optional(d.DeviceType), number(len(d.AssociatedMachineIDs)))
		}
		g.add(row...)
	}
	return g
}

// skuPage is one SKU in full. machines is only shown when the extended form is
// asked for.
func (a *app) skuPage(p *page, d sku.Document, machines []client.SkuMachine) {
	c := d.Components
	p.field("ID", d.ID)
	p.field("Schema Version", strconv.Itoa(d.SchemaVersion))
	p.optional("Description", d.Description)
	p.optional("Device Type", d.DeviceType)
	p.field("Model", c.Chassis.Model)
	p.field("Architecture", c.Chassis.Architecture)
	p.field("Created At", created(d)[0])
	if c.Tpm != nil {
		p.field("TPM Version", c.Tpm.Version)
	}
	p.blank()
	p.section("CPUs", cpuGrid(c.Cpus))
	p.section("GPUs", gpuGrid(c.Gpus))
	title := "Memory"
	if len(c.Memory) > 0 {
		title = fmt.Sprintf("Memory (%s)", memoryTotal(c.Memory))
	}
	p.section(title, memoryGrid(c.Memory))
	p.section("IB Devices", infinibandGrid(c.InfinibandDevices))
	if d.SchemaVersion > fleet.OldestSchemaVersion {
		p.section("Storage Devices", storageGrid(c.Storage))
	}
	if a.flags.extended {
		g := &grid{headers: []string{"Machine ID", "Name"}}
		for _, m := range machines {
			g.add(text(m.Id), text(m.Name))
		}
		p.section("Assigned Machines", g)
	}
}

func created(d sku.Document) cell {
	if d.Created == nil {
		return text("")
	}
	return text(moment(*d.Created))
}

// moment writes a time for people: RFC 3339 in UTC, to the second. JSON has the
// fraction too.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func cpuGrid(cpus []fleet.Cpu) *grid {
	g := &grid{headers: []string{"Vendor", "Model", "Threads", "Count"}}
	for _, c := range cpus {
		g.add(text(c.Vendor), text(c.Model), number(c.ThreadCount), number(c.Count))
	}
	return g
}

func gpuGrid(gpus []fleet.Gpu) *grid {
	g := &grid{headers: []string{"Vendor", "Total Memory", "Model", "Count"}}
	for _, c := range gpus {
		g.add(text(c.Vendor), text(c.TotalMemory), text(c.Model), number(c.Count))
	}
	return g
}

func memoryGrid(memory []fleet.Memory) *grid {
	g := &grid{headers: []string{"Type", "Capacity", "Count"}}
	for _, m := range memory {
		g.add(text(m.MemoryType), text(memoryTotal([]fleet.Memory{{CapacityMb: m.CapacityMb, Count: 1}})), number(m.Count))
	}
	return g
}

// memoryTotal is the amount of memory in the words of a SKU's description, whose
// last part it is where there are no InfiniBand ports.
func memoryTotal(memory []fleet.Memory) string {
	description := sku.Describe(fleet.SkuComponents{Memory: memory})
	return description[strings.LastIndex(description, "; ")+2:]
}

func infinibandGrid(devices []fleet.InfinibandDevice) *grid {
	g := &grid{headers: []string{"Vendor", "Model", "Count", "Inactive Devices"}}
	for _, d := range devices {
		inactive, _ := json.Marshal(list(d.InactiveDevices)) // numbers
		g.add(text(d.Vendor), text(d.Model), number(d.Count), text(string(inactive)))
	}
	return g
}

func storageGrid(groups []fleet.StorageGroup) *grid {
	g := &grid{headers: []string{"Model", "Count", "Size (MiB)", "PCI Patterns"}}
	for _, s := range groups {
		g.add(text(s.Model), number(s.Count), text(sizeRange(s)), cell(s.PciPatterns))
	}
	return g
}

// sizeRange is empty where there is no bound; a single open bound is a star.
func sizeRange(s fleet.StorageGroup) string {
	if s.MinSizeMb == nil && s.MaxSizeMb == nil {
		return ""
	}
	bound := func(n *int64) string {
		if n == nil {
			return "*"
		}
		return strconv.FormatInt(*n, 10)
	}
	return bound(s.MinSizeMb) + "-" + bound(s.MaxSizeMb)
}
