package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

func (a *app) jobCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "job", Short: "Jobs: work that goes on by itself, such as a bulk change of machines"}
	cmd.AddCommand(a.jobShow(), a.jobList(), a.jobWait(), a.jobCancel())
	return cmd
}

// jobView is a job as scripts read it. What only bulk jobs have is left out of others.
type jobView struct {
	ID       string          `json:"id"`
	Kind     fleet.JobKind   `json:"kind"`
	State    fleet.JobState  `json:"state"`
	Actor    string          `json:"actor"`
	Created  time.Time       `json:"created"`
	Started  *time.Time      `json:"started"`
	Finished *time.Time      `json:"finished"`
	Summary  string          `json:"summary"`
	Failure  *jobFailureView `json:"failure"`
	*bulkView
}

type jobFailureView struct {
	Code    string `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// bulkView is what only bulk jobs have.
type bulkView struct {
	Operation fleet.BulkOperation `json:"operation"`
	Sku       *string             `json:"sku_id"`
	Force     bool                `json:"force"`
	Total     int                 `json:"total"`
	Done      int                 `json:"done"`
	Succeeded int                 `json:"succeeded"`
	Failed    int                 `json:"failed"`
	Skipped   int                 `json:"skipped"`
}

func newJobView(j client.JobFields) jobView {
	v := jobView{
		ID: j.GetId(), Kind: j.GetKind(), State: j.GetState(), Actor: j.GetActor(),
		Created: j.GetCreatedAt(), Started: j.GetStartedAt(), Finished: j.GetFinishedAt(), Summary: j.GetSummary(),
	}
	if f := j.GetFailure(); f != nil {
		v.Failure = &jobFailureView{f.Code, f.Reason, f.Message}
	}
	if b, ok := j.(*client.JobFieldsBulkJob); ok {
		v.bulkView = &bulkView{b.Operation, b.SkuName, b.Force, b.Total, b.Done, b.Succeeded, b.Failed, b.Skipped}
	}
	return v
}

// isDone tells whether the job did all that it was to do.
func (v jobView) isDone() bool {
	return v.State == fleet.JobSucceeded && (v.bulkView == nil || v.Failed == 0)
}

// bulkItemView is one machine of a bulk job, or of its dry run, as scripts read it.
type bulkItemView struct {
	Machine  string            `json:"machine"`
	Outcome  fleet.BulkOutcome `json:"outcome"`
	Code     *string           `json:"code"`
	Reason   *string           `json:"reason"`
	Message  string            `json:"message"`
	Finished *time.Time        `json:"finished,omitempty"`
}

func bulkGrid(items []bulkItemView) *grid {
	g := &grid{headers: []string{"Machine", "Outcome", "Reason", "Message"}}
	for _, item := range items {
		g.add(text(item.Machine), text(string(item.Outcome)), optional(item.Reason), cell(strings.Split(item.Message, "\n")))
	}
	return g
}

// job reads the job of this id.
func (a *app) job(ctx context.Context, id string) (jobView, error) {
	gql, err := a.api()
	if err != nil {
		return jobView{}, err
	}
	found, err := client.JobById(ctx, gql, id)
	if err != nil {
		return jobView{}, err
	}
	if found.Job == nil {
		return jobView{}, fleet.Missing("job", "JOB_NOT_FOUND", "job not found: %s", id)
	}
	return newJobView(found.Job), nil
}

// bulkItems reads the machines of a bulk job, those with one of the outcomes if any are
// given.
func (a *app) bulkItems(ctx context.Context, id string, outcomes ...fleet.BulkOutcome) ([]bulkItemView, error) {
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	items := []bulkItemView{}
	err = pages(0, func(n int, after *string) (int, client.Page, error) {
		found, err := client.ListBulkItems(ctx, gql, id, n, after, outcomes)
		if err != nil {
			return 0, client.Page{}, err
		}
		bulk, ok := found.Job.(*client.ListBulkItemsJobBulkJob)
		if !ok {
			return 0, client.Page{}, nil
		}
		for _, item := range bulk.Items.Nodes {
			items = append(items, bulkItemView{item.MachineName, item.Outcome, item.Code, item.Reason, item.Message, item.FinishedAt})
		}
		return len(bulk.Items.Nodes), bulk.Items.PageInfo, nil
	})
	return items, err
}

// jobs reads the jobs of the site, the latest first, at most limit of them unless it is 0.
func (a *app) jobs(ctx context.Context, states []fleet.JobState, limit int) ([]jobView, error) {
	site, err := a.site(ctx)
	if err != nil {
		return nil, err
	}
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	jobs := []jobView{}
	err = pages(limit, func(n int, after *string) (int, client.Page, error) {
		found, err := client.ListJobs(ctx, gql, site.Name, n, after, states)
		if err != nil || found.Site == nil {
			return 0, client.Page{}, err
		}
		for _, j := range found.Site.Jobs.Nodes {
			jobs = append(jobs, newJobView(j))
		}
		return len(found.Site.Jobs.Nodes), found.Site.Jobs.PageInfo, nil
	})
	return jobs, err
}

func (a *app) jobIDs(ctx context.Context) ([]string, error) {
	jobs, err := a.jobs(ctx, nil, pageSize)
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID + "\t" + string(j.State) + ", " + j.Summary
	}
	return ids, err
}

// shownJob is a job with the machines that were asked for.
type shownJob struct {
	jobView
	Items []bulkItemView `json:"items,omitempty"`
}

// showJob shows a job, and the machines that it did not change; with --extended all.
func (a *app) showJob(ctx context.Context, j jobView) error {
	shown := shownJob{jobView: j}
	title := "Machines"
	if j.bulkView != nil {
		outcomes := []fleet.BulkOutcome{fleet.BulkFailed, fleet.BulkSkipped}
		title = "Not changed"
		if a.flags.extended || a.format == formatCSV {
			outcomes, title = nil, "Machines"
		}
		items, err := a.bulkItems(ctx, j.ID, outcomes...)
		if err != nil {
			return err
		}
		shown.Items = items
	}
	g := bulkGrid(shown.Items)
	return a.show(result{data: shown, grid: g, page: func(p *page) {
		p.field("Job", j.ID)
		p.field("State", string(j.State))
		p.field("Summary", j.Summary)
		if j.Failure != nil {
			p.field("Failure", j.Failure.Message+" ("+j.Failure.Code+" "+j.Failure.Reason+")")
		}
		p.field("Submitted", moment(j.Created)+" by "+j.Actor)
		p.field("Started", when(j.Started))
		p.field("Finished", when(j.Finished))
		if j.bulkView != nil {
			p.blank()
			p.section(title, g)
		}
	}})
}

func (a *app) jobShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show JOB",
		Aliases: []string{"s"},
		Short:   "Shows a job, and the machines that it did not change; with --extended all of them",
		Args:    cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			j, err := a.job(ctx, args[0])
			if err != nil {
				return err
			}
			return a.showJob(ctx, j)
		}),
		ValidArgsFunction: a.completeArgs(a.jobIDs),
	}
}

func (a *app) jobList() *cobra.Command {
	var words []string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"l"},
		Short:   "Lists the jobs of the site, the latest first",
		Args:    cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			var states []fleet.JobState
			for _, word := range words {
				state, ok := wordOf(word, fleet.JobState("").Values())
				if !ok {
					return usagef("--state: %q is no state, expected one of %s", word, strings.Join(fleet.JobState("").Values(), ", "))
				}
				states = append(states, fleet.JobState(state))
			}
			if limit < 0 {
				return usagef("--limit must not be negative")
			}
			jobs, err := a.jobs(ctx, states, limit)
			if err != nil {
				return err
			}
			g := &grid{headers: []string{"Job", "State", "Submitted", "By", "Summary"}}
			for _, j := range jobs {
				g.add(text(j.ID), text(string(j.State)), text(moment(j.Created)), text(j.Actor), text(j.Summary))
			}
			return a.show(result{data: jobs, grid: g})
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&words, "state", nil, "only jobs in this `state`; may be repeated")
	f.IntVar(&limit, "limit", 50, "list at most so many jobs; 0 lists all")
	a.completeWords(cmd, "state", fleet.JobState("").Values()...)
	return cmd
}

func (a *app) jobCancel() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel JOB",
		Short: "Stops a job: what it has done stays, and nothing more is begun",
		Args:  cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.CancelJob(ctx, gql, client.CancelJobInput{JobId: args[0], IdempotencyKey: newKey()})
			if err != nil {
				return err
			}
			j := newJobView(done.CancelJob.Job)
			a.note("cancelled %s: %s", j.ID, j.Summary)
			return a.show(result{data: j})
		}),
		ValidArgsFunction: a.completeArgs(a.jobIDs),
	}
}
