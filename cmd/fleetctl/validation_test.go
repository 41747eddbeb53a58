package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTestsOfASite(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	golden(t, "tests_show.txt", s.must(t, "machine-validation", "tests", "show"))
	shown := func(args ...string) (ids []string) {
		t.Helper()
		var tests []testView
		require.NoError(t, json.Unmarshal([]byte(s.must(t, append([]string{"mv", "tests", "show", "-f", "json"}, args...)...)), &tests))
		for _, test := range tests {
			ids = append(ids, test.TestID)
		}
		return ids
	}
	require.Len(t, shown(), 19, "verified ones only")
	require.Len(t, shown("--show-un-verfied"), 22)
	require.Len(t, shown("--show-unverified"), 22)
	require.Equal(t, []string{"forge_RaytracingVk"}, shown("--test-id", "FORGE_raytracingvk"), "one that was asked for is shown")
	require.Equal(t, []string{"forge_NvmeCheck"}, shown("-c", "Cleanup", "-c", "OnDemand", "-p", "965-24387-0004-000", "-t", "forge_nvmecheck"))
	require.Len(t, shown("-c", "Cleanup", "-p", "P54903-B21"), 5)
	require.Empty(t, shown("-p", "HGX-B200"))

	const version = "V1-T1734600519831720"
	golden(t, "tests_enable.txt", s.must(t, "mv", "tests", "enable", "--test-id", "forge_cudasample", "--version", version))
	extended := steady(s.must(t, "mv", "tests", "verify", "-t", "forge_RaytracingVk", "-v", version, "--extended"))
	golden(t, "tests_verify.txt", extended)
	s.must(t, "site", "config", "apply", "-f", s.write(t, "site.toml", "[machine_validation_config]\ntest_selection_mode = \"DisableAll\"\n"))
	require.Contains(t, s.must(t, "mv", "tests", "disable", "-t", "forge_NvmeCheck", "-v", "V1-T1744144753768493", "-f", "json"), `"enabled_by": "SITE_MODE"`)

	require.Equal(t, "TEST_NOT_FOUND", s.refused(t, "mv", "tests", "verify", "-t", "forge_RaytracingVk", "-v", "V9-T1"))
	require.Equal(t, exitUsage, s.run(t, "mv", "tests", "show", "-c", "Never").code)
	require.Equal(t, exitUsage, s.run(t, "mv", "tests", "verify", "-t", "x").code)
	require.Contains(t, s.must(t, "__complete", "mv", "tests", "verify", "--test-id", ""), "forge_NvmeCheck")
}
