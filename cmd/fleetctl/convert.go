package main

import (
	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

// document is the file form of a SKU of the server.
func document(s client.SkuFields, machines []client.SkuMachine) sku.Document {
	ids := make([]string, len(machines))
	for i := range machines {
		ids[i] = machines[i].Id
	}
	return sku.Document{
		ID:                   s.Name,
		Description:          &s.Description,
		Created:              &s.CreatedAt,
		Components:           components(s.Components),
		SchemaVersion:        s.SchemaVersion,
		AssociatedMachineIDs: ids,
		DeviceType:           s.DeviceType,
	}
}

// components is the hardware as the domain has it.
func components(c client.ComponentsFields) fleet.SkuComponents {
	out := fleet.SkuComponents{Chassis: fleet.Chassis(c.Chassis)}
	for _, cpu := range c.Cpus {
		out.Cpus = append(out.Cpus, fleet.Cpu(cpu))
	}
	for _, gpu := range c.Gpus {
		out.Gpus = append(out.Gpus, fleet.Gpu(gpu))
	}
	for _, device := range c.InfinibandDevices {
		out.InfinibandDevices = append(out.InfinibandDevices, fleet.InfinibandDevice(device))
	}
	for _, group := range c.Storage {
		out.Storage = append(out.Storage, fleet.StorageGroup(group))
	}
	for _, memory := range c.Memory {
		out.Memory = append(out.Memory, fleet.Memory(memory))
	}
	if c.Tpm != nil {
		tpm := fleet.Tpm(*c.Tpm)
		out.Tpm = &tpm
	}
	return out
}

// componentsInput is the hardware as mutations take it. Lists are never null:
// the API does not take null for an empty one.
func componentsInput(c fleet.SkuComponents) client.SkuComponentsInput {
	in := client.SkuComponentsInput{
		Chassis:           client.ChassisComponentInput(c.Chassis),
		Cpus:              []client.CpuComponentInput{},
		Gpus:              []client.GpuComponentInput{},
		InfinibandDevices: []client.InfinibandComponentInput{},
		Storage:           []client.StorageComponentInput{},
		Memory:            []client.MemoryComponentInput{},
	}
	for _, cpu := range c.Cpus {
		in.Cpus = append(in.Cpus, client.CpuComponentInput(cpu))
	}
	for _, gpu := range c.Gpus {
		in.Gpus = append(in.Gpus, client.GpuComponentInput(gpu))
	}
	for _, device := range c.InfinibandDevices {
		device.InactiveDevices = list(device.InactiveDevices)
		in.InfinibandDevices = append(in.InfinibandDevices, client.InfinibandComponentInput(device))
	}
	for _, group := range c.Storage {
		group.PciPatterns = list(group.PciPatterns)
		in.Storage = append(in.Storage, client.StorageComponentInput(group))
	}
	for _, memory := range c.Memory {
		in.Memory = append(in.Memory, client.MemoryComponentInput(memory))
	}
	if c.Tpm != nil {
		tpm := client.TpmComponentInput(*c.Tpm)
		in.Tpm = &tpm
	}
	return in
}

// mismatches are the differences as the domain has them.
func mismatches(fields []client.MismatchFields) []fleet.Mismatch {
	out := make([]fleet.Mismatch, len(fields))
	for i, m := range fields {
		out[i] = fleet.Mismatch(m)
	}
	return out
}

func notes(fields []client.NoteFields) []fleet.Note {
	out := make([]fleet.Note, len(fields))
	for i, n := range fields {
		out[i] = fleet.Note(n)
	}
	return out
}

func edits(fields []client.Edit) []fleet.Edit {
	out := make([]fleet.Edit, len(fields))
	for i, e := range fields {
		out[i] = fleet.Edit(e)
	}
	return out
}
