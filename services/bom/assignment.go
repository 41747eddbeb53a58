package bom

import (
	"context"
	"slices"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	entsku "fleetgraph/ent/sku"
	"fleetgraph/fleet"
	"fleetgraph/services/access"
	"fleetgraph/services/lifecycle"
)

// Where a machine may be for its assignment to be changed or verified without
// force.
func assignable() []fleet.MachinePosition {
	return append(verifiable(),
		fleet.MachinePosition{State: fleet.StateBomValidating, Sub: fleet.SubWaitingForSkuAssignment},
		fleet.MachinePosition{State: fleet.StateBomValidating, Sub: fleet.SubSkuMissing})
}

// matchPending tells whether a machine without a SKU waits for the inventory that is
// to confirm a match. It may have been waiting for an assignment a moment ago: who
// assigns a SKU then does not lose a race against the match.
func matchPending(m *ent.Machine) bool {
	return m.SkuName == nil && lifecycle.Position(m) == fleet.BomPosition(fleet.SubUpdatingInventory)
}

func verifiable() []fleet.MachinePosition {
	return []fleet.MachinePosition{
		{State: fleet.StateReady},
		{State: fleet.StateBomValidating, Sub: fleet.SubSkuVerificationFailed},
	}
}

// Assign is the input of Service.Assign.
type Assign struct {
	MachineID string
	SkuID     string
	Force     bool
	Key       string `json:"-"`

	job string // the job that does it, for the history; empty for none
}

// Assign assigns a SKU of the machine's site to it and asks for a verification. The
// machine's checks come before the SKU's. Force skips those of its present SKU
// and state, and needs an admin.
func (s *Service) Assign(ctx context.Context, in Assign) error {
	if err := requireForce(ctx, in.Force); err != nil {
		return err
	}
	if err := fleet.CheckID("machineId", fleet.PrefixMachine, in.MachineID); err != nil {
		return err
	}
	if err := fleet.CheckID("skuId", fleet.PrefixSku, in.SkuID); err != nil {
		return err
	}
	_, err := access.Run(ctx, s.client, access.Mutation{Name: "assignSku", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		row, err := keepSku(ctx, tx, in.SkuID)
		if err != nil {
			return nil, err
		}
		m, err := lifecycle.Lock(ctx, tx, in.MachineID)
		if err != nil {
			return nil, err
		}
		if err := checkAssign(m, row, in); err != nil {
			return nil, err
		}
		return []string{m.ID}, s.assign(ctx, tx, m, row, in)
	})
	return err
}

// keepSku loads a SKU, nil where there is none, and has it stay as it is until the
// transaction ends. Who needs both locks a SKU before its machines, as Replace does.
func keepSku(ctx context.Context, tx *ent.Client, id string) (*ent.Sku, error) {
	row, err := tx.Sku.Query().Where(entsku.ID(id)).ForShare().Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil //nolint:nilnil // stated above
	}
	return row, err
}

// checkAssign tells why row, nil where there is none, cannot be assigned to m.
func checkAssign(m *ent.Machine, row *ent.Sku, in Assign) error {
	switch {
	case m.Kind == fleet.KindDPU:
		return fleet.Precondition("MACHINE_IS_DPU", "a DPU stands outside BOM validation and has no SKU")
	case !in.Force && m.SkuName != nil:
		return fleet.Precondition("SKU_ALREADY_ASSIGNED", "The specified machine already has a SKU assigned (%s)", *m.SkuName)
	case !in.Force && !slices.Contains(assignable(), lifecycle.Position(m)) && !matchPending(m):
		return wrongState(m, "Specified machine is not in a valid state for assigning a SKU")
	case row == nil || row.SiteID != m.SiteID:
		return fleet.Missing("skuId", "SKU_NOT_FOUND", "SKU ID not found: %s", in.SkuID)
	}
	return nil
}

// assign assigns row to m. Both are locked, and checkAssign has nothing against it.
func (s *Service) assign(ctx context.Context, tx *ent.Client, m *ent.Machine, row *ent.Sku, in Assign) error {
	now := s.now()
	m.SkuID, m.SkuName, m.VerifyRequestedAt = &row.ID, &row.Name, &now
	err := tx.Machine.Update().Where(machine.ID(m.ID)).
		SetSkuID(row.ID).SetSkuName(row.Name).SetVerifyRequestedAt(now).SetUpdatedAt(now).Exec(ctx)
	if err != nil {
		return err
	}
	err = lifecycle.Record(ctx, tx, m, nil, nil, lifecycle.Change{
		Event: fleet.EventSkuAssigned, At: now,
		Details: ofJob(in.job, map[string]any{"sku": row.Name, "skuRevision": row.Revision, "force": in.Force}),
	})
	if err != nil {
		return err
	}
	return lifecycle.Advance(ctx, tx, s, m, lifecycle.Trigger{}, s.now)
}

// Unassign is the input of Service.Unassign.
type Unassign struct {
	MachineID string
	Force     bool
	Key       string `json:"-"`

	job string // as Assign's
}

