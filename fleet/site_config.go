package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Duration is a length of time that reads and writes itself in Go's form plus d,
// such as 90s, 24h or 30d; see ParseDuration.
type Duration time.Duration

// String is the form that ParseDuration reads.
func (d Duration) String() string { return FormatDuration(time.Duration(d)) }

// MarshalText writes the form that ParseDuration reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads it.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// MarshalGQL writes the GraphQL form.
func (d Duration) MarshalGQL(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(d.String())) }

// UnmarshalGQL reads the GraphQL form.
func (d *Duration) UnmarshalGQL(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("a Duration is a string such as 90s, 24h or 30d, not %v", v)
	}
	return d.UnmarshalText([]byte(s))
}

// BomValidation is a site's block bom_validation (the guide, Configuration).
type BomValidation struct {
	// Enabled: otherwise machines skip BOM validation and go on as if all had passed.
	Enabled bool `json:"enabled"`
	// IgnoreUnassignedMachines: a machine without a SKU that matches none goes on. It
	// concerns no machine with a SKU.
	IgnoreUnassignedMachines bool `json:"ignore_unassigned_machines"`
	// AllowAllocationOnValidationFailure: a machine with a SKU goes on although its
	// hardware differs or the SKU is missing; that is recorded and no alert raised. It
	// concerns no machine without a SKU.
	AllowAllocationOnValidationFailure bool `json:"allow_allocation_on_validation_failure"`
	// FindMatchInterval is the shortest time between two periodic attempts to match one
	// machine that found nothing.
	FindMatchInterval Duration `json:"find_match_interval"`
	// AutoGenerateMissingSku creates a SKU that an expected machine names and that does
	// not exist from the first such machine.
	AutoGenerateMissingSku bool `json:"auto_generate_missing_sku"`
	// AutoGenerateMissingSkuInterval is the shortest time between two attempts to do so
	// for one machine.
	AutoGenerateMissingSkuInterval Duration `json:"auto_generate_missing_sku_interval"`
}

// DefaultBomValidation is the block of a site that sets nothing.
func DefaultBomValidation() BomValidation {
	return BomValidation{
		FindMatchInterval:              Duration(300 * time.Second),
		AutoGenerateMissingSkuInterval: Duration(300 * time.Second),
	}
}

// TestSelectionMode says which tests of the catalog a site has enabled.
type TestSelectionMode string

// The test selection modes.
const (
	SelectDefault    TestSelectionMode = "DEFAULT"     // the catalog's own settings, but for the tests that the site names
	SelectEnableAll  TestSelectionMode = "ENABLE_ALL"  // all, but for the tests that the site names
	SelectDisableAll TestSelectionMode = "DISABLE_ALL" // none, but for the tests that the site names
)

// Values lists the modes.
func (TestSelectionMode) Values() []string {
	return []string{string(SelectDefault), string(SelectEnableAll), string(SelectDisableAll)}
}

// MarshalGQL writes the GraphQL form.
func (m TestSelectionMode) MarshalGQL(w io.Writer) { marshalEnum(w, m) }

// UnmarshalGQL reads the GraphQL form.
func (m *TestSelectionMode) UnmarshalGQL(v any) error { return unmarshalEnum(m, v, m.Values()) }

// CleanupMode says who cleans a machine that was released.
type CleanupMode string

// The cleanup modes.
const (
	CleanupNone  CleanupMode = "NONE"  // nobody: CLEANUP passes at once
	CleanupAgent CleanupMode = "AGENT" // the agent on the machine, as a work item
)

// Values lists the modes.
func (CleanupMode) Values() []string { return []string{string(CleanupNone), string(CleanupAgent)} }

// MarshalGQL writes the GraphQL form.
func (m CleanupMode) MarshalGQL(w io.Writer) { marshalEnum(w, m) }

// UnmarshalGQL reads the GraphQL form.
func (m *CleanupMode) UnmarshalGQL(v any) error { return unmarshalEnum(m, v, m.Values()) }

// TestSetting enables or disables one test at a site, by its id or name.
type TestSetting struct {
	ID     string `json:"id"`
	Enable bool   `json:"enable"`
}

