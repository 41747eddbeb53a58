package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Bounds of what an inventory may hold. They are far above any machine that
// exists and low enough that no sum or product of accepted figures overflows.
const (
	maxInventoryList    = 4096    // entries of one list
	maxInventoryDrives  = 1024    // NVMe drives, each of which is matched with every storage pattern
	maxInventoryThreads = 1 << 14 // rows of the per-thread list
	maxInventoryCount   = 1 << 20 // sockets, cores, threads
	maxInventorySizeMb  = 1 << 32 // MiB of one drive or memory module
	maxInventoryDepth   = 64      // lists and objects within one another, far below where Postgres gives up
	maxInventoryText    = 1024    // bytes of one text; an index of Postgres takes 2704
)

// MaxPciPathLength bounds the PCI path of a drive, in bytes: a path of the kernel has
// less than 120, and every storage pattern runs over it.
const MaxPciPathLength = 256

// cpuThread is a row of the `cpus` list that older agents send in place of
// `cpu_info`: one row a hardware thread. Number counts threads over the machine,
// Core counts cores within a socket.
type cpuThread struct {
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	Number int    `json:"number"`
	Socket int    `json:"socket"`
	Core   int    `json:"core"`
}

// ParseInventory reads the JSON form in which a host agent reports the hardware,
// bare or wrapped in {"info": …}. Unknown keys are ignored, null stands for an
// empty value, NUL characters are dropped, and the per-thread list of older
// agents becomes CpuInfo. Anything else is an INVALID_ARGUMENT *Error whose field
// is `inventory` or `inventory.<path>`.
func ParseInventory(data []byte) (Inventory, error) {
	if isDeeper(data, maxInventoryDepth) {
		return Inventory{}, Invalid("inventory", "INVENTORY_INVALID", "lists and objects are nested more than %d deep", maxInventoryDepth)
	}
	data = withoutNul(data)
	var envelope struct {
		Info json.RawMessage `json:"info"`
	}
	if err := json.Unmarshal(data, &envelope); err != nil {
		return Inventory{}, inventoryError(err)
	}
	if isJSONObject(envelope.Info) {
		data = envelope.Info
	}
	if !isJSONObject(data) {
		return Inventory{}, Invalid("inventory", "INVENTORY_INVALID", "an inventory is a JSON object")
	}
	var wire struct {
		Inventory
		Cpus []cpuThread `json:"cpus"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return Inventory{}, inventoryError(err)
	}
	inventory := wire.Inventory
	if len(inventory.CpuInfo) == 0 {
		if err := checkThreads(wire.Cpus); err != nil {
			return Inventory{}, err
		}
		inventory.CpuInfo = foldThreads(wire.Cpus)
	}
	if err := checkInventory(inventory); err != nil {
		return Inventory{}, err
	}
	return inventory, nil
}

// UnmarshalJSON reads PCI properties, whose NUMA node comes under either of two
// names, `numa_node` and `numaNode`.
func (p *PciProperties) UnmarshalJSON(data []byte) error {
	type plain PciProperties
	var wire struct {
		plain
		NumaNodeCamel *int `json:"numaNode"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*p = PciProperties(wire.plain)
	if wire.NumaNodeCamel != nil {
		p.NumaNode = *wire.NumaNodeCamel
	}
	return nil
}

// foldThreads turns one row a thread into one entry a model, sorted by model:
// sockets are the distinct sockets, cores the highest core number plus one,
// threads the highest thread number plus one divided by the sockets.
func foldThreads(threads []cpuThread) []CpuInfo {
	type fold struct {
		info    CpuInfo
		sockets map[int]struct{}
	}
	var folds []*fold
	byModel := map[string]*fold{}
	for _, t := range threads {
		f := byModel[t.Model]
		if f == nil {
			f = &fold{info: CpuInfo{Model: t.Model, Vendor: t.Vendor}, sockets: map[int]struct{}{}}
			byModel[t.Model] = f
			folds = append(folds, f)
		}
		f.sockets[t.Socket] = struct{}{}
		f.info.Vendor = min(f.info.Vendor, t.Vendor)
		f.info.Cores = max(f.info.Cores, t.Core+1)
		f.info.Threads = max(f.info.Threads, t.Number+1)
	}
	infos := make([]CpuInfo, 0, len(folds))
	for _, f := range folds {
		f.info.Sockets = len(f.sockets)
		f.info.Threads /= f.info.Sockets
		infos = append(infos, f.info)
	}
	slices.SortFunc(infos, func(a, b CpuInfo) int { return strings.Compare(a.Model, b.Model) })
	return infos
}

// withoutNul removes the escape of the NUL character: firmware pads strings with
// it, and the database cannot store it. In JSON a backslash only occurs inside a
// string, so the scan need not know where strings begin.
func withoutNul(data []byte) []byte {
	escape := []byte(`\u0000`)
	if !bytes.Contains(data, escape) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' || i+1 == len(data) {
			out = append(out, data[i])
			continue
		}
		if bytes.HasPrefix(data[i:], escape) {
			i += len(escape) - 1
			continue
		}
		out = append(out, data[i], data[i+1])
		i++
	}
	return out
}

// isDeeper tells whether JSON nests lists and objects more than limit deep.
func isDeeper(data []byte, limit int) bool {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			inString = !inString
		case inString:
			if c == '\\' {
				i++
			}
		case c == '[', c == '{':
			if depth++; depth > limit {
				return true
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return false
}

func isJSONObject(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '{'
}

// inventoryError names the field of a wrong type, or the offset of malformed
// JSON.
func inventoryError(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		field := "inventory"
		if wrongType.Field != "" {
			field += "." + strings.TrimPrefix(wrongType.Field, "Inventory.")
		}
		return Invalid(field, "INVENTORY_INVALID", "%s does not fit in %s", wrongType.Value, field)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return Invalid("inventory", "INVENTORY_INVALID", "malformed JSON at byte %d: %v", syntax.Offset, err)
	}
	return Invalid("inventory", "INVENTORY_INVALID", "%v", err)
}
