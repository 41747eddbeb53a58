package sku

import (
	"reflect"

	"fleetgraph/fleet"
)

// Changed lists the components in which two inventories of one machine differ for a
// SKU of this schema version, in reporting order: whatever the comparison looks at.
func Changed(before, after *Machine, version int) ([]fleet.Component, error) {
	was, err := before.Components(version)
	if err != nil {
		return nil, err
	}
	is, err := after.Components(version)
	if err != nil {
		return nil, err
	}
	from, to := totalsOf(was, version), totalsOf(is, version)
	differs := map[fleet.Component]bool{
		fleet.ComponentChassis:    from.chassis != to.chassis,
		fleet.ComponentCPU:        !reflect.DeepEqual(from.cpus, to.cpus),
		fleet.ComponentGPU:        !reflect.DeepEqual(from.gpus, to.gpus),
		fleet.ComponentInfiniband: !reflect.DeepEqual(from.infiniband, to.infiniband),
		fleet.ComponentMemory:     !reflect.DeepEqual(from.memory, to.memory),
		fleet.ComponentStorage:    !reflect.DeepEqual(from.models, to.models) || version >= versionLocation && !sameDrives(was, is),
		fleet.ComponentTPM:        !sameTpm(from.tpm, to.tpm),
	}
	var changed []fleet.Component
	for _, name := range fleet.Component("").Values() {
		if c := fleet.Component(name); differs[c] {
			changed = append(changed, c)
		}
	}
	return changed, nil
}

// sameDrives: the model is not compared in version 5.
func sameDrives(was, is fleet.SkuComponents) bool {
	place := func(c fleet.SkuComponents) map[drive]int {
		places := map[drive]int{}
		for _, d := range drivesOf(c.Storage) {
			key := drive{location: d.location}
			if d.size != nil {
				key.model = d.sizeText()
			}
			places[key]++
		}
		return places
	}
	return reflect.DeepEqual(place(was), place(is))
}

func sameTpm(a, b *fleet.Tpm) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version
}
