package sku_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

func seed(f *testing.F, patterns ...string) {
	f.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(data)
		}
	}
}

// FuzzDocument reads any bytes as SKU documents. What reads can be written and
// reads back the same, can be checked, compared with itself and explained.
func FuzzDocument(f *testing.F) {
	seed(f, "testdata/skus/upstream/*.json", "testdata/skus/derived/r760*.v5.json")
	f.Add([]byte(`{"skus":[{"id":"a","schema_version":5,"components":{"cpus":[],"gpus":[],"infiniband_devices":[],"memory":[],` +
		`"storage":[{"model":"","count":2,"min_size_mb":null,"max_size_mb":9,"pci_patterns":["[a-z&&b]","nvme[0-9]+$"]},{"model":"","count":1,"min_size_mb":1}]}}]}`))
	matcher := sku.NewMatcher(sku.DefaultLimits())
	f.Fuzz(func(t *testing.T, data []byte) {
		documents, err := sku.ParseDocuments(data)
		if err != nil {
			_, ok := fleet.AsError(err)
			require.True(t, ok)
			return
		}
		for _, d := range documents {
			written, err := json.Marshal(d)
			require.NoError(t, err)
			again, err := sku.ParseDocuments(written)
			require.NoError(t, err)
			rewritten, err := json.Marshal(again[0])
			require.NoError(t, err)
			require.Equal(t, string(written), string(rewritten))

			exercise(t, matcher, fleet.Inventory{}, d.Sku())
		}
	})
}

// FuzzInventory reads any bytes as an inventory. What reads can be generated from,
// and the machine matches what was generated.
func FuzzInventory(f *testing.F) {
	seed(f, "testdata/inventories/upstream/*.json", "testdata/inventories/composed/*.json")
	f.Add([]byte(`{"info":{"cpus":[{"socket":1,"core":3,"number":7}],"tpm_description":{"tpm_spec":"2.0\u0000\u0000"},"gpus":null}}`))
	matcher := sku.NewMatcher(sku.DefaultLimits())
	f.Fuzz(func(t *testing.T, data []byte) {
		inventory, err := fleet.ParseInventory(data)
		if err != nil {
			_, ok := fleet.AsError(err)
			require.True(t, ok)
			return
		}
		inventory.IsDPU()
		inventory.SerialNumber()
		for version := range fleet.CurrentSchemaVersion + 1 {
			components, err := sku.Generate(inventory, nil, version)
			require.NoError(t, err)
			exercise(t, matcher, inventory, sku.Sku{Name: "s", SchemaVersion: version, Components: components})
		}
	})
}

// exercise runs everything that takes a SKU and checks that the parts agree.
func exercise(t *testing.T, matcher *sku.Matcher, inventory fleet.Inventory, s sku.Sku) {
	t.Helper()
	sku.Describe(s.Components)
	name := sku.ProposeName(s.Components, func(string) bool { return false })
	require.True(t, sku.ConventionalName(name), name)
	if err := sku.Validate(s.Components, s.SchemaVersion, sku.DefaultLimits()); err != nil {
		_, ok := fleet.AsError(err)
		require.True(t, ok)
	}
	machine := sku.NewMachine(inventory, nil)
	got, err := matcher.Compare(t.Context(), machine, s)
	if err != nil {
		require.False(t, sku.Supported(s.SchemaVersion))
		return
	}
	index := matcher.NewIndex([]sku.Sku{s})
	hits, err := index.Match(t.Context(), machine)
	require.NoError(t, err)
	require.Equal(t, got.Match, len(hits) == 1)
	explained, err := index.Explain(t.Context(), machine, 1)
	require.NoError(t, err)
	require.Equal(t, got.Match, explained[0].Distance == 0)
	_ = matcher.CheckDuplicate(t.Context(), s, []sku.Sku{s})
}
