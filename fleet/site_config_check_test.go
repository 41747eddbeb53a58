package fleet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

func TestTheDefaultsOfASiteAreValidAndEffective(t *testing.T) {
	t.Parallel()
	ignored, err := fleet.DefaultBomValidation().Check()
	require.NoError(t, err)
	require.Empty(t, ignored)
	m := fleet.DefaultMachineValidation()
	warnings, err := m.Normalise()
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, fleet.DefaultMachineValidation(), m)
}

func TestIntervalsOfBomValidationAreAtLeastASecond(t *testing.T) {
	t.Parallel()
	for field, set := range map[string]func(*fleet.BomValidation, fleet.Duration){
		"bomValidation.findMatchInterval":              func(b *fleet.BomValidation, d fleet.Duration) { b.FindMatchInterval = d },
		"bomValidation.autoGenerateMissingSkuInterval": func(b *fleet.BomValidation, d fleet.Duration) { b.AutoGenerateMissingSkuInterval = d },
	} {
		for _, d := range []time.Duration{-time.Second, 0, time.Second - 1} {
			b := fleet.DefaultBomValidation()
			set(&b, fleet.Duration(d))
			_, err := b.Check()
			refusedFor(t, err, field, "DURATION_INVALID")
		}
		b := fleet.DefaultBomValidation()
		set(&b, fleet.Duration(time.Second))
		_, err := b.Check()
		require.NoError(t, err)
	}
}

func refusedFor(t *testing.T, err error, field, reason string) {
	t.Helper()
	e, ok := fleet.AsError(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []string{string(fleet.InvalidArgument), field, reason}, []string{string(e.Code), e.Field, e.Reason}, e.Message)
	require.Less(t, len(e.Message), 500)
}

