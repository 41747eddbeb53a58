package sku_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

func TestProposeNameFollowsTheConvention(t *testing.T) {
	t.Parallel()
	gpu := []fleet.Gpu{{Model: "g", Count: 1}}
	drives := []fleet.StorageGroup{{Count: 9}}
	for _, c := range []struct {
		chassis fleet.Chassis
		gpus    []fleet.Gpu
		storage []fleet.StorageGroup
		taken   []string
		want    string
	}{
		{fleet.Chassis{Vendor: "Dell Inc.", Model: "PowerEdge R750"}, gpu, drives, nil, "dell.r750.gpu.1"},
		{fleet.Chassis{Vendor: "Lenovo", Model: "ThinkSystem SR670 V2"}, gpu, nil, nil, "lenovo.sr670v2.gpu.1"},
		{fleet.Chassis{Vendor: "Lenovo", Model: "ThinkSystem SR670 V2 -[7Z22CTO1WW]-"}, gpu, nil, nil, "lenovo.sr670v2.gpu.1"},
		{fleet.Chassis{Vendor: "Dell Inc.", Model: "PowerEdge R760"}, nil, drives, []string{"dell.r760.storage.1"}, "dell.r760.storage.2"},
		{fleet.Chassis{Vendor: "Dell Inc.", Model: "PowerEdge R760"}, nil, nil, []string{"dell.r760.cpu.2"}, "dell.r760.cpu.1"},
		{fleet.Chassis{Vendor: "NVIDIA", Model: "GB200 NVL"}, gpu, nil, nil, "nvidia.gb200nvl.gpu.1"},
		{fleet.Chassis{Vendor: "Acme", Model: "Big Box"}, gpu, nil, nil, "acme.box.gpu.1"},
		{fleet.Chassis{}, nil, nil, nil, "unknown.unknown.cpu.1"},
	} {
		got := sku.ProposeName(fleet.SkuComponents{Chassis: c.chassis, Gpus: c.gpus, Storage: c.storage},
			func(name string) bool { return slices.Contains(c.taken, name) })
		require.Equal(t, c.want, got)
		require.True(t, sku.ConventionalName(got))
	}
	for _, name := range []string{"", "XE9680", "dell.r750.gpu", "dell.r750.gpu.0", "dell.r750.gpu.01", "Dell.r750.gpu.1", "dell..gpu.1", "dell.r750.box.1", "dell.r750.gpu.1.2"} {
		require.False(t, sku.ConventionalName(name), name)
	}
	require.True(t, sku.ConventionalName("dell.r750.controller.12"))
}

func TestDescribeScalesMemory(t *testing.T) {
	t.Parallel()
	for mib, want := range map[int64]string{0: "0 B", 1: "1 MiB", 1024: "1 GiB", 1536 * 1024: "1.5 TiB", 2 << 20: "2 TiB", 1000: "1000 MiB"} {
		got := sku.Describe(fleet.SkuComponents{Memory: []fleet.Memory{{CapacityMb: mib, Count: 1}}})
		require.Equal(t, "; 0xCPU; 0xGPU; "+want, got)
	}
}
