package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

func TestParseInventoryToleratesWhatAgentsSend(t *testing.T) {
	t.Parallel()
	inventory, err := fleet.ParseInventory([]byte(`{"info": {
		"machine_type": "x86_64", "future": [1], "gpus": null, "dmi_data": null,
		"tpm_description": {"vendor": "NPCT75x\u0000\u0000", "tpm_spec": "2.0\u0000", "firmware_version": "a\\u0000"},
		"memory_devices": [{"size_mb": null, "mem_type": null}],
		"infiniband_interfaces": [{"guid": "g", "pci_properties": {"numaNode": 1}}, {"guid": "h", "pci_properties": {"numa_node": 2}}],
		"cpus": [
			{"vendor": "v", "model": "B", "number": 3, "socket": 1, "core": 1},
			{"vendor": "v", "model": "B", "number": 0, "socket": 0, "core": 0},
			{"vendor": "v", "model": "A", "number": 7, "socket": 0, "core": 3}
		]}}`))
	require.NoError(t, err)
	require.Equal(t, &fleet.TpmDescription{Vendor: "NPCT75x", TpmSpec: "2.0", FirmwareVersion: `a\u0000`}, inventory.TpmDescription)
	require.Equal(t, []fleet.CpuInfo{
		{Model: "A", Vendor: "v", Sockets: 1, Cores: 4, Threads: 8},
		{Model: "B", Vendor: "v", Sockets: 2, Cores: 2, Threads: 2},
	}, inventory.CpuInfo)
	require.Equal(t, 1, inventory.InfinibandInterfaces[0].PciProperties.NumaNode)
	require.Equal(t, 2, inventory.InfinibandInterfaces[1].PciProperties.NumaNode)
	require.Empty(t, inventory.Gpus)

	bare, err := fleet.ParseInventory([]byte(`{"cpu_info": [{"model": "m", "sockets": 2}], "cpus": [{"model": "x"}]}`))
	require.NoError(t, err)
	require.Equal(t, []fleet.CpuInfo{{Model: "m", Sockets: 2}}, bare.CpuInfo)
}

func TestParseInventoryNamesTheFieldAtFault(t *testing.T) {
	t.Parallel()
	for data, field := range map[string]string{
		``:                                       "inventory",
		`{`:                                      "inventory",
		`[]`:                                     "inventory",
		`null`:                                   "inventory",
		`"x"`:                                    "inventory",
		`{"gpus": {}}`:                           "inventory.gpus",
		`{"gpus": [{"name": 1}]}`:                "inventory.gpus.name",
		`{"info": {"machine_type": []}}`:         "inventory.machine_type",
		`{"cpu_info": [{"sockets": -1}]}`:        "inventory.cpu_info.0.sockets",
		`{"cpu_info": [{"threads": 1e99}]}`:      "inventory.cpu_info.threads",
		`{"cpu_info": [{}, {"cores": 1048577}]}`: "inventory.cpu_info.1.cores",
		`{"nvme_devices": [{"size_mb": -5}]}`:    "inventory.nvme_devices.0.size_mb",
		`{"memory_devices": [{"size_mb": 99999999999}]}`:                        "inventory.memory_devices.0.size_mb",
		`{"cpus": [{"socket": -1}]}`:                                            "inventory.cpus.0.socket",
		`{"a": ` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`:      "inventory",
		`{"dmi_data": {"product_serial": "` + strings.Repeat("x", 1025) + `"}}`: "inventory.dmi_data.product_serial",
		fmt.Sprintf(`{"gpus": [{}%s]}`, strings.Repeat(",{}", 4096)):            "inventory.gpus",
	} {
		_, err := fleet.ParseInventory([]byte(data))
		refused, ok := fleet.AsError(err)
		require.True(t, ok, data[:min(len(data), 60)])
		require.Equal(t, fleet.InvalidArgument, refused.Code)
		require.Equal(t, field, refused.Field)
	}
}

func TestNestingCountsOutsideStringsOnly(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{"a": "` + strings.Repeat("[", 1000) + `"}`,
		`{"a": "\"` + strings.Repeat("{", 1000) + `\\"}`,
		`{"a": [` + strings.Repeat("[],", 1000) + `[]]}`,
		`{"a": ` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`,
	} {
		_, err := fleet.ParseInventory([]byte(data))
		require.NoError(t, err, data[:40])
	}
}

func TestInventoryTellsDPUsAndSerialNumbers(t *testing.T) {
	t.Parallel()
	dpu := fleet.Inventory{MachineType: "aarch64", DmiData: &fleet.DmiData{BoardName: "NVIDIA BlueField-3"}}
	require.True(t, dpu.IsDPU())
	dpu.MachineType = "x86_64"
	require.False(t, dpu.IsDPU())
	require.False(t, fleet.Inventory{MachineType: "aarch64"}.IsDPU())

	require.Empty(t, fleet.Inventory{}.SerialNumber())
	serial := fleet.Inventory{DmiData: &fleet.DmiData{ProductSerial: " ", ChassisSerial: "", BoardSerial: "B"}}
	require.Equal(t, "B", serial.SerialNumber())
	serial.DmiData.ChassisSerial = "C"
	require.Equal(t, "C", serial.SerialNumber())
	serial.DmiData.ProductSerial = "P"
	require.Equal(t, "P", serial.SerialNumber())
}
