package validation

import (
	"fleetgraph/ent"
	"fleetgraph/fleet"
)

// names tells whether a setting of a site means the test, by its id or its name, in
// any case.
func names(setting fleet.TestSetting, t *ent.ValidationTest) bool {
	key := fleet.TestKey(setting.ID)
	return key == t.TestKey || key == fleet.TestKey(t.Name)
}

// Enablement tells whether runs at a site can select the test, and what decides it:
// the site's setting of the test, else the site's mode, else the operator's (the
// reference, 3.3). It is computed, so that an operator's setting is never overwritten.
func Enablement(config fleet.MachineValidation, t *ent.ValidationTest) (enabled bool, cause fleet.EnablementCause) {
	for _, setting := range config.Tests {
		if names(setting, t) {
			return setting.Enable, fleet.EnabledBySiteTest
		}
	}
	switch config.TestSelectionMode {
	case fleet.SelectEnableAll:
		return true, fleet.EnabledBySiteMode
	case fleet.SelectDisableAll:
		return false, fleet.EnabledBySiteMode
	case fleet.SelectDefault:
	}
	return t.Enabled, fleet.EnabledByOperator
}
