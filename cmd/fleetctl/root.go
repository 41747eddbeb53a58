package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
)

// process is what a run of the command line has from its surroundings.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
}

// app is one run of the command line: its surroundings, the global flags, and
// what commands share once it is known.
type app struct {
	process
	flags   globalFlags
	format  format
	began   bool // a command's own work has begun: later errors are not usage
	gql     *connection
	theSite *client.SiteFields
}

// globalFlags are the flags that every command takes.
type globalFlags struct {
	format, output   string
	extended         bool
	url, token, site string
	config           string
	timeout          time.Duration
}

const defaultTimeout = 30 * time.Second

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, p process) int {
	a := &app{process: p, format: guessFormat(args)}
	root := a.command() //nolint:contextcheck // commands get it from ExecuteContext
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(ctx)
	if a.gql != nil {
		a.gql.http.CloseIdleConnections()
	}
	if err != nil && !a.began && !errors.As(err, new(usageError)) {
		err = usageError{err}
	}
	return a.report(err)
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "fleetctl",
		Short: "Administers a fleet of bare-metal GPU machines",
		Long: "Administers a fleet of bare-metal GPU machines.\n\n" +
			"Exit codes: 0 done, 1 refused or failed, 2 usage, 3 the server is unreachable. With -f json an error is a JSON\n" +
			"object on the standard error: code, reason, field, message, details.",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if a.flags.timeout <= 0 {
				return usagef("--timeout must be positive")
			}
			return a.readFormat()
		},
	}
	f := root.PersistentFlags()
	f.StringVarP(&a.flags.format, "format", "f", string(formatTable), "form of the output: ascii-table, json, csv or yaml")
	f.StringVarP(&a.flags.output, "output", "o", "", "write the output to this `file`")
	f.BoolVar(&a.flags.extended, "extended", false, "show more")
	f.StringVar(&a.flags.url, "url", "", "the server, for instance https://fleet.example (default $FLEETGRAPH_URL, then the configuration file)")
	f.StringVar(&a.flags.token, "token", "", "bearer token (default $FLEETGRAPH_TOKEN, then the configuration file)")
	f.StringVar(&a.flags.site, "site", "", "name of the site (default $FLEETGRAPH_SITE, then the configuration file, then the only site there is)")
	f.StringVar(&a.flags.config, "config", "", "configuration `file` (default $FLEETGRAPH_CONFIG, then fleetgraph/config.json in the user's configuration folder)")
	f.DurationVar(&a.flags.timeout, "timeout", defaultTimeout, "how long one call to the server may take")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	a.completeWords(root, "format", formatNames()...)

	root.AddCommand(
		a.siteCommand(), a.machineCommand(), a.skuCommand(), a.expectedMachineCommand(), a.jobCommand(), a.validationCommand(), a.tokenCommand(),
		a.loginCommand(), a.logoutCommand(), a.whoamiCommand(), a.versionCommand(),
	)
	requireCommand(root)
	return root
}

// work wraps a command's function: from here on an error is not a matter of
// usage unless it says so.
func (a *app) work(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.began = true
		return do(cmd.Context(), args)
	}
}

// requireCommand makes the command groups under cmd refuse unknown and missing
// commands: cobra on its own prints the help and calls that success.
func requireCommand(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		requireCommand(sub)
	}
	if cmd.Runnable() || !cmd.HasSubCommands() {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			cmd.SetOut(cmd.ErrOrStderr())
			_ = cmd.Help()
			return usagef("a command is required")
		}
		message := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			message += ", did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef("%s", message)
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
}

// completeWords completes a flag of cmd by fixed words.
func (a *app) completeWords(cmd *cobra.Command, flag string, words ...string) {
	// The only possible error is a flag that does not exist, which a test would show.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
