package sku_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

func valid() fleet.SkuComponents {
	return fleet.SkuComponents{
		Chassis:           fleet.Chassis{Model: "R760"},
		Cpus:              []fleet.Cpu{{Model: "c", ThreadCount: 2, Count: 2}},
		Gpus:              []fleet.Gpu{{Model: "g", Count: 1}},
		InfinibandDevices: []fleet.InfinibandDevice{{Model: "i", Count: 2, InactiveDevices: []int{1, 0}}},
		Storage:           []fleet.StorageGroup{{Model: "s", Count: 1, PciPatterns: []string{"/nvme$"}}},
		Memory:            []fleet.Memory{{MemoryType: "DDR5", CapacityMb: 1024, Count: 2}},
		Tpm:               &fleet.Tpm{Version: "2.0"},
	}
}

func requireRefused(t *testing.T, err error, field, reason, message string) {
	t.Helper()
	refused, ok := fleet.AsError(err)
	require.True(t, ok, "accepted")
	require.Equal(t, fleet.InvalidArgument, refused.Code)
	require.Equal(t, field, refused.Field)
	require.Equal(t, reason, refused.Reason)
	require.Contains(t, refused.Message, message)
}

func TestValidateRefusesWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	require.NoError(t, sku.Validate(valid(), 5, sku.DefaultLimits()))
	for _, c := range []struct {
		name                   string
		change                 func(*fleet.SkuComponents)
		field, reason, message string
	}{
		{"empty chassis model", func(c *fleet.SkuComponents) { c.Chassis.Model = " " }, "components.chassis.model", "MODEL_EMPTY", "chassis model"},
		{"empty CPU model", func(c *fleet.SkuComponents) { c.Cpus[0].Model = "" }, "components.cpus.0.model", "MODEL_EMPTY", "CPU model"},
		{"empty GPU model", func(c *fleet.SkuComponents) { c.Gpus[0].Model = "" }, "components.gpus.0.model", "MODEL_EMPTY", "GPU model"},
		{"negative sockets", func(c *fleet.SkuComponents) { c.Cpus[0].Count = -1 }, "components.cpus.0.count", "NUMBER_OUT_OF_RANGE", "-1"},
		{"negative threads", func(c *fleet.SkuComponents) { c.Cpus[0].ThreadCount = -1 }, "components.cpus.0.threadCount", "NUMBER_OUT_OF_RANGE", "-1"},
		{"huge memory", func(c *fleet.SkuComponents) { c.Memory[0].CapacityMb = 1 << 40 }, "components.memory.0.capacityMb", "NUMBER_OUT_OF_RANGE", ""},
		{"inactive device beyond the count", func(c *fleet.SkuComponents) { c.InfinibandDevices[0].InactiveDevices[0] = 2 }, "components.infinibandDevices.0.inactiveDevices.0", "INACTIVE_DEVICE_UNKNOWN", ""},
		{"negative inactive device", func(c *fleet.SkuComponents) { c.InfinibandDevices[0].InactiveDevices[1] = -1 }, "components.infinibandDevices.0.inactiveDevices.1", "NUMBER_OUT_OF_RANGE", ""},
		{"inactive device twice", func(c *fleet.SkuComponents) { c.InfinibandDevices[0].InactiveDevices = []int{1, 1} }, "components.infinibandDevices.0.inactiveDevices.1", "INACTIVE_DEVICE_REPEATED", ""},
		{"count of 0", func(c *fleet.SkuComponents) { c.Storage[0].Count = 0 }, "components.storage.0.count", "STORAGE_COUNT_OUT_OF_RANGE", ""},
		{"count of 1025", func(c *fleet.SkuComponents) { c.Storage[0].Count = 1025 }, "components.storage.0.count", "STORAGE_COUNT_OUT_OF_RANGE", ""},
		{"empty pattern", func(c *fleet.SkuComponents) { c.Storage[0].PciPatterns = []string{"a", ""} }, "components.storage.0.pciPatterns.1", "PATTERN_EMPTY", ""},
		{"pattern that does not compile", func(c *fleet.SkuComponents) { c.Storage[0].PciPatterns[0] = "0000:04:00(.0" }, "components.storage.0.pciPatterns.0", "PATTERN_INVALID", `invalid storage PCI pattern "0000:04:00(.0": missing closing )`},
		{"long pattern", func(c *fleet.SkuComponents) { c.Storage[0].PciPatterns[0] = strings.Repeat("a", 1025) }, "components.storage.0.pciPatterns.0", "PATTERN_INVALID", "1025 bytes long"},
		{"large program", func(c *fleet.SkuComponents) { c.Storage[0].PciPatterns[0] = "(ab){999}" }, "components.storage.0.pciPatterns.0", "PATTERN_INVALID", "instructions"},
		{"many large programs", func(c *fleet.SkuComponents) {
			c.Storage[0].PciPatterns = slicesRepeat("(ab){50}", 150)
		}, "components.storage.0.pciPatterns", "PATTERN_TOO_COSTLY", ""},
		{"too many patterns", func(c *fleet.SkuComponents) { c.Storage[0].PciPatterns = slicesRepeat("a", 1025) }, "components.storage.0.pciPatterns", "PATTERNS_TOO_MANY", ""},
		{"bounds the wrong way round", func(c *fleet.SkuComponents) {
			c.Storage[0].MinSizeMb, c.Storage[0].MaxSizeMb = new(int64(2)), new(int64(1))
		}, "components.storage.0.minSizeMb", "SIZE_RANGE_INVALID", `storage entry (model "s") has min_size_mb (2) greater than max_size_mb (1)`},
		{"neither bound nor pattern", func(c *fleet.SkuComponents) { c.Storage[0].PciPatterns = nil }, "components.storage.0", "STORAGE_UNCONSTRAINED", `v5 storage entry (model "s") has no size bounds or PCI patterns; re-enumerate the machine's hardware before creating this SKU`},
		{"NUL in a text", func(c *fleet.SkuComponents) { c.Tpm.Version = "2\x00" }, "components.tpm.version", "TEXT_INVALID", ""},
		{"pattern before bounds, storage before the rest", func(c *fleet.SkuComponents) {
			c.Chassis.Model = ""
			c.Storage[0] = fleet.StorageGroup{MinSizeMb: new(int64(2)), MaxSizeMb: new(int64(1)), PciPatterns: []string{"("}}
		}, "components.storage.0.pciPatterns.0", "PATTERN_INVALID", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			components := valid()
			c.change(&components)
			requireRefused(t, sku.Validate(components, 5, sku.DefaultLimits()), c.field, c.reason, c.message)
		})
	}
}

