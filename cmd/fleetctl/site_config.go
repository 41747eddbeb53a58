package main

import (
	"context"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

func (a *app) siteConfigCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "The configuration of a site, as the blocks of its file"}
	cmd.AddCommand(a.siteConfigShow(), a.siteConfigApply())
	return cmd
}

// siteOf is the site that a command names, or else the one that all commands use.
func (a *app) siteOf(ctx context.Context, args []string) (client.SiteFields, error) {
	if len(args) == 1 {
		return a.siteNamed(ctx, args[0])
	}
	return a.site(ctx)
}

func (a *app) configuration(ctx context.Context, args []string) (client.SiteConfig, siteConfig, error) {
	var none client.SiteConfig
	s, err := a.siteOf(ctx, args)
	if err != nil {
		return none, siteConfig{}, err
	}
	gql, err := a.api()
	if err != nil {
		return none, siteConfig{}, err
	}
	found, err := client.GetSiteConfig(ctx, gql, s.Id)
	if err != nil {
		return none, siteConfig{}, err
	}
	if len(found.Sites.Nodes) == 0 {
		return none, siteConfig{}, fleet.Missing("site", "SITE_NOT_FOUND", "site not found: %s", s.Name)
	}
	row := found.Sites.Nodes[0]
	config, err := configOf(row)
	return row, config, err
}

func (a *app) siteConfigShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show [SITE]",
		Aliases: []string{"s"},
		Short:   "Shows the configuration of a site as it takes effect, in the form that apply reads",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			_, config, err := a.configuration(ctx, args)
			if err != nil {
				return err
			}
			text, err := config.toml()
			if err != nil {
				return err
			}
			return a.show(result{data: config, page: func(p *page) { p.raw(text) }})
		}),
		ValidArgsFunction: a.completeArgs(a.siteNames),
	}
}

// configChange is one value before and after.
type configChange struct {
	Key    string `json:"key"`
	Before string `json:"before"`
	After  string `json:"after"`
}

func (a *app) siteConfigApply() *cobra.Command {
	var file string
	var dryRun bool
	var revision int
	cmd := &cobra.Command{
		Use:   "apply -f FILE [SITE]",
		Short: "Applies a configuration file to a site",
		Long: "Applies a configuration file to a site. A block that the file has is the whole of that block: keys that it\n" +
			"lacks get their default. A block that the file lacks stays as it is. Unknown keys are refused.",
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = a.work(func(ctx context.Context, args []string) error {
		if file == "" {
			return usagef("give the file with -f, or - for the standard input")
		}
		if err := a.readFormat(); err != nil {
			return err
		}
		data, err := a.readInput(file)
		if err != nil {
			return err
		}
		config, keys, err := parseConfig(data)
		if err != nil {
			return err
		}
		before, present, err := a.configuration(ctx, args)
		if err != nil {
			return err
		}
		if dryRun {
			if cmd.Flags().Changed("expected-revision") {
				if err := fleet.CheckRevision(&revision, before.Revision); err != nil {
					return err
				}
			}
			after, err := a.effective(config, keys, present)
			if err != nil {
				return err
			}
			return a.showChanges("would change", present, after)
		}
		gql, err := a.api()
		if err != nil {
			return err
		}
		input := client.UpdateSiteInput{SiteId: before.Id, IdempotencyKey: newKey()}
		input.BomValidation, input.MachineValidation = config.input(keys)
		if cmd.Flags().Changed("expected-revision") {
			input.ExpectedRevision = &revision
		}
		done, err := client.ConfigureSite(ctx, gql, input)
		if err != nil {
			return inFile(err)
		}
		for _, w := range done.UpdateSite.Warnings {
			field, message, _ := strings.Cut(w, ": ")
			a.warn("%s: %s", configKey(field), message)
		}
		after, err := configOf(done.UpdateSite.Site)
		if err != nil {
			return err
		}
		return a.showChanges("changed", present, after)
	})
	cmd.ValidArgsFunction = a.completeArgs(a.siteNames)
	f := cmd.Flags()
	// The short form of --format stands for the file here.
	f.StringVar(&a.flags.format, "format", string(formatTable), "form of the output: ascii-table, json, csv or yaml")
	f.StringVarP(&file, "filename", "f", "", "the configuration `file`; - for the standard input")
	f.BoolVar(&dryRun, "dry-run", false, "show what would change, and change nothing")
	f.IntVar(&revision, "expected-revision", 0, "refuse unless the site is at this `revision`")
	return cmd
}

// readInput reads a file, or the standard input for -.
func (a *app) readInput(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(a.stdin)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError{err}
	}
	return data, nil
}

