package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"fleetgraph/ent"
	"fleetgraph/ent/expectedmachine"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/site"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/sku"
)

// maxInventoryBytes bounds an inventory document: the largest real ones are below
// 200 KiB.
const maxInventoryBytes = 2 << 20

// maxFabricPorts bounds a fabric observation of one machine.
const maxFabricPorts = 1024

// Service takes in inventories and takes machines through their life.
type Service struct {
	client    *ent.Client
	now       func() time.Time
	validator Validator
}

// New returns the service on client, with now as its clock.
func New(client *ent.Client, now func() time.Time, validator Validator) *Service {
	return &Service{client: client, now: now, validator: validator}
}

// Report is the input of ReportInventory. FabricPorts not set keeps the last
// observation; set without a value means that there is none.
type Report struct {
	SiteID        string
	BmcMacAddress string
	Name          string // empty: kept, or made from the MAC address at first sight
	Inventory     json.RawMessage
	FabricPorts   fleet.Patch[[]fleet.FabricPort]
	Key           string `json:"-"`
}

// Reported is the result of ReportInventory.
type Reported struct {
	MachineID string
	Created   bool
}

// ReportInventory stores the inventory of the machine with this BMC at this site,
// which is created at first sight, and has it validated, in one transaction. The
// BMC's MAC address is the machine's identity; serial numbers never merge
// machines.
func (s *Service) ReportInventory(ctx context.Context, in Report) (Reported, error) {
	c, err := access.RequireOrAgent(ctx, fleet.RoleOperator)
	if err != nil {
		return Reported{}, err
	}
	inventory, err := in.check()
	if err != nil {
		return Reported{}, err
	}
	if c.Role == fleet.RoleAgent && (!c.SeesSite(in.SiteID) || c.BmcMac != in.BmcMacAddress) {
		return Reported{}, fleet.Denied("NOT_OWN_MACHINE", "an agent reports its own machine only")
	}
	report := func() (access.Outcome, error) {
		return access.Run(ctx, s.client, access.Mutation{Name: "reportInventory", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
			return s.store(ctx, tx, in, inventory)
		})
	}
	out, err := report()
	name, violated := pgdb.Constraint(err)
	// Another report created the same machine meanwhile, or one that has the name that
	// was expected of this one.
	beaten := name == "machines_site_id_bmc_mac_address_key" || name == "machines_site_id_name_key" && in.Name == ""
	if violated == pgdb.KindUnique && beaten {
		out, err = report()
	}
	if err != nil {
		return Reported{}, nameTaken(err, in.nameOrDefault())
	}
	return Reported{MachineID: out.Result[0], Created: len(out.Result) > 1}, nil
}

// check checks what needs no database, settles BmcMacAddress in its normal form,
// and returns the inventory typed.
func (in *Report) check() (fleet.Inventory, error) {
	var none fleet.Inventory
	if err := fleet.CheckID("siteId", fleet.PrefixSite, in.SiteID); err != nil {
		return none, err
	}
	mac, err := fleet.ParseMac("bmcMacAddress", in.BmcMacAddress)
	if err != nil {
		return none, err
	}
	in.BmcMacAddress = mac
	if err := in.checkName(); err != nil {
		return none, err
	}
	if len(in.Inventory) > maxInventoryBytes {
		return none, fleet.Invalid("inventory", "INVENTORY_TOO_LARGE", "an inventory has at most %d bytes", maxInventoryBytes)
	}
	if in.FabricPorts.Value != nil {
		if err := checkPorts(*in.FabricPorts.Value); err != nil {
			return none, err
		}
	}
	return fleet.ParseInventory(in.Inventory)
}

// defaultNamePrefix begins the name of a machine that was reported without one; its
// BMC's MAC address follows. Such a name is kept for that machine.
const defaultNamePrefix = "machine-"

var defaultName = regexp.MustCompile("^" + defaultNamePrefix + "[0-9a-f]{12}$")

