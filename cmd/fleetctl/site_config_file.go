package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

// siteConfig is a site's configuration in the form of its file: the guides' blocks,
// with their keys and words.
type siteConfig struct {
	Bom     bomBlock     `toml:"bom_validation" json:"bom_validation"`
	Machine machineBlock `toml:"machine_validation_config" json:"machine_validation_config"`
}

// The names of the blocks.
const (
	bomBlockName     = "bom_validation"
	machineBlockName = "machine_validation_config"
)

type bomBlock struct {
	Enabled                            bool         `toml:"enabled" json:"enabled"`
	IgnoreUnassignedMachines           bool         `toml:"ignore_unassigned_machines" json:"ignore_unassigned_machines"`
	AllowAllocationOnValidationFailure bool         `toml:"allow_allocation_on_validation_failure" json:"allow_allocation_on_validation_failure"`
	FindMatchInterval                  durationText `toml:"find_match_interval" json:"find_match_interval"`
	AutoGenerateMissingSku             bool         `toml:"auto_generate_missing_sku" json:"auto_generate_missing_sku"`
	AutoGenerateMissingSkuInterval     durationText `toml:"auto_generate_missing_sku_interval" json:"auto_generate_missing_sku_interval"`
}

type machineBlock struct {
	Enabled                  bool          `toml:"enabled" json:"enabled"`
	TestSelectionMode        selectionWord `toml:"test_selection_mode" json:"test_selection_mode"`
	RunInterval              durationText  `toml:"run_interval" json:"run_interval"`
	StaleRunTimeout          durationText  `toml:"stale_run_timeout" json:"stale_run_timeout"`
	Tests                    []testSetting `toml:"tests" json:"tests"`
	ApprovedPluginRegistries []string      `toml:"approved_plugin_registries" json:"approved_plugin_registries"`
	AllowedPluginTypes       []string      `toml:"allowed_plugin_types" json:"allowed_plugin_types"`
	AllowPrivilegedPlugins   bool          `toml:"allow_privileged_plugins" json:"allow_privileged_plugins"`
	AllowFullHostPlugins     bool          `toml:"allow_full_host_plugins" json:"allow_full_host_plugins"`
	RequireTests             bool          `toml:"require_tests" json:"require_tests"`
	HeartbeatTimeout         durationText  `toml:"heartbeat_timeout" json:"heartbeat_timeout"`
	RunRetention             durationText  `toml:"run_retention" json:"run_retention"`
	RebootBeforeValidation   bool          `toml:"reboot_before_validation" json:"reboot_before_validation"`
	Cleanup                  cleanupWord   `toml:"cleanup" json:"cleanup"`
	ContainerArgs            []string      `toml:"container_args" json:"container_args"`
	AttemptLogs              attemptLogs   `toml:"attempt_logs" json:"attempt_logs"`
}

type testSetting struct {
	ID     string `toml:"id" json:"id"`
	Enable bool   `toml:"enable" json:"enable"`
}

type attemptLogs struct {
	Enabled         bool         `toml:"enabled" json:"enabled"`
	MaxChunkBytes   int          `toml:"max_chunk_bytes" json:"max_chunk_bytes"`
	MaxAttemptBytes int          `toml:"max_attempt_bytes" json:"max_attempt_bytes"`
	Retention       durationText `toml:"retention" json:"retention"`
}

// These are structs since go-toml asks only such types how they read a text.

// durationText is a length of time; a number is refused.
type durationText struct{ fleet.Duration }

// selectionWord is a test selection mode in the guide's spelling.
type selectionWord struct{ fleet.TestSelectionMode }

// cleanupWord is a cleanup mode as the file spells it.
type cleanupWord struct{ fleet.CleanupMode }

// words pairs what a file says with what the graph says.
type words [][2]string

func (w words) read(text []byte) (string, error) {
	known := make([]string, len(w))
	for i, pair := range w {
		if pair[0] == string(text) {
			return pair[1], nil
		}
		known[i] = strconv.Quote(pair[0])
	}
	return "", fmt.Errorf("%q is none of %s", text, strings.Join(known, ", "))
}

