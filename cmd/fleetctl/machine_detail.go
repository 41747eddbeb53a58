package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

// machineDetail is one machine in full, as scripts read it.
type machineDetail struct {
	machineView
	Site             string            `json:"site"`
	Created          time.Time         `json:"created"`
	SkuDeviceType    *string           `json:"sku_device_type"`
	LastVerification *verificationView `json:"last_verification"`
	Comparison       *fleet.Comparison `json:"sku_comparison"`
	Allocatable      bool              `json:"allocatable"`
	Blockers         []blockerView     `json:"allocation_blockers"`
	VerifyRequested  *time.Time        `json:"verify_requested_at"`
	Allocation       *string           `json:"allocation"`
	Claim            *claimView        `json:"claim"`
	Work             []workView        `json:"work"`
	ExpectedSku      *string           `json:"expected_sku_id"`
	Alerts           []alertView       `json:"health_alerts"`
	Inventory        string            `json:"inventory_summary"`
	InventoryAt      *time.Time        `json:"inventory_reported_at"`
	Document         *json.RawMessage  `json:"inventory,omitempty"`
}

type verificationView struct {
	At    time.Time `json:"at"`
	Match bool      `json:"match"`
}

type blockerView struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type claimView struct {
	Kind   string `json:"kind"`
	Holder string `json:"holder_id"`
}

// workView is something that is wanted of the machine's host.
type workView struct {
	Kind      string     `json:"kind"`
	Requested time.Time  `json:"requested_at"`
	Claimed   *time.Time `json:"claimed_at"`
}

