package validation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"fleetgraph/ent"
	"fleetgraph/ent/site"
	"fleetgraph/ent/validationtest"
	"fleetgraph/fleet"
	"fleetgraph/services/lifecycle"
)

// Selection is what tests are selected for. Empty lists limit nothing.
type Selection struct {
	Platform           string // the machine's
	Context            fleet.RunContext
	Contexts           []fleet.RunContext // instead of Context
	Tags               []string           // a test has at least one
	AllowedTests       []string           // ids, in any case
	RunUnverifiedTests bool
}

// Verdict is what a selection says of a test: Exclusion is the first rule that
// excludes it, empty where it is selected.
type Verdict struct {
	Test      *ent.ValidationTest
	Exclusion fleet.TestExclusion
	Message   string
}

// Select judges every test of a site by the guide's criteria in their order (Test
// Selection). Selected ones come first, in the order in which they run: the newest
// version first, then by name. Of several versions of one test that could run, the one
// with the highest number is selected.
func Select(config fleet.MachineValidation, tests []*ent.ValidationTest, s Selection) []Verdict {
	verdicts := make([]Verdict, len(tests))
	chosen := map[string]int{} // by test key, the index of the verdict
	for i, t := range tests {
		v := judge(config, t, s)
		verdicts[i] = v
		if v.Exclusion != "" {
			continue
		}
		if other, ok := chosen[t.TestKey]; !ok || tests[other].VersionNumber < t.VersionNumber {
			chosen[t.TestKey] = i
		}
	}
	for i := range verdicts {
		v := &verdicts[i]
		if v.Exclusion == "" && chosen[v.Test.TestKey] != i {
			v.exclude(fleet.ExcludedOtherVersion, "the version %s of the test is selected", tests[chosen[v.Test.TestKey]].Version)
		}
	}
	slices.SortFunc(verdicts, func(a, b Verdict) int {
		return cmp.Or(
			cmp.Compare(btoi(a.Exclusion != ""), btoi(b.Exclusion != "")),
			-compareVersions(a.Test.Version, b.Test.Version),
			cmp.Compare(a.Test.Name, b.Test.Name),
			cmp.Compare(a.Test.ID, b.Test.ID),
		)
	})
	return verdicts
}

func btoi(is bool) int {
	if is {
		return 1
	}
	return 0
}

// compareVersions orders versions by number, and those of one number by their time.
func compareVersions(a, b string) int {
	x, _ := fleet.ParseTestVersion(a) // stored ones are well formed
	y, _ := fleet.ParseTestVersion(b)
	return cmp.Or(cmp.Compare(x.Number, y.Number), cmp.Compare(x.Micros, y.Micros))
}

// exclude sets the verdict's rule.
func (v *Verdict) exclude(rule fleet.TestExclusion, format string, args ...any) {
	v.Exclusion, v.Message = rule, fmt.Sprintf(format, args...)
}

// judge looks at one test by itself.
func judge(config fleet.MachineValidation, t *ent.ValidationTest, s Selection) Verdict {
	v := Verdict{Test: t}
	wanted := s.Contexts
	if len(wanted) == 0 {
		wanted = []fleet.RunContext{s.Context}
	}
	enabled, cause := Enablement(config, t)
	switch {
	case !config.Enabled:
		v.exclude(fleet.ExcludedValidationDisabled, "the site has machine validation switched off")
	case !enabled:
		v.exclude(fleet.ExcludedNotEnabled, "the test is not enabled: %s", because[cause])
	case !t.Verified && !s.RunUnverifiedTests:
		v.exclude(fleet.ExcludedNotVerified, "nobody has verified the test")
	case !overlap(t.Contexts, wanted):
		v.exclude(fleet.ExcludedOtherContext, "the test is for %s", words(t.Contexts))
	case !slices.Contains(t.SupportedPlatforms, s.Platform):
		v.exclude(fleet.ExcludedOtherPlatform, "the test is not for the platform %s", fleet.Quoted(s.Platform))
	case len(s.Tags) > 0 && !overlap(t.Tags, s.Tags):
		v.exclude(fleet.ExcludedOtherTags, "the test has none of the tags")
	case len(s.AllowedTests) > 0 && !slices.ContainsFunc(s.AllowedTests, func(id string) bool { return fleet.TestKey(id) == t.TestKey }):
		v.exclude(fleet.ExcludedNotAllowed, "the test is not on the list of those allowed")
	}
	return v
}

// because says in words what disabled a test.
var because = map[fleet.EnablementCause]string{
	fleet.EnabledByOperator: "its own setting says so",
	fleet.EnabledBySiteMode: "the site's mode of test selection says so",
	fleet.EnabledBySiteTest: "the site's configuration names it",
}

func overlap[T comparable](a, b []T) bool {
	return slices.ContainsFunc(a, func(x T) bool { return slices.Contains(b, x) })
}

func words[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, word := range list {
		out[i] = string(word)
	}
	return strings.Join(out, ", ")
}

// maxSelection bounds each list of a selection.
const maxSelection = 100

// Explain judges every test of a machine's site for a run of it. The machine's own
// platform counts.
func (s *Service) Explain(ctx context.Context, machineID string, selection Selection) ([]Verdict, error) {
	for field, n := range map[string]int{
		"contexts": len(selection.Contexts), "tags": len(selection.Tags), "allowedTests": len(selection.AllowedTests),
	} {
		if n > maxSelection {
			return nil, fleet.Invalid(field, "LIST_TOO_LONG", "%s has at most %d entries", field, maxSelection)
		}
	}
	m, err := lifecycle.Find(ctx, s.client, machineID)
	if err != nil {
		return nil, err
	}
	selection.Platform = m.Platform
	row, err := s.client.Site.Query().Where(site.ID(m.SiteID)).Select(site.FieldMachineValidation).Only(ctx)
	if err != nil {
		return nil, err
	}
	tests, err := s.client.ValidationTest.Query().Where(validationtest.SiteID(m.SiteID)).All(ctx)
	if err != nil {
		return nil, err
	}
	return Select(row.MachineValidation, tests, selection), nil
}
