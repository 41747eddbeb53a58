package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
)

// transitionView is an entry of a history, as scripts read it.
type transitionView struct {
	Sequence   int              `json:"sequence"`
	OccurredAt time.Time        `json:"occurred_at"`
	From       *string          `json:"from_state"`
	To         *string          `json:"to_state"`
	Cause      string           `json:"cause"`
	Actor      string           `json:"actor"`
	Message    string           `json:"message"`
	Details    *json.RawMessage `json:"details"`
}

func (a *app) machineHistory() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "history MACHINE",
		Aliases: []string{"h"},
		Short:   "Shows what happened to a machine, oldest first",
		Args:    cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			if limit < 0 {
				return usagef("--limit must not be negative")
			}
			m, err := a.machine(ctx, args[0])
			if err != nil {
				return err
			}
			history, err := a.history(ctx, m.Id, limit)
			if err != nil {
				return err
			}
			g := &grid{headers: []string{"Seq", "When", "From", "To", "Cause", "Actor", "Message"}}
			for _, t := range history {
				g.add(number(t.Sequence), text(moment(t.OccurredAt)), optional(t.From), optional(t.To), text(t.Cause), text(t.Actor), text(t.Message))
			}
			return a.show(result{data: list(history), grid: g})
		}),
		ValidArgsFunction: a.completeArgs(a.machineNames),
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "show at most the last so many entries; 0 shows all")
	return cmd
}

// history reads the newest entries first, so that a limit keeps them, and
// returns them oldest first.
func (a *app) history(ctx context.Context, machineID string, limit int) ([]transitionView, error) {
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	var history []transitionView
	err = pages(limit, func(n int, after *string) (int, client.Page, error) {
		found, err := client.MachineHistory(ctx, gql, machineID, n, after)
		if err != nil {
			return 0, client.Page{}, err
		}
		for _, edge := range found.Transitions.Edges {
			n := edge.Node
			history = append(history, transitionView{n.Sequence, n.OccurredAt, n.FromState, n.ToState, n.Cause, n.Actor, n.Message, n.Details})
		}
		return len(found.Transitions.Edges), found.Transitions.PageInfo, nil
	})
	slices.Reverse(history)
	return history, err
}
