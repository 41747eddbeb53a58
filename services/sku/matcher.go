package sku

import (
	"context"
	"slices"

	"fleetgraph/fleet"
)

// Machine is the hardware of a machine as SKUs see it. What a schema version
// records of it is worked out when it is first needed and kept, so a Machine must
// not be used by two goroutines at a time.
type Machine struct {
	inventory fleet.Inventory
	ports     []fleet.FabricPort
	views     [fleet.CurrentSchemaVersion + 1]*view
}

// view is a machine at one schema version.
type view struct {
	*hardware
	drives []drive
	digest []byte // see fingerprint
	sized  []byte // digest with the sizes of the drives
}

// NewMachine takes a machine's inventory and its last fabric observation, nil
// where there is none. Neither may change afterwards.
func NewMachine(inventory fleet.Inventory, ports []fleet.FabricPort) *Machine {
	return &Machine{inventory: inventory, ports: ports}
}

// Components describes the machine as Generate does.
func (m *Machine) Components(version int) (fleet.SkuComponents, error) {
	return Generate(m.inventory, m.ports, version)
}

// Key is the key of every SKU that the machine can match; see Key.
func (m *Machine) Key() string { return keyOf(m.at(fleet.CurrentSchemaVersion).hardware) }

// at returns the machine at a supported version. GPUs keep all their memory
// figures at every version, so that no figure hides behind another.
func (m *Machine) at(version int) *view {
	if m.views[version] == nil {
		// The version is supported, and nothing else is an error.
		components, _ := generate(m.inventory, m.ports, version, true)
		m.views[version] = viewOf(components, version)
	}
	return m.views[version]
}

func viewOf(components fleet.SkuComponents, version int) *view {
	v := &view{hardware: totalsOf(components, version)}
	if version >= versionLocation {
		v.drives = drivesOf(components.Storage)
	}
	return v
}

// expectation is a SKU prepared for comparisons; it is not changed by them.
type expectation struct {
	*hardware
	sku    Sku
	groups []group
}

// located tells whether storage is compared by size and PCI location.
func (e *expectation) located() bool { return e.sku.SchemaVersion >= versionLocation }

// Matcher compares machines with SKUs. It keeps compiled patterns in a bounded
// cache and is safe for concurrent use.
type Matcher struct {
	patterns *patternCache
}

// NewMatcher returns a Matcher; a limit of zero is the default. A pattern beyond the limits is treated as one that
// does not compile: it matches nothing and the comparison says so.
func NewMatcher(limits Limits) *Matcher {
	return &Matcher{patterns: newPatternCache(limits.orDefault())}
}

func (m *Matcher) expect(s Sku) (*expectation, error) {
	if !Supported(s.SchemaVersion) {
		return nil, versionError(s.SchemaVersion)
	}
	e := &expectation{sku: s, hardware: totalsOf(s.Components, s.SchemaVersion)}
	if e.located() {
		e.groups = groupsOf(s.Components.Storage, m.patterns)
	}
	return e, nil
}

// Compare compares a machine with a SKU at the SKU's own version. Every version
// compares the hardware that the guide lists: chassis vendor, model and
// architecture; sockets and threads by CPU model; number and memory by GPU model;
// memory modules by type and size; InfiniBand ports by vendor and model with the
// set of inactive ones. Storage depends on the version, the TPM counts from
// version 4. The error is INVALID_ARGUMENT for a version that does not exist, or
// that of ctx.
func (m *Matcher) Compare(ctx context.Context, machine *Machine, expected Sku) (fleet.Comparison, error) {
	e, err := m.expect(expected)
	if err != nil {
		return fleet.Comparison{}, err
	}
	v := machine.at(expected.SchemaVersion)
	return e.compare(ctx, v.hardware, v.drives), ctx.Err()
}

// CompareComponents compares two component sets, such as two SKU files. Of the
// actual one, every storage entry is one drive to a version 5 SKU: its first
// pattern is its location and its lower bound its size. The error is as for
// Compare.
func (m *Matcher) CompareComponents(ctx context.Context, actual fleet.SkuComponents, expected Sku) (fleet.Comparison, error) {
	e, err := m.expect(expected)
	if err != nil {
		return fleet.Comparison{}, err
	}
	v := viewOf(actual, expected.SchemaVersion)
	return e.compare(ctx, v.hardware, v.drives), ctx.Err()
}

// accepts tells whether the machine matches, given that its fingerprint is the
// SKU's: what is left are the figures that need not be equal.
func (e *expectation) accepts(ctx context.Context, v *view) bool {
	for i := range e.gpus {
		if faults, _ := compareGpuMemory(e.gpus[i].memory, v.gpus[i].memory); len(faults) > 0 {
			return false
		}
	}
	if !e.located() {
		return slices.Equal(e.models, v.models)
	}
	a := newAssignment(ctx, v.drives, e.groups)
	a.placeEligible()
	return a.complete()
}

// notes are those of a machine that matches.
func (e *expectation) notes(v *view) []fleet.Note {
	r := &report{component: fleet.ComponentGPU}
	r.compareGpus(e.gpus, v.gpus)
	return r.Notes
}
