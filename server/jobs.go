package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"fleetgraph/internal/jobs"
	"fleetgraph/resolvers"
	"fleetgraph/services/access"
	"fleetgraph/services/bom"
)

const (
	// jobPoll is how often waiting jobs are looked for beside the notifications, which
	// River drops where a transaction that inserted one was rolled back shortly before.
	jobPoll = time.Second
	// jobTimeout bounds one job: each looks at some hundreds of machines at most.
	jobTimeout = 30 * time.Second
	// jobRescue is when a job that is running still is taken for one whose process was
	// killed, and runs again.
	jobRescue = 45 * time.Second
	// jobRetention is how long jobs that ended well are kept, for people to look at.
	jobRetention = time.Hour
	// jobStopTimeout is how long a stop waits for the jobs under way.
	jobStopTimeout = 10 * time.Second
	// attendInterval is how often machines that are due are looked for. It bounds how
	// late an interval of a site's configuration is.
	attendInterval = 2 * time.Second
	// sweepInterval is how often idempotency keys whose time is over are deleted.
	sweepInterval = time.Hour
	// resumeInterval is how often bulk jobs are looked for that nobody works on any more.
	resumeInterval = time.Minute
)

// runner runs jobs; any number of processes share them.
type runner struct {
	client *river.Client[pgx.Tx]
	logger *slog.Logger
}

// newRunner says who does which job, and which jobs come by themselves.
func newRunner(db *database, root *resolvers.Resolver, logger *slog.Logger) (*runner, error) {
	workers := river.NewWorkers()
	does(workers, root.Bom.EvaluateSku)
	does(workers, root.Bom.EvaluateSite)
	does(workers, root.Bom.AttendMachines)
	does(workers, root.Bom.RunBulk)
	does(workers, root.Bom.ResumeBulk)
	does(workers, root.Access.SweepKeys)
	client, err := river.NewClient(riverpgxv5.New(db.Pool), &river.Config{
		Logger: slog.New(quiet{logger.Handler()}),
		Queues: map[string]river.QueueConfig{
			river.QueueDefault: {MaxWorkers: max(2, runtime.GOMAXPROCS(0))},
			bom.BulkQueue:      {MaxWorkers: 1},
		},
		Workers: workers,
		PeriodicJobs: []*river.PeriodicJob{
			every(attendInterval, bom.AttendMachines{}), every(sweepInterval, access.SweepKeys{}), every(resumeInterval, bom.ResumeBulk{}),
		},
		FetchPollInterval:           jobPoll,
		JobTimeout:                  jobTimeout,
		RescueStuckJobsAfter:        jobRescue,
		CompletedJobRetentionPeriod: jobRetention,
		Middleware:                  []rivertype.Middleware{&asSystem{}},
		ErrorHandler:                jobErrors{logger},
	})
	if err != nil {
		return nil, fmt.Errorf("job runner: %w", err)
	}
	return &runner{client, logger}, nil
}

// does has do do the jobs of its arguments' kind.
func does[A jobs.Args](workers *river.Workers, do func(context.Context, A) error) {
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[A]) error { return do(ctx, job.Args) }))
}

// every makes a job come by itself, once over all processes. It is not tried again:
// the next one comes. River's unique jobs would not do, since one whose process was
// killed would keep the next ones away until it is rescued.
func every(interval time.Duration, args jobs.Args) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(interval), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{MaxAttempts: 1}
	}, nil)
}

func (r *runner) start(ctx context.Context) error {
	if err := r.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the job runner: %w", err)
	}
	return nil
}

// stop lets the jobs under way end, for a while; those that are cut off run again
// elsewhere.
func (r *runner) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobStopTimeout)
	defer cancel()
	err := r.client.Stop(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	r.logger.WarnContext(ctx, "jobs were cut off", slog.Duration("waited", jobStopTimeout))
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), jobStopTimeout)
	defer cancel()
	return r.client.StopAndCancel(ctx)
}

// asSystem lets a job act as the part of the system that its kind names.
type asSystem struct{ river.MiddlewareDefaults }

// Work runs a job.
func (*asSystem) Work(ctx context.Context, job *rivertype.JobRow, do func(context.Context) error) error {
	return do(access.AsSystem(ctx, job.Kind))
}

// jobErrors logs what jobs fail of; River tries them again.
type jobErrors struct{ logger *slog.Logger }

// HandleError logs an error.
func (e jobErrors) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	e.logger.ErrorContext(ctx, "a job failed", slog.String("job_kind", job.Kind), slog.Int64("job_id", job.ID),
		slog.Int("attempt", job.Attempt), slog.Any("err", err))
	return nil
}

// HandlePanic logs a panic.
func (e jobErrors) HandlePanic(ctx context.Context, job *rivertype.JobRow, value any, trace string) *river.ErrorHandlerResult {
	e.logger.ErrorContext(ctx, "a job panicked", slog.String("job_kind", job.Kind), slog.Int64("job_id", job.ID),
		slog.Int("attempt", job.Attempt), slog.Any("panic", value), slog.String("trace", trace))
	return nil
}

// quiet is a log that takes River's everyday news for details.
type quiet struct{ slog.Handler }

// Enabled lets news pass where details are wanted.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	if level == slog.LevelInfo {
		level = slog.LevelDebug
	}
	return q.Handler.Enabled(ctx, level)
}

// Handle logs a record.
func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	if record.Level == slog.LevelInfo {
		record.Level = slog.LevelDebug
	}
	return q.Handler.Handle(ctx, record)
}

// WithAttrs is the same log with attributes.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup is the same log within a group.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
