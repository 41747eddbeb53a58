package site

import (
	"encoding/json"
	"reflect"

	"fleetgraph/fleet"
)

// Bom is an edit of a site's bomValidation. A field that is set without a value gets
// its default.
type Bom struct {
	Enabled                            fleet.Patch[bool]
	IgnoreUnassignedMachines           fleet.Patch[bool]
	AllowAllocationOnValidationFailure fleet.Patch[bool]
	FindMatchInterval                  fleet.Patch[fleet.Duration]
	AutoGenerateMissingSku             fleet.Patch[bool]
	AutoGenerateMissingSkuInterval     fleet.Patch[fleet.Duration]
}

// Validation is an edit of a site's machineValidation, likewise.
type Validation struct {
	Enabled                fleet.Patch[bool]
	TestSelectionMode      fleet.Patch[fleet.TestSelectionMode]
	RunInterval            fleet.Patch[fleet.Duration]
	StaleRunTimeout        fleet.Patch[fleet.Duration]
	Tests                  fleet.Patch[[]fleet.TestSetting]
	ApprovedRegistries     fleet.Patch[[]string]
	AllowedPluginTypes     fleet.Patch[[]string]
	AllowPrivilegedPlugins fleet.Patch[bool]
	AllowFullHostPlugins   fleet.Patch[bool]
	AttemptLogs            fleet.Patch[Logs]
	RequireTests           fleet.Patch[bool]
	HeartbeatTimeout       fleet.Patch[fleet.Duration]
	RunRetention           fleet.Patch[fleet.Duration]
	RebootBeforeValidation fleet.Patch[bool]
	Cleanup                fleet.Patch[fleet.CleanupMode]
	ContainerArgs          fleet.Patch[[]string]
}

// Logs is an edit of how a site keeps the logs of attempts, likewise.
type Logs struct {
	Enabled         fleet.Patch[bool]
	MaxChunkBytes   fleet.Patch[int]
	MaxAttemptBytes fleet.Patch[int]
	Retention       fleet.Patch[fleet.Duration]
}

// edit sets what p says of a value.
func edit[T any](value *T, p fleet.Patch[T], fallback T) {
	switch {
	case p.Value != nil:
		*value = *p.Value
	case p.Set:
		*value = fallback
	}
}

// apply is the block after the edit, which may have been cleared as a whole.
func (p *Bom) apply(present fleet.BomValidation) fleet.BomValidation {
	b, d := present, fleet.DefaultBomValidation()
	edit(&b.Enabled, p.Enabled, d.Enabled)
	edit(&b.IgnoreUnassignedMachines, p.IgnoreUnassignedMachines, d.IgnoreUnassignedMachines)
	edit(&b.AllowAllocationOnValidationFailure, p.AllowAllocationOnValidationFailure, d.AllowAllocationOnValidationFailure)
	edit(&b.FindMatchInterval, p.FindMatchInterval, d.FindMatchInterval)
	edit(&b.AutoGenerateMissingSku, p.AutoGenerateMissingSku, d.AutoGenerateMissingSku)
	edit(&b.AutoGenerateMissingSkuInterval, p.AutoGenerateMissingSkuInterval, d.AutoGenerateMissingSkuInterval)
	return b
}

func (p *Validation) apply(present fleet.MachineValidation) fleet.MachineValidation {
	m, d := present.Clone(), fleet.DefaultMachineValidation()
	edit(&m.Enabled, p.Enabled, d.Enabled)
	edit(&m.TestSelectionMode, p.TestSelectionMode, d.TestSelectionMode)
	edit(&m.RunInterval, p.RunInterval, d.RunInterval)
	edit(&m.StaleRunTimeout, p.StaleRunTimeout, d.StaleRunTimeout)
	edit(&m.Tests, p.Tests, d.Tests)
	edit(&m.ApprovedPluginRegistries, p.ApprovedRegistries, d.ApprovedPluginRegistries)
	edit(&m.AllowedPluginTypes, p.AllowedPluginTypes, d.AllowedPluginTypes)
	edit(&m.AllowPrivilegedPlugins, p.AllowPrivilegedPlugins, d.AllowPrivilegedPlugins)
	edit(&m.AllowFullHostPlugins, p.AllowFullHostPlugins, d.AllowFullHostPlugins)
	edit(&m.RequireTests, p.RequireTests, d.RequireTests)
	edit(&m.HeartbeatTimeout, p.HeartbeatTimeout, d.HeartbeatTimeout)
	edit(&m.RunRetention, p.RunRetention, d.RunRetention)
	edit(&m.RebootBeforeValidation, p.RebootBeforeValidation, d.RebootBeforeValidation)
	edit(&m.Cleanup, p.Cleanup, d.Cleanup)
	edit(&m.ContainerArgs, p.ContainerArgs, d.ContainerArgs)
	switch logs := p.AttemptLogs; {
	case logs.Value != nil:
		l, d := &m.AttemptLogs, d.AttemptLogs
		edit(&l.Enabled, logs.Value.Enabled, d.Enabled)
		edit(&l.MaxChunkBytes, logs.Value.MaxChunkBytes, d.MaxChunkBytes)
		edit(&l.MaxAttemptBytes, logs.Value.MaxAttemptBytes, d.MaxAttemptBytes)
		edit(&l.Retention, logs.Value.Retention, d.Retention)
	case logs.Set:
		m.AttemptLogs = d.AttemptLogs
	}
	return m
}

// configured is a site's blocks.
type configured struct {
	Bom        fleet.BomValidation
	Validation fleet.MachineValidation
}

// configure is the blocks after the edit, checked and in the form in which they take
// effect.
func (in Update) configure(present configured) (configured, []fleet.ConfigurationWarning, error) {
	after := present
	switch {
	case in.Bom.Value != nil:
		after.Bom = in.Bom.Value.apply(present.Bom)
	case in.Bom.Set:
		after.Bom = fleet.DefaultBomValidation()
	}
	switch {
	case in.Validation.Value != nil:
		after.Validation = in.Validation.Value.apply(present.Validation)
	case in.Validation.Set:
		after.Validation = fleet.DefaultMachineValidation()
	}
	warnings := []fleet.ConfigurationWarning{}
	if in.Bom.Set {
		found, err := after.Bom.Check()
		if err != nil {
			return present, nil, err
		}
		warnings = append(warnings, found...)
	}
	if in.Validation.Set {
		found, err := after.Validation.Normalise()
		if err != nil {
			return present, nil, err
		}
		warnings = append(warnings, found...)
	}
	return after, warnings, nil
}

// movesMachines tells whether machines have to be looked at again after an edit.
func movesMachines(before, after configured) bool {
	return before.Bom != after.Bom || before.Validation.Enabled != after.Validation.Enabled ||
		before.Validation.RebootBeforeValidation != after.Validation.RebootBeforeValidation ||
		before.Validation.Cleanup != after.Validation.Cleanup
}

// differences puts what differs between two blocks into before and after, by the
// configuration file's keys below name.
func differences(name string, was, is any, before, after map[string]any) error {
	from, err := keys(was)
	if err != nil {
		return err
	}
	to, err := keys(is)
	if err != nil {
		return err
	}
	changedFrom, changedTo := map[string]any{}, map[string]any{}
	for key, value := range to {
		if !reflect.DeepEqual(from[key], value) {
			changedFrom[key], changedTo[key] = from[key], value
		}
	}
	if len(changedTo) > 0 {
		before[name], after[name] = changedFrom, changedTo
	}
	return nil
}

func keys(block any) (map[string]any, error) {
	data, err := json.Marshal(block)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(data, &out)
}
