package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

// expectedFile is an expected machine in a file. Its four first fields are required;
// null is the same as absent.
type expectedFile struct {
	ChassisSerialNumber             *string                     `json:"chassis_serial_number"`
	BmcMacAddress                   *string                     `json:"bmc_mac_address"`
	BmcUsername                     *string                     `json:"bmc_username"`
	BmcPassword                     *string                     `json:"bmc_password"`
	ID                              *string                     `json:"id"` // the server's to give
	FallbackDpuSerialNumbers        []string                    `json:"fallback_dpu_serial_numbers"`
	Metadata                        *expectedMetadata           `json:"metadata"`
	SkuID                           *string                     `json:"sku_id"`
	HostNics                        []fleet.HostNic             `json:"host_nics"`
	RackID                          *string                     `json:"rack_id"`
	DefaultPauseIngestionAndPoweron *bool                       `json:"default_pause_ingestion_and_poweron"`
	DpfEnabled                      *bool                       `json:"dpf_enabled"`
	BmcIPAddress                    *string                     `json:"bmc_ip_address"`
	BmcRetainCredentials            *bool                       `json:"bmc_retain_credentials"`
	DpuMode                         *string                     `json:"dpu_mode"`
	HostLifecycleProfile            *fleet.HostLifecycleProfile `json:"host_lifecycle_profile"`
}

type expectedMetadata struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Labels      []fleet.Label `json:"labels"`
}

// keys is what an object of a file may hold: by name, and what is below it, nil for a
// value.
type keys map[string]keys

func leaves(names ...string) keys {
	out := keys{}
	for _, name := range names {
		out[name] = nil
	}
	return out
}

func expectedKeys() keys {
	out := leaves(
		"id", "bmc_mac_address", "bmc_username", "bmc_password", "chassis_serial_number", "fallback_dpu_serial_numbers", "sku_id", "rack_id",
		"default_pause_ingestion_and_poweron", "dpf_enabled", "bmc_ip_address", "bmc_retain_credentials", "dpu_mode",
		"associated_machine_id", "has_bmc_credentials", // what show writes beside
	)
	out["metadata"] = leaves("name", "description")
	out["metadata"]["labels"] = leaves("key", "value")
	out["host_nics"] = leaves("mac_address", "nic_type", "fixed_ip", "fixed_mask", "fixed_gateway", "primary")
	out["host_lifecycle_profile"] = leaves("disable_lockdown")
	return out
}