func (w words) write(value string) ([]byte, error) {
	for _, pair := range w {
		if pair[1] == value {
			return []byte(pair[0]), nil
		}
	}
	return []byte(value), nil // of a newer server
}

func selectionWords() words {
	return words{
		{"Default", string(fleet.SelectDefault)}, {"EnableAll", string(fleet.SelectEnableAll)}, {"DisableAll", string(fleet.SelectDisableAll)},
	}
}

func cleanupWords() words {
	return words{{"none", string(fleet.CleanupNone)}, {"agent", string(fleet.CleanupAgent)}}
}

// UnmarshalText reads the guide's spelling.
func (s *selectionWord) UnmarshalText(text []byte) error {
	word, err := selectionWords().read(text)
	s.TestSelectionMode = fleet.TestSelectionMode(word)
	return err
}

// MarshalText writes it.
func (s selectionWord) MarshalText() ([]byte, error) {
	return selectionWords().write(string(s.TestSelectionMode))
}

// UnmarshalText reads the file's spelling.
func (c *cleanupWord) UnmarshalText(text []byte) error {
	word, err := cleanupWords().read(text)
	c.CleanupMode = fleet.CleanupMode(word)
	return err
}

// MarshalText writes it.
func (c cleanupWord) MarshalText() ([]byte, error) {
	return cleanupWords().write(string(c.CleanupMode))
}

// defaultConfig is the configuration of a site that sets nothing.
func defaultConfig() siteConfig {
	b, m := fleet.DefaultBomValidation(), fleet.DefaultMachineValidation()
	return siteConfig{Bom: bomFile(b), Machine: machineBlock{
		Enabled: m.Enabled, TestSelectionMode: selectionWord{m.TestSelectionMode}, RunInterval: durationText{m.RunInterval},
		StaleRunTimeout: durationText{m.StaleRunTimeout}, Tests: []testSetting{}, ApprovedPluginRegistries: m.ApprovedPluginRegistries,
		AllowedPluginTypes: m.AllowedPluginTypes, AllowPrivilegedPlugins: m.AllowPrivilegedPlugins,
		AllowFullHostPlugins: m.AllowFullHostPlugins, RequireTests: m.RequireTests, HeartbeatTimeout: durationText{m.HeartbeatTimeout},
		RunRetention: durationText{m.RunRetention}, RebootBeforeValidation: m.RebootBeforeValidation, Cleanup: cleanupWord{m.Cleanup},
		ContainerArgs: m.ContainerArgs, AttemptLogs: logsFile(m.AttemptLogs),
	}}
}

func bomFile(b fleet.BomValidation) bomBlock {
	return bomBlock{
		b.Enabled, b.IgnoreUnassignedMachines, b.AllowAllocationOnValidationFailure,
		durationText{b.FindMatchInterval},
		b.AutoGenerateMissingSku,
		durationText{b.AutoGenerateMissingSkuInterval},
	}
}

func logsFile(l fleet.AttemptLogs) attemptLogs {
	return attemptLogs{l.Enabled, l.MaxChunkBytes, l.MaxAttemptBytes, durationText{l.Retention}}
}

// keySet is the keys that a file has, by block.
type keySet map[string]any

// block is the keys of a block below; nil where the file lacks it.
func (k keySet) block(name string) keySet {
	inner, _ := k[name].(map[string]any)
	return inner
}

// given is the value where the file has the key, and otherwise nothing, which is the
// server's default.
func given[T any](k keySet, key string, value *T) *T {
	if _, ok := k[key]; ok {
		return value
	}
	return nil
}

// parseConfig reads a file and tells which keys it has. A block that it has is the
// whole of that block, so that keys it lacks have their default.
func parseConfig(data []byte) (config siteConfig, keys keySet, err error) {
	var tables map[string]any
	if err := toml.Unmarshal(data, &tables); err != nil {
		return config, nil, tomlError(err)
	}
	if err := checkTexts(tables); err != nil {
		return config, nil, err
	}
	config = defaultConfig()
	decoder := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	return config, tables, tomlError(decoder.Decode(&config))
}

