package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

func (a *app) validationCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "machine-validation",
		Aliases: []string{"mv"},
		Short:   "Machine validation: the tests that a site can run on its machines",
	}
	tests := &cobra.Command{Use: "tests", Aliases: []string{"mvs"}, Short: "Tests of the site"}
	tests.AddCommand(
		a.testsShow(),
		a.testChange("verify", "Records that a test was found to be right", a.verifyTest),
		a.testChange("enable", "Enables a test; the site's configuration may say otherwise", a.enableTest),
		a.testChange("disable", "Disables a test; the site's configuration may say otherwise", a.disableTest),
	)
	cmd.AddCommand(tests)
	return cmd
}

// testView is a test as scripts read it.
type testView struct {
	ID                 string                `json:"id"`
	TestID             string                `json:"test_id"`
	Version            string                `json:"version"`
	Name               string                `json:"name"`
	Description        string                `json:"description"`
	Contexts           []fleet.RunContext    `json:"contexts"`
	SupportedPlatforms []string              `json:"supported_platforms"`
	Tags               []string              `json:"custom_tags"`
	Components         []string              `json:"components"`
	Timeout            string                `json:"timeout"`
	MaxAttempts        int                   `json:"max_attempts"`
	Enabled            bool                  `json:"enabled"`
	IsEnabled          bool                  `json:"is_enabled"` // what counts
	EnabledBy          fleet.EnablementCause `json:"enabled_by"`
	IsVerified         bool                  `json:"is_verified"`
	VerifiedAt         *time.Time            `json:"verified_at"`
	VerifiedBy         *string               `json:"verified_by"`
	ModifiedAt         time.Time             `json:"last_modified_at"`
	ModifiedBy         string                `json:"last_modified_by"`
	commandView
}

// commandView is what only tests of the catalog have.
type commandView struct {
	Command            string  `json:"command"`
	Args               string  `json:"args"`
	PreCondition       *string `json:"pre_condition"`
	ImageName          *string `json:"img_name"`
	ContainerArg       *string `json:"container_arg"`
	ExecuteInHost      bool    `json:"execute_in_host"`
	ExternalConfigFile *string `json:"external_config_file"`
	ExtraOutputFile    *string `json:"extra_output_file"`
	ExtraErrFile       *string `json:"extra_err_file"`
	IsReadOnly         bool    `json:"is_read_only"`
}

func newTestView(t client.TestFields) testView {
	effective := t.GetEffectiveEnabled()
	v := testView{
		ID: t.GetId(), TestID: t.GetTestId(), Version: t.GetVersion(), Name: t.GetName(), Description: t.GetDescription(),
		Contexts: t.GetContexts(), SupportedPlatforms: t.GetSupportedPlatforms(), Tags: t.GetTags(), Components: t.GetComponents(),
		Timeout: t.GetTimeout(), MaxAttempts: t.GetMaxAttempts(),
		Enabled: t.GetEnabled(), IsEnabled: effective.Enabled, EnabledBy: effective.Cause,
		IsVerified: t.GetVerified(), VerifiedAt: t.GetVerifiedAt(), VerifiedBy: t.GetVerifiedBy(),
		ModifiedAt: t.GetModifiedAt(), ModifiedBy: t.GetModifiedBy(),
	}
	if c, ok := t.(*client.TestFieldsCatalogTest); ok {
		v.commandView = commandView{
			c.Command, c.Args, c.PreCondition, c.ImgName, c.ContainerArg, c.ExecuteInHost,
			c.ExternalConfigFile, c.ExtraOutputFile, c.ExtraErrFile, c.ReadOnly,
		}
	}
	return v
}

// testFilter narrows a list of tests; its zero value keeps all.
type testFilter struct {
	testID    string
	platforms []string
	contexts  []fleet.RunContext
	verified  bool
}

