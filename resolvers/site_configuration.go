package resolvers

import (
	"time"

	"github.com/99designs/gqlgen/graphql"

	"fleetgraph/fleet"
	"fleetgraph/graph"
	"fleetgraph/services/site"
)

func bomPatch(o graphql.Omittable[*graph.BomValidationInput]) fleet.Patch[site.Bom] {
	in, set := o.ValueOK()
	if in == nil {
		return fleet.Patch[site.Bom]{Set: set}
	}
	return fleet.Patch[site.Bom]{Set: true, Value: &site.Bom{
		Enabled:                            patch(in.Enabled),
		IgnoreUnassignedMachines:           patch(in.IgnoreUnassignedMachines),
		AllowAllocationOnValidationFailure: patch(in.AllowAllocationOnValidationFailure),
		FindMatchInterval:                  durationPatch(in.FindMatchInterval),
		AutoGenerateMissingSku:             patch(in.AutoGenerateMissingSku),
		AutoGenerateMissingSkuInterval:     durationPatch(in.AutoGenerateMissingSkuInterval),
	}}
}

func validationPatch(o graphql.Omittable[*graph.MachineValidationInput]) fleet.Patch[site.Validation] {
	in, set := o.ValueOK()
	if in == nil {
		return fleet.Patch[site.Validation]{Set: set}
	}
	return fleet.Patch[site.Validation]{Set: true, Value: &site.Validation{
		Enabled:                patch(in.Enabled),
		TestSelectionMode:      patch(in.TestSelectionMode),
		RunInterval:            durationPatch(in.RunInterval),
		StaleRunTimeout:        durationPatch(in.StaleRunTimeout),
		Tests:                  listPatch(in.Tests, func(t *fleet.TestSetting) fleet.TestSetting { return *t }),
		ApprovedRegistries:     listPatch(in.ApprovedPluginRegistries, itself),
		AllowedPluginTypes:     listPatch(in.AllowedPluginTypes, itself),
		AllowPrivilegedPlugins: patch(in.AllowPrivilegedPlugins),
		AllowFullHostPlugins:   patch(in.AllowFullHostPlugins),
		AttemptLogs:            logsPatch(in.AttemptLogs),
		RequireTests:           patch(in.RequireTests),
		HeartbeatTimeout:       durationPatch(in.HeartbeatTimeout),
		RunRetention:           durationPatch(in.RunRetention),
		RebootBeforeValidation: patch(in.RebootBeforeValidation),
		Cleanup:                patch(in.Cleanup),
		ContainerArgs:          listPatch(in.ContainerArgs, itself),
	}}
}

func logsPatch(o graphql.Omittable[*graph.AttemptLogsInput]) fleet.Patch[site.Logs] {
	in, set := o.ValueOK()
	if in == nil {
		return fleet.Patch[site.Logs]{Set: set}
	}
	return fleet.Patch[site.Logs]{Set: true, Value: &site.Logs{
		Enabled: patch(in.Enabled), MaxChunkBytes: patch(in.MaxChunkBytes),
		MaxAttemptBytes: patch(in.MaxAttemptBytes), Retention: durationPatch(in.Retention),
	}}
}

func durationPatch(o graphql.Omittable[*time.Duration]) fleet.Patch[fleet.Duration] {
	value, set := o.ValueOK()
	if value == nil {
		return fleet.Patch[fleet.Duration]{Set: set}
	}
	return fleet.Patch[fleet.Duration]{Set: true, Value: new(fleet.Duration(*value))}
}

func listPatch[T, U any](o graphql.Omittable[[]T], convert func(T) U) fleet.Patch[[]U] {
	list, set := o.ValueOK()
	if list == nil {
		return fleet.Patch[[]U]{Set: set}
	}
	out := make([]U, len(list))
	for i, item := range list {
		out[i] = convert(item)
	}
	return fleet.Patch[[]U]{Set: true, Value: &out}
}

func itself(text string) string { return text }

func warningTexts(warnings []fleet.ConfigurationWarning) []string {
	out := make([]string, len(warnings))
	for i, w := range warnings {
		out[i] = w.Field + ": " + w.Message
	}
	return out
}