// unknown lists the keys of a document that are not among known, each once: lists
// count as their elements.
func (known keys) unknown(document any, path string) []string {
	var out []string
	switch document := document.(type) {
	case []any:
		for _, element := range document {
			out = append(out, known.unknown(element, path)...)
		}
	case map[string]any:
		for name, value := range document {
			below, ok := known[name]
			switch {
			case !ok:
				out = append(out, path+name)
			case below != nil:
				out = append(out, below.unknown(value, path+name+".")...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// decodeExpected reads JSON into out, and warns of the keys that are not known: a
// mistyped one would be lost in silence.
func (a *app) decodeExpected(name string, data []byte, known keys, out any) error {
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if unknown := known.unknown(document, ""); len(unknown) > 0 {
		a.warn("%s: ignored unknown keys: %s", name, strings.Join(unknown, ", "))
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readExpected reads a file of one expected machine.
func (a *app) readExpected(name string) (expectedFile, error) {
	data, err := a.readJSON(name)
	if err != nil {
		return expectedFile{}, err
	}
	var f expectedFile
	if err := a.decodeExpected(name, data, expectedKeys(), &f); err != nil {
		return expectedFile{}, err
	}
	if err := f.check(); err != nil {
		return expectedFile{}, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// readAllExpected reads a file of all expected machines: {"expected_machines": […],
// "expected_machines_count": n}, or the list alone.
func (a *app) readAllExpected(name string) ([]expectedFile, error) {
	data, err := a.readJSON(name)
	if err != nil {
		return nil, err
	}
	if trimmed := bytes.TrimSpace(data); bytes.HasPrefix(trimmed, []byte("[")) {
		data = slices.Concat([]byte(`{"expected_machines":`), trimmed, []byte("}"))
	}
	var all struct {
		Machines []expectedFile `json:"expected_machines"`
		Count    *int           `json:"expected_machines_count"`
	}
	known := leaves("expected_machines_count")
	known["expected_machines"] = expectedKeys()
	if err := a.decodeExpected(name, data, known, &all); err != nil {
		return nil, err
	}
	if all.Machines == nil {
		return nil, fmt.Errorf("%s lacks expected_machines", name)
	}
	for i := range all.Machines {
		if err := all.Machines[i].check(); err != nil {
			return nil, fmt.Errorf("%s: expected machine %d: %w", name, i, err)
		}
	}
	if all.Count != nil && *all.Count != len(all.Machines) {
		a.warn("%s holds %s, not %d as its expected_machines_count says", name, plural(len(all.Machines), "expected machine"), *all.Count)
	}
	return all.Machines, nil
}

// check tells what a file lacks.
func (f *expectedFile) check() error {
	lacking := []string{}
	for name, value := range map[string]*string{
		"bmc_mac_address": f.BmcMacAddress, "bmc_username": f.BmcUsername,
		"bmc_password": f.BmcPassword, "chassis_serial_number": f.ChassisSerialNumber,
	} {
		if value == nil {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) > 0 {
		slices.Sort(lacking)
		return fmt.Errorf("lacks %s", strings.Join(lacking, ", "))
	}
	_, err := dpuMode(f.DpuMode)
	return err
}

// dpuMode reads a mode in the file's words or the API's.
func dpuMode(word *string) (*fleet.DpuMode, error) {
	if word == nil {
		return nil, nil //nolint:nilnil // none was given
	}
	mode, ok := wordOf(*word, fleet.DpuMode("").Values())
	if !ok {
		return nil, fmt.Errorf("%s is no DPU mode, expected one of %s", fleet.Quoted(*word), strings.ToLower(strings.Join(fleet.DpuMode("").Values(), ", ")))
	}
	return (*fleet.DpuMode)(&mode), nil
}

// item is the file as mutations take it to create.
func (f *expectedFile) item() client.ExpectedMachineItem {
	p := f.patch()
	item := client.ExpectedMachineItem{
		BmcUsername: p.BmcUsername, BmcPassword: p.BmcPassword, ChassisSerialNumber: p.ChassisSerialNumber,
		FallbackDpuSerialNumbers: p.FallbackDpuSerialNumbers, Name: p.Name, Description: p.Description, Labels: p.Labels,
		SkuName: p.SkuName, HostNics: p.HostNics, RackName: p.RackName,
		DefaultPauseIngestionAndPoweron: p.DefaultPauseIngestionAndPoweron, DpfEnabled: p.DpfEnabled,
		BmcIpAddress: p.BmcIpAddress, BmcRetainCredentials: p.BmcRetainCredentials, DpuMode: p.DpuMode,
		HostLifecycleProfile: p.HostLifecycleProfile,
	}
	if f.BmcMacAddress != nil {
		item.BmcMacAddress = *f.BmcMacAddress
	}
	return item
}

// patch is the file as mutations take it to edit the entry of its MAC address. What
// the file does not have is kept.
func (f *expectedFile) patch() client.ExpectedMachinePatch {
	mode, _ := dpuMode(f.DpuMode) // checked
	p := client.ExpectedMachinePatch{
		BmcUsername: f.BmcUsername, BmcPassword: f.BmcPassword, ChassisSerialNumber: f.ChassisSerialNumber,
		FallbackDpuSerialNumbers: f.FallbackDpuSerialNumbers, SkuName: f.SkuID, RackName: f.RackID,
		DefaultPauseIngestionAndPoweron: f.DefaultPauseIngestionAndPoweron, DpfEnabled: f.DpfEnabled,
		BmcIpAddress: f.BmcIPAddress, BmcRetainCredentials: f.BmcRetainCredentials, DpuMode: mode,
	}
	if m := f.Metadata; m != nil {
		if m.Name != "" {
			p.Name = &m.Name
		}
		if m.Description != "" {
			p.Description = &m.Description
		}
		for _, label := range m.Labels {
			p.Labels = append(p.Labels, client.LabelInput(label))
		}
	}
	for _, nic := range f.HostNics {
		p.HostNics = append(p.HostNics, client.HostNicInput{
			MacAddress: nic.MacAddress, NicType: nic.NicType, FixedIp: nic.FixedIP, FixedMask: nic.FixedMask,
			FixedGateway: nic.FixedGateway, Primary: nic.Primary,
		})
	}
	if f.HostLifecycleProfile != nil {
		profile := client.HostLifecycleProfileInput(*f.HostLifecycleProfile)
		p.HostLifecycleProfile = &profile
	}
	return p
}

// expectedView is an expected machine as scripts read it: the form of files without
// the credentials, which the server does not tell.
type expectedView struct {
	ID                              string                      `json:"id"`
	BmcMacAddress                   string                      `json:"bmc_mac_address"`
	HasBmcCredentials               bool                        `json:"has_bmc_credentials"`
	ChassisSerialNumber             string                      `json:"chassis_serial_number"`
	FallbackDpuSerialNumbers        []string                    `json:"fallback_dpu_serial_numbers"`
	Metadata                        expectedMetadata            `json:"metadata"`
	SkuID                           *string                     `json:"sku_id"`
	HostNics                        []fleet.HostNic             `json:"host_nics"`
	RackID                          *string                     `json:"rack_id"`
	DefaultPauseIngestionAndPoweron *bool                       `json:"default_pause_ingestion_and_poweron"`
	DpfEnabled                      *bool                       `json:"dpf_enabled"`
	BmcIPAddress                    *string                     `json:"bmc_ip_address"`
	BmcRetainCredentials            *bool                       `json:"bmc_retain_credentials"`
	DpuMode                         *string                     `json:"dpu_mode"`
	HostLifecycleProfile            *fleet.HostLifecycleProfile `json:"host_lifecycle_profile"`
	AssociatedMachineID             *string                     `json:"associated_machine_id"`

	machine string // its name
}

func newExpectedView(m client.ExpectedMachineFields) expectedView {
	view := expectedView{
		ID: m.Id, BmcMacAddress: m.BmcMacAddress, HasBmcCredentials: m.HasBmcCredentials,
		ChassisSerialNumber: m.ChassisSerialNumber, FallbackDpuSerialNumbers: list(m.FallbackDpuSerialNumbers),
		Metadata: expectedMetadata{m.Name, m.Description, []fleet.Label{}}, SkuID: m.SkuName, HostNics: []fleet.HostNic{},
		RackID: m.RackName, DefaultPauseIngestionAndPoweron: m.DefaultPauseIngestionAndPoweron, DpfEnabled: m.DpfEnabled,
		BmcIPAddress: m.BmcIpAddress, BmcRetainCredentials: m.BmcRetainCredentials,
	}
	for _, label := range m.Labels {
		view.Metadata.Labels = append(view.Metadata.Labels, fleet.Label(label))
	}
	for _, nic := range m.HostNics {
		view.HostNics = append(view.HostNics, fleet.HostNic{
			MacAddress: nic.MacAddress, NicType: nic.NicType, FixedIP: nic.FixedIp, FixedMask: nic.FixedMask,
			FixedGateway: nic.FixedGateway, Primary: nic.Primary,
		})
	}
	if m.DpuMode != nil {
		view.DpuMode = new(strings.ToLower(string(*m.DpuMode)))
	}
	if m.HostLifecycleProfile != nil {
		view.HostLifecycleProfile = &fleet.HostLifecycleProfile{DisableLockdown: m.HostLifecycleProfile.DisableLockdown}
	}
	if m.Machine != nil {
		view.AssociatedMachineID, view.machine = &m.Machine.Id, m.Machine.Name
	}
	return view
}
