package resolvers

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/expectedmachine"
	"fleetgraph/fleet"
	"fleetgraph/graph"
	"fleetgraph/services/expected"
)

// newFields are the fields of an entry to create, where null is the same as absent.
func newFields(in *graph.ExpectedMachineItem) expected.Fields {
	fields := expected.Fields{
		BmcMacAddress:                   fleet.Patch[string]{Set: true, Value: &in.BmcMacAddress},
		BmcUsername:                     patch(in.BmcUsername),
		BmcPassword:                     patch(in.BmcPassword),
		ChassisSerialNumber:             patch(in.ChassisSerialNumber),
		FallbackDpuSerialNumbers:        patchList(in.FallbackDpuSerialNumbers),
		Name:                            patch(in.Name),
		Description:                     patch(in.Description),
		Labels:                          patchObjects(in.Labels),
		SkuName:                         patch(in.SkuName),
		HostNics:                        patchObjects(in.HostNics),
		RackName:                        patch(in.RackName),
		DefaultPauseIngestionAndPoweron: patch(in.DefaultPauseIngestionAndPoweron),
		DpfEnabled:                      patch(in.DpfEnabled),
		BmcIPAddress:                    patch(in.BmcIPAddress),
		BmcRetainCredentials:            patch(in.BmcRetainCredentials),
		DpuMode:                         patch(in.DpuMode),
		HostLifecycleProfile:            patch(in.HostLifecycleProfile),
	}
	fields.BmcUsername.Set, fields.BmcPassword.Set = fields.BmcUsername.Value != nil, fields.BmcPassword.Value != nil
	return fields
}

func newFieldsOf(items []*graph.ExpectedMachineItem) []expected.Fields {
	out := make([]expected.Fields, len(items))
	for i, item := range items {
		out[i] = newFields(item)
	}
	return out
}

// editedFields are the fields of an edit.
func editedFields(in *graph.ExpectedMachinePatch) expected.Fields {
	return expected.Fields{
		BmcMacAddress:                   patch(in.BmcMacAddress),
		BmcUsername:                     patch(in.BmcUsername),
		BmcPassword:                     patch(in.BmcPassword),
		ChassisSerialNumber:             patch(in.ChassisSerialNumber),
		FallbackDpuSerialNumbers:        patchList(in.FallbackDpuSerialNumbers),
		Name:                            patch(in.Name),
		Description:                     patch(in.Description),
		Labels:                          patchObjects(in.Labels),
		SkuName:                         patch(in.SkuName),
		HostNics:                        patchObjects(in.HostNics),
		RackName:                        patch(in.RackName),
		DefaultPauseIngestionAndPoweron: patch(in.DefaultPauseIngestionAndPoweron),
		DpfEnabled:                      patch(in.DpfEnabled),
		BmcIPAddress:                    patch(in.BmcIPAddress),
		BmcRetainCredentials:            patch(in.BmcRetainCredentials),
		DpuMode:                         patch(in.DpuMode),
		HostLifecycleProfile:            patch(in.HostLifecycleProfile),
	}
}

func (r *Resolver) expectedMachine(ctx context.Context, id string) (*ent.ExpectedMachine, error) {
	query, err := r.Client.ExpectedMachine.Query().Where(expectedmachine.ID(id)).CollectOne(ctx, "expectedMachine")
	if err != nil {
		return nil, err
	}
	row, err := query.Only(ctx)
	return row, gone(err, id)
}

// expectedMachines loads the entries of a batch, in the order of their ids' list.
func (r *Resolver) expectedMachines(ctx context.Context, ids []string) ([]*ent.ExpectedMachine, error) {
	query, err := r.Client.ExpectedMachine.Query().Where(expectedmachine.IDIn(ids...)).CollectPath(ctx, "expectedMachines")
	if err != nil {
		return nil, err
	}
	rows, err := query.All(ctx)
	return inOrder(ids, rows, func(m *ent.ExpectedMachine) string { return m.ID }, err)
}
