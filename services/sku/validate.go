package sku

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"fleetgraph/fleet"
)

// Limits bound what a SKU may cost to store, compile and compare. A step is one
// character of a pattern compared with one of a location; an instruction of a
// regular expression counts as 16 of them.
type Limits struct {
	PatternLength  int // bytes of one PCI pattern
	PatternsPerSku int // PCI patterns of one SKU
	PatternSteps   int // steps of one PCI pattern
	StepsPerSku    int // steps of all PCI patterns of one SKU
	ListLength     int // entries of one list of components
	TextLength     int // bytes of one model, vendor or other text
}

// DefaultLimits fit a machine of several hundred drives, each with a literal
// location, or of a few hundred patterns. Against the largest inventory, 1024 drives
// with locations of 256 bytes made for it, the costliest SKU that they accept takes
// seconds; a comparison ends with its context in between.
func DefaultLimits() Limits {
	return Limits{
		PatternLength:  512,
		PatternsPerSku: 1024,
		PatternSteps:   4096,
		StepsPerSku:    65_536,
		ListLength:     maxEntries,
		TextLength:     1024,
	}
}

// orDefault fills in the default of every limit that is not set.
func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	return Limits{
		PatternLength:  cmp.Or(l.PatternLength, d.PatternLength),
		PatternsPerSku: cmp.Or(l.PatternsPerSku, d.PatternsPerSku),
		PatternSteps:   cmp.Or(l.PatternSteps, d.PatternSteps),
		StepsPerSku:    cmp.Or(l.StepsPerSku, d.StepsPerSku),
		ListLength:     cmp.Or(l.ListLength, d.ListLength),
		TextLength:     cmp.Or(l.TextLength, d.TextLength),
	}
}

// maxGroupCount is the largest number of drives that a storage entry claims.
const maxGroupCount = 1024

// validator keeps the first fault; checks after it do nothing.
type validator struct {
	limits  Limits
	current bool
	err     error
}

// Validate checks components before a SKU of the given version is created or
// replaced. Storage comes first, entry by entry in the order of the file and the
// patterns of an entry before the rest of it. The checks on names and counts that
// the original does not make concern the current version only, so a row of an
// older version is imported as it is. The error is INVALID_ARGUMENT; its field is
// a path such as `components.storage.0.pciPatterns.1`.
func Validate(components fleet.SkuComponents, version int, limits Limits) error {
	if !Supported(version) {
		return versionError(version)
	}
	v := &validator{limits: limits.orDefault(), current: version == fleet.CurrentSchemaVersion}
	v.lengths(components)
	v.storage(components.Storage, version)
	v.chassis(components.Chassis)
	for i, c := range components.Cpus {
		at := entry("cpus", i)
		v.model(at, "CPU", c.Model)
		v.text(at+".vendor", c.Vendor)
		v.number(at+".threadCount", int64(c.ThreadCount), maxCount)
		v.number(at+".count", int64(c.Count), maxCount)
	}
	for i, g := range components.Gpus {
		at := entry("gpus", i)
		v.model(at, "GPU", g.Model)
		v.text(at+".vendor", g.Vendor)
		v.text(at+".totalMemory", g.TotalMemory)
		v.number(at+".count", int64(g.Count), maxCount)
	}
	for i, d := range components.InfinibandDevices {
		v.infiniband(entry("infinibandDevices", i), d)
	}
	for i, m := range components.Memory {
		at := entry("memory", i)
		v.text(at+".memoryType", m.MemoryType)
		v.number(at+".capacityMb", m.CapacityMb, maxSizeMb)
		v.number(at+".count", int64(m.Count), maxCount)
	}
	if components.Tpm != nil {
		v.text("components.tpm.vendor", components.Tpm.Vendor)
		v.text("components.tpm.version", components.Tpm.Version)
	}
	return v.err
}

func entry(list string, index int) string { return fmt.Sprintf("components.%s.%d", list, index) }

func (v *validator) refuse(field, reason, format string, args ...any) {
	if v.err == nil {
		v.err = fleet.Invalid(field, reason, format, args...)
	}
}

func (v *validator) lengths(c fleet.SkuComponents) {
	length := func(list string, n int) {
		if n > v.limits.ListLength {
			v.refuse("components."+list, "SKU_TOO_LARGE", "%d entries, at most %d are accepted", n, v.limits.ListLength)
		}
	}
	length("cpus", len(c.Cpus))
	length("gpus", len(c.Gpus))
	length("infinibandDevices", len(c.InfinibandDevices))
	length("storage", len(c.Storage))
	length("memory", len(c.Memory))
}

func (v *validator) chassis(c fleet.Chassis) {
	v.model("components.chassis", "chassis", c.Model)
	v.text("components.chassis.vendor", c.Vendor)
	v.text("components.chassis.architecture", c.Architecture)
}

func (v *validator) model(at, part, model string) {
	if v.current && strings.TrimSpace(model) == "" {
		v.refuse(at+".model", "MODEL_EMPTY", "%s model must not be empty", part)
	}
	v.text(at+".model", model)
}

func (v *validator) text(field, text string) {
	if len(text) > v.limits.TextLength {
		v.refuse(field, "TEXT_TOO_LONG", "%d bytes long, at most %d are accepted", len(text), v.limits.TextLength)
	}
	switch {
	case strings.ContainsRune(text, 0):
		v.refuse(field, "TEXT_INVALID", "a NUL character cannot be stored")
	case v.current && strings.ContainsFunc(text, unicode.IsControl):
		v.refuse(field, "TEXT_INVALID", "control characters are not accepted")
	}
}

func (v *validator) number(field string, value, limit int64) {
	if value < 0 || value > limit {
		v.refuse(field, "NUMBER_OUT_OF_RANGE", "%d is not from 0 to %d", value, limit)
	}
}

func (v *validator) infiniband(at string, d fleet.InfinibandDevice) {
	v.text(at+".vendor", d.Vendor)
	v.text(at+".model", d.Model)
	v.number(at+".count", int64(d.Count), maxCount)
	if len(d.InactiveDevices) > v.limits.ListLength {
		v.refuse(at+".inactiveDevices", "SKU_TOO_LARGE", "%d entries, at most %d are accepted", len(d.InactiveDevices), v.limits.ListLength)
		return
	}
	seen := make(map[int]bool, len(d.InactiveDevices))
	for i, index := range d.InactiveDevices {
		field := fmt.Sprintf("%s.inactiveDevices.%d", at, i)
		v.number(field, int64(index), maxCount)
		if v.current && index >= d.Count {
			v.refuse(field, "INACTIVE_DEVICE_UNKNOWN", "there is no device %d among %d", index, d.Count)
		}
		if v.current && seen[index] {
			v.refuse(field, "INACTIVE_DEVICE_REPEATED", "device %d is listed twice", index)
		}
		seen[index] = true
	}
}
