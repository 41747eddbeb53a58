package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fleetgraph/ent"
	"fleetgraph/ent/allocation"
	"fleetgraph/ent/allocationmembership"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/machineclaim"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// PreventAllocations is the classification of an alert that keeps its machine from
// being allocated.
const PreventAllocations = "PREVENT_ALLOCATIONS"

// Blocker is something that keeps a machine from being allocated. Code is a stable
// upper-case word.
type Blocker struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Blockers is what keeps m from being allocated; none: it is allocatable. It reads
// the machine's site, claim and alerts from its Edges, which must be loaded.
func Blockers(m *ent.Machine) []Blocker {
	blockers := []Blocker{}
	if m.Kind == fleet.KindDPU {
		blockers = append(blockers, Blocker{"MACHINE_IS_DPU", "the machine is a DPU: it serves the host that it is in"})
	}
	if at := Position(m); at.State != fleet.StateReady {
		blockers = append(blockers, Blocker{"MACHINE_STATE", "the machine is " + at.String() + ", not " + string(fleet.StateReady)})
	}
	if claim := m.Edges.Claim; claim != nil {
		blockers = append(blockers, Blocker{"MACHINE_CLAIMED", "the machine is held by " + claim.HolderID})
	}
	if m.VerifyRequestedAt != nil && m.Edges.Site != nil && m.Edges.Site.BomValidation.Enabled {
		blockers = append(blockers, Blocker{"VERIFICATION_PENDING", "a verification of the machine's SKU was asked for and has not happened yet"})
	}
	for _, alert := range m.Edges.HealthAlerts {
		if slices.Contains(alert.Classifications, PreventAllocations) {
			blockers = append(blockers, Blocker{"HEALTH_ALERT", alert.AlertID + " (" + alert.Source + "): " + beginning(alert.Message)})
		}
	}
	return blockers
}

// beginning is how a text begins, which the alert has in full.
func beginning(text string) string {
	const shown = 300
	runes := []rune(text)
	if len(runes) <= shown {
		return text
	}
	return string(runes[:shown]) + "…"
}

// notAllocatable is the error of a machine that blockers keep from being allocated.
// Its message tells the first ones, its details all.
func notAllocatable(blockers []Blocker) error {
	const told = 3
	texts := make([]string, 0, told+1)
	for _, b := range blockers[:min(len(blockers), told)] {
		texts = append(texts, b.Message)
	}
	if more := len(blockers) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return fleet.Precondition("MACHINE_NOT_ALLOCATABLE", "the machine cannot be allocated: %s", strings.Join(texts, "; ")).
		WithDetails(map[string]any{"blockers": blockers})
}

// Allocate is the input of Service.Allocate.
type Allocate struct {
	MachineID      string
	AllocationName string
	Key            string `json:"-"`
}

// Allocate gives a machine to the allocation of this name at its site, which is
// created where there is none. FAILED_PRECONDITION, reason MACHINE_NOT_ALLOCATABLE,
// with everything that keeps the machine from it in details.blockers. Whatever
// changes that has to wait for the machine's lock, or is waited for.
func (s *Service) Allocate(ctx context.Context, in Allocate) error {
	if _, err := access.Require(ctx, fleet.RoleOperator); err != nil {
		return err
	}
	if err := fleet.CheckID("machineId", fleet.PrefixMachine, in.MachineID); err != nil {
		return err
	}
	if err := fleet.CheckName("allocationName", in.AllocationName); err != nil {
		return err
	}
	return s.change(ctx, access.Mutation{Name: "allocateMachine", Key: in.Key, Input: in}, in.MachineID, func(ctx context.Context, tx *ent.Client, m *ent.Machine) error {
		seen, err := tx.Machine.Query().Where(machine.ID(m.ID)).WithSite().WithClaim().WithHealthAlerts().Only(ctx)
		if err != nil {
			return err
		}
		if blockers := Blockers(seen); len(blockers) > 0 {
			return notAllocatable(blockers)
		}
		return s.allocate(ctx, tx, m, in.AllocationName)
	})
}

func (s *Service) allocate(ctx context.Context, tx *ent.Client, m *ent.Machine, name string) error {
	now := s.now()
	holder, err := s.allocation(ctx, tx, m.SiteID, name)
	if err != nil {
		return err
	}
	err = tx.AllocationMembership.Create().SetSiteID(m.SiteID).SetAllocationID(holder).
		SetMachineID(m.ID).SetMachineName(m.Name).SetAllocatedAt(now).Exec(ctx)
	if err != nil {
		return err
	}
	if err := Claim(ctx, tx, m, fleet.ClaimAllocation, holder); err != nil {
		return err
	}
	err = Move(ctx, tx, m, fleet.MachinePosition{State: fleet.StateAllocated}, Change{
		Event: fleet.EventAllocated, At: now, Details: map[string]any{"allocation": name, "allocationId": holder},
	})
	if err != nil {
		return err
	}
	return Advance(ctx, tx, s.validator, m, Trigger{}, s.now)
}

