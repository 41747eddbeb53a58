package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

func TestWhatIsWrongWithAConfigurationFileIsToldByKeyAndLine(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"[bom_validation]\nenable = true":                                       "line 2: unknown key bom_validation.enable",
		"[bom_validation]\nenabled = true\n[network]\nmtu = 1500":               "line 3: unknown key network",
		"[machine_validation_config.attempt_logs]\nmax_bytes = 1":               "line 2: unknown key machine_validation_config.attempt_logs.max_bytes",
		"[bom_validation]\nfind_match_interval = \"5 parsecs\"":                 "bom_validation.find_match_interval: \"5 parsecs\" is not a duration such as 90s, 24h or 30d",
		"[bom_validation]\nfind_match_interval = 300":                           "bom_validation.find_match_interval: 300 is no text",
		"[bom_validation]\nenabled = \"yes\"":                                   `line 2: bom_validation.enabled: `,
		"[machine_validation_config]\ntest_selection_mode = \"Some\"":           `machine_validation_config.test_selection_mode: "Some" is none of "Default", "EnableAll", "DisableAll"`,
		"[machine_validation_config]\ncleanup = \"AGENT\"":                      `machine_validation_config.cleanup: "AGENT" is none of "none", "agent"`,
		"[machine_validation_config]\ntests = [{ id = \"a\", enabled = true }]": "line 2: unknown key machine_validation_config.enabled",
		"[bom_validation]\nenabled = true,\nignore_unassigned_machines = false": "line 2", // the guide's own sample has such a comma
		"[bom_validation]\nenabled = true\nenabled = false":                     "line 3",
		"[bom_validation]\nEnabled = true":                                      "unknown key bom_validation.Enabled",
		"bom_validation = 1":                                                    "line 1",
		"[bom_validation]\nenabled = true\n[bom_validation]":                    "line 3",
	} {
		_, _, err := parseConfig([]byte(file))
		require.ErrorContains(t, err, want, file)
	}
}

func TestABlockOfAConfigurationFileIsTheWholeOfIt(t *testing.T) {
	t.Parallel()
	config, keys, err := parseConfig([]byte("[bom_validation]\nenabled = true\nfind_match_interval = \"90s\"\n"))
	require.NoError(t, err)
	require.NotNil(t, keys.block("bom_validation"))
	want := defaultConfig()
	want.Bom.Enabled, want.Bom.FindMatchInterval = true, durationText{fleet.Duration(90e9)}
	require.Equal(t, want, config)
	bom, machine := config.input(keys)
	require.Nil(t, machine)
	require.Equal(t, "1m30s", *bom.FindMatchInterval)
	require.Nil(t, bom.AutoGenerateMissingSkuInterval, "the server has its own defaults")

	config, keys, err = parseConfig([]byte("# nothing\n"))
	require.NoError(t, err)
	require.Empty(t, keys)
	require.Equal(t, defaultConfig(), config)

	config, keys, err = parseConfig([]byte(`
[machine_validation_config]
enabled = true
test_selection_mode = "EnableAll"
tests = [
  { id = "CudaSample", enable = true },
]
cleanup = "agent"
[machine_validation_config.attempt_logs]
retention = "30d"
`))
	require.NoError(t, err)
	bom, machine = config.input(keys)
	require.Nil(t, bom)
	require.Equal(t, "30d", *machine.AttemptLogs.Retention)
	require.Nil(t, machine.AttemptLogs.Enabled)
	require.Nil(t, machine.ContainerArgs)
	require.Equal(t, []testSetting{{"CudaSample", true}}, config.Machine.Tests)
	require.Equal(t, selectionWord{fleet.SelectEnableAll}, config.Machine.TestSelectionMode)
	require.Equal(t, cleanupWord{fleet.CleanupAgent}, config.Machine.Cleanup)
	require.Equal(t, 16384, config.Machine.AttemptLogs.MaxChunkBytes)

	// What is written is read back.
	config.Machine.ApprovedPluginRegistries = []string{"a.example", "b.example:5000"}
	config.Machine.ContainerArgs = []string{`--label="x\y"`, "é", ",", `","`}
	text, err := config.toml()
	require.NoError(t, err)
	again, keys, err := parseConfig([]byte(text))
	require.NoError(t, err, text)
	require.NotNil(t, keys.block("bom_validation"))
	require.Equal(t, config, again)
}

func TestAPathOfTheGraphIsAKeyOfTheFile(t *testing.T) {
	t.Parallel()
	for path, key := range map[string]string{
		"bomValidation.findMatchInterval":             "bom_validation.find_match_interval",
		"machineValidation.attemptLogs.maxChunkBytes": "machine_validation_config.attempt_logs.max_chunk_bytes",
		"machineValidation.tests.3.id":                "machine_validation_config.tests.3.id",
	} {
		require.Equal(t, key, configKey(path))
	}
}