// keeps tells whether the filter lets a test through. Platforms are compared in the
// form that machines have, and ids in any case.
func (f testFilter) keeps(v testView) bool {
	switch {
	case f.testID != "" && fleet.TestKey(f.testID) != fleet.TestKey(v.TestID):
		return false
	case len(f.platforms) > 0 && !slices.ContainsFunc(f.platforms, func(p string) bool { return slices.Contains(v.SupportedPlatforms, fleet.Platform(p)) }):
		return false
	case len(f.contexts) > 0 && !slices.ContainsFunc(f.contexts, func(c fleet.RunContext) bool { return slices.Contains(v.Contexts, c) }):
		return false
	default:
		return v.IsVerified || !f.verified
	}
}

func (a *app) testsShow() *cobra.Command {
	var testID string
	var platforms, contexts []string
	var unverified bool
	cmd := &cobra.Command{
		Use:     "show",
		Aliases: []string{"s"},
		Short:   "Lists the tests of the site",
		Long: "Lists the tests of the site that somebody has verified; with --show-unverified, or for one --test-id, the\n" +
			"others as well. With --extended everything of each.",
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			filter := testFilter{testID: testID, platforms: platforms, verified: !unverified && testID == ""}
			for _, word := range contexts {
				value, ok := wordOf(word, fleet.RunContext("").Values())
				if !ok {
					return usagef("unknown context %q, expected one of Discovery, Cleanup, OnDemand", word)
				}
				filter.contexts = append(filter.contexts, fleet.RunContext(value))
			}
			tests, err := a.tests(ctx)
			if err != nil {
				return err
			}
			return a.showTests(slices.DeleteFunc(tests, func(v testView) bool { return !filter.keeps(v) }))
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&testID, "test-id", "t", "", "only the versions of the test with this `id`")
	f.StringArrayVarP(&platforms, "platforms", "p", nil, "only tests for this `platform`; may be repeated")
	f.StringArrayVarP(&contexts, "contexts", "c", nil, "only tests for this `context`; may be repeated")
	f.BoolVar(&unverified, "show-unverified", false, "also tests that nobody has verified")
	f.BoolVar(&unverified, "show-un-verfied", false, "the same, as the original spells it")
	_ = f.MarkHidden("show-un-verfied")
	a.completeNames(cmd, "test-id", a.testIDs)
	a.completeWords(cmd, "contexts", fleet.RunContext("").Values()...)
	return cmd
}

// tests reads the tests of the site, by name.
func (a *app) tests(ctx context.Context) ([]testView, error) {
	site, err := a.site(ctx)
	if err != nil {
		return nil, err
	}
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	tests := []testView{}
	err = pages(0, func(n int, after *string) (int, client.Page, error) {
		found, err := client.ListTests(ctx, gql, site.Name, n, after)
		if err != nil || found.Site == nil {
			return 0, client.Page{}, err
		}
		for _, t := range found.Site.ValidationTests.Nodes {
			tests = append(tests, newTestView(t))
		}
		return len(found.Site.ValidationTests.Nodes), found.Site.ValidationTests.PageInfo, nil
	})
	return tests, err
}

func (a *app) testIDs(ctx context.Context) ([]string, error) {
	tests, err := a.tests(ctx)
	ids := make([]string, 0, len(tests))
	for _, v := range tests {
		if !slices.Contains(ids, v.TestID) {
			ids = append(ids, v.TestID)
		}
	}
	return ids, err
}

func (a *app) showTests(tests []testView) error {
	g := &grid{headers: []string{"TestId", "Name", "Command", "Timeout", "IsVerified", "Version", "IsEnabled"}}
	for _, v := range tests {
		g.add(text(v.TestID), text(v.Name), text(v.Command), text(v.Timeout), text(yesNo(v.IsVerified)), text(v.Version), text(yesNo(v.IsEnabled)))
	}
	shown := result{data: tests, grid: g}
	if a.flags.extended {
		shown.page = func(p *page) {
			for i, v := range tests {
				if i > 0 {
					p.blank()
				}
				testPage(p, v)
			}
		}
	}
	return a.show(shown)
}

