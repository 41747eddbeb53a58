package gqltests_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEverySampleInventoryCanBeReported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	files, err := filepath.Glob(filepath.Join("..", "services", "sku", "testdata", "inventories", "*", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 17)
	for i, file := range files {
		name := filepath.Base(file)
		m := b.report(t, site, fmt.Sprintf("02:00:00:00:00:%02x", i), name, read(t, file))
		require.Contains(t, []string{"READY", "BOM_VALIDATING"}, m.State, name)
	}
	a := b.do(t, b.admin, `{ machines(orderBy: {field: NAME}) { totalCount edges { node {
		name kind platform state subState serialNumber vendor model skuName
		inventory { machineType cpuInfo { model sockets cores threads } gpus { name } nvmeDevices { model sizeMb pciPath } tpmDescription { tpmSpec } }
	} } } }`, nil)
	require.Empty(t, a.Errors, "%s", a.raw)
	golden(t, "inventory/reported", a.raw)
}

func TestAReportedMachineGeneratesTheSkuOfItsHardware(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	first := b.report(t, site, "02:00:00:00:00:01", "node-1", inventory(t, "upstream/x86_info.json"))
	require.Equal(t, "WAITING_FOR_SKU_ASSIGNMENT", first.SubState)

	a := b.do(t, b.admin, `query($id: ID!) { generateSku(machineId: $id) { name description schemaVersion components {`+componentFields+`} } }`, variables{"id": first.ID})
	require.Empty(t, a.Errors, "%s", a.raw)
	golden(t, "inventory/generated", a.raw)

	// An inventory from before drive sizes and locations makes a SKU that would
	// accept any drive: the guide has it refused until the machine is inventoried
	// again.
	const create = `mutation($input: CreateSkuInput!) { createSku(input: $input) { sku { id } } }`
	input := variables{"siteId": site, "name": "dell.r750.gpu.1", "components": b.generate(t, first.ID)}
	fault := b.refused(t, b.admin, create, variables{"input": input})
	require.Equal(t, "INVALID_ARGUMENT", fault.Extensions.Code)
	require.Equal(t, "components.storage.0", fault.Extensions.Field)
	require.Contains(t, fault.Message, "re-enumerate the machine's hardware before creating this SKU")

	again := located(t, inventory(t, "upstream/x86_info.json"))
	first = b.report(t, site, "02:00:00:00:00:01", "node-1", again)
	b.createSku(t, site, first.ID, "dell.r750.gpu.1")
	second := b.report(t, site, "02:00:00:00:00:02", "node-2", again)
	require.Equal(t, "READY", second.State)
	require.Equal(t, "dell.r750.gpu.1", second.SkuName)
	// The next proposal takes the next free index.
	var next struct{ GenerateSku struct{ Name string } }
	b.must(t, `query($id: ID!) { generateSku(machineId: $id) { name } }`, variables{"id": second.ID}, &next)
	require.Equal(t, "dell.r750.gpu.2", next.GenerateSku.Name)
}

func TestAPulledDriveIsExplainedWithExactlyThatEdit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	whole := inventory(t, "composed/r760_9nvme.json")
	good := b.report(t, site, "02:00:00:00:00:01", "good", whole)
	b.createSku(t, site, good.ID, "dell.r760.storage.1")
	good = b.report(t, site, "02:00:00:00:00:01", "good", whole)
	require.Equal(t, "READY", good.State)

	pulled := b.report(t, site, "02:00:00:00:00:02", "pulled", without(t, whole, 3))
	require.Equal(t, "BOM_VALIDATING", pulled.State)
	require.Equal(t, "WAITING_FOR_SKU_ASSIGNMENT", pulled.SubState)
	a := b.do(t, b.admin, `query($id: ID!) { explainSku(machineId: $id) { sku { name } match distance
		mismatches { component kind subject attribute expected actual message hint } notes { message }
		edits { component action subject count from to message } } }`, variables{"id": pulled.ID})
	require.Empty(t, a.Errors, "%s", a.raw)
	golden(t, "inventory/pulled_drive", a.raw)

	// The same machine loses the drive after it was READY: an alert says so, and goes
	// when the drive is back and a person has asked for a verification.
	const look = `query($site: String!, $name: String!) { machine(site: $site, name: $name) { state subState
		lastVerification { match } skuComparison { match mismatches { component kind message } }
		healthAlerts { totalCount edges { node { alertId source target message tenantMessage classifications } } }
		transitions(orderBy: {field: SEQUENCE}) { edges { node { sequence fromState toState cause actor message details } } } } }`
	b.report(t, site, "02:00:00:00:00:01", "good", without(t, whole, 3))
	a = b.do(t, b.admin, look, variables{"site": "dc1", "name": "good"})
	golden(t, "inventory/drive_lost", a.raw)
	b.called(t, verifySku, variables{"machineId": good.ID})
	b.report(t, site, "02:00:00:00:00:01", "good", whole)
	a = b.do(t, b.admin, look, variables{"site": "dc1", "name": "good"})
	golden(t, "inventory/drive_back", a.raw)
}

func TestASkuOfAnOlderSchemaVersionIsImportedAndMatchesItsHardware(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	first := b.report(t, site, "02:00:00:00:00:01", "node-1", inventory(t, "upstream/x86_info.json"))
	components := b.generate(t, first.ID) // of schema 5 without constraints, which reads as schema 4
	const create = `mutation($input: CreateSkusInput!) { createSkus(input: $input) { skus { name schemaVersion } } }`
	input := variables{"siteId": site, "skus": []variables{{"name": "dell.r750.gpu.1", "schemaVersion": 4, "components": components}}}
	fault := b.refused(t, b.admin, create, variables{"input": input})
	require.Equal(t, "SCHEMA_VERSION_UNSUPPORTED", fault.Extensions.Reason)
	require.Equal(t, "skus.0.schemaVersion", fault.Extensions.Field)
	input["acceptOlderVersions"] = true
	b.must(t, create, variables{"input": input}, nil)
	second := b.report(t, site, "02:00:00:00:00:02", "node-2", inventory(t, "upstream/x86_info.json"))
	require.Equal(t, "READY", second.State)
	require.Equal(t, "dell.r750.gpu.1", second.SkuName)
}

// located is an inventory whose NVMe controllers tell their size and location.
func located(t *testing.T, document json.RawMessage) json.RawMessage {
	t.Helper()
	var inventory map[string]any
	require.NoError(t, json.Unmarshal(document, &inventory))
	drives, ok := inventory["nvme_devices"].([]any)
	require.True(t, ok)
	for i, drive := range drives {
		d, ok := drive.(map[string]any)
		require.True(t, ok)
		d["size_mb"] = 1831420
		d["pci_path"] = fmt.Sprintf("/devices/pci0000:64/0000:64:%02x.0/0000:65:00.0/nvme/nvme%d", i+2, i)
	}
	out, err := json.Marshal(inventory)
	require.NoError(t, err)
	return out
}

// without is an inventory whose i-th NVMe controller is gone.
func without(t *testing.T, document json.RawMessage, i int) json.RawMessage {
	t.Helper()
	var inventory map[string]any
	require.NoError(t, json.Unmarshal(document, &inventory))
	drives, ok := inventory["nvme_devices"].([]any)
	require.True(t, ok)
	inventory["nvme_devices"] = append(drives[:i:i], drives[i+1:]...)
	out, err := json.Marshal(inventory)
	require.NoError(t, err)
	return out
}