func TestASiteIsConfiguredByItsFile(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	shown := s.must(t, "site", "config", "show")
	golden(t, "site_config_default.toml", shown)
	golden(t, "site_config_default.json", s.must(t, "site", "config", "show", "-f", "json"))

	// What is shown changes nothing when it is applied.
	s.stdin = shown
	require.Equal(t, "nothing changed\n", s.must(t, "site", "config", "apply", "-f", "-"))
	file := s.write(t, "site.toml", "[bom_validation]\nenabled = true\nauto_generate_missing_sku = true\n\n"+
		"[machine_validation_config]\nstale_run_timeout = \"10s\"\napproved_plugin_registries = [\"Registry.Example.com\"]\n")
	const changes = `changed bom_validation.auto_generate_missing_sku: false -> true
changed bom_validation.enabled: false -> true
changed machine_validation_config.approved_plugin_registries: [] -> ["registry.example.com"]
changed machine_validation_config.stale_run_timeout: "1d" -> "1m30s"
`
	const warning = "warning: machine_validation_config.stale_run_timeout: 10s was raised to 1m30s, so that healthy runs do not fail between two heartbeats\n"
	dry := s.run(t, "site", "config", "apply", "--dry-run", "-f", file)
	require.Equal(t, strings.ReplaceAll(changes, "changed", "would change"), dry.stdout)
	require.Equal(t, warning, dry.stderr)
	require.Equal(t, shown, s.must(t, "site", "config", "show"), "a rehearsal changes nothing")
	done := s.run(t, "site", "config", "apply", "-f", file, "pdx1")
	require.Equal(t, changes, done.stdout)
	require.Equal(t, warning, done.stderr)
	golden(t, "site_config_changed.toml", s.must(t, "site", "config", "show", "pdx1"))
	require.Contains(t, s.must(t, "site", "show", "pdx1", "-f", "json"), `"revision": 2`)

	// Another edit of the site leaves its configuration alone.
	s.must(t, "site", "update", "pdx1", "--description", "north")
	golden(t, "site_config_changed.toml", s.must(t, "site", "config", "show", "pdx1"))

	for file, want := range map[string]string{
		"[bom_validation]\nfind_match_interval = \"0s\"\n":                                                         "error: bom_validation.find_match_interval: the interval is at least 1s; 0s was given (INVALID_ARGUMENT DURATION_INVALID field=bom_validation.find_match_interval)\n",
		"[machine_validation_config.attempt_logs]\nmax_chunk_bytes = 100\nmax_attempt_bytes = 99\n":                "error: machine_validation_config.attempt_logs.max_chunk_bytes: a chunk of 100 bytes is larger than the log of an attempt, 99 (INVALID_ARGUMENT NUMBER_OUT_OF_RANGE field=machine_validation_config.attempt_logs.max_chunk_bytes)\n",
		"[machine_validation_config]\ntests = [ { id = \"A\", enable = true }, { id = \"a\", enable = false } ]\n": "error: machine_validation_config.tests.1.id: the test \"a\" is both enabled and disabled (INVALID_ARGUMENT TEST_CONTRADICTORY field=machine_validation_config.tests.1.id)\n",
	} {
		for _, flags := range [][]string{{}, {"--dry-run"}} {
			got := s.run(t, append([]string{"site", "config", "apply", "-f", s.write(t, "bad.toml", file)}, flags...)...)
			require.Equal(t, exitFailed, got.code)
			require.Equal(t, want, got.stderr)
		}
	}
	got := s.run(t, "site", "config", "apply", "-f", s.write(t, "bad.toml", "[bom_validation]\nenabeld = true\n"))
	require.Equal(t, []any{exitFailed, "error: line 2: unknown key bom_validation.enabeld\n"}, []any{got.code, got.stderr})
	require.Equal(t, exitUsage, s.run(t, "site", "config", "apply").code)
	require.Equal(t, exitUsage, s.run(t, "site", "config", "apply", "-f", s.file("none.toml")).code)
	require.Equal(t, "REVISION_CONFLICT", func() string {
		got := s.run(t, "site", "config", "apply", "--format", "json", "--expected-revision", "1", "-f", file)
		require.Equal(t, exitFailed, got.code)
		return errorOf(t, got)["reason"].(string)
	}())
	golden(t, "site_config_changed.toml", s.must(t, "site", "config", "show", "pdx1"))
}

// enable has the machines of the site validated.
func (s *session) enable(t *testing.T) {
	t.Helper()
	s.must(t, "site", "config", "apply", "-f", s.write(t, "enable.toml", "[bom_validation]\nenabled = true\n"))
}

func TestAVerificationThatDoesNotFollowSaysWhy(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	s.must(t, "machine", "report", filepath.Join("testdata", "xe9680_8gpu.json"), "--bmc-mac", "c4:5a:b1:c8:38:0d", "--name", "dgx-1")
	verify := func() string {
		got := s.run(t, "sku", "verify", "dgx-1")
		require.Equal(t, exitDone, got.code, got.stderr)
		return got.stderr
	}
	require.Equal(t, "dgx-1 stays READY: it has no SKU to be held against\n", verify())
	file := s.file("sku.json")
	s.must(t, "-f", "json", "-o", file, "sku", "generate", "dgx-1", "--id", "dell.xe9680.gpu.1")
	s.must(t, "sku", "create", file)
	s.must(t, "sku", "assign", "dell.xe9680.gpu.1", "dgx-1")
	require.Equal(t, "dgx-1 stays READY: its site validates no SKUs; once it does, the verification begins\n", verify())
	s.enable(t)
	require.Eventually(t, func() bool {
		return strings.Contains(s.must(t, "machine", "show", "dgx-1"), "UPDATING_INVENTORY")
	}, 20*time.Second, 100*time.Millisecond)
}

