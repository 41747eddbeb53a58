package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

// bulkRequest is what the flags of a bulk change say.
type bulkRequest struct {
	where, prefix            string
	states                   []string
	unassigned               bool
	all, force, dryRun, wait bool
}

func (r *bulkRequest) flags(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.where, "where", "", "only machines that this filter finds: the graph's MachineWhereInput as `JSON`")
	f.StringVar(&r.prefix, "name-prefix", "", "only machines whose name begins with this `text`")
	f.StringSliceVar(&r.states, "state", nil, "only machines in this `state` or sub-state; may be repeated")
	f.BoolVar(&r.unassigned, "unassigned", false, "only machines without a SKU")
	f.BoolVar(&r.all, "all", false, "every machine of the site")
	f.BoolVar(&r.force, "force", false, "whatever SKU and state a machine has")
	f.BoolVar(&r.dryRun, "dry-run", false, "only tell what would become of each machine")
	f.BoolVar(&r.wait, "wait", false, "wait until the job has ended; the exit code is 1 if a machine was refused")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "wait")
	a.completeWords(cmd, "state", append(fleet.MachineState("").Values(), fleet.MachineSubState("").Values()...)...)
}

// filter is the filter that the flags make: all that they say must hold. Without any
// the command is refused, unless --all says that the whole site is meant.
func (r *bulkRequest) filter() (json.RawMessage, error) {
	conditions := []any{}
	if r.where != "" {
		where := map[string]any{}
		if err := json.Unmarshal([]byte(r.where), &where); err != nil {
			return nil, usagef("--where is no JSON object: %v", err)
		}
		conditions = append(conditions, where)
	}
	if r.prefix != "" {
		conditions = append(conditions, map[string]any{"nameHasPrefix": r.prefix})
	}
	narrowed, err := newMachineFilter(r.states, "", "", r.unassigned)
	if err != nil {
		return nil, err
	}
	if narrowed.states != nil {
		conditions = append(conditions, map[string]any{"stateIn": narrowed.states})
	}
	if narrowed.subStates != nil {
		conditions = append(conditions, map[string]any{"subStateIn": narrowed.subStates})
	}
	if r.unassigned {
		conditions = append(conditions, map[string]any{"skuNameIsNil": true})
	}
	switch {
	case r.all && len(conditions) > 0:
		return nil, usagef("--all is every machine of the site: it goes with no filter")
	case r.all:
		return json.RawMessage(`{}`), nil
	case len(conditions) == 0:
		return nil, usagef("say which machines: --where, --name-prefix, --state or --unassigned, or --all for the whole site")
	case len(conditions) == 1:
		return json.Marshal(conditions[0])
	}
	return json.Marshal(map[string]any{"and": conditions})
}

// bulkAnswer is what both bulk mutations answer.
type bulkAnswer struct {
	matched int
	jobID   string
	preview *client.BulkPreviewFields
}

func (a *app) skuBulkAssign() *cobra.Command {
	var r bulkRequest
	cmd := &cobra.Command{
		Use:   "bulk-assign SKU (--where JSON | --name-prefix TEXT | --state STATE… | --unassigned | --all)",
		Short: "Assigns a SKU to many machines of the site, as a job",
		Example: "  fleetctl sku bulk-assign dell.xe9680.gpu.1 --name-prefix rack7- --state WaitingForSkuAssignment --dry-run\n" +
			"  fleetctl sku bulk-assign dell.xe9680.gpu.1 --where '{\"modelContainsFold\": \"xe9680\"}' --wait",
		Args: cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			where, err := r.filter()
			if err != nil {
				return err
			}
			site, err := a.site(ctx)
			if err != nil {
				return err
			}
			s, err := a.sku(ctx, args[0])
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.BulkAssignSku(ctx, gql, client.BulkAssignSkuInput{
				SiteId: site.Id, SkuId: s.Id, Where: where, All: r.all, Force: r.force, DryRun: r.dryRun, IdempotencyKey: newKey(),
			})
			if err != nil {
				return err
			}
			answer := bulkAnswer{matched: done.BulkAssignSku.Matched, preview: done.BulkAssignSku.Preview}
			if j := done.BulkAssignSku.Job; j != nil {
				answer.jobID = j.Id
			}
			return a.showBulk(ctx, r, answer)
		}),
		ValidArgsFunction: a.completeArgs(a.skuNames),
	}
	r.flags(a, cmd)
	return cmd
}

func (a *app) skuBulkUnassign() *cobra.Command {
	var r bulkRequest
	cmd := &cobra.Command{
		Use:   "bulk-unassign [SKU] (--where JSON | --name-prefix TEXT | --state STATE… | --all)",
		Short: "Takes the SKU of many machines of the site away, as a job; with SKU only that one",
		Args:  cobra.MaximumNArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			where, err := r.filter()
			if err != nil {
				return err
			}
			site, err := a.site(ctx)
			if err != nil {
				return err
			}
			input := client.BulkUnassignSkuInput{SiteId: site.Id, Where: where, All: r.all, Force: r.force, DryRun: r.dryRun, IdempotencyKey: newKey()}
			if len(args) == 1 {
				s, err := a.sku(ctx, args[0])
				if err != nil {
					return err
				}
				input.SkuId = &s.Id
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.BulkUnassignSku(ctx, gql, input)
			if err != nil {
				return err
			}
			answer := bulkAnswer{matched: done.BulkUnassignSku.Matched, preview: done.BulkUnassignSku.Preview}
			if j := done.BulkUnassignSku.Job; j != nil {
				answer.jobID = j.Id
			}
			return a.showBulk(ctx, r, answer)
		}),
		ValidArgsFunction: a.completeArgs(a.skuNames),
	}
	r.flags(a, cmd)
	return cmd
}

// bulkPreviewView is a dry run as scripts read it.
type bulkPreviewView struct {
	Matched   int            `json:"matched"`
	Succeeded int            `json:"succeeded"`
	Failed    int            `json:"failed"`
	Skipped   int            `json:"skipped"`
	Items     []bulkItemView `json:"items"`
}

// showBulk shows a dry run, the job that was submitted, or what became of it.
func (a *app) showBulk(ctx context.Context, r bulkRequest, answer bulkAnswer) error {
	if p := answer.preview; p != nil {
		view := bulkPreviewView{answer.matched, p.Succeeded, p.Failed, p.Skipped, []bulkItemView{}}
		for _, item := range p.Items {
			view.Items = append(view.Items, bulkItemView{item.MachineName, item.Outcome, item.Code, item.Reason, item.Message, nil})
		}
		a.note("of %s %d would be changed, %d refused, %d skipped; nothing was written", plural(view.Matched, "machine"), view.Succeeded, view.Failed, view.Skipped)
		if len(view.Items) < view.Matched {
			a.note("the first %d are shown, refusals before all else", len(view.Items))
		}
		return a.show(result{data: view, grid: bulkGrid(view.Items)})
	}
	a.note("submitted %s for %s", answer.jobID, plural(answer.matched, "machine"))
	if r.wait {
		return a.waitAndShow(ctx, answer.jobID)
	}
	j, err := a.job(ctx, answer.jobID)
	if err != nil {
		return err
	}
	a.note("fleetctl job wait %s waits for it", answer.jobID)
	return a.show(result{data: j})
}
