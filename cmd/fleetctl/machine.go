package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

func (a *app) machineCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "machine", Short: "Machines: hosts and their state"}
	cmd.AddCommand(
		a.machineShow(), a.machineReport(), a.machineHistory(),
		a.machineAllocate(), a.machineRelease(), a.machineDelete(), a.machineAlert(),
	)
	return cmd
}

// machineView is a machine as scripts read it.
type machineView struct {
	ID             string                 `json:"id"`
	Name           string                 `json:"name"`
	BmcMacAddress  string                 `json:"bmc_mac_address"`
	SerialNumber   string                 `json:"serial_number"`
	Kind           fleet.MachineKind      `json:"kind"`
	Platform       string                 `json:"platform"`
	Vendor         string                 `json:"vendor"`
	Model          string                 `json:"model"`
	State          fleet.MachineState     `json:"state"`
	SubState       *fleet.MachineSubState `json:"sub_state"`
	StateChangedAt time.Time              `json:"state_changed_at"`
	Sku            *string                `json:"sku_id"`
}

func newMachineView(m client.MachineFields) machineView {
	return machineView{
		ID: m.Id, Name: m.Name, BmcMacAddress: m.BmcMacAddress, SerialNumber: m.SerialNumber, Kind: m.Kind,
		Platform: m.Platform, Vendor: m.Vendor, Model: m.Model,
		State: m.State, SubState: m.SubState, StateChangedAt: m.StateChangedAt, Sku: m.SkuName,
	}
}

// stateText is the state with its sub-state after a slash, as in histories.
func stateText(m client.MachineFields) string {
	if m.SubState == nil {
		return string(m.State)
	}
	return string(m.State) + "/" + string(*m.SubState)
}

// machineFilter narrows a list of machines; its zero value lists all.
type machineFilter struct {
	states      []fleet.MachineState
	subStates   []fleet.MachineSubState
	sku, serial *string
	unassigned  *bool
}

func (a *app) machineShow() *cobra.Command {
	var states []string
	var sku, serial string
	var unassigned bool
	var limit int
	cmd := &cobra.Command{
		Use:     "show [MACHINE]",
		Aliases: []string{"s"},
		Short:   "Lists the machines of the site, or shows one",
		Long: "Lists the machines of the site, or shows one, which is given by its id, its name, the MAC address of its\n" +
			"BMC or its serial number.",
		Args: cobra.MaximumNArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			filter, err := newMachineFilter(states, sku, serial, unassigned)
			if err != nil {
				return err
			}
			if limit < 0 {
				return usagef("--limit must not be negative")
			}
			if len(args) == 1 {
				return a.showMachine(ctx, args[0])
			}
			rows, err := a.machines(ctx, filter, limit)
			if err != nil {
				return err
			}
			return a.showMachines(rows)
		}),
		ValidArgsFunction: a.completeArgs(a.machineNames),
	}
	f := cmd.Flags()
	f.StringSliceVar(&states, "state", nil, "only machines in this `state` or sub-state; may be repeated")
	f.StringVar(&sku, "sku", "", "only machines with the SKU of this `name`")
	f.StringVar(&serial, "serial", "", "only machines with this serial `number`")
	f.BoolVar(&unassigned, "unassigned", false, "only machines without a SKU")
	f.IntVar(&limit, "limit", 0, "list at most so many machines; 0 lists all")
	cmd.MarkFlagsMutuallyExclusive("sku", "unassigned")
	a.completeWords(cmd, "state", slices.Concat(fleet.MachineState("").Values(), fleet.MachineSubState("").Values())...)
	a.completeNames(cmd, "sku", a.skuNames)
	return cmd
}

func newMachineFilter(states []string, sku, serial string, unassigned bool) (machineFilter, error) {
	var filter machineFilter
	if sku != "" {
		filter.sku = &sku
	}
	if serial != "" {
		filter.serial = &serial
	}
	if unassigned {
		filter.unassigned = &unassigned
	}
	for _, word := range states {
		if state, ok := wordOf(word, fleet.MachineState("").Values()); ok {
			filter.states = append(filter.states, fleet.MachineState(state))
		} else if state, ok := wordOf(word, fleet.MachineSubState("").Values()); ok {
			filter.subStates = append(filter.subStates, fleet.MachineSubState(state))
		} else {
			return filter, usagef("--state: %q is no state, expected one of %s", word,
				strings.Join(slices.Concat(fleet.MachineState("").Values(), fleet.MachineSubState("").Values()), ", "))
		}
	}
	if len(filter.states) > 0 && len(filter.subStates) > 0 {
		return filter, usagef("--state takes states or sub-states, not both at once")
	}
	return filter, nil
}

