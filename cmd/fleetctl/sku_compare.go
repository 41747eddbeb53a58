package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

func (a *app) skuDiff() *cobra.Command {
	var actual, expected string
	cmd := &cobra.Command{
		Use:   "diff --actual FILE --expected FILE",
		Short: "Compares two SKU files, without a server",
		Long: "Compares the hardware of one SKU file, the actual one, with what another expects, by the rules of the\n" +
			"expected one's schema version. Exit code 0: it matches; 1: it does not; 2: a file cannot be read.",
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			if actual == "-" && expected == "-" {
				return usagef("only one of the files can be the standard input")
			}
			is, err := a.readDocument(actual, "")
			if err != nil {
				return usageError{err}
			}
			wanted, err := a.readDocument(expected, "")
			if err != nil {
				return usageError{err}
			}
			comparison, err := sku.NewMatcher(sku.DefaultLimits()).CompareComponents(ctx, is.Components, wanted.Sku())
			if err != nil {
				return err
			}
			comparison.Mismatches = list(comparison.Mismatches)
			err = a.show(result{
				data: comparison,
				page: func(p *page) { comparisonPage(p, comparison) },
				grid: mismatchGrid(comparison.Mismatches),
			})
			if err == nil && !comparison.Match {
				return quietError{}
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&actual, "actual", "", "SKU `file` of the hardware that is there")
	cmd.Flags().StringVar(&expected, "expected", "", "SKU `file` of the hardware that should be there")
	_ = cmd.MarkFlagRequired("actual")
	_ = cmd.MarkFlagRequired("expected")
	return cmd
}

// explanation is a SKU near to a machine, as scripts read it.
type explanation struct {
	Sku           string           `json:"sku_id"`
	SchemaVersion int              `json:"schema_version"`
	Match         bool             `json:"match"`
	Distance      int              `json:"distance"`
	Mismatches    []fleet.Mismatch `json:"mismatches"`
	Notes         []fleet.Note     `json:"notes"`
	Edits         []fleet.Edit     `json:"edits"`
}

func (a *app) skuExplain() *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use:   "explain MACHINE",
		Short: "Shows the SKUs nearest to a machine and what would make it match",
		Args:  cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			m, err := a.machine(ctx, args[0])
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			found, err := client.ExplainSku(ctx, gql, m.Id, count)
			if err != nil {
				return err
			}
			data := make([]explanation, len(found.ExplainSku))
			g := &grid{headers: append([]string{"SKU ID", "Distance"}, mismatchHeaders()...)}
			for i, c := range found.ExplainSku {
				data[i] = explanation{
					Sku: c.Sku.Name, SchemaVersion: c.Sku.SchemaVersion, Match: c.Match, Distance: c.Distance,
					Mismatches: mismatches(c.Mismatches), Notes: notes(c.Notes), Edits: edits(c.Edits),
				}
				for _, row := range mismatchGrid(data[i].Mismatches).rows {
					g.add(append([]cell{text(c.Sku.Name), number(c.Distance)}, row...)...)
				}
			}
			return a.show(result{data: data, page: func(p *page) { explainPage(p, m, data) }, grid: g})
		}),
		ValidArgsFunction: a.completeArgs(a.machineNames),
	}
	cmd.Flags().IntVar(&count, "first", 3, "how many SKUs to show, at most 20")
	return cmd
}

func explainPage(p *page, m client.MachineFields, explanations []explanation) {
	p.field("Machine", m.Name)
	p.optional("SKU", m.SkuName)
	if len(explanations) == 0 {
		p.blank()
		p.line("The site has no SKU that could be compared.")
	}
	for i, e := range explanations {
		p.blank()
		if e.Match {
			p.line("%d. %s: matches", i+1, e.Sku)
		} else {
			p.line("%d. %s: %s to change", i+1, e.Sku, plural(e.Distance, "part"))
		}
		differencePage(p, e.Mismatches, e.Notes)
		if len(e.Edits) > 0 {
			p.line("Smallest edits to the machine:")
			for _, edit := range e.Edits {
				p.line("  %s", edit.Message)
			}
		}
	}
}

// comparisonPage shows the outcome of one comparison.
func comparisonPage(p *page, c fleet.Comparison) {
	if c.Match {
		p.line("match")
	} else {
		p.line("mismatch: %s", plural(len(c.Mismatches), "difference"))
	}
	differencePage(p, c.Mismatches, c.Notes)
}

// differencePage shows expected and actual side by side, then the same in the
// words that alerts and runbooks use, then likely causes and notes.
func differencePage(p *page, differences []fleet.Mismatch, remarks []fleet.Note) {
	if len(differences) > 0 {
		p.table(0, mismatchGrid(differences))
		p.line("Messages:")
		var hints []string
		for _, m := range differences {
			p.line("  %s", strings.TrimSpace(m.Message))
			if m.Hint != "" && !slices.Contains(hints, m.Hint) {
				hints = append(hints, m.Hint)
			}
		}
		for _, hint := range hints {
			p.line("Hint: %s", hint)
		}
	}
	for _, n := range remarks {
		p.line("Note: %s", n.Message)
	}
}

func mismatchHeaders() []string {
	return []string{"Component", "Kind", "Part", "Expected", "Actual"}
}

func mismatchGrid(differences []fleet.Mismatch) *grid {
	g := &grid{headers: mismatchHeaders()}
	for _, m := range differences {
		part := strings.TrimSpace(m.Subject + " " + m.Attribute)
		g.add(text(string(m.Component)), text(string(m.Kind)), text(part), optional(m.Expected), optional(m.Actual))
	}
	return g
}
