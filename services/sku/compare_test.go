package sku_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

func compareV(t *testing.T, version int, actual, expected fleet.SkuComponents) fleet.Comparison {
	t.Helper()
	got, err := sku.NewMatcher(sku.DefaultLimits()).CompareComponents(t.Context(), actual, sku.Sku{SchemaVersion: version, Components: expected})
	require.NoError(t, err)
	return got
}

func messages(c fleet.Comparison) []string {
	texts := []string{}
	for _, m := range c.Mismatches {
		texts = append(texts, m.Message)
	}
	return texts
}

func gpus(memory string, count int) fleet.SkuComponents {
	return fleet.SkuComponents{Gpus: []fleet.Gpu{{Vendor: "NVIDIA", Model: "H100", TotalMemory: memory, Count: count}}}
}

func TestGpuMemoryIsEqualWithinOneEighth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expected, actual string
		match, note      bool
	}{
		{"80000 MiB", "70000 MiB", true, false},
		{"80000 MiB", "90000 MiB", true, false},
		{"80000 MiB", "69999 MiB", false, false},
		{"80000 MiB", "90001 MiB", false, false},
		{"80 GiB", "81559 MiB", true, false},
		{"80GB", "81559 MiB", true, false},
		{"81559", "81559 MiB", true, false},
		{"141 GB", "81559 MiB", false, false},
		{"[N/A]", "81559 MiB", true, true},
		{"81559 MiB", "", true, true},
		{"81559 MiB", "0 MiB", true, true},
		{"81559 MiB", "99999999999999999999999 TiB", true, true},
	} {
		got := compareV(t, 5, gpus(c.actual, 8), gpus(c.expected, 8))
		require.Equal(t, c.match, got.Match, c)
		require.Equal(t, c.note, len(got.Notes) == 1, c)
		if !c.match {
			require.Equal(t, "Expected gpu memory ("+c.expected+") does not match actual ("+c.actual+") for gpu model (H100)", messages(got)[0])
		}
	}
}

func TestPerModelFiguresDoNotHideBehindTotals(t *testing.T) {
	t.Parallel()
	cpus := func(entries ...fleet.Cpu) fleet.SkuComponents { return fleet.SkuComponents{Cpus: entries} }
	one := fleet.Cpu{Vendor: "v", Model: "A", ThreadCount: 40, Count: 1}
	two := one
	two.Count = 2
	require.True(t, compareV(t, 2, cpus(one, one), cpus(two)).Match, "repeated entries are added up")
	require.Equal(t, []string{"Number of CPUs (1) does not match expected (2)"}, messages(compareV(t, 5, cpus(one), cpus(two))))
	other := one
	other.Model = "B"
	require.Equal(t, []string{"Number of CPUs (1) does not match expected (2) for CPU model (A)", "Unexpected CPU config (1xv/B) found"},
		messages(compareV(t, 5, cpus(one, other), cpus(two))))

	memory := func(entries ...fleet.Memory) fleet.SkuComponents { return fleet.SkuComponents{Memory: entries} }
	got := compareV(t, 4, memory(fleet.Memory{MemoryType: "DDR5", CapacityMb: 65536, Count: 31}), memory(fleet.Memory{MemoryType: "DDR5", CapacityMb: 65536, Count: 32}))
	require.Equal(t, []string{"Actual memory (2031616) differs from expected (2097152)"}, messages(got))
	require.False(t, compareV(t, 0, memory(fleet.Memory{MemoryType: "DDR4", CapacityMb: 1, Count: 1}), memory(fleet.Memory{MemoryType: "DDR5", CapacityMb: 1, Count: 1})).Match)
}

func TestTpmCountsFromVersionFour(t *testing.T) {
	t.Parallel()
	with := fleet.SkuComponents{Tpm: &fleet.Tpm{Version: "2.0"}}
	require.True(t, compareV(t, 3, with, fleet.SkuComponents{}).Match)
	require.Equal(t, []string{"Found unexpected TPM config: version: 2.0"}, messages(compareV(t, 4, with, fleet.SkuComponents{})))
	require.Equal(t, []string{"Missing a TPM module: version: 2.0"}, messages(compareV(t, 5, fleet.SkuComponents{}, with)))
}

func TestStorageByModelReportsMissingBeforeUnexpected(t *testing.T) {
	t.Parallel()
	storage := func(groups ...fleet.StorageGroup) fleet.SkuComponents { return fleet.SkuComponents{Storage: groups} }
	got := compareV(t, 4, storage(fleet.StorageGroup{Model: "A", Count: 4}, fleet.StorageGroup{Model: "C", Count: 1}),
		storage(fleet.StorageGroup{Model: "C", Count: 1}, fleet.StorageGroup{Model: "B", Count: 4}, fleet.StorageGroup{Model: "C", Count: 1}))
	require.Equal(t, []string{
		"Missing storage config: model: B count 4",
		"Expected device count (2) does not match actual (1) for storage model (C)",
		"Found unexpected storage config: model: A count 4",
	}, messages(got))
}

func TestControllerNameIsHinted(t *testing.T) {
	t.Parallel()
	drive := fleet.SkuComponents{Storage: []fleet.StorageGroup{{Count: 1, MinSizeMb: new(int64(1)), PciPatterns: []string{"/devices/pci0000:64/0000:65:00.0/nvme"}}}}
	for pattern, hinted := range map[string]bool{
		"/devices/pci0000:64/0000:65:00.0/nvme/nvme3": true, "nvme0$": true, `nvme\d+$`: true, "nvme[0-9]$": true, "0000:99": false, "/nvme/nvme3/": false,
	} {
		got := compareV(t, 5, drive, fleet.SkuComponents{Storage: []fleet.StorageGroup{{Count: 1, PciPatterns: []string{pattern}}}})
		require.Len(t, got.Mismatches, 2)
		require.Equal(t, hinted, got.Mismatches[0].Hint != "", pattern)
	}
}

func TestUnknownVersionIsRefused(t *testing.T) {
	t.Parallel()
	matcher := sku.NewMatcher(sku.DefaultLimits())
	for _, version := range []int{-1, 6} {
		_, err := matcher.Compare(t.Context(), sku.NewMachine(fleet.Inventory{}, nil), sku.Sku{SchemaVersion: version})
		requireRefused(t, err, "schemaVersion", "SCHEMA_VERSION_UNSUPPORTED", "no longer supported")
		hits, err := matcher.NewIndex([]sku.Sku{{SchemaVersion: version}}).Match(t.Context(), sku.NewMachine(fleet.Inventory{}, nil))
		require.NoError(t, err)
		require.Empty(t, hits)
	}
}