func TestWhatNoSiteMayHaveInMachineValidation(t *testing.T) {
	t.Parallel()
	tests := func(settings ...fleet.TestSetting) func(*fleet.MachineValidation) {
		return func(m *fleet.MachineValidation) { m.Tests = settings }
	}
	registries := func(names ...string) func(*fleet.MachineValidation) {
		return func(m *fleet.MachineValidation) { m.ApprovedPluginRegistries = names }
	}
	plugins := func(names ...string) func(*fleet.MachineValidation) {
		return func(m *fleet.MachineValidation) { m.AllowedPluginTypes = names }
	}
	args := func(args ...string) func(*fleet.MachineValidation) {
		return func(m *fleet.MachineValidation) { m.ContainerArgs = args }
	}
	logs := func(chunk, attempt int) func(*fleet.MachineValidation) {
		return func(m *fleet.MachineValidation) {
			m.AttemptLogs.MaxChunkBytes, m.AttemptLogs.MaxAttemptBytes = chunk, attempt
		}
	}
	long := strings.Repeat("a", 64)
	for _, test := range []struct {
		name          string
		change        func(*fleet.MachineValidation)
		field, reason string
	}{
		{"no run interval", func(m *fleet.MachineValidation) { m.RunInterval = 0 }, "runInterval", "DURATION_INVALID"},
		{"a negative time-out", func(m *fleet.MachineValidation) { m.StaleRunTimeout = -1 }, "staleRunTimeout", "DURATION_INVALID"},
		{"a negative retention of runs", func(m *fleet.MachineValidation) { m.RunRetention = -1 }, "runRetention", "DURATION_INVALID"},
		{"a heartbeat below three beats", func(m *fleet.MachineValidation) { m.HeartbeatTimeout = fleet.Duration(89 * time.Second) }, "heartbeatTimeout", "DURATION_INVALID"},
		{"a negative heartbeat", func(m *fleet.MachineValidation) { m.HeartbeatTimeout = -1 }, "heartbeatTimeout", "DURATION_INVALID"},
		{"a test without an id", tests(fleet.TestSetting{ID: "a"}, fleet.TestSetting{}), "tests.1.id", "NAME_INVALID"},
		{"a test's id of a page", tests(fleet.TestSetting{ID: strings.Repeat("x", 129)}), "tests.0.id", "NAME_INVALID"},
		{"a test's id with NUL", tests(fleet.TestSetting{ID: "a\x00b"}), "tests.0.id", "TEXT_INVALID"},
		{"a test twice", tests(fleet.TestSetting{ID: "Cuda", Enable: true}, fleet.TestSetting{ID: "x"}, fleet.TestSetting{ID: "CUDA", Enable: true}), "tests.2.id", "DUPLICATE"},
		{"a test enabled and disabled", tests(fleet.TestSetting{ID: "Cuda", Enable: true}, fleet.TestSetting{ID: "cuda"}), "tests.1.id", "TEST_CONTRADICTORY"},
		{"a thousand and one tests", tests(slices.Repeat([]fleet.TestSetting{{}}, 1001)...), "tests", "LIST_TOO_LONG"},
		{"a registry with a scheme", registries("https://registry.example.com"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry with a path", registries("a.example", "registry.example.com/team"), "approvedPluginRegistries.1", "REGISTRY_INVALID"},
		{"a registry with a slash at its end", registries("registry.example.com/"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry with a user", registries("me@registry.example.com"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry of nothing", registries(""), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry with a wildcard", registries("*.example.com"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry with a blank", registries(" registry.example.com"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry with an empty label", registries("registry..com"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry with a long label", registries(long + ".com"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry of a page", registries(strings.Repeat("a.", 5000) + "com"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry without its port", registries("registry.example.com:"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry at port 0", registries("registry.example.com:0"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry at port 65536", registries("registry.example.com:65536"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry at a port with a zero before it", registries("registry.example.com:0443"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry of IPv4 in brackets", registries("[192.0.2.1]"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry with an open bracket", registries("[::1"), "approvedPluginRegistries.0", "REGISTRY_INVALID"},
		{"a registry twice", registries("Registry.example.com", "registry.EXAMPLE.com"), "approvedPluginRegistries.1", "DUPLICATE"},
		{"too many registries", registries(slices.Repeat([]string{"a"}, 101)...), "approvedPluginRegistries", "LIST_TOO_LONG"},
		{"a type of plugin that is none", plugins("script"), "allowedPluginTypes.0", "PLUGIN_TYPE_UNKNOWN"},
		{"a type of plugin in capitals", plugins("Container"), "allowedPluginTypes.0", "PLUGIN_TYPE_UNKNOWN"},
		{"a type of plugin twice", plugins("container", "container"), "allowedPluginTypes.1", "DUPLICATE"},
		{"no chunk", logs(0, 1), "attemptLogs.maxChunkBytes", "NUMBER_OUT_OF_RANGE"},
		{"a chunk too large", logs(16385, 1<<20), "attemptLogs.maxChunkBytes", "NUMBER_OUT_OF_RANGE"},
		{"no log", logs(1, 0), "attemptLogs.maxAttemptBytes", "NUMBER_OUT_OF_RANGE"},
		{"a log too large", logs(1, 1<<20+1), "attemptLogs.maxAttemptBytes", "NUMBER_OUT_OF_RANGE"},
		{"a chunk larger than its log", logs(11, 10), "attemptLogs.maxChunkBytes", "NUMBER_OUT_OF_RANGE"},
		{"a negative retention of logs", func(m *fleet.MachineValidation) { m.AttemptLogs.Retention = -1 }, "attemptLogs.retention", "DURATION_INVALID"},
		{"an empty argument", args(""), "containerArgs.0", "ARGUMENT_INVALID"},
		{"an argument with NUL", args("a", "b\x00"), "containerArgs.1", "ARGUMENT_INVALID"},
		{"an argument that is no text", args("\xff"), "containerArgs.0", "ARGUMENT_INVALID"},
		{"an argument of a page", args(strings.Repeat("x", 1025)), "containerArgs.0", "ARGUMENT_INVALID"},
		{"too many arguments", args(slices.Repeat([]string{"a"}, 101)...), "containerArgs", "LIST_TOO_LONG"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := fleet.DefaultMachineValidation()
			test.change(&m)
			_, err := m.Normalise()
			refusedFor(t, err, "machineValidation."+test.field, test.reason)
		})
	}
}

func TestWhatASiteMayHaveInMachineValidation(t *testing.T) {
	t.Parallel()
	m := fleet.MachineValidation{
		RunInterval: 1, StaleRunTimeout: fleet.Duration(fleet.MinStaleRunTimeout), HeartbeatTimeout: fleet.Duration(fleet.MinHeartbeatTimeout),
		Tests:                    []fleet.TestSetting{{ID: "a", Enable: true}, {ID: "b"}},
		ApprovedPluginRegistries: []string{"Registry.Example.COM:5000", "localhost", "192.0.2.1:443", "[2001:DB8::1]:5000", "[::1]"},
		AllowedPluginTypes:       []string{"container"},
		AttemptLogs:              fleet.AttemptLogs{Enabled: false, MaxChunkBytes: 99999, MaxAttemptBytes: -1},
		AllowPrivilegedPlugins:   true, AllowFullHostPlugins: true, ContainerArgs: []string{"--gpus=all", "-v", "/a b:/c"},
	}
	warnings, err := m.Normalise()
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, []string{"registry.example.com:5000", "localhost", "192.0.2.1:443", "[2001:db8::1]:5000", "[::1]"}, m.ApprovedPluginRegistries)
	m.AttemptLogs = fleet.AttemptLogs{Enabled: true, MaxChunkBytes: 1, MaxAttemptBytes: 1}
	m.HeartbeatTimeout = 0
	_, err = m.Normalise()
	require.NoError(t, err)
}

func TestWhatTakesEffectOtherwiseThanItWasGivenIsAWarning(t *testing.T) {
	t.Parallel()
	m := fleet.DefaultMachineValidation()
	m.StaleRunTimeout = fleet.Duration(30 * time.Second)
	m.ApprovedPluginRegistries = []string{"registry.example.com"}
	m.AllowedPluginTypes = []string{}
	m.AllowPrivilegedPlugins, m.AllowFullHostPlugins = true, true
	warnings, err := m.Normalise()
	require.NoError(t, err)
	require.Equal(t, []fleet.ConfigurationWarning{
		{Field: "machineValidation.staleRunTimeout", Message: "30s was raised to 1m30s, so that healthy runs do not fail between two heartbeats"},
		{Field: "machineValidation.approvedPluginRegistries", Message: "the registries are ignored: no type of plugin is allowed"},
		{Field: "machineValidation.allowPrivilegedPlugins", Message: "the permission is ignored: no type of plugin is allowed"},
		{Field: "machineValidation.allowFullHostPlugins", Message: "the permission is ignored: no type of plugin is allowed"},
	}, warnings)
	require.Equal(t, "1m30s", m.StaleRunTimeout.String())

	m.AllowedPluginTypes, m.ApprovedPluginRegistries = []string{"container"}, []string{}
	warnings, err = m.Normalise()
	require.NoError(t, err)
	require.Equal(t, []fleet.ConfigurationWarning{
		{Field: "machineValidation.allowPrivilegedPlugins", Message: "the permission is ignored: no registry is approved"},
		{Field: "machineValidation.allowFullHostPlugins", Message: "the permission is ignored: no registry is approved"},
	}, warnings)
}

func TestWhatABlockThatIsSwitchedOffSaysInVainIsAWarning(t *testing.T) {
	t.Parallel()
	b := fleet.DefaultBomValidation()
	b.IgnoreUnassignedMachines, b.AllowAllocationOnValidationFailure, b.AutoGenerateMissingSku = true, true, true
	m := fleet.DefaultMachineValidation()
	m.RebootBeforeValidation = true
	of, err := b.Check()
	require.NoError(t, err)
	warnings, err := m.Normalise()
	require.NoError(t, err)
	const message = "has no effect while enabled is false"
	require.Equal(t, []fleet.ConfigurationWarning{
		{Field: "bomValidation.ignoreUnassignedMachines", Message: message},
		{Field: "bomValidation.allowAllocationOnValidationFailure", Message: message},
		{Field: "bomValidation.autoGenerateMissingSku", Message: message},
		{Field: "machineValidation.rebootBeforeValidation", Message: message},
	}, append(of, warnings...))
	b.Enabled, m.Enabled = true, true
	of, err = b.Check()
	require.NoError(t, err)
	warnings, err = m.Normalise()
	require.NoError(t, err)
	require.Empty(t, append(of, warnings...))
}
