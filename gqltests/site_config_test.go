package gqltests_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

const configFields = `
	bomValidation { enabled ignoreUnassignedMachines allowAllocationOnValidationFailure findMatchInterval autoGenerateMissingSku autoGenerateMissingSkuInterval }
	machineValidation { enabled testSelectionMode runInterval staleRunTimeout tests { id enable } approvedPluginRegistries allowedPluginTypes
		allowPrivilegedPlugins allowFullHostPlugins attemptLogs { enabled maxChunkBytes maxAttemptBytes retention }
		requireTests heartbeatTimeout runRetention rebootBeforeValidation cleanup containerArgs }`

// configured is a site's configuration as values by path.
type configured struct {
	BomValidation, MachineValidation map[string]any
}

func (b *bundle) updateSite(t *testing.T, input variables) (c configured, warnings []string) {
	t.Helper()
	var out struct {
		UpdateSite struct {
			Site     configured
			Warnings []string
		}
	}
	b.must(t, `mutation($input: UpdateSiteInput!) { updateSite(input: $input) { site {`+configFields+`} warnings } }`, variables{"input": input}, &out)
	return out.UpdateSite.Site, out.UpdateSite.Warnings
}

func TestANewSiteHasTheDefaultsOfTheGuides(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.must(t, createSite, variables{"input": variables{"name": "dc1"}}, nil)
	a := b.do(t, b.admin, `{ site(name: "dc1") {`+configFields+`} }`, nil)
	require.JSONEq(t, `{"data": {"site": {
		"bomValidation": {"enabled": false, "ignoreUnassignedMachines": false, "allowAllocationOnValidationFailure": false,
			"findMatchInterval": "5m", "autoGenerateMissingSku": false, "autoGenerateMissingSkuInterval": "5m"},
		"machineValidation": {"enabled": false, "testSelectionMode": "DEFAULT", "runInterval": "1m", "staleRunTimeout": "1d", "tests": [],
			"approvedPluginRegistries": [], "allowedPluginTypes": ["container"], "allowPrivilegedPlugins": false, "allowFullHostPlugins": false,
			"attemptLogs": {"enabled": true, "maxChunkBytes": 16384, "maxAttemptBytes": 1048576, "retention": "30d"},
			"requireTests": false, "heartbeatTimeout": "5m", "runRetention": "0s", "rebootBeforeValidation": false, "cleanup": "NONE", "containerArgs": []}}}}`, string(a.raw))
}

func TestWhatIsAbsentIsKeptAndNullIsTheDefault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.createSite(t, "dc1") // enabled
	c, _ := b.updateSite(t, variables{"siteId": id, "bomValidation": variables{"findMatchInterval": "90s"}, "machineValidation": variables{
		"enabled": true, "tests": []variables{{"id": "CudaSample", "enable": true}}, "attemptLogs": variables{"maxChunkBytes": 100}, "cleanup": "AGENT",
	}})
	require.Equal(t, []any{true, "1m30s", "5m"}, []any{c.BomValidation["enabled"], c.BomValidation["findMatchInterval"], c.BomValidation["autoGenerateMissingSkuInterval"]})
	require.Equal(t, []any{map[string]any{"id": "CudaSample", "enable": true}}, c.MachineValidation["tests"])
	require.Equal(t, map[string]any{"enabled": true, "maxChunkBytes": 100.0, "maxAttemptBytes": 1048576.0, "retention": "30d"}, c.MachineValidation["attemptLogs"])

	again, _ := b.updateSite(t, variables{"siteId": id, "bomValidation": variables{}, "machineValidation": variables{"attemptLogs": variables{}}})
	require.Equal(t, c, again, "nothing was said")
	revision := len(b.history(t, id))
	again, _ = b.updateSite(t, variables{"siteId": id, "bomValidation": variables{"findMatchInterval": "1m30s"}})
	require.Equal(t, c, again)
	require.Len(t, b.history(t, id), revision, "an edit that changes nothing leaves no history")

	c, _ = b.updateSite(t, variables{"siteId": id, "bomValidation": variables{"findMatchInterval": nil}, "machineValidation": variables{"tests": nil, "attemptLogs": nil, "cleanup": nil}})
	require.Equal(t, []any{true, "5m"}, []any{c.BomValidation["enabled"], c.BomValidation["findMatchInterval"]})
	require.Equal(t, []any{true, []any{}, "NONE"}, []any{c.MachineValidation["enabled"], c.MachineValidation["tests"], c.MachineValidation["cleanup"]})
	c, _ = b.updateSite(t, variables{"siteId": id, "bomValidation": nil, "machineValidation": nil})
	require.Equal(t, []any{false, false}, []any{c.BomValidation["enabled"], c.MachineValidation["enabled"]})
}