// textKeys are the keys whose values are texts of a form, which the decoder would
// refuse without naming the key.
func textKeys() map[string]func(string) error {
	duration := func(text string) error { return new(fleet.Duration).UnmarshalText([]byte(text)) }
	word := func(w words) func(string) error {
		return func(text string) error {
			_, err := w.read([]byte(text))
			return err
		}
	}
	return map[string]func(string) error{
		bomBlockName + ".find_match_interval":                duration,
		bomBlockName + ".auto_generate_missing_sku_interval": duration,
		machineBlockName + ".run_interval":                   duration,
		machineBlockName + ".stale_run_timeout":              duration,
		machineBlockName + ".heartbeat_timeout":              duration,
		machineBlockName + ".run_retention":                  duration,
		machineBlockName + ".attempt_logs.retention":         duration,
		machineBlockName + ".test_selection_mode":            word(selectionWords()),
		machineBlockName + ".cleanup":                        word(cleanupWords()),
	}
}

// capital finds a key that is not in lower case, which the decoder would take for one
// that is.
func capital(prefix string, table map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		key := strings.TrimPrefix(prefix+"."+name, ".")
		if name != strings.ToLower(name) {
			return key
		}
		items, _ := table[name].([]any)
		for _, item := range append(items, table[name]) {
			if inner, ok := item.(map[string]any); ok {
				if found := capital(key, inner); found != "" {
					return found
				}
			}
		}
	}
	return ""
}

func checkTexts(tables map[string]any) error {
	if key := capital("", tables); key != "" {
		return fmt.Errorf("unknown key %s: keys are in lower case", key)
	}
	keys := textKeys()
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		var value any = tables
		for part := range strings.SplitSeq(key, ".") {
			table, _ := value.(map[string]any)
			value = table[part]
		}
		if value == nil {
			continue
		}
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("%s: %v is no text", key, value)
		}
		if err := keys[key](text); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// tomlError says what is wrong with a file by key and line.
func tomlError(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		texts := make([]string, len(unknown.Errors))
		for i := range unknown.Errors {
			line, _ := unknown.Errors[i].Position()
			texts[i] = fmt.Sprintf("line %d: unknown key %s", line, strings.Join(unknown.Errors[i].Key(), "."))
		}
		return errors.New(strings.Join(texts, "\n"))
	}
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, column := wrong.Position()
		text := strings.TrimPrefix(wrong.Error(), "toml: ")
		if key := strings.Join(wrong.Key(), "."); key != "" {
			return fmt.Errorf("line %d: %s: %s", line, key, text)
		}
		return fmt.Errorf("line %d, column %d: %s", line, column, text)
	}
	return err
}

// toml writes the configuration as a file that parseConfig reads back.
func (c siteConfig) toml() (string, error) {
	var b strings.Builder
	write := func(key string, value any) error {
		text, err := tomlValue(value)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(&b, "%s = %s\n", key, text)
		return err
	}
	var faults []error
	table := func(name string, values ...any) {
		fmt.Fprintf(&b, "[%s]\n", name)
		for i := 0; i < len(values); i += 2 {
			key, _ := values[i].(string)
			faults = append(faults, write(key, values[i+1]))
		}
	}
	bom, m, logs := c.Bom, c.Machine, c.Machine.AttemptLogs
	table(bomBlockName,
		"enabled", bom.Enabled, "ignore_unassigned_machines", bom.IgnoreUnassignedMachines,
		"allow_allocation_on_validation_failure", bom.AllowAllocationOnValidationFailure,
		"find_match_interval", bom.FindMatchInterval, "auto_generate_missing_sku", bom.AutoGenerateMissingSku,
		"auto_generate_missing_sku_interval", bom.AutoGenerateMissingSkuInterval)
	b.WriteByte('\n')
	table(machineBlockName,
		"enabled", m.Enabled, "test_selection_mode", m.TestSelectionMode, "run_interval", m.RunInterval,
		"stale_run_timeout", m.StaleRunTimeout, "tests", m.Tests, "approved_plugin_registries", m.ApprovedPluginRegistries,
		"allowed_plugin_types", m.AllowedPluginTypes, "allow_privileged_plugins", m.AllowPrivilegedPlugins,
		"allow_full_host_plugins", m.AllowFullHostPlugins, "require_tests", m.RequireTests,
		"heartbeat_timeout", m.HeartbeatTimeout, "run_retention", m.RunRetention,
		"reboot_before_validation", m.RebootBeforeValidation, "cleanup", m.Cleanup, "container_args", m.ContainerArgs)
	b.WriteByte('\n')
	table(machineBlockName+".attempt_logs",
		"enabled", logs.Enabled, "max_chunk_bytes", logs.MaxChunkBytes, "max_attempt_bytes", logs.MaxAttemptBytes,
		"retention", logs.Retention)
	return b.String(), errors.Join(faults...)
}

