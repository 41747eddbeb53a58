package sku

import (
	"bytes"
	"encoding/json"
	"time"

	"fleetgraph/fleet"
)

// Document is a SKU in the JSON form of the command line, which `sku show` and
// `sku generate` write and `sku create` and `sku replace` read. Created and
// AssociatedMachineIDs are information for the reader: a SKU is stored with the
// server's own time. Nil pointers are null or missing keys.
type Document struct {
	ID                   string
	Description          *string
	Created              *time.Time
	Components           fleet.SkuComponents
	SchemaVersion        int
	AssociatedMachineIDs []string
	DeviceType           *string
}

// Sku returns what the document describes, under its id.
func (d Document) Sku() Sku {
	return Sku{Name: d.ID, SchemaVersion: d.SchemaVersion, Components: d.Components}
}

// The types below fix the keys of a written document and their order. Lists are
// never null; `ethernet_devices` and the storage keys `vendor` and `capacity_mb`
// belong to the form and carry nothing.
type documentJSON struct {
	ID                   string         `json:"id"`
	Description          *string        `json:"description"`
	Created              *string        `json:"created"`
	Components           componentsJSON `json:"components"`
	SchemaVersion        int            `json:"schema_version"`
	AssociatedMachineIDs []string       `json:"associated_machine_ids"`
	DeviceType           *string        `json:"device_type"`
}

type componentsJSON struct {
	Chassis           fleet.Chassis            `json:"chassis"`
	Cpus              []fleet.Cpu              `json:"cpus"`
	Gpus              []fleet.Gpu              `json:"gpus"`
	EthernetDevices   []struct{}               `json:"ethernet_devices"`
	InfinibandDevices []fleet.InfinibandDevice `json:"infiniband_devices"`
	Storage           []storageJSON            `json:"storage"`
	Memory            []fleet.Memory           `json:"memory"`
	Tpm               *fleet.Tpm               `json:"tpm"`
}

type storageJSON struct {
	Vendor      string   `json:"vendor"`
	Model       string   `json:"model"`
	Count       int      `json:"count"`
	CapacityMb  int64    `json:"capacity_mb"`
	MinSizeMb   *int64   `json:"min_size_mb"`
	MaxSizeMb   *int64   `json:"max_size_mb"`
	PciPatterns []string `json:"pci_patterns"`
}

// MarshalJSON writes the document with its keys in the order of the command
// line, times in RFC 3339 and UTC.
func (d Document) MarshalJSON() ([]byte, error) {
	wire := documentJSON{
		ID:                   d.ID,
		Description:          d.Description,
		SchemaVersion:        d.SchemaVersion,
		AssociatedMachineIDs: list(d.AssociatedMachineIDs),
		DeviceType:           d.DeviceType,
		Components: componentsJSON{
			Chassis:           d.Components.Chassis,
			Cpus:              list(d.Components.Cpus),
			Gpus:              list(d.Components.Gpus),
			EthernetDevices:   []struct{}{},
			InfinibandDevices: make([]fleet.InfinibandDevice, 0, len(d.Components.InfinibandDevices)),
			Storage:           make([]storageJSON, 0, len(d.Components.Storage)),
			Memory:            list(d.Components.Memory),
			Tpm:               d.Components.Tpm,
		},
	}
	if d.Created != nil {
		created := d.Created.UTC().Format(time.RFC3339Nano)
		wire.Created = &created
	}
	for _, device := range d.Components.InfinibandDevices {
		device.InactiveDevices = list(device.InactiveDevices)
		wire.Components.InfinibandDevices = append(wire.Components.InfinibandDevices, device)
	}
	for _, group := range d.Components.Storage {
		wire.Components.Storage = append(wire.Components.Storage, storageJSON{
			Model:       group.Model,
			Count:       group.Count,
			MinSizeMb:   group.MinSizeMb,
			MaxSizeMb:   group.MaxSizeMb,
			PciPatterns: list(group.PciPatterns),
		})
	}
	return marshal(wire)
}

// marshal leaves &, < and > as they are: the document is read by people, and never
// part of a page. An encoder that calls MarshalJSON must do the same.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// list returns items, or an empty list in place of nil, which JSON would write
// as null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