// TestTheLifeOfAMachine is the workflow of the guide: a SKU from a known good
// machine, its assignment, a broken machine and its alert, the replacement of the
// part, and the verification.
func TestTheLifeOfAMachine(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	s.enable(t)
	const good, bad = "xe9680_8gpu.json", "xe9680_7gpu.json"
	report := func(inventory string) {
		s.must(t, "machine", "report", filepath.Join("testdata", inventory), "--bmc-mac", "c4:5a:b1:c8:38:0d", "--name", "dgx-1")
	}
	report(good)
	require.Contains(t, s.must(t, "machine", "show", "-f", "csv"), "WAITING_FOR_SKU_ASSIGNMENT")
	file := s.file("sku.json")
	s.must(t, "-f", "json", "-o", file, "sku", "generate", "dgx-1", "--id", "dell.xe9680.gpu.1")
	s.must(t, "sku", "create", file)
	got := s.run(t, "sku", "assign", "dell.xe9680.gpu.1", "dgx-1")
	require.Equal(t, exitDone, got.code)
	require.Equal(t, "assigned dell.xe9680.gpu.1 to dgx-1, which is BOM_VALIDATING/UPDATING_INVENTORY: it waits for a fresh inventory\n", got.stderr)
	require.Contains(t, s.must(t, "machine", "show", "dgx-1"), "Wanted Of Its Host  : RefreshInventory since ")
	report(good)
	require.Contains(t, s.must(t, "machine", "show", "dgx-1"), "Allocatable         : yes\n")

	report(bad)
	golden(t, "life_broken.txt", steady(s.must(t, "machine", "show", "dgx-1")))
	got = s.run(t, "machine", "allocate", "dgx-1", "tenant-1")
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, `error: the machine cannot be allocated:
  MACHINE_STATE: the machine is BOM_VALIDATING/SKU_VERIFICATION_FAILED, not READY
  HEALTH_ALERT: SkuValidation (sku-validation): Expected gpu count (8) does not match actual (7) for gpu model (NVIDIA H100 80GB HBM3) (FAILED_PRECONDITION MACHINE_NOT_ALLOCATABLE)
`, got.stderr)
	require.Equal(t, "MACHINE_NOT_ALLOCATABLE", s.refused(t, "machine", "allocate", "dgx-1", "tenant-1"))

	got = s.run(t, "sku", "verify", "dgx-1")
	require.Equal(t, "requested the verification of dgx-1, which is BOM_VALIDATING/UPDATING_INVENTORY: it waits for a fresh inventory\n", got.stderr)
	report(good)
	require.Equal(t, "allocated to tenant-1: dgx-1, which is ALLOCATED\n", s.run(t, "machine", "allocate", "dgx-1", "tenant-1").stderr)
	require.Contains(t, s.must(t, "machine", "show", "dgx-1"), "Allocation          : tenant-1\n")
	require.Equal(t, "MACHINE_ALLOCATED", s.refused(t, "machine", "delete", "dgx-1"))
	require.Equal(t, "released dgx-1, which is BOM_VALIDATING/UPDATING_INVENTORY: it waits for a fresh inventory\n", s.run(t, "machine", "release", "dgx-1").stderr)
	report(good)

	s.must(t, "machine", "alert", "raise", "dgx-1", "Fan", "--message", "slow", "--source", "monitor", "--classification", "PREVENT_ALLOCATIONS")
	page := s.must(t, "machine", "show", "dgx-1")
	require.Contains(t, page, "- HEALTH_ALERT: Fan (monitor): slow\n")
	id := page[strings.LastIndex(page, "alert_"):][:len("alert_")+26]
	s.must(t, "machine", "alert", "clear", id)
	require.Contains(t, s.must(t, "machine", "show", "dgx-1"), "Health Alerts: none\n")
	history := s.must(t, "machine", "history", "dgx-1", "-f", "csv")
	for _, cause := range []string{"SKU_ASSIGNED", "INVENTORY_CHANGED", "SKU_MISMATCH", "VERIFY_REQUESTED", "ALLOCATED", "RELEASED", "CLEANED", "HEALTH_ALERT_RAISED"} {
		require.Contains(t, history, ","+cause+",")
	}
	s.must(t, "machine", "delete", "dgx-1")
	require.Equal(t, "MACHINE_NOT_FOUND", s.refused(t, "machine", "show", "dgx-1"))
	_, err := os.Stat(file)
	require.NoError(t, err)
}
