package fleet

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a site's configuration that are ours: they keep it readable.
const (
	// MinInterval is the shortest time between two periodic looks at one machine.
	MinInterval = time.Second
	// MinHeartbeatTimeout is three beats of an agent, which sends one every 30 s: a
	// lost one, and one that is late, do not end a run.
	MinHeartbeatTimeout  = 90 * time.Second
	maxTestSettings      = 1000
	maxRegistries        = 100
	maxContainerArgs     = 100
	maxContainerArgBytes = 1024
)

// ConfigurationWarning is a value of a site's configuration that takes effect
// otherwise than it was given, or not at all. Field is its path in the graph's input.
type ConfigurationWarning struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// withoutEffect is the warning of a value that its block's enabled switches off.
func withoutEffect(field string) ConfigurationWarning {
	return ConfigurationWarning{field, "has no effect while enabled is false"}
}

// Check returns INVALID_ARGUMENT for the first value that no site may have, and what
// has no effect.
func (b BomValidation) Check() ([]ConfigurationWarning, error) {
	const least = "is at least 1s"
	if time.Duration(b.FindMatchInterval) < MinInterval {
		return nil, Invalid("bomValidation.findMatchInterval", "DURATION_INVALID", "the interval %s; %s was given", least, b.FindMatchInterval)
	}
	if time.Duration(b.AutoGenerateMissingSkuInterval) < MinInterval {
		return nil, Invalid("bomValidation.autoGenerateMissingSkuInterval", "DURATION_INVALID", "the interval %s; %s was given", least, b.AutoGenerateMissingSkuInterval)
	}
	var warnings []ConfigurationWarning
	if b.Enabled {
		return warnings, nil
	}
	if b.IgnoreUnassignedMachines {
		warnings = append(warnings, withoutEffect("bomValidation.ignoreUnassignedMachines"))
	}
	if b.AllowAllocationOnValidationFailure {
		warnings = append(warnings, withoutEffect("bomValidation.allowAllocationOnValidationFailure"))
	}
	if b.AutoGenerateMissingSku {
		warnings = append(warnings, withoutEffect("bomValidation.autoGenerateMissingSku"))
	}
	return warnings, nil
}

// Normalise brings m into the form in which it takes effect: host names in lower
// case, a time-out that is too short raised. It returns INVALID_ARGUMENT for the
// first value that no site may have, and what takes effect otherwise than it was
// given. It changes m's lists in place.
func (m *MachineValidation) Normalise() ([]ConfigurationWarning, error) {
	for _, check := range []func() error{m.checkDurations, m.checkTests, m.normaliseRegistries, m.checkPluginTypes, m.AttemptLogs.check, m.checkContainerArgs} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	var warnings []ConfigurationWarning
	warn := func(field, format string, args ...any) {
		warnings = append(warnings, ConfigurationWarning{"machineValidation." + field, fmt.Sprintf(format, args...)})
	}
	if time.Duration(m.StaleRunTimeout) < MinStaleRunTimeout {
		warn("staleRunTimeout", "%s was raised to %s, so that healthy runs do not fail between two heartbeats", m.StaleRunTimeout, Duration(MinStaleRunTimeout))
		m.StaleRunTimeout = Duration(MinStaleRunTimeout)
	}
	if m.RebootBeforeValidation && !m.Enabled {
		warnings = append(warnings, withoutEffect("machineValidation.rebootBeforeValidation"))
	}
	var none string
	switch {
	case len(m.AllowedPluginTypes) == 0:
		none = "no type of plugin is allowed"
	case len(m.ApprovedPluginRegistries) == 0:
		none = "no registry is approved"
	default:
		return warnings, nil
	}
	if len(m.ApprovedPluginRegistries) > 0 {
		warn("approvedPluginRegistries", "the registries are ignored: %s", none)
	}
	if m.AllowPrivilegedPlugins {
		warn("allowPrivilegedPlugins", "the permission is ignored: %s", none)
	}
	if m.AllowFullHostPlugins {
		warn("allowFullHostPlugins", "the permission is ignored: %s", none)
	}
	return warnings, nil
}

func (m *MachineValidation) checkDurations() error {
	switch {
	case m.RunInterval <= 0:
		return Invalid("machineValidation.runInterval", "DURATION_INVALID", "the interval is more than 0s")
	case m.StaleRunTimeout < 0:
		return Invalid("machineValidation.staleRunTimeout", "DURATION_INVALID", "the time-out is at least 0s")
	case m.HeartbeatTimeout != 0 && time.Duration(m.HeartbeatTimeout) < MinHeartbeatTimeout:
		return Invalid("machineValidation.heartbeatTimeout", "DURATION_INVALID",
			"the time-out is 0s, which is for ever, or at least %s, which is three heartbeats; %s was given", Duration(MinHeartbeatTimeout), m.HeartbeatTimeout)
	case m.RunRetention < 0:
		return Invalid("machineValidation.runRetention", "DURATION_INVALID", "the retention is at least 0s")
	}
	return nil
}

