package sku

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"fleetgraph/fleet"
)

// Key is a hash that a SKU has in common with every machine that matches it, for
// an indexed column that candidates are selected by. It covers what every schema
// version compares exactly and records the same: chassis vendor, model and
// architecture, and the total numbers of CPU sockets and of GPUs. The splitting
// and the order of lists do not matter. Two keys that differ rule out a match;
// equal keys call for a comparison.
func Key(components fleet.SkuComponents) string {
	return keyOf(&hardware{
		chassis: components.Chassis,
		cpus:    cpuTotals(components.Cpus),
		gpus:    gpuTotals(components.Gpus),
	})
}

func keyOf(h *hardware) string {
	b := appendChassis(nil, h.chassis)
	b = appendNumber(b, total(h.cpus, func(t cpuTotal) int { return t.sockets }))
	b = appendNumber(b, total(h.gpus, func(t gpuTotal) int { return t.count }))
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// fingerprint covers all that has to be equal between a machine and a SKU at one
// schema version, in an unambiguous form. What it leaves out need not be equal:
// GPU memory and, in version 5, the sizes and locations of drives, of which it
// holds the number.
func fingerprint(h *hardware, version, drives int) []byte {
	b := appendNumber(make([]byte, 0, 256), version)
	b = appendChassis(b, h.chassis)
	b = appendNumber(b, len(h.cpus))
	for _, t := range h.cpus {
		b = appendText(b, t.model)
		b = appendNumber(b, t.sockets)
		b = appendNumber(b, t.threads)
	}
	b = appendNumber(b, len(h.gpus))
	for _, t := range h.gpus {
		b = appendText(b, t.model)
		b = appendNumber(b, t.count)
	}
	b = appendNumber(b, len(h.infiniband))
	for _, t := range h.infiniband {
		b = appendText(b, t.vendor)
		b = appendText(b, t.model)
		b = appendNumber(b, t.count)
		b = appendNumber(b, len(t.inactive))
		for _, i := range t.inactive {
			b = appendNumber(b, i)
		}
	}
	b = appendNumber(b, len(h.memory))
	for _, t := range h.memory {
		b = appendText(b, t.kind)
		b = appendNumber(b, int(t.capacity))
		b = appendNumber(b, t.count)
	}
	b = appendNumber(b, len(h.models))
	for _, t := range h.models {
		b = appendText(b, t.model)
		b = appendNumber(b, t.count)
	}
	b = appendNumber(b, drives)
	if h.tpm == nil {
		return append(b, 0)
	}
	return appendText(append(b, 1), h.tpm.Version)
}

// appendSizes adds the sizes of drives to a fingerprint. The input is not kept.
func appendSizes(digest []byte, sizes []int64) []byte {
	slices.Sort(sizes)
	b := append(slices.Clone(digest), 's')
	for _, size := range sizes {
		b = appendNumber(b, int(size))
	}
	return b
}

func appendChassis(b []byte, c fleet.Chassis) []byte {
	b = appendText(b, c.Vendor)
	b = appendText(b, c.Model)
	return appendText(b, c.Architecture)
}

func appendText(b []byte, text string) []byte { return append(appendNumber(b, len(text)), text...) }

func appendNumber(b []byte, n int) []byte { return binary.AppendVarint(b, int64(n)) }

func total[T any](items []T, count func(T) int) int {
	n := 0
	for _, item := range items {
		n += count(item)
	}
	return n
}
