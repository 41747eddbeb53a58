package lifecycle

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/predicate"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
)

// Lock loads and locks the machine of this id: INVALID_ARGUMENT for what is no
// machine's id, NOT_FOUND, reason MACHINE_NOT_FOUND, where there is none that the
// caller may see.
func Lock(ctx context.Context, tx *ent.Client, id string) (*ent.Machine, error) {
	m, err := tx.Machine.Query().Where(machine.ID(id), pgdb.ForNoKeyUpdate).Only(ctx)
	return m, notFound(err, id)
}

// Find loads the machine of this id, with Lock's errors.
func Find(ctx context.Context, client *ent.Client, id string) (*ent.Machine, error) {
	if err := fleet.CheckID("machineId", fleet.PrefixMachine, id); err != nil {
		return nil, err
	}
	m, err := client.Machine.Query().Where(machine.ID(id)).Only(ctx)
	return m, notFound(err, id)
}

func notFound(err error, id string) error {
	if ent.IsNotFound(err) {
		return fleet.Missing("machineId", "MACHINE_NOT_FOUND", "machine not found: %s", id)
	}
	return err
}

// maxSerialCandidates is how many machines of one serial number an error names.
const maxSerialCandidates = 20

// Key is the natural key of a machine at its site.
type Key struct{ name, serialNumber, bmcMacAddress *string }

// NewKey makes a key of the one argument that is set: INVALID_ARGUMENT, reason
// KEY_INVALID, unless exactly one is.
func NewKey(name, serialNumber, bmcMacAddress *string) (Key, error) {
	set := 0
	for _, field := range []*string{name, serialNumber, bmcMacAddress} {
		if field != nil {
			set++
		}
	}
	switch {
	case set != 1:
		return Key{}, fleet.Invalid("name", "KEY_INVALID", "give exactly one of name, serialNumber and bmcMacAddress")
	case serialNumber != nil && *serialNumber == "":
		return Key{}, fleet.Invalid("serialNumber", "KEY_INVALID", "serialNumber must not be empty")
	case bmcMacAddress != nil:
		mac, err := fleet.ParseMac("bmcMacAddress", *bmcMacAddress)
		return Key{bmcMacAddress: &mac}, err
	}
	return Key{name: name, serialNumber: serialNumber}, nil
}

// Resolve turns the key into a predicate on machines of a site. A serial number
// that several of them report is INVALID_ARGUMENT, reason SERIAL_AMBIGUOUS, and
// names them: vendors repeat serial numbers, so it never picks one.
func (k Key) Resolve(ctx context.Context, client *ent.Client, siteID string) (predicate.Machine, error) {
	switch {
	case k.name != nil:
		return machine.And(machine.SiteID(siteID), machine.Name(*k.name)), nil
	case k.bmcMacAddress != nil:
		return machine.And(machine.SiteID(siteID), machine.BmcMACAddress(*k.bmcMacAddress)), nil
	}
	same := machine.And(machine.SiteID(siteID), machine.SerialNumber(*k.serialNumber))
	names, err := client.Machine.Query().Where(same).Order(ent.Asc(machine.FieldName, machine.FieldID)).
		Limit(maxSerialCandidates).Select(machine.FieldName).Strings(ctx)
	if err != nil || len(names) <= 1 {
		return same, err
	}
	count, err := client.Machine.Query().Where(same).Count(ctx)
	if err != nil {
		return nil, err
	}
	return nil, fleet.Invalid("serialNumber", "SERIAL_AMBIGUOUS", "%d machines report the serial number %q: %s", count, *k.serialNumber, fleet.List(names, count)).
		WithDetails(map[string]any{"count": count, "first": names})
}

// subStateIs matches a sub-state, where empty stands for none.
func subStateIs(sub fleet.MachineSubState) predicate.Machine {
	if sub == "" {
		return machine.SubStateIsNil()
	}
	return machine.SubStateEQ(sub)
}
