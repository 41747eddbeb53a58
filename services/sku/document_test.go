package sku_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

const minimal = `{"id":"a","components":{"cpus":[],"gpus":[],"ethernet_devices":[],"infiniband_devices":[],"storage":[],"memory":[]}}`

func TestParseDocumentsReadsOneOrMany(t *testing.T) {
	t.Parallel()
	one, err := sku.ParseDocuments([]byte(minimal))
	require.NoError(t, err)
	require.Equal(t, []sku.Document{{ID: "a"}}, one)

	two, err := sku.ParseDocuments([]byte(`{"skus":[` + minimal + `,{"id":"b","created":"yesterday","device_type":null}]}`))
	require.NoError(t, err)
	require.Len(t, two, 2)
	require.Nil(t, two[1].Created)

	none, err := sku.ParseDocuments([]byte(`{"skus":[]}`))
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestParseDocumentsNamesTheFieldAtFault(t *testing.T) {
	t.Parallel()
	in := func(old, replacement string) string { return strings.Replace(minimal, old, replacement, 1) }
	for _, c := range []struct{ name, data, field string }{
		{"not JSON", `{`, "document"},
		{"a list", `[]`, "document"},
		{"null", `null`, "document"},
		{"trailing text", minimal + `x`, "document"},
		{"no id", in(`"id":"a",`, ``), "id"},
		{"id is a number", in(`"a"`, `1`), "id"},
		{"NUL in the id", in(`"a"`, `"\u0000"`), "id"},
		{"no cpus", in(`"cpus":[],`, ``), "components.cpus"},
		{"null cpus", in(`"cpus":[]`, `"cpus":null`), "components.cpus"},
		{"cpus is an object", in(`"cpus":[]`, `"cpus":{}`), "components.cpus"},
		{"cpu is a string", in(`"cpus":[]`, `"cpus":["x"]`), "components.cpus.0"},
		{"cpu without model", in(`"cpus":[]`, `"cpus":[{"vendor":"v","thread_count":1,"count":1}]`), "components.cpus.0.model"},
		{"negative count", in(`"cpus":[]`, `"cpus":[{"vendor":"v","model":"m","thread_count":1,"count":-1}]`), "components.cpus.0.count"},
		{"fractional count", in(`"memory":[]`, `"memory":[{"memory_type":"","capacity_mb":1,"count":1.5}]`), "components.memory.0.count"},
		{"huge capacity", in(`"memory":[]`, `"memory":[{"memory_type":"","capacity_mb":99999999999,"count":1}]`), "components.memory.0.capacity_mb"},
		{"no inactive devices", in(`"infiniband_devices":[]`, `"infiniband_devices":[{"vendor":"","model":"","count":1}]`), "components.infiniband_devices.0.inactive_devices"},
		{"pattern is a number", in(`"storage":[]`, `"storage":[{"model":"","count":1,"pci_patterns":["a",7]}]`), "components.storage.0.pci_patterns.1"},
		{"chassis without model", in(`"cpus"`, `"chassis":{"vendor":"","architecture":""},"cpus"`), "components.chassis.model"},
		{"tpm without version", in(`"cpus"`, `"tpm":{"vendor":""},"cpus"`), "components.tpm.version"},
		{"second of many", `{"skus":[` + minimal + `,{}]}`, "skus.1.id"},
		{"skus is an object", `{"skus":{}}`, "skus"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := sku.ParseDocuments([]byte(c.data))
			refused, ok := fleet.AsError(err)
			require.True(t, ok)
			require.Equal(t, fleet.InvalidArgument, refused.Code)
			require.Equal(t, "DOCUMENT_INVALID", refused.Reason)
			require.Equal(t, c.field, refused.Field)
		})
	}
}

func TestDocumentWritesItsKeysInTheOrderOfTheCommandLine(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 9, 20, 8, 15, 30, 123456000, time.UTC)
	d := sku.Document{
		ID: "dell.r760.storage.1", Description: new("text"), Created: &created, SchemaVersion: 5, DeviceType: new("storage"),
		Components: fleet.SkuComponents{
			Chassis:           fleet.Chassis{Vendor: "Dell Inc.", Model: "PowerEdge R760", Architecture: "x86_64"},
			Storage:           []fleet.StorageGroup{{Count: 8, MinSizeMb: new(int64(7000000)), PciPatterns: []string{`/0000:6[5-8]:00\.0/nvme`}}},
			InfinibandDevices: []fleet.InfinibandDevice{{Vendor: "v", Model: "m", Count: 1}},
		},
	}
	data, err := json.Marshal(d)
	require.NoError(t, err)
	const want = `{"id":"dell.r760.storage.1","description":"text","created":"2026-09-20T08:15:30.123456Z",` +
		`"components":{"chassis":{"vendor":"Dell Inc.","model":"PowerEdge R760","architecture":"x86_64"},"cpus":[],"gpus":[],"ethernet_devices":[],` +
		`"infiniband_devices":[{"vendor":"v","model":"m","count":1,"inactive_devices":[]}],` +
		`"storage":[{"vendor":"","model":"","count":8,"capacity_mb":0,"min_size_mb":7000000,"max_size_mb":null,"pci_patterns":["/0000:6[5-8]:00\\.0/nvme"]}],` +
		`"memory":[],"tpm":null},"schema_version":5,"associated_machine_ids":[],"device_type":"storage"}`
	//nolint:testifylint // compares text, for the order of the keys
	require.Equal(t, []byte(want), data, "the order of the keys is part of the form: %s", data)
}