func (in *Report) checkName() error {
	own := defaultNamePrefix + strings.ReplaceAll(in.BmcMacAddress, ":", "")
	switch {
	case in.Name == "":
		return nil
	case defaultName.MatchString(in.Name) && in.Name != own:
		return fleet.Invalid("name", "NAME_INVALID", "%q is the default name of another machine", in.Name)
	default:
		return fleet.CheckName("name", in.Name)
	}
}

// nameOrDefault is the name of a machine that had none before.
func (in *Report) nameOrDefault() string {
	return cmp.Or(in.Name, defaultNamePrefix+strings.ReplaceAll(in.BmcMacAddress, ":", ""))
}

// nameOf is the name of a machine after the report. What an agent calls its machine
// counts at first sight only: the name is the operators' from then on.
func (in *Report) nameOf(m *ent.Machine, byAgent bool) string {
	if byAgent {
		return m.Name
	}
	return cmp.Or(in.Name, m.Name)
}

func checkPorts(ports []fleet.FabricPort) error {
	if len(ports) > maxFabricPorts {
		return fleet.Invalid("fabricPorts", "LIST_TOO_LONG", "a machine has at most %d fabric ports", maxFabricPorts)
	}
	seen := make(map[string]bool, len(ports))
	for i, p := range ports {
		at := "fabricPorts." + strconv.Itoa(i)
		switch {
		case p.Guid == "" || len(p.Guid) > 64 || strings.ContainsFunc(p.Guid, unicode.IsControl):
			return fleet.Invalid(at+".guid", "GUID_INVALID", "a GUID has 1 to 64 characters, none of them a control character")
		case p.Lid < 0 || p.Lid > fleet.InactiveLid:
			return fleet.Invalid(at+".lid", "LID_INVALID", "a LID is within 0 and %d", fleet.InactiveLid)
		case seen[p.Guid]:
			return fleet.Invalid(at+".guid", "DUPLICATE", "port %q is named twice", p.Guid)
		}
		seen[p.Guid] = true
	}
	return nil
}

// store writes the inventory to its machine and has it judged. A second id in the
// result tells that the machine was created.
func (s *Service) store(ctx context.Context, tx *ent.Client, in Report, inventory fleet.Inventory) ([]string, error) {
	ok, err := tx.Site.Query().Where(site.ID(in.SiteID)).Exist(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fleet.Missing("siteId", "SITE_NOT_FOUND", "site not found: %s", in.SiteID)
	}
	ids := make([]string, 0, 2)
	m, err := tx.Machine.Query().
		Where(machine.SiteID(in.SiteID), machine.BmcMACAddress(in.BmcMacAddress), pgdb.ForNoKeyUpdate).Only(ctx)
	var expected *ent.ExpectedMachine
	switch {
	case ent.IsNotFound(err):
		if expected, err = expectation(ctx, tx, in); err != nil {
			return nil, err
		}
		if m, err = s.create(ctx, tx, in, inventory, expected); err != nil {
			return nil, err
		}
		ids = append(ids, m.ID, "created")
	case err != nil:
		return nil, err
	default:
		ids = append(ids, m.ID)
	}
	written, err := s.write(ctx, tx, m, in, inventory)
	if err != nil {
		return nil, err
	}
	if err := Advance(ctx, tx, s.validator, written, Trigger{Before: m}, s.now); err != nil || expected == nil {
		return ids, err
	}
	// Last: who creates a SKU locks the site and then the entries that name it, and the
	// move before may have done so as well.
	return ids, seen(ctx, tx, expected.ID, m.ID)
}

