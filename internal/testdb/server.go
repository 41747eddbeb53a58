package testdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"fleetgraph/internal/pgembed"
)

// server makes databases. The embedded server and the template come to be on first
// use and end with close.
type server struct {
	migrate Migrate

	once     sync.Once
	startErr error
	embedded *pgembed.Server // nil for an external one
	dir      string
	ownerURL string // a role that may create databases, and owns those of the tests
	adminURL string
	template string // "" until the migrations have run
}

// start does its work once; every test of a process whose server does not start
// fails with the same error. It has a context of its own: that of the first test
// must not end the server of the others.
func (s *server) start() error {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		s.startErr = s.startServer(ctx)
		if s.startErr == nil {
			s.startErr = s.makeTemplate(ctx)
		}
	})
	return s.startErr
}

func (s *server) startServer(ctx context.Context) error {
	if external := os.Getenv(externalURL); external != "" {
		s.ownerURL, s.adminURL = external, external
		return nil
	}
	if err := sweep(os.TempDir(), time.Now()); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return err
	}
	s.dir = dir
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // when we are root, PostgreSQL's account passes through
		return err
	}
	embedded, err := pgembed.Start(ctx, pgembed.Config{
		DataDir: dir, NoFsync: true,
		// A worker of autovacuum, which is the superuser's, keeps a database from being dropped.
		Settings: map[string]string{"autovacuum": "off"},
	})
	if err != nil {
		return err
	}
	s.embedded = embedded
	s.ownerURL, s.adminURL = embedded.URL(), embedded.AdminURL()
	return nil
}

func (s *server) makeTemplate(ctx context.Context) error {
	name, url, err := s.emptyDatabase(ctx)
	if err != nil {
		return fmt.Errorf("template: %w", err)
	}
	s.template = name
	if s.migrate != nil {
		if err := s.migrate(ctx, url); err != nil {
			return fmt.Errorf("migrate the template: %w", err)
		}
	}
	// CREATE DATABASE fails while anybody is connected to the template.
	if err := onServer(ctx, s.ownerURL, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false"); err != nil {
		return fmt.Errorf("close the template: %w", err)
	}
	return nil
}

// newDatabase copies the template's files, which without fsync is faster than
// logging its blocks.
func (s *server) newDatabase(ctx context.Context) (name, databaseURL string, err error) {
	return s.createDatabase(ctx, " TEMPLATE "+s.template+" STRATEGY file_copy")
}

func (s *server) emptyDatabase(ctx context.Context) (name, databaseURL string, err error) {
	return s.createDatabase(ctx, " TEMPLATE template0 STRATEGY file_copy")
}

// createDatabase invents the name: several processes may use one external server.
func (s *server) createDatabase(ctx context.Context, options string) (name, databaseURL string, err error) {
	name = "fleetgraph_test_" + strings.ToLower(rand.Text()[:16])
	databaseURL, err = withDatabase(s.ownerURL, name)
	if err != nil {
		return "", "", err
	}
	return name, databaseURL, onServer(ctx, s.ownerURL, "CREATE DATABASE "+name+options)
}

func (s *server) dropDatabase(ctx context.Context, name string) error {
	return onServer(ctx, s.ownerURL, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

func (s *server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var err error
	switch {
	case s.embedded != nil:
		err = s.embedded.Stop(ctx)
	case s.template != "":
		err = s.dropDatabase(ctx, s.template)
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

func withDatabase(address, name string) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil || (parsed.Scheme != "postgres" && parsed.Scheme != "postgresql") {
		return "", errors.New(externalURL + " must be a postgres:// URL") // the error of Parse repeats the password
	}
	parsed.Path = "/" + name
	return parsed.String(), nil
}