// effective is what the configuration would be, as the server would have it.
func (a *app) effective(config siteConfig, keys keySet, present siteConfig) (siteConfig, error) {
	after := present
	if keys.block(bomBlockName) != nil {
		after.Bom = config.Bom
		b := config.Bom
		checked := fleet.BomValidation{
			Enabled: b.Enabled, IgnoreUnassignedMachines: b.IgnoreUnassignedMachines,
			AllowAllocationOnValidationFailure: b.AllowAllocationOnValidationFailure, AutoGenerateMissingSku: b.AutoGenerateMissingSku,
			FindMatchInterval: b.FindMatchInterval.Duration, AutoGenerateMissingSkuInterval: b.AutoGenerateMissingSkuInterval.Duration,
		}
		warnings, err := checked.Check()
		if err != nil {
			return after, inFile(err)
		}
		a.warnOf(warnings)
	}
	if keys.block(machineBlockName) == nil {
		return after, nil
	}
	m := config.Machine
	checked := fleet.MachineValidation{
		Enabled: m.Enabled, TestSelectionMode: m.TestSelectionMode.TestSelectionMode, RunInterval: m.RunInterval.Duration,
		StaleRunTimeout: m.StaleRunTimeout.Duration, ApprovedPluginRegistries: slices.Clone(m.ApprovedPluginRegistries),
		AllowedPluginTypes: m.AllowedPluginTypes, AllowPrivilegedPlugins: m.AllowPrivilegedPlugins,
		AllowFullHostPlugins: m.AllowFullHostPlugins, RequireTests: m.RequireTests, HeartbeatTimeout: m.HeartbeatTimeout.Duration,
		RunRetention: m.RunRetention.Duration, RebootBeforeValidation: m.RebootBeforeValidation, Cleanup: m.Cleanup.CleanupMode,
		ContainerArgs: m.ContainerArgs, AttemptLogs: fleet.AttemptLogs{
			Enabled: m.AttemptLogs.Enabled, MaxChunkBytes: m.AttemptLogs.MaxChunkBytes,
			MaxAttemptBytes: m.AttemptLogs.MaxAttemptBytes, Retention: m.AttemptLogs.Retention.Duration,
		},
	}
	for _, test := range m.Tests {
		checked.Tests = append(checked.Tests, fleet.TestSetting(test))
	}
	warnings, err := checked.Normalise()
	if err != nil {
		return after, inFile(err)
	}
	a.warnOf(warnings)
	m.StaleRunTimeout.Duration, m.ApprovedPluginRegistries = checked.StaleRunTimeout, list(checked.ApprovedPluginRegistries)
	after.Machine = m
	return after, nil
}

func (a *app) warnOf(warnings []fleet.ConfigurationWarning) {
	for _, w := range warnings {
		a.warn("%s: %s", configKey(w.Field), w.Message)
	}
}

// inFile names the file's key in an error that names the graph's field.
func inFile(err error) error {
	e, ok := fleet.AsError(err)
	if !ok || e.Field == "" {
		return err
	}
	key := *e
	key.Field = configKey(e.Field)
	key.Message = key.Field + ": " + e.Message
	return &key
}

func (a *app) showChanges(verb string, before, after siteConfig) error {
	was, err := before.flat()
	if err != nil {
		return err
	}
	is, err := after.flat()
	if err != nil {
		return err
	}
	changes := []configChange{}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if was[key] != is[key] {
			changes = append(changes, configChange{key, was[key], is[key]})
		}
	}
	g := &grid{headers: []string{"Key", "Before", "After"}}
	for _, c := range changes {
		g.add(text(c.Key), text(c.Before), text(c.After))
	}
	return a.show(result{data: changes, grid: g, page: func(p *page) {
		if len(changes) == 0 {
			p.line("nothing %s", verb)
		}
		for _, c := range changes {
			p.line("%s %s: %s -> %s", verb, c.Key, c.Before, c.After)
		}
	}})
}
