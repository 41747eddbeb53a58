package sku_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

// demanding is a SKU of one group with these patterns.
func demanding(patterns []string) fleet.SkuComponents {
	return fleet.SkuComponents{
		Chassis: fleet.Chassis{Vendor: "v", Model: "m", Architecture: "x86_64"},
		Storage: []fleet.StorageGroup{{Count: 1024, PciPatterns: patterns}},
	}
}

// crowded is a machine with as many drives and as long locations as an inventory
// may have, of characters that a hostile pattern has to try in every way.
func crowded(tb testing.TB) *sku.Machine {
	tb.Helper()
	inventory := fleet.Inventory{MachineType: "x86_64", DmiData: &fleet.DmiData{SysVendor: "v", ProductName: "m"}}
	for i := range 1024 {
		path := strings.Repeat("x", fleet.MaxPciPathLength-10) + fmt.Sprintf("%04d/nvme0", i) // the last node is dropped
		inventory.NvmeDevices = append(inventory.NvmeDevices, fleet.NvmeDevice{Model: "m", PciPath: &path})
	}
	return sku.NewMachine(inventory, nil)
}

func numbered(form string, n int) []string {
	patterns := make([]string, n)
	for i := range patterns {
		patterns[i] = fmt.Sprintf(form, i)
	}
	return patterns
}

func TestPatternsThatCostTooMuchToRunAreRefused(t *testing.T) {
	t.Parallel()
	limits := sku.DefaultLimits()
	err := sku.Validate(demanding(numbered(`(x+x+)+y%d`, 1000)), 5, limits)
	requireRefused(t, err, "components.storage.0.pciPatterns", "PATTERN_TOO_COSTLY", "more than 65536")
	err = sku.Validate(demanding([]string{strings.Repeat("(x+x+)+", 60)}), 5, limits)
	requireRefused(t, err, "components.storage.0.pciPatterns.0", "PATTERN_INVALID", "at most 256 are accepted")

	// What machines have is accepted: a literal location a drive, as it is generated
	// or as the guide has it written, and broad patterns.
	require.NoError(t, sku.Validate(demanding(numbered("/devices/pci0000:64/0000:64:02.0/0000:65:00.0/0000:66:00.0/0000:%04d:00.0/nvme", 600)), 5, limits))
	require.NoError(t, sku.Validate(demanding(numbered(`^/devices/pci0000:64/0000:64:02\.0/0000:65:00\.0/0000:66:00\.0/0000:%04d:00\.0/nvme$`, 600)), 5, limits))
	require.NoError(t, sku.Validate(demanding(numbered(`^/devices/pci.*/0000:%04d:0[0-7]\.[0-9a-f]/nvme$`, 100)), 5, limits))
}

func TestLimitsAreSettings(t *testing.T) {
	t.Parallel()
	err := sku.Validate(demanding([]string{"a", "b"}), 5, sku.Limits{PatternsPerSku: 1})
	requireRefused(t, err, "components.storage.0.pciPatterns", "PATTERNS_TOO_MANY", "more than 1")
	require.NoError(t, sku.Validate(demanding(numbered(`(x+x+)+y%d`, 1000)), 5, sku.Limits{StepsPerSku: 1 << 20}))
}

func TestAComparisonEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	matcher, machine := sku.NewMatcher(sku.Limits{}), crowded(t)
	costly := sku.Sku{Name: "a", SchemaVersion: 5, Components: demanding(numbered(`(x+x+)+y%d`, 300))}
	_, err := matcher.Compare(ctx, machine, costly)
	require.ErrorIs(t, err, context.Canceled)
	_, err = matcher.Explain(ctx, machine, []sku.Sku{costly}, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = matcher.NewIndex([]sku.Sku{costly}).Match(ctx, machine)
	require.ErrorIs(t, err, context.Canceled)
	err = matcher.CheckDuplicate(ctx, sku.Sku{Name: "b", SchemaVersion: 5, Components: costly.Components}, []sku.Sku{costly})
	require.ErrorIs(t, err, context.Canceled)
}

func TestPlainPatternsMatchWhatTheEngineMatches(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	word := func(alphabet []string, most int) string {
		var b strings.Builder
		for range r.IntN(most + 1) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	matcher := sku.NewMatcher(sku.Limits{})
	matched := 0
	for range 20_000 {
		text := word([]string{"a", "b", "/", ".", `\.`, `\*`}, 4)
		text = []string{"", "^"}[r.IntN(2)] + text + []string{"", "$"}[r.IntN(2)]
		location := "a" + word([]string{"a", "b", "/", ".", "*"}, 6)
		expected := sku.Sku{SchemaVersion: 5, Components: fleet.SkuComponents{Storage: []fleet.StorageGroup{{Count: 1, PciPatterns: []string{text}}}}}
		actual := fleet.SkuComponents{Storage: []fleet.StorageGroup{{Count: 1, PciPatterns: []string{location}}}}
		got, err := matcher.CompareComponents(t.Context(), actual, expected)
		require.NoError(t, err)
		want := regexp.MustCompile(text).MatchString(location)
		require.Equal(t, want, got.Match, "%q on %q", text, location)
		if want {
			matched++
		}
	}
	require.Greater(t, matched, 2000)
}

// BenchmarkCostliestComparison is the largest machine against SKUs at the limits.
func BenchmarkCostliestComparison(b *testing.B) {
	machine := crowded(b)
	for name, patterns := range map[string][]string{
		"regular expressions": numbered(`(x+x+)+y%d`, 300),
		"literals":            numbered(strings.Repeat("x", 120)+"y%d", 500),
	} {
		require.NoError(b, sku.Validate(demanding(patterns), 5, sku.Limits{}))
		costly := sku.Sku{Name: "a", SchemaVersion: 5, Components: demanding(patterns)}
		b.Run(name, func(b *testing.B) {
			matcher := sku.NewMatcher(sku.Limits{})
			for b.Loop() {
				_, err := matcher.Compare(b.Context(), machine, costly)
				require.NoError(b, err)
			}
		})
	}
}
