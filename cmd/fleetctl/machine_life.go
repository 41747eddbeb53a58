package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

func (a *app) machineAllocate() *cobra.Command {
	return &cobra.Command{
		Use:   "allocate MACHINE ALLOCATION",
		Short: "Gives a machine to an allocation, which is created where there is none of this name",
		Args:  cobra.ExactArgs(2),
		RunE: a.work(func(ctx context.Context, args []string) error {
			m, err := a.machine(ctx, args[0])
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.AllocateMachine(ctx, gql, client.AllocateMachineInput{
				MachineId: m.Id, AllocationName: args[1], IdempotencyKey: newKey(),
			})
			if err != nil {
				return a.withBlockers(err)
			}
			return a.showChanged(done.AllocateMachine.Machine, "allocated to "+args[1]+":")
		}),
		ValidArgsFunction: a.completeArgs(a.machineNames),
	}
}

// withBlockers writes a refusal's blockers one a line, which say more than the
// message that joins them. Scripts get the error as it is.
func (a *app) withBlockers(err error) error {
	e, ok := fleet.AsError(err)
	if !ok || a.format == formatJSON {
		return err
	}
	blockers, ok := e.Details["blockers"].([]any)
	if !ok {
		return err
	}
	plain := *e
	plain.Message = "the machine cannot be allocated:"
	for _, b := range blockers {
		if b, ok := b.(map[string]any); ok {
			plain.Message += fmt.Sprintf("\n%s: %s", b["code"], b["message"])
		}
	}
	plain.Details = nil
	return &plain
}

func (a *app) machineRelease() *cobra.Command {
	return &cobra.Command{
		Use:   "release MACHINE",
		Short: "Takes a machine out of its allocation; it is cleaned, inventoried and validated again",
		Args:  cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			m, err := a.machine(ctx, args[0])
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.ReleaseMachine(ctx, gql, client.ReleaseMachineInput{MachineId: m.Id, IdempotencyKey: newKey()})
			if err != nil {
				return err
			}
			return a.showChanged(done.ReleaseMachine.Machine, "released")
		}),
		ValidArgsFunction: a.completeArgs(a.machineNames),
	}
}

func (a *app) machineDelete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete MACHINE",
		Short: "Deletes a machine that nothing holds; its history stays",
		Args:  cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			m, err := a.machine(ctx, args[0])
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			if _, err := client.DeleteMachine(ctx, gql, client.DeleteMachineInput{MachineId: m.Id, IdempotencyKey: newKey()}); err != nil {
				return err
			}
			a.note("deleted %s", m.Name)
			return a.show(result{data: map[string]string{"deleted_id": m.Id}})
		}),
		ValidArgsFunction: a.completeArgs(a.machineNames),
	}
}

func (a *app) machineAlert() *cobra.Command {
	cmd := &cobra.Command{Use: "alert", Short: "Health alerts that people and outside monitors raise"}
	cmd.AddCommand(a.alertRaise(), a.alertClear())
	return cmd
}

func (a *app) alertRaise() *cobra.Command {
	var source, target, message, tenantMessage string
	var classifications []string
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "raise MACHINE ALERT_ID",
		Short: "Raises an alert on a machine; with --classification PREVENT_ALLOCATIONS it cannot be allocated meanwhile",
		Args:  cobra.ExactArgs(2),
		RunE: a.work(func(ctx context.Context, args []string) error {
			m, err := a.machine(ctx, args[0])
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			input := client.RaiseHealthAlertInput{
				MachineId: m.Id, AlertId: args[1], Message: message, Classifications: classifications, IdempotencyKey: newKey(),
			}
			input.Source, input.Target = source, target // an empty one is left out
			if cmd.Flags().Changed("tenant-message") {
				input.TenantMessage = &tenantMessage
			}
			done, err := client.RaiseHealthAlert(ctx, gql, input)
			if err != nil {
				return err
			}
			alert := done.RaiseHealthAlert.HealthAlert
			a.note("raised %s on %s: %s", alert.AlertId, m.Name, alert.Id)
			return a.show(result{data: newAlertView(alert)})
		}),
		ValidArgsFunction: a.completeArgs(a.machineNames),
	}
	f := cmd.Flags()
	f.StringVar(&message, "message", "", "what a person should read")
	f.StringVar(&source, "source", "", "what raises the alert (default operator)")
	f.StringVar(&target, "target", "", "the part concerned (default the whole machine)")
	f.StringVar(&tenantMessage, "tenant-message", "", "what a tenant may read")
	f.StringSliceVar(&classifications, "classification", nil, "what the alert entails, such as PREVENT_ALLOCATIONS; may be repeated")
	_ = cmd.MarkFlagRequired("message") // the flag exists
	return cmd
}

func (a *app) alertClear() *cobra.Command {
	return &cobra.Command{
		Use:   "clear ID",
		Short: "Clears an alert by the id that machine show tells; those of the system clear themselves",
		Args:  cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.ClearHealthAlert(ctx, gql, client.ClearHealthAlertInput{HealthAlertId: args[0], IdempotencyKey: newKey()})
			if err != nil {
				return err
			}
			return a.showChanged(done.ClearHealthAlert.Machine, "cleared an alert of")
		}),
	}
}

// waitsFor says in a few words what a machine's state waits for; empty for nothing.
func waitsFor(m client.MachineFields) string {
	switch {
	case m.State == fleet.StateCleanup:
		return "it is being cleaned"
	case m.SubState == nil:
		return ""
	}
	switch *m.SubState {
	case fleet.SubUpdatingInventory:
		return "it waits for a fresh inventory"
	case fleet.SubSkuVerificationFailed:
		return "it differs from its SKU: see machine show, and verify it again when that is mended"
	case fleet.SubWaitingForSkuAssignment:
		return "it has no SKU and matches none"
	case fleet.SubSkuMissing:
		return "its SKU does not exist"
	case fleet.SubRebooting:
		return "its host is to restart"
	case fleet.SubMatchingSku, fleet.SubVerifyingSku, fleet.SubRunning:
	}
	return ""
}
