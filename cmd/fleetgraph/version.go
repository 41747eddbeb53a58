package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{}
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), describe(info))
			return err
		},
	}
}

// describe names a build: its version where it has one, and the commit it was made
// from.
func describe(info *debug.BuildInfo) string {
	version, revision, modified := info.Main.Version, "", ""
	if version == "" {
		version = "(devel)"
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			revision = " " + setting.Value[:min(len(setting.Value), 12)]
		case "vcs.modified":
			if setting.Value == "true" {
				modified = " modified"
			}
		}
	}
	return "fleetgraph " + version + revision + modified + " " + info.GoVersion
}
