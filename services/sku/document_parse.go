package sku

import (
	"bytes"
	"encoding/json"
	"time"

	"fleetgraph/fleet"
)

// ParseDocuments reads the SKU or SKUs of a file: one document, or
// {"skus": [document, …]}. Unknown keys are ignored. The lists of components must
// be there, but for ethernet_devices, and so must every scalar of a list entry
// but for the storage keys that only schema version 5 has. A missing
// schema_version is 0. The error is INVALID_ARGUMENT and its field is the path of
// the fault in the file's own keys, such as `skus.2.components.cpus.0.model`.
func ParseDocuments(data []byte) ([]Document, error) {
	root, err := readObject("", data)
	if err != nil {
		return nil, err
	}
	_, single := root.keys["id"]
	if _, batch := root.keys["skus"]; single || !batch {
		document, err := readDocument(root)
		if err != nil {
			return nil, err
		}
		return []Document{document}, nil
	}
	var documents []Document
	root.objects("skus", maxDocuments, func(object *reader) {
		var document Document
		document, object.err = readDocument(object)
		documents = append(documents, document)
	})
	return documents, root.err
}

func readDocument(r *reader) (Document, error) {
	d := Document{
		ID:                   r.text("id"),
		Description:          r.optionalText("description"),
		SchemaVersion:        int(r.optionalNumber("schema_version", maxCount)),
		AssociatedMachineIDs: r.optionalTexts("associated_machine_ids"),
		DeviceType:           r.optionalText("device_type"),
	}
	// A time that does not parse is dropped: it is not stored anyway.
	if created := r.optionalText("created"); created != nil {
		if at, err := time.Parse(time.RFC3339, *created); err == nil {
			d.Created = &at
		}
	}
	r.object("components", func(c *reader) { d.Components = readComponents(c) })
	return d, r.err
}

func readComponents(r *reader) fleet.SkuComponents {
	var c fleet.SkuComponents
	r.object("chassis", func(o *reader) {
		c.Chassis = fleet.Chassis{Vendor: o.text("vendor"), Model: o.text("model"), Architecture: o.text("architecture")}
	})
	r.objects("cpus", maxEntries, func(o *reader) {
		c.Cpus = append(c.Cpus, fleet.Cpu{
			Vendor: o.text("vendor"), Model: o.text("model"), ThreadCount: o.count("thread_count"), Count: o.count("count"),
		})
	})
	r.objects("gpus", maxEntries, func(o *reader) {
		c.Gpus = append(c.Gpus, fleet.Gpu{
			Vendor: o.text("vendor"), Model: o.text("model"), TotalMemory: o.text("total_memory"), Count: o.count("count"),
		})
	})
	if !r.absent("ethernet_devices") {
		r.objects("ethernet_devices", maxEntries, func(*reader) {})
	}
	r.objects("infiniband_devices", maxEntries, func(o *reader) {
		c.InfinibandDevices = append(c.InfinibandDevices, fleet.InfinibandDevice{
			Vendor: o.text("vendor"), Model: o.text("model"), Count: o.count("count"), InactiveDevices: o.counts("inactive_devices"),
		})
	})
	r.objects("storage", maxEntries, func(o *reader) {
		c.Storage = append(c.Storage, fleet.StorageGroup{
			Model: o.text("model"), Count: o.count("count"),
			MinSizeMb: o.optionalSize("min_size_mb"), MaxSizeMb: o.optionalSize("max_size_mb"),
			PciPatterns: o.optionalTexts("pci_patterns"),
		})
	})
	r.objects("memory", maxEntries, func(o *reader) {
		c.Memory = append(c.Memory, fleet.Memory{
			MemoryType: o.text("memory_type"), CapacityMb: o.number("capacity_mb", maxSizeMb), Count: o.count("count"),
		})
	})
	r.object("tpm", func(o *reader) {
		c.Tpm = &fleet.Tpm{Vendor: o.text("vendor"), Version: o.text("version")}
	})
	return c
}

// readObject splits a JSON object into its keys. Keys are told apart by case.
func readObject(path string, data []byte) (*reader, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return nil, documentError(path, "expected a JSON object")
	}
	r := &reader{path: path}
	if err := json.Unmarshal(data, &r.keys); err != nil {
		return nil, documentError(path, "malformed JSON: %v", err)
	}
	return r, nil
}

func documentError(path, format string, args ...any) error {
	if path == "" {
		path = "document"
	}
	return fleet.Invalid(path, "DOCUMENT_INVALID", format, args...)
}
