package gqltests_test

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/server"
)

// catalogTest is a test of the catalog as far as these tests look at it.
type catalogTest struct {
	ID, TestID, Version, Name, Timeout string
	Contexts, SupportedPlatforms, Tags []string
	Enabled, Verified                  bool
	VerifiedBy                         *string
	ModifiedBy                         string
	EffectiveEnabled                   struct {
		Enabled bool
		Cause   string
	}
	PreCondition *string
}

const catalogFields = `id testId version name timeout contexts supportedPlatforms tags enabled verified verifiedBy modifiedBy
	effectiveEnabled { enabled cause } ... on CatalogTest { preCondition }`

func (b *bundle) catalogTest(t *testing.T, site, testID, version string) *catalogTest {
	t.Helper()
	var out struct{ ValidationTest *catalogTest }
	b.must(t, `query($s: String!, $t: String!, $v: String!) { validationTest(site: $s, testId: $t, version: $v) { `+catalogFields+` } }`,
		variables{"s": site, "t": testID, "v": version}, &out)
	return out.ValidationTest
}

const nvmeVersion = "V1-T1744144753768493"

func TestEverySiteHasTheCatalogForItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	here := b.createSite(t, "here")
	b.createSite(t, "there")
	var out struct {
		Sites struct {
			Nodes []struct {
				ValidationTests struct {
					TotalCount int
					Nodes      []catalogTest
				}
			}
		}
	}
	statements := b.statements.during(func() {
		b.must(t, `{ sites { nodes { validationTests(first: 50, orderBy: {field: NAME}) { totalCount nodes { `+catalogFields+` } } } } }`, nil, &out)
	})
	require.Less(t, statements, int64(8))
	require.Len(t, out.Sites.Nodes, 2)
	for _, s := range out.Sites.Nodes {
		require.Equal(t, 22, s.ValidationTests.TotalCount)
		for _, test := range s.ValidationTests.Nodes {
			require.Equal(t, test.Name == "NvmeCheck", test.Enabled, test.Name)
			require.Equal(t, test.Enabled, test.EffectiveEnabled.Enabled)
			require.Equal(t, "2h", test.Timeout)
			for _, platform := range test.SupportedPlatforms {
				require.Equal(t, fleet.Platform(platform), platform, "platforms have one form")
			}
			if test.PreCondition != nil {
				require.NotEmpty(t, *test.PreCondition, "an empty program is none")
			}
		}
	}

	id := b.test(t, here, "forge_NvmeCheck")
	b.must(t, `mutation($id: ID!) { disableTest(input: {validationTestId: $id}) { test { id } } }`, variables{"id": id}, nil)
	mine := b.catalogTest(t, "here", "FORGE_nvmecheck", nvmeVersion)
	require.NotNil(t, mine, "ids in any case are one")
	require.False(t, mine.EffectiveEnabled.Enabled)
	require.True(t, b.catalogTest(t, "there", "forge_NvmeCheck", nvmeVersion).Enabled, "another site's is its own")
	require.Nil(t, b.catalogTest(t, "here", "forge_NvmeCheck", "V2-T1"))
	require.Nil(t, b.catalogTest(t, "here", "nico_NvmeCheck", nvmeVersion))
}

func TestAVerificationTellsWhoMadeIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	id := b.test(t, site, "forge_RaytracingVk")
	const verify = `mutation($id: ID!) { verifyTest(input: {validationTestId: $id}) { test { ` + catalogFields + ` } } }`
	var out struct{ VerifyTest struct{ Test catalogTest } }
	for range 2 { // a repeat changes nothing
		b.must(t, verify, variables{"id": id}, &out)
		test := out.VerifyTest.Test
		require.True(t, test.Verified)
		require.NotNil(t, test.VerifiedBy)
		require.Equal(t, *test.VerifiedBy, test.ModifiedBy)
	}
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM transitions WHERE subject_id = $1 AND cause = 'TEST_VERIFIED'`, id))
}

func TestASitesConfigurationDecidesWithoutTouchingTheOperatorsSettings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	effective := func(testID, version string) []any {
		test := b.catalogTest(t, "dc1", testID, version)
		return []any{test.Enabled, test.EffectiveEnabled.Enabled, test.EffectiveEnabled.Cause}
	}
	const cuda = "V1-T1734600519831720"
	require.Equal(t, []any{false, false, "OPERATOR"}, effective("forge_CudaSample", cuda))
	b.updateSite(t, variables{"siteId": site, "machineValidation": variables{"testSelectionMode": "ENABLE_ALL", "tests": []variables{{"id": "nvmecheck", "enable": false}}}})
	require.Equal(t, []any{false, true, "SITE_MODE"}, effective("forge_CudaSample", cuda))
	require.Equal(t, []any{true, false, "SITE_TEST"}, effective("forge_NvmeCheck", nvmeVersion))

	fault := b.refused(t, b.admin, `mutation($input: UpdateSiteInput!) { updateSite(input: $input) { site { id } } }`,
		variables{"input": variables{"siteId": site, "machineValidation": variables{"tests": []variables{{"id": "CudaSample", "enable": true}, {"id": "CudaSimple", "enable": true}}}}})
	require.Equal(t, []string{"INVALID_ARGUMENT", "TEST_UNKNOWN", "machineValidation.tests.1.id"},
		[]string{fault.Extensions.Code, fault.Extensions.Reason, fault.Extensions.Field})
	require.Equal(t, []any{true, false, "SITE_TEST"}, effective("forge_NvmeCheck", nvmeVersion), "nothing changed")
}

func TestASelectionIsExplained(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	m := b.report(t, site, readyMac, "m1", inventory(t, "composed/r760_9nvme.json"))
	const explain = `query($m: ID!, $a: [String!]) { explainSelection(machineId: $m, context: DISCOVERY, allowedTests: $a) {
		selected exclusion message test { testId site { name } effectiveEnabled { enabled } } } }`
	var out struct {
		ExplainSelection []struct {
			Selected  bool
			Exclusion *string
			Message   string
			Test      struct{ TestID string }
		}
	}
	told := func(allowed ...string) (selected []string, rules map[string]int) {
		t.Helper()
		b.must(t, explain, variables{"m": m.ID, "a": allowed}, &out)
		require.Len(t, out.ExplainSelection, 22)
		rules = map[string]int{}
		for i, v := range out.ExplainSelection {
			if v.Selected {
				require.Len(t, selected, i, "selected ones come first")
				selected = append(selected, v.Test.TestID)
				continue
			}
			rules[*v.Exclusion]++
			require.NotEmpty(t, v.Message)
		}
		return selected, rules
	}
	selected, rules := told()
	require.Empty(t, selected)
	require.Equal(t, map[string]int{"VALIDATION_DISABLED": 22}, rules)

	b.updateSite(t, variables{"siteId": site, "machineValidation": variables{"enabled": true, "testSelectionMode": "ENABLE_ALL"}})
	_, err := b.sql(t).Exec(t.Context(), `UPDATE machines SET platform = 'sku_0a6b_modelname_poweredge_r760' WHERE id = $1`, m.ID)
	require.NoError(t, err)
	selected, rules = told()
	require.Equal(t, "forge_NvmeCheck", selected[0])
	require.Len(t, selected, 15)
	require.Equal(t, map[string]int{"NOT_VERIFIED": 3, "OTHER_CONTEXT": 4}, rules)
	selected, _ = told("FORGE_CPUTESTLONG", "forge_nvmecheck")
	require.Equal(t, []string{"forge_NvmeCheck", "forge_CPUTestLong"}, selected, "in the catalog's order")

	fault := b.refused(t, b.admin, explain, variables{"m": fleet.NewID(fleet.PrefixMachine)})
	require.Equal(t, "MACHINE_NOT_FOUND", fault.Extensions.Reason)
}

// TestAnOlderSiteGetsTheCatalogWhenAServerStarts takes a site's tests away, as if it was
// older than they are.
func TestAnOlderSiteGetsTheCatalogWhenAServerStarts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	_, err := b.sql(t).Exec(t.Context(), `DELETE FROM validation_tests WHERE test_id <> 'forge_FioSSD'`)
	require.NoError(t, err)
	srv, err := server.New(t.Context(), server.Config{
		Listen: "127.0.0.1:0", DatabaseURL: b.database, AdminTokenFile: filepath.Join(t.TempDir(), "token"), Output: io.Discard, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, srv.Run(ctx))
	require.Equal(t, 22, b.count(t, `SELECT count(*) FROM validation_tests WHERE site_id = $1`, site))
}