// checkTests lets each test be named once, whatever the case of its letters.
func (m *MachineValidation) checkTests() error {
	if len(m.Tests) > maxTestSettings {
		return Invalid("machineValidation.tests", "LIST_TOO_LONG", "there are at most %d tests", maxTestSettings)
	}
	named := make(map[string]bool, len(m.Tests))
	for i, test := range m.Tests {
		field := fmt.Sprintf("machineValidation.tests.%d.id", i)
		if err := CheckName(field, test.ID); err != nil {
			return err
		}
		key := strings.ToLower(test.ID)
		enabled, again := named[key]
		if again && enabled != test.Enable {
			return Invalid(field, "TEST_CONTRADICTORY", "the test %s is both enabled and disabled", Quoted(test.ID))
		}
		if again {
			return Invalid(field, "DUPLICATE", "the test %s is named twice", Quoted(test.ID))
		}
		named[key] = test.Enable
	}
	return nil
}

// hostForm is a host name: labels of at most 63 characters, joined by dots.
var hostForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// isRegistry tells whether text is what stands before the first slash of an image's
// name: a host in lower case, with a port or not.
func isRegistry(text string) bool {
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, port = text[:i], text[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return false
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		address, err := netip.ParseAddr(inner)
		return closed && err == nil && address.Is6() && address.Zone() == ""
	}
	return len(host) <= 253 && hostForm.MatchString(host)
}

func (m *MachineValidation) normaliseRegistries() error {
	if len(m.ApprovedPluginRegistries) > maxRegistries {
		return Invalid("machineValidation.approvedPluginRegistries", "LIST_TOO_LONG", "there are at most %d registries", maxRegistries)
	}
	seen := make(map[string]bool, len(m.ApprovedPluginRegistries))
	for i, registry := range m.ApprovedPluginRegistries {
		field := fmt.Sprintf("machineValidation.approvedPluginRegistries.%d", i)
		host, err := NormaliseRegistry(field, registry)
		if err != nil {
			return err
		}
		if seen[host] {
			return Invalid(field, "DUPLICATE", "the registry %s is named twice", host)
		}
		seen[host] = true
		m.ApprovedPluginRegistries[i] = host
	}
	return nil
}

func (m *MachineValidation) checkPluginTypes() error {
	for i, kind := range m.AllowedPluginTypes {
		field := fmt.Sprintf("machineValidation.allowedPluginTypes.%d", i)
		if kind != PluginTypeContainer {
			return Invalid(field, "PLUGIN_TYPE_UNKNOWN", "%s is no type of plugin; the only one is %s", Quoted(kind), PluginTypeContainer)
		}
		if i > 0 {
			return Invalid(field, "DUPLICATE", "the type %s is named twice", kind)
		}
	}
	return nil
}

// check leaves the limits of logs that are not kept alone (the guide, Site
// Configuration).
func (l AttemptLogs) check() error {
	const path = "machineValidation.attemptLogs."
	if l.Retention < 0 {
		return Invalid(path+"retention", "DURATION_INVALID", "the retention is at least 0s")
	}
	switch {
	case !l.Enabled:
		return nil
	case l.MaxChunkBytes < 1 || l.MaxChunkBytes > MaxLogChunkBytes:
		return Invalid(path+"maxChunkBytes", "NUMBER_OUT_OF_RANGE", "a chunk has 1 to %d bytes; %d was given", MaxLogChunkBytes, l.MaxChunkBytes)
	case l.MaxAttemptBytes < 1 || l.MaxAttemptBytes > MaxLogAttemptBytes:
		return Invalid(path+"maxAttemptBytes", "NUMBER_OUT_OF_RANGE", "the log of an attempt has 1 to %d bytes; %d was given", MaxLogAttemptBytes, l.MaxAttemptBytes)
	case l.MaxChunkBytes > l.MaxAttemptBytes:
		return Invalid(path+"maxChunkBytes", "NUMBER_OUT_OF_RANGE", "a chunk of %d bytes is larger than the log of an attempt, %d", l.MaxChunkBytes, l.MaxAttemptBytes)
	}
	return nil
}

func (m *MachineValidation) checkContainerArgs() error {
	if len(m.ContainerArgs) > maxContainerArgs {
		return Invalid("machineValidation.containerArgs", "LIST_TOO_LONG", "there are at most %d arguments", maxContainerArgs)
	}
	for i, arg := range m.ContainerArgs {
		field := fmt.Sprintf("machineValidation.containerArgs.%d", i)
		switch {
		case arg == "":
			return Invalid(field, "ARGUMENT_INVALID", "an argument is not empty")
		case len(arg) > maxContainerArgBytes:
			return Invalid(field, "ARGUMENT_INVALID", "an argument has at most %d bytes", maxContainerArgBytes)
		case strings.ContainsRune(arg, 0) || !utf8.ValidString(arg):
			return Invalid(field, "ARGUMENT_INVALID", "an argument is text without NUL")
		}
	}
	return nil
}
