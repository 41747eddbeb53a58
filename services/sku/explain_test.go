package sku_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

func TestPulledDriveIsOneEdit(t *testing.T) {
	t.Parallel()
	inventory := readInventory(t, "inventories/composed/xe9680_8gpu.json")
	matcher := sku.NewMatcher(sku.DefaultLimits())
	for version := 1; version <= 5; version++ {
		components, err := sku.Generate(inventory, nil, version)
		require.NoError(t, err)
		far := components
		far.Gpus = nil
		skus := []sku.Sku{{Name: "far", SchemaVersion: version, Components: far}, {Name: "own", SchemaVersion: version, Components: components}}

		pulled := inventory
		pulled.NvmeDevices = slices.Clone(inventory.NvmeDevices[:8])
		pulled.BlockDevices = slices.Clone(inventory.BlockDevices[:8])
		got, err := matcher.Explain(t.Context(), sku.NewMachine(pulled, nil), skus, 5)
		require.NoError(t, err)
		require.Len(t, got, 2)
		require.Equal(t, "own", got[0].Sku.Name)
		require.Equal(t, 1, got[0].Distance)
		require.Len(t, got[0].Edits, 1)
		edit := got[0].Edits[0]
		require.Equal(t, fleet.EditAdd, edit.Action)
		require.Equal(t, fleet.ComponentStorage, edit.Component)
		require.Equal(t, 1, edit.Count)
		require.Nil(t, edit.From)
		require.NotNil(t, edit.To)
		if version == 5 {
			require.Equal(t, "add 1 storage drive: 3662830 MB at /devices/pci0000:48/0000:48:08.0/0000:50:00.0/nvme", edit.Message)
		}
		require.Equal(t, 9, got[1].Distance)
	}
}

func TestEditsNameWhatToExchange(t *testing.T) {
	t.Parallel()
	inventory := readInventory(t, "inventories/composed/xe9680_8gpu.json")
	components, err := sku.Generate(inventory, nil, 5)
	require.NoError(t, err)
	components.Gpus = []fleet.Gpu{{Model: "H200", TotalMemory: "143771 MiB", Count: 8}}
	components.Memory[0].Count = 30
	components.Cpus[0].ThreadCount = 112
	components.Tpm = nil
	components.Storage[0].MinSizeMb = new(*components.Storage[0].MinSizeMb + 1)
	components.Storage[0].MaxSizeMb = components.Storage[0].MinSizeMb
	got, err := sku.NewMatcher(sku.DefaultLimits()).Explain(t.Context(), sku.NewMachine(inventory, nil), []sku.Sku{{SchemaVersion: 5, Components: components}}, 1)
	require.NoError(t, err)
	texts := []string{}
	for _, e := range got[0].Edits {
		texts = append(texts, e.Message)
	}
	require.Equal(t, []string{
		"change 2 CPU: Intel(R) Xeon(R) Platinum 8480+ with 56 threads to Intel(R) Xeon(R) Platinum 8480+ with 112 threads",
		"replace 8 GPU: NVIDIA H100 80GB HBM3 by H200",
		"remove 2 memory module: DDR5 65536 MiB",
		"replace 1 storage drive: 457862 MB at /devices/pci0000:c9/0000:c9:01.0/0000:ca:00.0/nvme by " +
			"457863 MB at /devices/pci0000:c9/0000:c9:01.0/0000:ca:00.0/nvme",
		"remove 1 TPM: version 2.0",
	}, texts)
}

func TestDuplicateOfGroups(t *testing.T) {
	t.Parallel()
	matcher := sku.NewMatcher(sku.DefaultLimits())
	group := func(count int, low, high int64, patterns ...string) fleet.StorageGroup {
		return fleet.StorageGroup{Count: count, MinSizeMb: &low, MaxSizeMb: &high, PciPatterns: patterns}
	}
	a, b := "/devices/pci0000:64/0000:65:00.0/nvme", "/devices/pci0000:64/0000:66:00.0/nvme"
	for _, c := range []struct {
		name                string
		candidate, existing []fleet.StorageGroup
		same                bool
	}{
		{"split and reordered groups", []fleet.StorageGroup{group(1, 1, 9, "x", "y"), group(1, 2, 9, "z"), group(1, 1, 9, "y", "x")}, []fleet.StorageGroup{group(1, 2, 9, "z"), group(2, 1, 9, "x", "y")}, true},
		{"other count", []fleet.StorageGroup{group(2, 1, 9, "x")}, []fleet.StorageGroup{group(1, 1, 9, "x")}, false},
		{"narrower range", []fleet.StorageGroup{group(1, 2, 8, "x")}, []fleet.StorageGroup{group(1, 1, 9, "x")}, false},
		{"drives inside a group", []fleet.StorageGroup{group(1, 5, 5, a), group(1, 5, 5, b)}, []fleet.StorageGroup{group(2, 1, 9, "/nvme$")}, true},
		{"merged drives", []fleet.StorageGroup{group(2, 5, 5, a, b)}, []fleet.StorageGroup{group(1, 5, 5, a), group(1, 5, 5, b)}, true},
		{"escaped and anchored drive", []fleet.StorageGroup{group(1, 5, 5, `^/devices/pci0000:64/0000:65:00\.0/nvme$`)}, []fleet.StorageGroup{group(1, 5, 5, a)}, true},
		{"drive at another location", []fleet.StorageGroup{group(1, 5, 5, a)}, []fleet.StorageGroup{group(1, 5, 5, b)}, false},
		{"broad pattern of one size", []fleet.StorageGroup{group(1, 5, 5, "/nvme")}, []fleet.StorageGroup{group(1, 5, 5, a)}, false},
	} {
		_, found, err := matcher.Duplicate(t.Context(), sku.Sku{Name: "c", SchemaVersion: 5, Components: fleet.SkuComponents{Storage: c.candidate}},
			[]sku.Sku{{Name: "e", SchemaVersion: 5, Components: fleet.SkuComponents{Storage: c.existing}}})
		require.NoError(t, err)
		require.Equal(t, c.same, found, c.name)
	}
}