// Unassign takes a machine's SKU and its alert away; the machine is matched again or
// waits for another. Without a SKU it changes nothing. Force skips the check of its state,
// and needs an admin.
func (s *Service) Unassign(ctx context.Context, in Unassign) error {
	if err := requireForce(ctx, in.Force); err != nil {
		return err
	}
	if err := fleet.CheckID("machineId", fleet.PrefixMachine, in.MachineID); err != nil {
		return err
	}
	_, err := access.Run(ctx, s.client, access.Mutation{Name: "unassignSku", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		// Its SKU is among those that it is held against once it has none.
		before, err := lifecycle.Find(ctx, tx, in.MachineID)
		if err != nil {
			return nil, err
		}
		if before.SkuID != nil {
			if _, err := keepSku(ctx, tx, *before.SkuID); err != nil {
				return nil, err
			}
		}
		m, err := lifecycle.Lock(ctx, tx, in.MachineID)
		if err != nil {
			return nil, err
		}
		if err := checkUnassign(m, in); err != nil || m.SkuName == nil {
			return []string{m.ID}, err
		}
		return []string{m.ID}, s.unassign(ctx, tx, m, in)
	})
	return err
}

// checkUnassign tells why m's SKU cannot be taken away.
func checkUnassign(m *ent.Machine, in Unassign) error {
	if !in.Force && !slices.Contains(verifiable(), lifecycle.Position(m)) {
		return wrongState(m, "Specified machine is not in a valid state for removing SKU association")
	}
	return nil
}

// unassign takes the SKU of m away, which is locked and has one; checkUnassign has
// nothing against it.
func (s *Service) unassign(ctx context.Context, tx *ent.Client, m *ent.Machine, in Unassign) error {
	now, name := s.now(), *m.SkuName
	update := tx.Machine.Update().Where(machine.ID(m.ID)).SetUpdatedAt(now)
	withoutSku(m)(update)
	if err := update.Exec(ctx); err != nil {
		return err
	}
	err := lifecycle.Record(ctx, tx, m, nil, nil, lifecycle.Change{
		Event: fleet.EventSkuUnassigned, At: now, Details: ofJob(in.job, map[string]any{"sku": name, "force": in.Force}),
	})
	if err != nil {
		return err
	}
	if _, err := setAlert(ctx, tx, m, alertSku, "", now); err != nil {
		return err
	}
	return lifecycle.Advance(ctx, tx, s, m, lifecycle.Trigger{}, s.now)
}

// Verify is the input of Service.Verify.
type Verify struct {
	MachineID string
	Key       string `json:"-"`
}

// Verify asks for a verification, which begins with a fresh inventory. A machine
// without a SKU is held against those of its site instead.
func (s *Service) Verify(ctx context.Context, in Verify) error {
	if _, err := access.Require(ctx, fleet.RoleOperator); err != nil {
		return err
	}
	if err := fleet.CheckID("machineId", fleet.PrefixMachine, in.MachineID); err != nil {
		return err
	}
	return s.change(ctx, access.Mutation{Name: "verifyMachineSku", Key: in.Key, Input: in}, in.MachineID, func(ctx context.Context, tx *ent.Client, m *ent.Machine) error {
		if m.Kind == fleet.KindDPU {
			return fleet.Precondition("MACHINE_IS_DPU", "a DPU stands outside BOM validation and has no SKU")
		}
		if !slices.Contains(verifiable(), lifecycle.Position(m)) {
			return wrongState(m, "Specified machine is not in a valid state for machine SKU verification")
		}
		if m.SkuName != nil {
			m.VerifyRequestedAt = new(s.now())
			err := tx.Machine.Update().Where(machine.ID(m.ID)).SetVerifyRequestedAt(*m.VerifyRequestedAt).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return lifecycle.Advance(ctx, tx, s, m, lifecycle.Trigger{}, s.now)
	})
}

// change runs fn on the locked machine as mutation m.
func (s *Service) change(ctx context.Context, mutation access.Mutation, machineID string, fn func(context.Context, *ent.Client, *ent.Machine) error) error {
	_, err := access.Run(ctx, s.client, mutation, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		m, err := lifecycle.Lock(ctx, tx, machineID)
		if err != nil {
			return nil, err
		}
		return []string{m.ID}, fn(ctx, tx, m)
	})
	return err
}

func requireForce(ctx context.Context, force bool) error {
	role := fleet.RoleOperator
	if force {
		role = fleet.RoleAdmin
	}
	_, err := access.Require(ctx, role)
	return err
}

// ofJob adds the job to the details of what one did.
func ofJob(job string, details map[string]any) map[string]any {
	if job != "" {
		details["job"] = job
	}
	return details
}

func wrongState(m *ent.Machine, message string) error {
	return fleet.Precondition("MACHINE_STATE", "%s", message).
		WithDetails(map[string]any{"state": m.State, "subState": m.SubState})
}