// tomlValue writes a value. Strings and numbers have the form of JSON, whose escapes
// TOML knows too.
func tomlValue(value any) (string, error) {
	switch value := value.(type) {
	case []string:
		texts := make([]string, len(value))
		for i := range value {
			text, err := json.Marshal(value[i])
			if err != nil {
				return "", err
			}
			texts[i] = string(text)
		}
		return "[" + strings.Join(texts, ", ") + "]", nil
	case []testSetting:
		if len(value) == 0 {
			return "[]", nil
		}
		var b strings.Builder
		b.WriteString("[\n")
		for _, test := range value {
			id, err := json.Marshal(test.ID)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "  { id = %s, enable = %t },\n", id, test.Enable)
		}
		b.WriteString("]")
		return b.String(), nil
	default:
		text, err := json.Marshal(value)
		return string(text), err
	}
}

// flat is the configuration as values by their full keys.
func (c siteConfig) flat() (map[string]string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	out := map[string]string{}
	var walk func(prefix string, value any) error
	walk = func(prefix string, value any) error {
		if table, ok := value.(map[string]any); ok {
			for key, inner := range table {
				if err := walk(strings.TrimPrefix(prefix+"."+key, "."), inner); err != nil {
					return err
				}
			}
			return nil
		}
		text, err := json.Marshal(value)
		out[prefix] = string(text)
		return err
	}
	return out, walk("", tree)
}