func TestAChangeOfConfigurationIsRecordedWithBeforeAndAfter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.createSite(t, "dc1")
	b.updateSite(t, variables{
		"siteId": id, "description": "north", "bomValidation": variables{"autoGenerateMissingSku": true, "enabled": true},
		"machineValidation": variables{"staleRunTimeout": "2d", "attemptLogs": variables{"retention": "1d"}},
	})
	event := last(b.history(t, id))
	require.Equal(t, "SITE_UPDATED", event.Cause)
	logs := func(retention string) map[string]any {
		return map[string]any{"enabled": true, "max_chunk_bytes": 16384.0, "max_attempt_bytes": 1048576.0, "retention": retention}
	}
	require.Equal(t, map[string]any{
		"before": map[string]any{
			"description": "", "bom_validation": map[string]any{"auto_generate_missing_sku": false},
			"machine_validation_config": map[string]any{"stale_run_timeout": "1d", "attempt_logs": logs("30d")},
		},
		"after": map[string]any{
			"description": "north", "bom_validation": map[string]any{"auto_generate_missing_sku": true},
			"machine_validation_config": map[string]any{"stale_run_timeout": "2d", "attempt_logs": logs("1d")},
		},
	}, event.Details)
}

func TestWhatTakesEffectOtherwiseIsToldAgainByARepeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.createSite(t, "dc1")
	input := variables{"siteId": id, "idempotencyKey": "k", "machineValidation": variables{"staleRunTimeout": "1s", "allowedPluginTypes": []string{}, "approvedPluginRegistries": []string{"Registry.Example.com:5000"}}}
	for range 2 {
		c, warnings := b.updateSite(t, input)
		require.Equal(t, "1m30s", c.MachineValidation["staleRunTimeout"])
		require.Equal(t, []any{"registry.example.com:5000"}, c.MachineValidation["approvedPluginRegistries"])
		require.Len(t, warnings, 2)
		require.Contains(t, warnings[0], "machineValidation.staleRunTimeout: 1s was raised to 1m30s")
		require.Contains(t, warnings[1], "machineValidation.approvedPluginRegistries: ")
	}
	_, warnings := b.updateSite(t, variables{"siteId": id, "bomValidation": variables{"enabled": false, "autoGenerateMissingSku": true}, "machineValidation": variables{"rebootBeforeValidation": true, "approvedPluginRegistries": []string{}}})
	require.Equal(t, []string{
		"bomValidation.autoGenerateMissingSku: has no effect while enabled is false",
		"machineValidation.rebootBeforeValidation: has no effect while enabled is false",
	}, warnings)
	_, warnings = b.updateSite(t, variables{"siteId": id, "description": "x"})
	require.Equal(t, []string{}, warnings)
	require.Len(t, b.history(t, id), 5)
}

func TestASiteFromBeforeConfigurationsValidatesAsItDid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.createSite(t, "dc1")
	_, err := b.sql(t).Exec(t.Context(), `UPDATE sites SET bom_validation = '{"enabled": true}', machine_validation = '{}'`) // as the migration does
	require.NoError(t, err)
	var out struct{ Site json.RawMessage }
	b.must(t, `{ site(name: "dc1") { bomValidation { enabled findMatchInterval } machineValidation { allowedPluginTypes tests { id } containerArgs cleanup } } }`, nil, &out)
	require.JSONEq(t, `{"bomValidation": {"enabled": true, "findMatchInterval": "5m"}, "machineValidation": {"allowedPluginTypes": ["container"], "tests": [], "containerArgs": [], "cleanup": "NONE"}}`, string(out.Site))
}