// allocation is the id of the allocation of this name, which is created where there
// is none.
func (s *Service) allocation(ctx context.Context, tx *ent.Client, siteID, name string) (string, error) {
	fresh := fleet.NewID(fleet.PrefixAllocation)
	// Waits for another transaction that is creating it.
	err := tx.Allocation.Create().SetID(fresh).SetSiteID(siteID).SetName(name).SetCreatedAt(s.now()).
		OnConflictColumns(allocation.FieldSiteID, allocation.FieldName).Ignore().Exec(ctx)
	if err != nil {
		return "", err
	}
	id, err := tx.Allocation.Query().Where(allocation.SiteID(siteID), allocation.Name(name)).OnlyID(ctx)
	if err != nil || id != fresh {
		return id, err
	}
	return id, events.Append(ctx, tx, events.Transition{
		SiteID: &siteID, SubjectType: fleet.SubjectAllocation, SubjectID: id,
		Cause: "ALLOCATION_CREATED", Actor: access.Actor(ctx), At: s.now(), Details: map[string]any{"name": name},
	})
}

// Claim makes holder the one that has m for itself: FAILED_PRECONDITION, reason
// MACHINE_CLAIMED, where another has. One row a machine: the database holds it.
func Claim(ctx context.Context, tx *ent.Client, m *ent.Machine, kind fleet.ClaimKind, holder string) error {
	err := tx.MachineClaim.Create().SetSiteID(m.SiteID).SetMachineID(m.ID).SetKind(kind).SetHolderID(holder).Exec(ctx)
	if name, violated := pgdb.Constraint(err); violated == pgdb.KindUnique && name == "machine_claims_machine_id_key" {
		return fleet.Precondition("MACHINE_CLAIMED", "machine %s is held by another", m.Name)
	}
	return err
}

// Release takes an allocated machine out of its allocation: FAILED_PRECONDITION,
// reason MACHINE_STATE, where it is in none, and MACHINE_CLAIMED where a job holds
// it. It is cleaned, inventoried and validated on its way back to READY.
func (s *Service) Release(ctx context.Context, machineID, key string) error {
	if _, err := access.Require(ctx, fleet.RoleOperator); err != nil {
		return err
	}
	if err := fleet.CheckID("machineId", fleet.PrefixMachine, machineID); err != nil {
		return err
	}
	return s.change(ctx, access.Mutation{Name: "releaseMachine", Key: key, Input: machineID}, machineID, func(ctx context.Context, tx *ent.Client, m *ent.Machine) error {
		if m.State != fleet.StateAllocated {
			return fleet.Precondition("MACHINE_STATE", "the machine is %s, not %s", Position(m), fleet.StateAllocated).
				WithDetails(map[string]any{"state": m.State, "subState": m.SubState})
		}
		n, err := tx.MachineClaim.Delete().
			Where(machineclaim.MachineID(m.ID), machineclaim.KindEQ(fleet.ClaimAllocation)).Exec(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return claimed(ctx, tx, m)
		}
		now := s.now()
		its := allocationmembership.And(allocationmembership.MachineID(m.ID), allocationmembership.ReleasedAtIsNil())
		membership, err := tx.AllocationMembership.Query().Where(its).WithAllocation().Only(ctx)
		if err != nil {
			return err
		}
		if err := tx.AllocationMembership.Update().Where(its).SetReleasedAt(now).Exec(ctx); err != nil {
			return err
		}
		err = Move(ctx, tx, m, fleet.MachinePosition{State: fleet.StateCleanup}, Change{
			Event: fleet.EventReleased, At: now,
			Details: map[string]any{"allocation": membership.Edges.Allocation.Name, "allocationId": membership.AllocationID},
		})
		if err != nil {
			return err
		}
		return Advance(ctx, tx, s.validator, m, Trigger{}, s.now)
	})
}

// Delete deletes a machine that nothing holds; its history stays.
// FAILED_PRECONDITION, reason MACHINE_ALLOCATED or MACHINE_CLAIMED, otherwise.
func (s *Service) Delete(ctx context.Context, machineID, key string) error {
	if _, err := access.Require(ctx, fleet.RoleAdmin); err != nil {
		return err
	}
	if err := fleet.CheckID("machineId", fleet.PrefixMachine, machineID); err != nil {
		return err
	}
	return s.change(ctx, access.Mutation{Name: "deleteMachine", Key: key, Input: machineID}, machineID, func(ctx context.Context, tx *ent.Client, m *ent.Machine) error {
		if m.State == fleet.StateAllocated {
			return fleet.Precondition("MACHINE_ALLOCATED", "machine %s is allocated: release it first", m.Name)
		}
		if err := claimed(ctx, tx, m); err != nil {
			return err
		}
		at := Position(m)
		err := Record(ctx, tx, m, &at, nil, Change{
			Event: fleet.EventMachineDeleted, At: s.now(),
			Details: map[string]any{"name": m.Name, "bmcMacAddress": m.BmcMACAddress, "sku": m.SkuName},
		})
		if err != nil {
			return err
		}
		return tx.Machine.DeleteOneID(m.ID).Exec(ctx)
	})
}

// claimed is the error of a machine that something holds.
func claimed(ctx context.Context, tx *ent.Client, m *ent.Machine) error {
	claim, err := tx.MachineClaim.Query().Where(machineclaim.MachineID(m.ID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return fleet.Precondition("MACHINE_CLAIMED", "machine %s is held by %s", m.Name, claim.HolderID).
		WithDetails(map[string]any{"kind": claim.Kind, "holderId": claim.HolderID})
}

// change runs fn on the locked machine as mutation mutation.
func (s *Service) change(ctx context.Context, mutation access.Mutation, machineID string, fn func(context.Context, *ent.Client, *ent.Machine) error) error {
	_, err := access.Run(ctx, s.client, mutation, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		m, err := Lock(ctx, tx, machineID)
		if err != nil {
			return nil, err
		}
		return []string{m.ID}, fn(ctx, tx, m)
	})
	return err
}