// create makes the machine of a first report, with what is expected of it, if
// anything is.
func (s *Service) create(ctx context.Context, tx *ent.Client, in Report, inventory fleet.Inventory, expected *ent.ExpectedMachine) (*ent.Machine, error) {
	now := s.now()
	create := tx.Machine.Create().
		SetSiteID(in.SiteID).SetName(in.nameOrDefault()).SetBmcMACAddress(in.BmcMacAddress).SetKind(kind(inventory)).
		SetState(fleet.StateIngesting).SetStateChangedAt(now).SetCreatedAt(now).SetUpdatedAt(now)
	details := map[string]any{"bmcMacAddress": in.BmcMacAddress, "kind": kind(inventory)}
	if expected != nil {
		details["expectedMachine"], details["sku"] = expected.ID, expected.SkuName
		create.SetNillableSkuName(expected.SkuName)
		name, err := freeName(ctx, tx, in, expected.Name)
		if err != nil {
			return nil, err
		}
		create.SetName(name)
	}
	m, err := create.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create machine: %w", err)
	}
	details["name"] = m.Name
	to := Position(m)
	return m, Record(ctx, tx, m, nil, &to, Change{Event: fleet.EventDiscovered, At: now, Details: details})
}

// expectation is what an operator expects of the machine that reports; nil for
// nothing. Its reader need not be allowed to see it.
func expectation(ctx context.Context, tx *ent.Client, in Report) (*ent.ExpectedMachine, error) {
	row, err := tx.ExpectedMachine.Query().
		Where(expectedmachine.SiteID(in.SiteID), expectedmachine.BmcMACAddress(in.BmcMacAddress)).
		Only(access.AsSystem(ctx, "lifecycle"))
	if ent.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nothing is expected
	}
	return row, err
}

// seen links what was expected with the machine that came.
func seen(ctx context.Context, tx *ent.Client, expectedID, machineID string) error {
	return tx.ExpectedMachine.Update().Where(expectedmachine.ID(expectedID)).SetMachineID(machineID).
		Exec(access.AsSystem(ctx, "lifecycle"))
}

// freeName is the name that was expected, where the report gives none and no other
// machine of the site has it.
func freeName(ctx context.Context, tx *ent.Client, in Report, expected string) (string, error) {
	if in.Name != "" || expected == "" || defaultName.MatchString(expected) {
		return in.nameOrDefault(), nil
	}
	taken, err := tx.Machine.Query().Where(machine.SiteID(in.SiteID), machine.Name(expected)).
		Exist(access.AsSystem(ctx, "lifecycle"))
	if err != nil || taken {
		return in.nameOrDefault(), err
	}
	return expected, nil
}

func (s *Service) write(ctx context.Context, tx *ent.Client, m *ent.Machine, in Report, inventory fleet.Inventory) (*ent.Machine, error) {
	now := s.now()
	name := in.nameOf(m, access.IsAgent(ctx))
	update := tx.Machine.UpdateOneID(m.ID).SetName(name).
		SetKind(kind(inventory)).SetSerialNumber(inventory.SerialNumber()).
		SetInventoryDocument(in.Inventory).SetMatchKey(sku.NewMachine(inventory, nil).Key()).
		SetInventoryReportedAt(now).SetUpdatedAt(now)
	dmi := fleet.DmiData{}
	if inventory.DmiData != nil {
		dmi = *inventory.DmiData
	}
	update.SetVendor(dmi.SysVendor).SetModel(dmi.ProductName).SetPlatform(fleet.Platform(dmi.ProductSku))
	if in.FabricPorts.Set {
		if in.FabricPorts.Value == nil {
			update.ClearFabricPorts()
		} else {
			update.SetFabricPorts(*in.FabricPorts.Value)
		}
	}
	written, err := update.Save(ctx)
	if err != nil || name == m.Name {
		return written, err
	}
	return written, Record(ctx, tx, written, nil, nil, Change{
		Event: fleet.EventRenamed, At: now, Details: map[string]any{"before": m.Name, "after": name},
	})
}

func kind(inventory fleet.Inventory) fleet.MachineKind {
	if inventory.IsDPU() {
		return fleet.KindDPU
	}
	return fleet.KindHost
}

func nameTaken(err error, name string) error {
	if constraint, kind := pgdb.Constraint(err); kind == pgdb.KindUnique && constraint == "machines_site_id_name_key" {
		return fleet.Exists("name", "MACHINE_NAME_TAKEN", "another machine of the site is named %q", name)
	}
	return err
}
