package fleet

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Bounds of a site's configuration beyond the guides'.
const (
	minBomInterval      = time.Second
	minHeartbeatTimeout = 90 * time.Second // three beats of 30 s
	maxConfigList       = 200
	maxConfigText       = 256
)

// ConfigWarning is a value of a site's configuration that takes effect otherwise
// than it was given. Field is its path in the graph's input.
type ConfigWarning struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Check returns INVALID_ARGUMENT, with the field's path in the graph's input, for
// what the block must not say.
func (b BomValidation) Check() error {
	if err := checkInterval("bomValidation.findMatchInterval", b.FindMatchInterval); err != nil {
		return err
	}
	return checkInterval("bomValidation.autoGenerateMissingSkuInterval", b.AutoGenerateMissingSkuInterval)
}

func checkInterval(field string, d Duration) error {
	if time.Duration(d) < minBomInterval {
		return Invalid(field, "DURATION_INVALID", "an interval is at least %s, not %s", Duration(minBomInterval), d)
	}
	return nil
}

// Normalise checks the block as Check does, brings it into the form in which it takes
// effect, and returns what that changed or leaves without effect.
func (m *MachineValidation) Normalise() ([]ConfigWarning, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	warnings := []ConfigWarning{}
	warn := func(field, message string) {
		warnings = append(warnings, ConfigWarning{"machineValidation." + field, message})
	}
	if time.Duration(m.StaleRunTimeout) < MinStaleRunTimeout {
		warn("staleRunTimeout", "raised from "+m.StaleRunTimeout.String()+" to "+Duration(MinStaleRunTimeout).String()+
			", so that healthy runs are not failed between heartbeats")
		m.StaleRunTimeout = Duration(MinStaleRunTimeout)
	}
	for i, r := range m.ApprovedPluginRegistries {
		m.ApprovedPluginRegistries[i] = strings.ToLower(r)
	}
	if len(m.ApprovedPluginRegistries) > 0 && len(m.AllowedPluginTypes) == 0 {
		warn("approvedPluginRegistries", "has no effect while allowedPluginTypes is empty: no plugin can be registered")
	}
	if len(m.ApprovedPluginRegistries) == 0 && (m.AllowPrivilegedPlugins || m.AllowFullHostPlugins) {
		warn("approvedPluginRegistries", "is empty: no plugin can be registered, whatever else is allowed")
	}
	return warnings, nil
}

// registryForm is a host name or address with an optional port, as an image names it.
var registryForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

func (m *MachineValidation) check() error {
	const block = "machineValidation."
	if m.RunInterval <= 0 {
		return Invalid(block+"runInterval", "DURATION_INVALID", "an interval is more than 0s")
	}
	if h := time.Duration(m.HeartbeatTimeout); h != 0 && h < minHeartbeatTimeout {
		return Invalid(block+"heartbeatTimeout", "DURATION_INVALID", "a heartbeat time-out is 0s, for none, or at least %s", Duration(minHeartbeatTimeout))
	}
	if err := m.AttemptLogs.check(block + "attemptLogs."); err != nil {
		return err
	}
	if err := checkTests(block+"tests", m.Tests); err != nil {
		return err
	}
	err := checkList(block+"approvedPluginRegistries", m.ApprovedPluginRegistries, func(registry string) string {
		if !registryForm.MatchString(strings.ToLower(registry)) {
			return Quoted(registry) + " is not the host name of a registry, such as registry.example.com or localhost:5000"
		}
		return ""
	})
	if err != nil {
		return err
	}
	err = checkList(block+"allowedPluginTypes", m.AllowedPluginTypes, func(kind string) string {
		if kind != PluginTypeContainer {
			return Quoted(kind) + " is no type of plugin; " + PluginTypeContainer + " is"
		}
		return ""
	})
	if err != nil {
		return err
	}
	return checkArguments(block+"containerArgs", m.ContainerArgs)
}

func (l AttemptLogs) check(block string) error {
	switch {
	case !l.Enabled:
		return nil // its limits have no effect
	case l.MaxChunkBytes < 1 || l.MaxChunkBytes > MaxLogChunkBytes:
		return Invalid(block+"maxChunkBytes", "NUMBER_OUT_OF_RANGE", "a chunk has 1 to %d bytes", MaxLogChunkBytes)
	case l.MaxAttemptBytes < 1 || l.MaxAttemptBytes > MaxLogAttemptBytes:
		return Invalid(block+"maxAttemptBytes", "NUMBER_OUT_OF_RANGE", "the log of an attempt has 1 to %d bytes", MaxLogAttemptBytes)
	case l.MaxChunkBytes > l.MaxAttemptBytes:
		return Invalid(block+"maxChunkBytes", "LIMITS_CONTRADICT", "a chunk of %d bytes does not fit into a log of %d (maxAttemptBytes)", l.MaxChunkBytes, l.MaxAttemptBytes)
	}
	return nil
}

// checkTests: ids are compared without regard to case.
func checkTests(field string, tests []TestSetting) error {
	if len(tests) > maxConfigList {
		return Invalid(field, "LIST_TOO_LONG", "at most %d tests can be set", maxConfigList)
	}
	first := make(map[string]int, len(tests))
	for i, test := range tests {
		at := field + "." + strconv.Itoa(i) + ".id"
		if err := CheckNamed(at, test.ID, maxConfigText); err != nil {
			return err
		}
		key := strings.ToLower(test.ID)
		if j, ok := first[key]; ok {
			if tests[j].Enable != test.Enable {
				return Invalid(at, "SETTINGS_CONTRADICT", "test %s is enabled and disabled", Quoted(test.ID))
			}
			return Invalid(at, "DUPLICATE", "test %s is named twice", Quoted(test.ID))
		}
		first[key] = i
	}
	return nil
}

// checkList checks a list of distinct words; fault says what is wrong with one.
func checkList(field string, words []string, fault func(string) string) error {
	if len(words) > maxConfigList {
		return Invalid(field, "LIST_TOO_LONG", "at most %d entries are allowed", maxConfigList)
	}
	seen := make(map[string]bool, len(words))
	for i, word := range words {
		at := field + "." + strconv.Itoa(i)
		if len(word) > maxConfigText {
			return Invalid(at, "TEXT_TOO_LONG", "an entry has at most %d bytes", maxConfigText)
		}
		if text := fault(word); text != "" {
			return Invalid(at, "VALUE_INVALID", "%s", text)
		}
		if key := strings.ToLower(word); seen[key] {
			return Invalid(at, "DUPLICATE", "%s is named twice", Quoted(word))
		} else {
			seen[key] = true
		}
	}
	return nil
}

func checkArguments(field string, arguments []string) error {
	if len(arguments) > maxConfigList {
		return Invalid(field, "LIST_TOO_LONG", "at most %d arguments are allowed", maxConfigList)
	}
	for i, a := range arguments {
		if a == "" || len(a) > 4096 || strings.ContainsRune(a, 0) {
			return Invalid(field+"."+strconv.Itoa(i), "TEXT_INVALID", "an argument has 1 to 4096 bytes, none of them NUL")
		}
	}
	return nil
}