// AttemptLogs is how a site keeps the logs of attempts.
type AttemptLogs struct {
	Enabled         bool     `json:"enabled"`
	MaxChunkBytes   int      `json:"max_chunk_bytes"`
	MaxAttemptBytes int      `json:"max_attempt_bytes"`
	Retention       Duration `json:"retention"` // after the attempt ended; 0 keeps nothing beyond the next sweep
}

// MachineValidation is a site's block machine_validation_config (the guide, Site
// Configuration), with the keys that are ours: RequireTests, HeartbeatTimeout,
// RunRetention, RebootBeforeValidation, Cleanup and ContainerArgs.
type MachineValidation struct {
	Enabled                  bool              `json:"enabled"`
	TestSelectionMode        TestSelectionMode `json:"test_selection_mode"`
	RunInterval              Duration          `json:"run_interval"`
	StaleRunTimeout          Duration          `json:"stale_run_timeout"` // at least 90 s, see MinStaleRunTimeout
	Tests                    []TestSetting     `json:"tests"`
	ApprovedPluginRegistries []string          `json:"approved_plugin_registries"`
	AllowedPluginTypes       []string          `json:"allowed_plugin_types"`
	AllowPrivilegedPlugins   bool              `json:"allow_privileged_plugins"`
	AllowFullHostPlugins     bool              `json:"allow_full_host_plugins"`
	AttemptLogs              AttemptLogs       `json:"attempt_logs"`
	RequireTests             bool              `json:"require_tests"`            // a run that selects nothing fails
	HeartbeatTimeout         Duration          `json:"heartbeat_timeout"`        // 0: off
	RunRetention             Duration          `json:"run_retention"`            // 0: kept for ever
	RebootBeforeValidation   bool              `json:"reboot_before_validation"` // VALIDATING begins with a reboot
	Cleanup                  CleanupMode       `json:"cleanup"`
	ContainerArgs            []string          `json:"container_args"`
}

// Bounds of a site's machine validation (the guide, Site Configuration).
const (
	MinStaleRunTimeout  = 90 * time.Second
	MaxLogChunkBytes    = 16 << 10
	MaxLogAttemptBytes  = 1 << 20
	PluginTypeContainer = "container"
	defaultRunInterval  = 60 * time.Second
	defaultStaleRun     = 24 * time.Hour
	defaultHeartbeat    = 5 * time.Minute
	defaultLogRetention = 30 * 24 * time.Hour
)

// DefaultMachineValidation is the block of a site that sets nothing.
func DefaultMachineValidation() MachineValidation {
	return MachineValidation{
		TestSelectionMode: SelectDefault, RunInterval: Duration(defaultRunInterval), StaleRunTimeout: Duration(defaultStaleRun),
		Tests: []TestSetting{}, ApprovedPluginRegistries: []string{}, AllowedPluginTypes: []string{PluginTypeContainer},
		AttemptLogs: AttemptLogs{
			Enabled: true, MaxChunkBytes: MaxLogChunkBytes, MaxAttemptBytes: MaxLogAttemptBytes, Retention: Duration(defaultLogRetention),
		},
		HeartbeatTimeout: Duration(defaultHeartbeat), Cleanup: CleanupNone, ContainerArgs: []string{},
	}
}

// Clone copies m with its lists.
func (m MachineValidation) Clone() MachineValidation {
	m.Tests = slices.Clone(m.Tests)
	m.ApprovedPluginRegistries = slices.Clone(m.ApprovedPluginRegistries)
	m.AllowedPluginTypes = slices.Clone(m.AllowedPluginTypes)
	m.ContainerArgs = slices.Clone(m.ContainerArgs)
	return m
}

// UnmarshalJSON reads a stored block; what it does not have is the default, so that
// a key may be added without touching what is stored.
func (b *BomValidation) UnmarshalJSON(data []byte) error {
	type plain BomValidation
	out := plain(DefaultBomValidation())
	err := json.Unmarshal(data, &out)
	*b = BomValidation(out)
	return err
}

// UnmarshalJSON reads a stored block; what it does not have is the default.
func (m *MachineValidation) UnmarshalJSON(data []byte) error {
	type plain MachineValidation
	out := plain(DefaultMachineValidation())
	err := json.Unmarshal(data, &out)
	*m = MachineValidation(out)
	return err
}
