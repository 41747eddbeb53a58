package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// completionTime is how long a shell waits for names from the server.
const completionTime = 2 * time.Second

// names reads what can stand in an argument.
type names func(context.Context) ([]string, error)

// completeArgs completes the arguments of a command by names from the server,
// one source for each position. Without a server there is nothing to offer.
func (a *app) completeArgs(sources ...names) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(sources) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.flags.timeout = min(a.flags.timeout, completionTime)
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		found, err := sources[len(args)](ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) skuNames(ctx context.Context) ([]string, error) {
	skus, err := a.skus(ctx, pageSize)
	found := make([]string, len(skus))
	for i := range skus {
		found[i] = skus[i].Name
	}
	return found, err
}

func (a *app) machineNames(ctx context.Context) ([]string, error) {
	machines, err := a.machines(ctx, machineFilter{}, pageSize)
	found := make([]string, len(machines))
	for i := range machines {
		found[i] = machines[i].Name
	}
	return found, err
}

func (a *app) siteNames(ctx context.Context) ([]string, error) {
	sites, err := a.sites(ctx, pageSize)
	found := make([]string, len(sites))
	for i := range sites {
		found[i] = sites[i].Name
	}
	return found, err
}

// completeNames completes a flag of cmd by names from the server.
func (a *app) completeNames(cmd *cobra.Command, flag string, source names) {
	complete := a.completeArgs(source)
	// The only possible error is a flag that does not exist, which a test would show.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return complete(cmd, nil, prefix)
	})
}
