package sku

import (
	"fmt"
	"strconv"
	"strings"

	"fleetgraph/fleet"
)

// Describe is the one-line description of generated components, for instance
// "PowerEdge R760; 2xCPU; 0xGPU; 256 GiB; 2xIB"; the last part only where there
// are InfiniBand ports.
func Describe(components fleet.SkuComponents) string {
	var cpus, gpus, ports int
	var memory int64
	for _, c := range components.Cpus {
		cpus += c.Count
	}
	for _, g := range components.Gpus {
		gpus += g.Count
	}
	for _, d := range components.InfinibandDevices {
		ports += d.Count
	}
	for _, m := range components.Memory {
		memory += m.CapacityMb * int64(m.Count)
	}
	text := fmt.Sprintf("%s; %dxCPU; %dxGPU; %s", components.Chassis.Model, cpus, gpus, memoryText(memory))
	if ports > 0 {
		text += fmt.Sprintf("; %dxIB", ports)
	}
	return text
}

// memoryText writes an amount of MiB in the largest binary unit that it holds at
// least one of: "256 GiB", "1.5 TiB", "0 B".
func memoryText(mib int64) string {
	if mib <= 0 {
		return "0 B"
	}
	units := []string{"MiB", "GiB", "TiB", "PiB", "EiB"}
	amount, unit := float64(mib), 0
	for amount >= 1024 && unit+1 < len(units) {
		amount /= 1024
		unit++
	}
	return strconv.FormatFloat(amount, 'f', -1, 64) + " " + units[unit]
}

// storageNodeDrives is the number of drives from which a machine without GPUs is
// named a storage node.
const storageNodeDrives = 8

// ProposeName forms a name by the convention <vendor>.<model>.<node type>.<index>
// (the guide, SKU Names): the first word of the chassis vendor, the ending of the
// chassis model that tells it from its family ("PowerEdge R750" gives r750,
// "ThinkSystem SR670 V2" gives sr670v2), gpu, storage or cpu, and the first index
// from 1 that taken does not know.
func ProposeName(components fleet.SkuComponents, taken func(name string) bool) string {
	prefix := strings.Join([]string{
		nameVendor(components.Chassis.Vendor), nameModel(components.Chassis.Model), nodeType(components),
	}, ".") + "."
	index := 1
	for taken(prefix + strconv.Itoa(index)) {
		index++
	}
	return prefix + strconv.Itoa(index)
}

// ConventionalName tells whether name follows the convention of the guide, SKU
// Names. Names are free; the convention is advice.
func ConventionalName(name string) bool {
	parts := strings.Split(name, ".")
	if len(parts) != 4 || parts[0] == "" || parts[1] == "" || nameWord(parts[0]) != parts[0] || nameWord(parts[1]) != parts[1] {
		return false
	}
	switch parts[2] {
	case "gpu", "cpu", "storage", "controller":
	default:
		return false
	}
	index, err := strconv.ParseUint(parts[3], 10, 32)
	return err == nil && index > 0 && strconv.FormatUint(index, 10) == parts[3]
}

func nameVendor(vendor string) string {
	for word := range strings.FieldsSeq(vendor) {
		if word = nameWord(word); word != "" {
			return word
		}
	}
	return "unknown"
}

// nameModel joins the words of the model from the first one that has a digit,
// which leaves out family names, up to a word that starts with a bracket or a
// dash, which is an order number. A model without digits gives its last word.
func nameModel(model string) string {
	words := strings.Fields(model)
	for i, word := range words {
		if !strings.ContainsAny(word, "0123456789") || nameWord(word[:1]) == "" {
			continue
		}
		var name strings.Builder
		for _, word := range words[i:] {
			if nameWord(word[:1]) == "" {
				break
			}
			name.WriteString(nameWord(word))
		}
		return name.String()
	}
	for i := len(words) - 1; i >= 0; i-- {
		if name := nameWord(words[i]); name != "" {
			return name
		}
	}
	return "unknown"
}

// nameWord is text in lower case with letters, digits and inner dashes only.
func nameWord(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, text), "-")
}

func nodeType(components fleet.SkuComponents) string {
	for _, g := range components.Gpus {
		if g.Count > 0 {
			return "gpu"
		}
	}
	drives := 0
	for _, s := range components.Storage {
		drives += s.Count
	}
	if drives >= storageNodeDrives {
		return "storage"
	}
	return "cpu"
}
