package validation_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/ent"
	"fleetgraph/fleet"
	"fleetgraph/services/validation"
)

// vectors are inputs with the answers that the rules of machine validation give.
type vectors struct {
	Vectors struct {
		Platforms struct {
			Cases []struct{ Input, Expect string }
		} `json:"platform_normalisation"`
		Versions struct {
			Parse []struct {
				Input  string
				Number int `json:"nr"`
				Micros int64
				OK     bool
			}
			Order []string `json:"order_by_number"`
		} `json:"config_version"`
		Selection struct {
			Cases []struct {
				Platform   string
				Contexts   []string
				AllEnabled bool `json:"all_enabled"`
				Unverified bool
				Tags       []string
				Allowed    []string
				Expect     []string
			}
		} `json:"selection_over_catalog"`
	}
}

func read(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(data, &v))
	return v
}

func TestPlatformsAreNormalisedByOneRule(t *testing.T) {
	t.Parallel()
	cases := read(t).Vectors.Platforms.Cases
	require.NotEmpty(t, cases)
	for _, c := range cases {
		require.Equal(t, c.Expect, fleet.Platform(c.Input), c.Input)
	}
}

func TestVersionsAreReadAndOrderedByNumber(t *testing.T) {
	t.Parallel()
	v := read(t).Vectors.Versions
	require.NotEmpty(t, v.Parse)
	for _, c := range v.Parse {
		got, err := fleet.ParseTestVersion(c.Input)
		if !c.OK {
			require.Error(t, err, c.Input)
			continue
		}
		require.NoError(t, err, c.Input)
		require.Equal(t, fleet.TestVersion{Number: c.Number, Micros: c.Micros}, got, c.Input)
	}
	tests := make([]*ent.ValidationTest, len(v.Order))
	for i, version := range v.Order {
		parsed, err := fleet.ParseTestVersion(version)
		require.NoError(t, err)
		tests[i] = &ent.ValidationTest{
			TestKey: "a", TestID: "A", Version: version, VersionNumber: parsed.Number, Enabled: true, Verified: true,
			Contexts: []fleet.RunContext{fleet.ContextDiscovery}, SupportedPlatforms: []string{"p"},
		}
	}
	slices.Reverse(tests)
	verdicts := validation.Select(fleet.MachineValidation{Enabled: true}, tests, validation.Selection{Platform: "p", Context: fleet.ContextDiscovery})
	var order []string
	for i, verdict := range verdicts {
		order = append(order, verdict.Test.Version)
		if i > 0 {
			require.Equal(t, fleet.ExcludedOtherVersion, verdict.Exclusion, "one version of a test runs: that with the highest number")
		}
	}
	require.Empty(t, verdicts[0].Exclusion)
	require.Equal(t, v.Order, order)
}

// TestSelectionOverTheCatalog holds the selection against what the original's query
// gives over the same catalog.
func TestSelectionOverTheCatalog(t *testing.T) {
	t.Parallel()
	catalog := validation.Catalog(t)
	require.Len(t, catalog, 22)
	cases := read(t).Vectors.Selection.Cases
	require.NotEmpty(t, cases)
	contexts := map[string]fleet.RunContext{"Discovery": fleet.ContextDiscovery, "Cleanup": fleet.ContextCleanup, "OnDemand": fleet.ContextOnDemand}
	for _, c := range cases {
		config := fleet.MachineValidation{Enabled: true, TestSelectionMode: fleet.SelectDefault}
		if c.AllEnabled {
			config.TestSelectionMode = fleet.SelectEnableAll
		}
		s := validation.Selection{Platform: c.Platform, Tags: c.Tags, AllowedTests: c.Allowed, RunUnverifiedTests: c.Unverified}
		for _, name := range c.Contexts {
			s.Contexts = append(s.Contexts, contexts[name])
		}
		got := []string{}
		for _, v := range validation.Select(config, catalog, s) {
			if v.Exclusion == "" {
				got = append(got, v.Test.TestID)
			}
		}
		require.Equal(t, c.Expect, got, "%s %s", c.Platform, strings.Join(c.Contexts, ","))
	}
}

