package sku_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

func readCases[T any](t *testing.T, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cases", name))
	require.NoError(t, err)
	var cases []T
	require.NoError(t, json.Unmarshal(data, &cases))
	require.NotEmpty(t, cases)
	return cases
}

func parseOne(t *testing.T, data []byte) sku.Sku {
	t.Helper()
	documents, err := sku.ParseDocuments(data)
	require.NoError(t, err)
	require.Len(t, documents, 1)
	return documents[0].Sku()
}

func readInventory(t *testing.T, path string) fleet.Inventory {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", path))
	require.NoError(t, err)
	inventory, err := fleet.ParseInventory(data)
	require.NoError(t, err)
	return inventory
}

func components(comparison fleet.Comparison) []string {
	names := []string{}
	for _, m := range comparison.Mismatches {
		if n := len(names); n == 0 || names[n-1] != string(m.Component) {
			names = append(names, string(m.Component))
		}
	}
	return names
}

func TestCompareGivesTheExpectedDifferences(t *testing.T) {
	t.Parallel()
	type compareCase struct {
		ID         string          `json:"id"`
		Actual     json.RawMessage `json:"actual"`
		Expected   json.RawMessage `json:"expected"`
		Match      bool            `json:"match"`
		Components []string        `json:"mismatched_components"`
		Messages   *[]string       `json:"storage_messages"`
	}
	matcher := sku.NewMatcher(sku.DefaultLimits())
	for _, c := range readCases[compareCase](t, "compare.json") {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			got, err := matcher.CompareComponents(t.Context(), parseOne(t, c.Actual).Components, parseOne(t, c.Expected))
			require.NoError(t, err)
			require.Equal(t, c.Match, got.Match)
			require.Equal(t, c.Components, components(got))
			if c.Messages == nil {
				return
			}
			require.Len(t, got.Mismatches, len(*c.Messages))
			for i, want := range *c.Messages {
				if prefix, ok := strings.CutSuffix(want, "<regex error text>"); ok {
					require.True(t, strings.HasPrefix(got.Mismatches[i].Message, prefix))
					continue
				}
				require.Equal(t, want, got.Mismatches[i].Message)
			}
		})
	}
}

func TestGenerateGivesTheExpectedComponents(t *testing.T) {
	t.Parallel()
	type generateCase struct {
		Inventory   string          `json:"inventory"`
		Version     int             `json:"schema_version"`
		Lids        map[string]int  `json:"ib_port_lids"`
		Description string          `json:"expected_description"`
		Components  json.RawMessage `json:"expected_components"`
	}
	for _, c := range readCases[generateCase](t, "generate.json") {
		t.Run(c.Inventory, func(t *testing.T) {
			t.Parallel()
			var ports []fleet.FabricPort
			for guid, lid := range c.Lids {
				ports = append(ports, fleet.FabricPort{Guid: guid, Lid: lid})
			}
			inventory := readInventory(t, c.Inventory)
			got, err := sku.Generate(inventory, ports, c.Version)
			require.NoError(t, err)
			require.Equal(t, c.Description, sku.Describe(got))

			var want fleet.SkuComponents
			require.NoError(t, json.Unmarshal(c.Components, &want))
			require.Equal(t, want, got)

			comparison, err := sku.NewMatcher(sku.DefaultLimits()).
				Compare(t.Context(), sku.NewMachine(inventory, ports), sku.Sku{SchemaVersion: c.Version, Components: got})
			require.NoError(t, err)
			require.True(t, comparison.Match, comparison.Mismatches)
		})
	}
}

func TestDuplicateFindsTheSameHardwareOnly(t *testing.T) {
	t.Parallel()
	type duplicateCase struct {
		ID        string            `json:"id"`
		Candidate json.RawMessage   `json:"candidate"`
		Existing  []json.RawMessage `json:"existing"`
		Same      bool              `json:"same_hardware"`
	}
	matcher := sku.NewMatcher(sku.DefaultLimits())
	for _, c := range readCases[duplicateCase](t, "duplicate.json") {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			var existing []sku.Sku
			for _, e := range c.Existing {
				existing = append(existing, parseOne(t, e))
			}
			err := matcher.CheckDuplicate(t.Context(), parseOne(t, c.Candidate), existing)
			if !c.Same {
				require.NoError(t, err)
				return
			}
			refused, ok := fleet.AsError(err)
			require.True(t, ok)
			require.Equal(t, fleet.AlreadyExists, refused.Code)
			require.True(t, strings.HasPrefix(refused.Message, "Specified SKU matches SKU with ID: "+existing[0].Name))
			if existing[0].SchemaVersion < fleet.CurrentSchemaVersion {
				require.Contains(t, refused.Message, "sku replace")
			}
		})
	}
}

func TestEveryStoredFileReadsAndImports(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/skus/*/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			documents, err := sku.ParseDocuments(data)
			require.NoError(t, err)
			require.Len(t, documents, 1)

			d := documents[0]
			written, err := json.Marshal(d)
			require.NoError(t, err)
			again, err := sku.ParseDocuments(written)
			require.NoError(t, err)
			rewritten, err := json.Marshal(again[0])
			require.NoError(t, err)
			require.Equal(t, string(written), string(rewritten))

			err = sku.Validate(d.Components, d.SchemaVersion, sku.DefaultLimits())
			if strings.Contains(file, "pre_v5_inventory.v5") {
				require.ErrorContains(t, err, "has no size bounds or PCI patterns; re-enumerate")
			} else if !strings.Contains(file, "gb200") && !strings.Contains(file, "x86_info.v5") {
				require.NoError(t, err)
			}
		})
	}
}
