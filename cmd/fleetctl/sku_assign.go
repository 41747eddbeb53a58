package main

import (
	"context"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

func (a *app) skuAssign() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "assign SKU MACHINE",
		Aliases: []string{"a"},
		Short:   "Assigns a SKU to a machine, which is verified with its next inventory",
		Args:    cobra.ExactArgs(2),
		RunE: a.work(func(ctx context.Context, args []string) error {
			m, err := a.machine(ctx, args[1])
			if err != nil {
				return err
			}
			s, err := a.sku(ctx, args[0])
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.AssignSku(ctx, gql, client.AssignSkuInput{
				MachineId: m.Id, SkuId: s.Id, Force: force, IdempotencyKey: newKey(),
			})
			if err != nil {
				return err
			}
			return a.showChanged(done.AssignSku.Machine, "assigned "+s.Name+" to")
		}),
		ValidArgsFunction: a.completeArgs(a.skuNames, a.machineNames),
	}
	cmd.Flags().BoolVar(&force, "force", false, "assign whatever SKU and state the machine has")
	return cmd
}

func (a *app) skuUnassign() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "unassign MACHINE",
		Aliases: []string{"u"},
		Short:   "Takes a machine's SKU away",
		Args:    cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			m, err := a.machine(ctx, args[0])
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.UnassignSku(ctx, gql, client.UnassignSkuInput{
				MachineId: m.Id, Force: force, IdempotencyKey: newKey(),
			})
			if err != nil {
				return err
			}
			return a.showChanged(done.UnassignSku.Machine, "took the SKU away from")
		}),
		ValidArgsFunction: a.completeArgs(a.machineNames),
	}
	cmd.Flags().BoolVar(&force, "force", false, "do it whatever state the machine is in")
	return cmd
}

func (a *app) skuVerify() *cobra.Command {
	return &cobra.Command{
		Use:     "verify MACHINE",
		Aliases: []string{"v"},
		Short:   "Asks for a verification of a machine, which begins with a fresh inventory",
		Args:    cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			m, err := a.machine(ctx, args[0])
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.VerifyMachineSku(ctx, gql, client.VerifyMachineSkuInput{MachineId: m.Id, IdempotencyKey: newKey()})
			if err != nil {
				return err
			}
			if after := done.VerifyMachineSku.Machine; after.State == fleet.StateReady {
				return a.showUnverified(after)
			}
			return a.showChanged(done.VerifyMachineSku.Machine, "requested the verification of")
		}),
		ValidArgsFunction: a.completeArgs(a.machineNames),
	}
}

// showUnverified tells why nothing follows from asking for a machine's verification.
func (a *app) showUnverified(m client.MachineFields) error {
	why := "it has no SKU to be held against"
	if m.SkuName != nil {
		why = "its site validates no SKUs; once it does, the verification begins"
	}
	a.note("%s stays %s: %s", m.Name, stateText(m), why)
	return a.show(result{data: newMachineView(m)})
}

// showChanged tells what was done to a machine: a note for people, the machine
// for scripts.
func (a *app) showChanged(m client.MachineFields, done string) error {
	waits := waitsFor(m)
	if waits != "" {
		waits = ": " + waits
	}
	a.note("%s %s, which is %s%s", done, m.Name, stateText(m), waits)
	return a.show(result{data: newMachineView(m)})
}
