package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a mistake in the command line or the environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "fleetgraph",
		Short: "GraphQL control plane for bare-metal GPU fleets",
		Long: "fleetgraph is a GraphQL control plane for bare-metal GPU fleets.\n\n" +
			"Every flag can also be given as an environment variable: --data-dir is FLEETGRAPH_DATA_DIR.",
		SilenceErrors: true, // main prints them
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return flagsFromEnvironment(cmd.Flags()) }
	root.AddCommand(newServe(), newMigrate(), newSchema(), newEncryptionKey(), newVersion())
	return root
}

// noArgs refuses arguments, unknown commands among them.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%q is not a command or an argument of %s; see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())}
	}
	return nil
}

// flagsFromEnvironment sets every flag that the command line does not, from the
// variable of its name.
func flagsFromEnvironment(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(flag *pflag.Flag) {
		name := environmentName(flag.Name)
		value, given := os.LookupEnv(name)
		if !given || flag.Changed || flag.Name == "help" || err != nil {
			return
		}
		if set := flags.Set(flag.Name, value); set != nil {
			err = &usageError{fmt.Errorf("%s: %w", name, set)}
		}
	})
	return err
}

func environmentName(flag string) string {
	return "FLEETGRAPH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