// wordOf finds the enum value that word spells, in the API's way or the guide's:
// SKU_MISSING and SkuMissing are the same.
func wordOf(word string, values []string) (string, bool) {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	for _, v := range values {
		if plain(v) == plain(word) {
			return v, true
		}
	}
	return "", false
}

// machines reads the machines of the site by name, at most limit of them unless
// it is 0.
func (a *app) machines(ctx context.Context, filter machineFilter, limit int) ([]client.MachineRow, error) {
	site, err := a.site(ctx)
	if err != nil {
		return nil, err
	}
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	var rows []client.MachineRow
	err = pages(limit, func(n int, after *string) (int, client.Page, error) {
		found, err := client.ListMachines(ctx, gql, site.Id, n, after,
			filter.states, filter.subStates, filter.sku, filter.unassigned, filter.serial)
		if err != nil {
			return 0, client.Page{}, err
		}
		for _, edge := range found.Machines.Edges {
			rows = append(rows, *edge.Node)
		}
		return len(found.Machines.Edges), found.Machines.PageInfo, nil
	})
	return rows, err
}

// machineRow is a machine in a list.
type machineRow struct {
	machineView
	SkuDeviceType *string `json:"sku_device_type"`
	Allocatable   bool    `json:"allocatable"`
	Alerts        int     `json:"health_alerts"`
}

func (a *app) showMachines(found []client.MachineRow) error {
	rows := make([]machineRow, len(found))
	for i, m := range found {
		rows[i] = machineRow{machineView: newMachineView(m.MachineFields), Allocatable: m.Allocatable, Alerts: m.HealthAlerts.TotalCount}
		if m.Sku != nil {
			rows[i].SkuDeviceType = m.Sku.DeviceType
		}
	}
	return a.show(result{
		data: rows,
		page: func(p *page) { p.table(0, a.machineGrid(rows)) },
		grid: machineCSV(rows),
	})
}

// machineGrid is the list for people. The state is the most specific one: names
// of sub-states are as unique as those of states.
func (a *app) machineGrid(rows []machineRow) *grid {
	g := &grid{headers: []string{"Name", "State", "Allocatable", "SKU", "Model", "Alerts"}}
	if a.flags.extended {
		g.headers = append(g.headers, "SKU Device Type", "Serial Number", "BMC MAC", "Kind", "State Changed At", "ID")
	}
	for _, m := range rows {
		state := string(m.State)
		if m.SubState != nil {
			state = string(*m.SubState)
		}
		row := []cell{text(m.Name), text(state), text(yesNo(m.Allocatable)), optional(m.Sku), text(m.Model), number(m.Alerts)}
		if a.flags.extended {
			row = append(row, optional(m.SkuDeviceType), text(m.SerialNumber), text(m.BmcMacAddress), text(string(m.Kind)), text(moment(m.StateChangedAt)), text(m.ID))
		}
		g.add(row...)
	}
	return g
}

// machineCSV is the list for spreadsheets, with all that is known.
func machineCSV(rows []machineRow) *grid {
	g := &grid{headers: []string{
		"Name", "ID", "State", "Sub-State", "State Changed At", "SKU", "Kind", "Vendor", "Model", "Platform", "Serial Number", "BMC MAC", "Alerts", "SKU Device Type", "Allocatable",
	}}
	for _, m := range rows {
		sub := ""
		if m.SubState != nil {
			sub = string(*m.SubState)
		}
		g.add(text(m.Name), text(m.ID), text(string(m.State)), text(sub), text(moment(m.StateChangedAt)), optional(m.Sku), text(string(m.Kind)),
			text(m.Vendor), text(m.Model), text(m.Platform), text(m.SerialNumber), text(m.BmcMacAddress), number(m.Alerts),
			optional(m.SkuDeviceType), text(yesNo(m.Allocatable)))
	}
	return g
}
