// Package server is the running process: it puts the database, the services, the
// resolvers and HTTP together, and takes them apart again in order.
//
// What it never does: decide anything of the domain. What it holds to: an answer
// carries a code and never a cause; a token is never logged; nothing accepted is
// dropped by a stop that has the time to end it.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"fleetgraph/internal/jobs"
	"fleetgraph/internal/tally"
	"fleetgraph/server/demo"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// Bounds of a connection. A body has to arrive within readTimeout; the answer may
// take the operation's time-out and the time to send it.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 90 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10 // a GET request has its query in the URL
)

// stopTimeout is how long a stop waits for the requests that are under way.
const stopTimeout = 15 * time.Second

// postgresShows is how long after its last answer the end of the server's own
// Postgres may be noticed.
const postgresShows = time.Second

var errPostgresEnded = errors.New("the server's own Postgres has ended by itself; its last lines in this log say why")

// Server is a server that listens. Run serves.
type Server struct {
	logger   *slog.Logger
	db       *database
	jobs     *runner
	follow   *following
	ready    *readiness
	listener net.Listener
	http     *http.Server
	requests context.CancelFunc // ends the contexts of all requests
}

// New opens the database, brings its schema up to date, listens, and prints where;
// connections wait until Run serves them. On an empty database it issues the first
// admin token. After an error nothing is left running.
func New(ctx context.Context, cfg Config) (s *Server, err error) {
	s = &Server{logger: cfg.Logger}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
			s = nil
		}
	}()
	// Before the database: an address in use is the commonest mistake, and the
	// quickest to tell.
	if s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen); err != nil {
		return s, fmt.Errorf("listen: %w", err)
	}
	issuers, err := readIssuers(cfg.OIDCConfigFile, time.Now)
	if err != nil {
		return s, err
	}
	if !isLoopback(s.listener.Addr()) {
		cfg.Logger.WarnContext(ctx, "listening beyond this machine without TLS: tokens cross the network in the clear",
			slog.String("address", s.listener.Addr().String()))
	}
	if s.db, err = openDatabase(ctx, cfg); err != nil {
		return s, err
	}
	client := newClient(s.db)
	box, err := openKey(ctx, cfg, client)
	if err != nil {
		return s, err
	}
	queue, err := jobs.NewQueue(slog.New(quiet{cfg.Logger.Handler()}))
	if err != nil {
		return s, err
	}
	feed := events.NewFeed(s.db.DB, client, func(ctx context.Context) context.Context { return access.AsSystem(ctx, "events") }, cfg.Logger)
	root := newResolver(foundation{client, queue, box, feed, cfg.Logger, cfg.SkuLimits, time.Now, issuers})
	if err := root.Validation.CompleteCatalogs(ctx); err != nil {
		return s, err
	}
	if s.jobs, err = newRunner(s.db, root, cfg.Logger); err != nil {
		return s, err
	}
	p := presenter{cfg.Logger}
	s.ready = &readiness{db: s.db.SQL, logger: cfg.Logger}
	base := s.requestsUnder(ctx)
	page, err := newJobsPage(base, s.jobs, cfg.Logger)
	if err != nil {
		return s, err
	}
	auth, err := newGuard(root.Access, cfg.Rate, time.Now)
	if err != nil {
		return s, err
	}
	limiter, err := newRateLimiter(cfg.Rate, time.Now)
	if err != nil {
		return s, err
	}
	answers, err := newGraphHandler(root, &sessions{
		auth: auth, feed: feed, present: p, limiter: limiter, streams: tally.New(int64(cfg.Callers.withDefaults().Streams)),
	}, cfg, p)
	if err != nil {
		return s, err
	}
	s.follow = &following{feed: feed, sockets: answers.sockets}
	handler, err := routes(cfg.Logger, cfg.Proxies, face{
		graph: orInit(signedIn(auth, p, limited(limiter, p, answers)), answers), ready: s.ready,
		metrics: scraped(auth, p, newMetrics(s.db.Pool, answers.sockets.Open, cfg.Logger)),
		jobs:    administered(auth, p, page),
	})
	if err != nil {
		return s, err
	}
	s.newHTTP(base, handler)
	if cfg.Demo {
		if err := demo.Fill(ctx, demo.Services{Client: root.Client, Sites: root.Sites, Skus: root.Bom, Machines: root.Lifecycle}); err != nil {
			return s, fmt.Errorf("demo: %w", err)
		}
	}
	return s, greet(ctx, root.Access, cfg, consoleURL(s.listener.Addr()))
}

// requestsUnder is the context of all requests, which a stop lets end first.
func (s *Server) requestsUnder(ctx context.Context) context.Context {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.requests = cancel
	return base
}

func (s *Server) newHTTP(base context.Context, handler http.Handler) {
	s.http = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug), // what clients do wrong
		BaseContext:       func(net.Listener) context.Context { return base },
	}
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx ends, then stops: no new connections, 15 s for the requests
// under way, then their contexts end; the connections to the database are closed
// and, last of all, the server's own Postgres is shut down. It returns an error
// when something other than ctx ended the service. It is called once.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	s.logger.InfoContext(ctx, "serving", slog.String("address", s.listener.Addr().String()))
	s.follow.start(ctx)
	err := s.jobs.start(ctx)
	if err == nil {
		err = s.wait(ctx, served)
	} else {
		err = s.orPostgres(err)
	}
	err = errors.Join(err, s.stopHTTP(ctx), s.jobs.stop(ctx), s.close(ctx))
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// orPostgres is why the service could not begin: err, or what caused it, which shows
// a moment later.
func (s *Server) orPostgres(err error) error {
	timer := time.NewTimer(postgresShows)
	defer timer.Stop()
	select {
	case <-s.db.down():
		return errors.Join(errPostgresEnded, err)
	case <-timer.C:
		return err
	}
}

// wait returns when ctx has ended, or with what else ended the service.
func (s *Server) wait(ctx context.Context, served chan error) error {
	select {
	case <-ctx.Done():
		s.logger.InfoContext(ctx, "stopping")
		return nil
	case <-s.db.down():
		return errPostgresEnded
	case err := <-served:
		served <- nil
		return err
	}
}

// stopHTTP ends the service of requests: streams first, which have no end of their
// own.
func (s *Server) stopHTTP(ctx context.Context) error {
	s.ready.stop()
	s.follow.stop(ctx)
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := s.http.Shutdown(wait)
	s.requests()
	if err == nil {
		return nil
	}
	s.logger.WarnContext(ctx, "requests were cut off", slog.Duration("waited", stopTimeout))
	return s.http.Close()
}

// close releases what New opened, in the order that it depends on each other.
func (s *Server) close(ctx context.Context) error {
	var err error
	if s.requests != nil {
		s.requests()
	}
	if s.listener != nil {
		if closed := s.listener.Close(); !errors.Is(closed, net.ErrClosed) {
			err = closed
		}
	}
	if s.db != nil {
		err = errors.Join(err, s.db.close(ctx))
	}
	return err
}