func testPage(p *page, v testView) {
	contexts := make([]string, len(v.Contexts))
	for i, c := range v.Contexts {
		contexts[i] = string(c)
	}
	p.field("TestId", v.TestID)
	p.field("Name", v.Name)
	p.field("Description", v.Description)
	p.field("Command", v.Command)
	p.field("Args", v.Args)
	p.field("Contexts", strings.Join(contexts, ", "))
	p.optional("PreCondition", v.PreCondition)
	p.field("TimeOut", v.Timeout)
	p.field("CustomTags", strings.Join(v.Tags, ", "))
	p.field("Components", strings.Join(v.Components, ", "))
	p.field("SupportedPlatforms", strings.Join(v.SupportedPlatforms, ", "))
	p.optional("ImageName", v.ImageName)
	p.optional("ContainerArgs", v.ContainerArg)
	p.field("ExecuteInHost", yesNo(v.ExecuteInHost))
	p.optional("ExtraErrorFile", v.ExtraErrFile)
	p.optional("ExtraOutPutFile", v.ExtraOutputFile)
	p.optional("ExternalConfigFile", v.ExternalConfigFile)
	p.field("Version", v.Version)
	p.field("LastModifiedAt", moment(v.ModifiedAt))
	p.field("LastModifiedBy", v.ModifiedBy)
	p.field("IsVerified", yesNo(v.IsVerified))
	p.optional("VerifiedBy", v.VerifiedBy)
	p.field("IsReadOnly", yesNo(v.IsReadOnly))
	p.field("IsEnabled", yesNo(v.IsEnabled))
	p.field("EnabledBy", string(v.EnabledBy))
}

// testChange is a command that changes what is said of one version of a test.
func (a *app) testChange(verb, short string, change func(ctx context.Context, id string) (client.TestFields, error)) *cobra.Command {
	var testID, version string
	cmd := &cobra.Command{
		Use: verb, Short: short, Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			site, err := a.site(ctx)
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			found, err := client.GetTest(ctx, gql, site.Name, testID, version)
			if err != nil {
				return err
			}
			if found.ValidationTest == nil {
				return fleet.Missing("test-id", "TEST_NOT_FOUND", "the site has no version %s of a test %s", version, testID)
			}
			changed, err := change(ctx, found.ValidationTest.GetId())
			if err != nil {
				return err
			}
			return a.showTests([]testView{newTestView(changed)})
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&testID, "test-id", "t", "", "`id` of the test, in any case")
	f.StringVarP(&version, "version", "v", "", "`version` of the test, as tests show prints it")
	_ = cmd.MarkFlagRequired("test-id")
	_ = cmd.MarkFlagRequired("version")
	a.completeNames(cmd, "test-id", a.testIDs)
	return cmd
}

func (a *app) verifyTest(ctx context.Context, id string) (client.TestFields, error) {
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	done, err := client.VerifyTest(ctx, gql, client.VerifyTestInput{ValidationTestId: id, IdempotencyKey: newKey()})
	if err != nil {
		return nil, err
	}
	return done.VerifyTest.Test, nil
}

func (a *app) enableTest(ctx context.Context, id string) (client.TestFields, error) {
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	done, err := client.EnableTest(ctx, gql, client.EnableTestInput{ValidationTestId: id, IdempotencyKey: newKey()})
	if err != nil {
		return nil, err
	}
	return done.EnableTest.Test, nil
}

func (a *app) disableTest(ctx context.Context, id string) (client.TestFields, error) {
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	done, err := client.DisableTest(ctx, gql, client.DisableTestInput{ValidationTestId: id, IdempotencyKey: newKey()})
	if err != nil {
		return nil, err
	}
	return done.DisableTest.Test, nil
}