func TestTheFirstRuleThatExcludesATestIsTold(t *testing.T) {
	t.Parallel()
	fits := func() *ent.ValidationTest {
		return &ent.ValidationTest{
			TestKey: "forge_cudasample", Name: "CudaSample", TestID: "forge_CudaSample", Version: "V1-T1", VersionNumber: 1,
			Enabled: true, Verified: true, Contexts: []fleet.RunContext{fleet.ContextDiscovery}, SupportedPlatforms: []string{"p"}, Tags: []string{"gpu"},
		}
	}
	fitting := validation.Selection{Platform: "p", Context: fleet.ContextDiscovery, Tags: []string{"x", "gpu"}, AllowedTests: []string{"FORGE_cudasample"}}
	on := fleet.MachineValidation{Enabled: true}
	named := func(mode fleet.TestSelectionMode, id string, enable bool) fleet.MachineValidation {
		return fleet.MachineValidation{Enabled: true, TestSelectionMode: mode, Tests: []fleet.TestSetting{{ID: id, Enable: enable}}}
	}
	for name, c := range map[string]struct {
		config fleet.MachineValidation
		test   func(*ent.ValidationTest)
		ask    func(*validation.Selection)
		want   fleet.TestExclusion
	}{
		"nothing excludes it":                       {config: on},
		"the feature is off":                        {config: fleet.MachineValidation{}, want: fleet.ExcludedValidationDisabled},
		"the operator disabled it":                  {config: on, test: func(t *ent.ValidationTest) { t.Enabled = false }, want: fleet.ExcludedNotEnabled},
		"a mode enables it all the same":            {config: fleet.MachineValidation{Enabled: true, TestSelectionMode: fleet.SelectEnableAll}, test: func(t *ent.ValidationTest) { t.Enabled = false }},
		"a mode disables it":                        {config: fleet.MachineValidation{Enabled: true, TestSelectionMode: fleet.SelectDisableAll}, want: fleet.ExcludedNotEnabled},
		"the site names it against the mode":        {config: named(fleet.SelectDisableAll, "FORGE_CUDASAMPLE", true)},
		"the site names it by its name":             {config: named(fleet.SelectEnableAll, "cudasample", false), want: fleet.ExcludedNotEnabled},
		"the site names another":                    {config: named(fleet.SelectEnableAll, "FioFile", false)},
		"nobody verified it":                        {config: on, test: func(t *ent.ValidationTest) { t.Verified = false }, want: fleet.ExcludedNotVerified},
		"nobody verified it, and that is all right": {config: on, test: func(t *ent.ValidationTest) { t.Verified = false }, ask: func(s *validation.Selection) { s.RunUnverifiedTests = true }},
		"another context":                           {config: on, ask: func(s *validation.Selection) { s.Context = fleet.ContextCleanup }, want: fleet.ExcludedOtherContext},
		"contexts instead of the run's": {config: on, ask: func(s *validation.Selection) {
			s.Context, s.Contexts = fleet.ContextOnDemand, []fleet.RunContext{fleet.ContextDiscovery}
		}},
		"another platform":                {config: on, ask: func(s *validation.Selection) { s.Platform = "q" }, want: fleet.ExcludedOtherPlatform},
		"other tags":                      {config: on, ask: func(s *validation.Selection) { s.Tags = []string{"x"} }, want: fleet.ExcludedOtherTags},
		"no tags, and some are asked for": {config: on, test: func(t *ent.ValidationTest) { t.Tags = nil }, want: fleet.ExcludedOtherTags},
		"not allowed":                     {config: on, ask: func(s *validation.Selection) { s.AllowedTests = []string{"forge_FioFile"} }, want: fleet.ExcludedNotAllowed},
		"disabled and of another context: the first": {config: on, test: func(t *ent.ValidationTest) { t.Enabled = false }, ask: func(s *validation.Selection) { s.Context = fleet.ContextCleanup }, want: fleet.ExcludedNotEnabled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test, ask := fits(), fitting
			if c.test != nil {
				c.test(test)
			}
			if c.ask != nil {
				c.ask(&ask)
			}
			v := validation.Select(c.config, []*ent.ValidationTest{test}, ask)[0]
			require.Equal(t, c.want, v.Exclusion)
			require.Equal(t, c.want == "", v.Message == "")
		})
	}
}
