package expected

import (
	"encoding/json"
	"fmt"

	"fleetgraph/ent"
	"fleetgraph/fleet"
)

// record is an entry without its id and its credentials, as history shows it.
type record struct {
	BmcMacAddress                   string                      `json:"bmcMacAddress"`
	ChassisSerialNumber             string                      `json:"chassisSerialNumber"`
	FallbackDpuSerialNumbers        []string                    `json:"fallbackDpuSerialNumbers"`
	Name                            string                      `json:"name"`
	Description                     string                      `json:"description"`
	Labels                          []fleet.Label               `json:"labels"`
	SkuName                         *string                     `json:"skuName"`
	HostNics                        []fleet.HostNic             `json:"hostNics"`
	RackName                        *string                     `json:"rackName"`
	DefaultPauseIngestionAndPoweron *bool                       `json:"defaultPauseIngestionAndPoweron"`
	DpfEnabled                      *bool                       `json:"dpfEnabled"`
	BmcIPAddress                    *string                     `json:"bmcIpAddress"`
	BmcRetainCredentials            *bool                       `json:"bmcRetainCredentials"`
	DpuMode                         *fleet.DpuMode              `json:"dpuMode"`
	HostLifecycleProfile            *fleet.HostLifecycleProfile `json:"hostLifecycleProfile"`
}

func recordOf(row *ent.ExpectedMachine) record {
	return record{
		BmcMacAddress: row.BmcMACAddress, ChassisSerialNumber: row.ChassisSerialNumber,
		FallbackDpuSerialNumbers: row.FallbackDpuSerialNumbers,
		Name:                     row.Name, Description: row.Description, Labels: row.Labels,
		SkuName: row.SkuName, HostNics: row.HostNics, RackName: row.RackName,
		DefaultPauseIngestionAndPoweron: row.DefaultPauseIngestionAndPoweron, DpfEnabled: row.DpfEnabled,
		BmcIPAddress: row.BmcIPAddress, BmcRetainCredentials: row.BmcRetainCredentials,
		DpuMode: row.DpuMode, HostLifecycleProfile: row.HostLifecycleProfile,
	}
}

// newRecord is a record of defaults.
func newRecord() record {
	return record{FallbackDpuSerialNumbers: []string{}, Labels: []fleet.Label{}, HostNics: []fleet.HostNic{}}
}

// edited is the record after an edit by checked fields.
func (r record) edited(f *Fields) record {
	set(&r.BmcMacAddress, f.BmcMacAddress, "")
	set(&r.ChassisSerialNumber, f.ChassisSerialNumber, "")
	set(&r.FallbackDpuSerialNumbers, f.FallbackDpuSerialNumbers, []string{})
	set(&r.Name, f.Name, "")
	set(&r.Description, f.Description, "")
	set(&r.Labels, f.Labels, []fleet.Label{})
	if f.SkuName.Value != nil { // null keeps: an edit cannot remove the SKU
		r.SkuName = f.SkuName.Value
	}
	set(&r.HostNics, f.HostNics, []fleet.HostNic{})
	setOptional(&r.RackName, f.RackName)
	setOptional(&r.DefaultPauseIngestionAndPoweron, f.DefaultPauseIngestionAndPoweron)
	setOptional(&r.DpfEnabled, f.DpfEnabled)
	setOptional(&r.BmcIPAddress, f.BmcIPAddress)
	setOptional(&r.BmcRetainCredentials, f.BmcRetainCredentials)
	setOptional(&r.DpuMode, f.DpuMode)
	setOptional(&r.HostLifecycleProfile, f.HostLifecycleProfile)
	return r
}

func set[T any](field *T, p fleet.Patch[T], cleared T) {
	if p.Set {
		*field = p.Or(cleared)
	}
}

func setOptional[T any](field **T, p fleet.Patch[T]) {
	if p.Set {
		*field = p.Value
	}
}

// write puts the record into an insert or an update.
func (r record) write(m *ent.ExpectedMachineMutation) {
	m.SetBmcMACAddress(r.BmcMacAddress)
	m.SetChassisSerialNumber(r.ChassisSerialNumber)
	m.SetFallbackDpuSerialNumbers(r.FallbackDpuSerialNumbers)
	m.SetName(r.Name)
	m.SetDescription(r.Description)
	m.SetLabels(r.Labels)
	m.SetHostNics(r.HostNics)
	write(r.SkuName, m.SetSkuName, m.ClearSkuName)
	write(r.RackName, m.SetRackName, m.ClearRackName)
	write(r.DefaultPauseIngestionAndPoweron, m.SetDefaultPauseIngestionAndPoweron, m.ClearDefaultPauseIngestionAndPoweron)
	write(r.DpfEnabled, m.SetDpfEnabled, m.ClearDpfEnabled)
	write(r.BmcIPAddress, m.SetBmcIPAddress, m.ClearBmcIPAddress)
	write(r.BmcRetainCredentials, m.SetBmcRetainCredentials, m.ClearBmcRetainCredentials)
	write(r.DpuMode, m.SetDpuMode, m.ClearDpuMode)
	if r.HostLifecycleProfile != nil {
		m.SetHostLifecycleProfile(r.HostLifecycleProfile)
	} else {
		m.ClearHostLifecycleProfile()
	}
}

// write sets a column, or makes it null.
func write[T any](value *T, set func(T), clearColumn func()) {
	if value != nil {
		set(*value)
	} else {
		clearColumn()
	}
}

// equal compares what history would show.
func (r record) equal(other record) (bool, error) {
	one, err := json.Marshal(r)
	if err != nil {
		return false, fmt.Errorf("compare expected machines: %w", err)
	}
	two, err := json.Marshal(other)
	if err != nil {
		return false, fmt.Errorf("compare expected machines: %w", err)
	}
	return string(one) == string(two), nil
}