// configKey is the file's key of a path in the graph.
func configKey(path string) string {
	var b strings.Builder
	for _, r := range path {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	key := b.String()
	if rest, ok := strings.CutPrefix(key, "machine_validation"); ok {
		return machineBlockName + rest
	}
	return key
}

// configOf is the configuration as the server tells it.
func configOf(s client.SiteConfig) (siteConfig, error) {
	b, m := s.BomValidation, s.MachineValidation
	var faults []error
	duration := func(text string) durationText {
		var d durationText
		faults = append(faults, d.UnmarshalText([]byte(text)))
		return d
	}
	c := siteConfig{
		Bom: bomBlock{
			Enabled: b.Enabled, IgnoreUnassignedMachines: b.IgnoreUnassignedMachines,
			AllowAllocationOnValidationFailure: b.AllowAllocationOnValidationFailure,
			FindMatchInterval:                  duration(b.FindMatchInterval), AutoGenerateMissingSku: b.AutoGenerateMissingSku,
			AutoGenerateMissingSkuInterval: duration(b.AutoGenerateMissingSkuInterval),
		},
		Machine: machineBlock{
			Enabled: m.Enabled, TestSelectionMode: selectionWord{m.TestSelectionMode}, RunInterval: duration(m.RunInterval),
			StaleRunTimeout: duration(m.StaleRunTimeout), Tests: []testSetting{}, ApprovedPluginRegistries: list(m.ApprovedPluginRegistries),
			AllowedPluginTypes: list(m.AllowedPluginTypes), AllowPrivilegedPlugins: m.AllowPrivilegedPlugins,
			AllowFullHostPlugins: m.AllowFullHostPlugins, RequireTests: m.RequireTests, HeartbeatTimeout: duration(m.HeartbeatTimeout),
			RunRetention: duration(m.RunRetention), RebootBeforeValidation: m.RebootBeforeValidation, Cleanup: cleanupWord{m.Cleanup},
			ContainerArgs: list(m.ContainerArgs), AttemptLogs: attemptLogs{
				Enabled: m.AttemptLogs.Enabled, MaxChunkBytes: m.AttemptLogs.MaxChunkBytes,
				MaxAttemptBytes: m.AttemptLogs.MaxAttemptBytes, Retention: duration(m.AttemptLogs.Retention),
			},
		},
	}
	for _, test := range m.Tests {
		c.Machine.Tests = append(c.Machine.Tests, testSetting{test.Id, test.Enable})
	}
	return c, errors.Join(faults...)
}

// input is the blocks of a file as the server takes them.
func (c siteConfig) input(keys keySet) (*client.BomValidationInput, *client.MachineValidationInput) {
	var bom *client.BomValidationInput
	var machine *client.MachineValidationInput
	text := func(k keySet, key string, d durationText) *string { return given(k, key, new(d.String())) }
	if k, b := keys.block(bomBlockName), c.Bom; k != nil {
		bom = &client.BomValidationInput{
			Enabled:                            given(k, "enabled", &b.Enabled),
			IgnoreUnassignedMachines:           given(k, "ignore_unassigned_machines", &b.IgnoreUnassignedMachines),
			AllowAllocationOnValidationFailure: given(k, "allow_allocation_on_validation_failure", &b.AllowAllocationOnValidationFailure),
			FindMatchInterval:                  text(k, "find_match_interval", b.FindMatchInterval),
			AutoGenerateMissingSku:             given(k, "auto_generate_missing_sku", &b.AutoGenerateMissingSku),
			AutoGenerateMissingSkuInterval:     text(k, "auto_generate_missing_sku_interval", b.AutoGenerateMissingSkuInterval),
		}
	}
	if k, m := keys.block(machineBlockName), c.Machine; k != nil {
		machine = &client.MachineValidationInput{
			Enabled:                given(k, "enabled", &m.Enabled),
			TestSelectionMode:      given(k, "test_selection_mode", &m.TestSelectionMode.TestSelectionMode),
			RunInterval:            text(k, "run_interval", m.RunInterval),
			StaleRunTimeout:        text(k, "stale_run_timeout", m.StaleRunTimeout),
			AllowPrivilegedPlugins: given(k, "allow_privileged_plugins", &m.AllowPrivilegedPlugins),
			AllowFullHostPlugins:   given(k, "allow_full_host_plugins", &m.AllowFullHostPlugins),
			RequireTests:           given(k, "require_tests", &m.RequireTests),
			HeartbeatTimeout:       text(k, "heartbeat_timeout", m.HeartbeatTimeout),
			RunRetention:           text(k, "run_retention", m.RunRetention),
			RebootBeforeValidation: given(k, "reboot_before_validation", &m.RebootBeforeValidation),
			Cleanup:                given(k, "cleanup", &m.Cleanup.CleanupMode),
			AttemptLogs:            m.AttemptLogs.input(k.block("attempt_logs")),
		}
		for key, lists := range map[string]struct {
			to   *[]string
			from []string
		}{
			"approved_plugin_registries": {&machine.ApprovedPluginRegistries, m.ApprovedPluginRegistries},
			"allowed_plugin_types":       {&machine.AllowedPluginTypes, m.AllowedPluginTypes},
			"container_args":             {&machine.ContainerArgs, m.ContainerArgs},
		} {
			if _, ok := k[key]; ok {
				*lists.to = list(lists.from)
			}
		}
		if _, ok := k["tests"]; ok {
			machine.Tests = []client.TestSettingInput{}
		}
		for _, test := range m.Tests {
			machine.Tests = append(machine.Tests, client.TestSettingInput{Id: test.ID, Enable: test.Enable})
		}
	}
	return bom, machine
}

// input is the table as the server takes it; nil where the file lacks it.
func (l attemptLogs) input(k keySet) *client.AttemptLogsInput {
	if k == nil {
		return nil
	}
	return &client.AttemptLogsInput{
		Enabled: given(k, "enabled", &l.Enabled), MaxChunkBytes: given(k, "max_chunk_bytes", &l.MaxChunkBytes),
		MaxAttemptBytes: given(k, "max_attempt_bytes", &l.MaxAttemptBytes), Retention: given(k, "retention", new(l.Retention.String())),
	}
}