func slicesRepeat(text string, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = text
	}
	return texts
}

func TestValidateImportsOlderVersionsAsTheyAre(t *testing.T) {
	t.Parallel()
	old := valid()
	old.Chassis.Model, old.Cpus[0].Model = "", ""
	old.Storage = []fleet.StorageGroup{{Model: "m", Count: 0}}
	require.NoError(t, sku.Validate(old, 4, sku.DefaultLimits()))
	old.Storage[0].PciPatterns = []string{"("}
	requireRefused(t, sku.Validate(old, 4, sku.DefaultLimits()), "components.storage.0.pciPatterns.0", "PATTERN_INVALID", "invalid storage PCI pattern")
	requireRefused(t, sku.Validate(old, 6, sku.DefaultLimits()), "schemaVersion", "SCHEMA_VERSION_UNSUPPORTED", "SKU version is no longer supported")
	require.NoError(t, sku.CheckVersion(5, false))
	require.NoError(t, sku.CheckVersion(0, true))
	require.Error(t, sku.CheckVersion(4, false))
	require.Error(t, sku.CheckVersion(6, true))
}

func TestPatternsOfAnotherDialectAreRefusedWithTheirPosition(t *testing.T) {
	t.Parallel()
	for pattern, message := range map[string]string{
		`[a-z&&[^q]]`:    `"&&" at position 5`,
		`x[a-z--q]`:      `"--" at position 6`,
		`[a-z~~q]`:       `"~~" at position 5`,
		`[a[b]]`:         `"[" at position 3`,
		`é[a[b]]`:        `"[" at position 4`,
		`(?x) a b`:       `"(?x)" at position 1`,
		`a(?i-x:b)`:      `"(?x)" at position 2`,
		`nvme\>`:         `"\\>" at position 5`,
		`\<nvme`:         `"\\<" at position 1`,
		`\b{start}nvme`:  `"\\b{" at position 1`,
		`a{,5}`:          `"{" at position 2`,
		`a{5`:            `"{" at position 2`,
		`(?P<n>a)[]&&b]`: `"&&" at position 11`,
	} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			c := valid()
			c.Storage[0].PciPatterns = []string{pattern}
			requireRefused(t, sku.Validate(c, 5, sku.DefaultLimits()), "components.storage.0.pciPatterns.0", "PATTERN_INVALID", message)
		})
	}
	for _, pattern := range []string{
		`[[:digit:]a-f]`, `[^[:^alpha:]]`, `[]a]`, `[^]a]`, `\[a&&b`, `[a\[&-]`, `\x{2F}\pL\p{Greek}`, `a{2}b{2,}c{2,3}`,
		`(?i)NVME`, `(?P<n>a)(?<m>b)(?:c)`, `^/devices/pci0000:64/.*/nvme$`, `\Q[a&&b]\E`, `\{`, `a--b~~c`, `/0000:6[5-8]:00\.0/nvme`,
	} {
		c := valid()
		c.Storage[0].PciPatterns = []string{pattern}
		require.NoError(t, sku.Validate(c, 5, sku.DefaultLimits()), pattern)
	}
}