type alertView struct {
	GlobalID        string    `json:"global_id"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Target          string    `json:"target"`
	Message         string    `json:"message"`
	Classifications []string  `json:"classifications"`
	InAlertSince    time.Time `json:"in_alert_since"`
}

func (a *app) showMachine(ctx context.Context, arg string) error {
	m, err := a.machine(ctx, arg)
	if err != nil {
		return err
	}
	gql, err := a.api()
	if err != nil {
		return err
	}
	found, err := client.MachineDetail(ctx, gql, m.Id)
	if err != nil {
		return err
	}
	if len(found.Machines.Edges) == 0 {
		return fleet.Missing("machine", "MACHINE_NOT_FOUND", "machine not found: %s", arg)
	}
	sheet := *found.Machines.Edges[0].Node
	d := newMachineDetail(sheet)
	if a.flags.extended {
		d.Document = sheet.InventoryDocument
	}
	return a.show(result{
		data: d,
		page: func(p *page) { machinePage(p, sheet.MachineFields, d) },
		grid: machineCSV([]machineRow{{d.machineView, d.SkuDeviceType, d.Allocatable, len(d.Alerts)}}),
	})
}

func newMachineDetail(m client.MachineSheet) machineDetail {
	d := machineDetail{
		machineView: newMachineView(m.MachineFields),
		Site:        m.Site.Name,
		Created:     m.CreatedAt,
		Alerts:      []alertView{},
		Allocatable: m.Allocatable, Blockers: []blockerView{}, VerifyRequested: m.VerifyRequestedAt, Work: []workView{},
		InventoryAt: m.InventoryReportedAt,
		Inventory:   inventorySummary(m.InventoryDocument),
	}
	if m.Sku != nil {
		d.SkuDeviceType = m.Sku.DeviceType
	}
	if v := m.LastVerification; v != nil {
		d.LastVerification = &verificationView{v.At, v.Match}
	}
	if c := m.SkuComparison; c != nil {
		d.Comparison = &fleet.Comparison{Match: c.Match, Mismatches: mismatches(c.Mismatches), Notes: notes(c.Notes)}
	}
	for _, b := range m.AllocationBlockers {
		d.Blockers = append(d.Blockers, blockerView(b))
	}
	if c := m.Claim; c != nil {
		d.Claim = &claimView{string(c.Kind), c.HolderId}
	}
	for _, member := range m.Memberships.Nodes {
		d.Allocation = &member.Allocation.Name
	}
	for _, w := range m.Work {
		d.Work = append(d.Work, workView{*w.Typename, w.RequestedAt, w.ClaimedAt})
	}
	if e := m.ExpectedMachine; e != nil {
		d.ExpectedSku = e.SkuName
	}
	for _, edge := range m.HealthAlerts.Edges {
		d.Alerts = append(d.Alerts, newAlertView(*edge.Node))
	}
	return d
}

func newAlertView(n client.HealthAlertFields) alertView {
	return alertView{n.Id, n.AlertId, n.Source, n.Target, n.Message, n.Classifications, n.InAlertSince}
}

// inventorySummary is an inventory in one line, in the words of a SKU's
// description; empty without one.
func inventorySummary(document *json.RawMessage) string {
	if document == nil {
		return ""
	}
	inventory, err := fleet.ParseInventory(*document)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	c, err := sku.Generate(inventory, nil, fleet.CurrentSchemaVersion)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	drives := 0
	for _, s := range c.Storage {
		drives += s.Count
	}
	return fmt.Sprintf("%s; %dxNVMe", sku.Describe(c), drives)
}

func machinePage(p *page, m client.MachineFields, d machineDetail) {
	p.field("ID", d.ID)
	p.field("Name", d.Name)
	p.field("Site", d.Site)
	p.field("Kind", string(d.Kind))
	p.field("State", stateText(m))
	p.field("State Changed At", moment(d.StateChangedAt))
	p.field("Allocatable", yesNo(d.Allocatable))
	for _, b := range d.Blockers {
		p.line("%*s- %s: %s", labelWidth, "", b.Code, b.Message)
	}
	if d.Allocation != nil {
		p.field("Allocation", *d.Allocation)
	}
	if d.Claim != nil {
		p.field("Held By", d.Claim.Kind+" "+d.Claim.Holder)
	}
	for _, w := range d.Work {
		claimed := "not claimed yet"
		if w.Claimed != nil {
			claimed = "claimed " + moment(*w.Claimed)
		}
		p.field("Wanted Of Its Host", fmt.Sprintf("%s since %s, %s", w.Kind, moment(w.Requested), claimed))
	}
	if d.VerifyRequested != nil {
		p.field("Verification", "asked for "+moment(*d.VerifyRequested)+", pending")
	}
	if d.ExpectedSku != nil {
		p.field("Expected SKU", *d.ExpectedSku)
	}
	p.optional("SKU", d.Sku)
	p.optional("SKU Device Type", d.SkuDeviceType)
	verification := "never"
	if v := d.LastVerification; v != nil {
		verification = moment(v.At) + ", mismatch"
		if v.Match {
			verification = moment(v.At) + ", match"
		}
	}
	p.field("Last Verification", verification)
	if c := d.Comparison; c != nil {
		now := "match"
		if !c.Match {
			now = "mismatch, " + plural(len(c.Mismatches), "difference")
		}
		p.field("SKU Comparison Now", now)
	}
	p.field("Vendor", d.Vendor)
	p.field("Model", d.Model)
	p.field("Serial Number", d.SerialNumber)
	p.field("BMC MAC Address", d.BmcMacAddress)
	p.field("Platform", d.Platform)
	p.field("Inventory", d.Inventory)
	reported := "never"
	if d.InventoryAt != nil {
		reported = moment(*d.InventoryAt)
	}
	p.field("Inventory Reported", reported)
	p.field("Created At", moment(d.Created))
	p.blank()
	alertPage(p, d.Alerts)
}

// alertPage shows alerts as text: their messages are lines of any length.
func alertPage(p *page, alerts []alertView) {
	if len(alerts) == 0 {
		p.line("Health Alerts: none")
		return
	}
	p.line("Health Alerts:")
	for _, alert := range alerts {
		head := fmt.Sprintf("%s (%s) since %s, %s", alert.ID, alert.Source, moment(alert.InAlertSince), alert.GlobalID)
		if alert.Target != "" {
			head += ", target " + alert.Target
		}
		p.line("  %s", strings.Join(append([]string{head}, alert.Classifications...), ", "))
		for line := range strings.SplitSeq(alert.Message, "\n") {
			p.line("    %s", line)
		}
	}
}
