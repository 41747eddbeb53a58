// Package pgembed runs a PostgreSQL server of our own as a child process, from
// the system's binaries, so that one command is enough to try fleetgraph.
//
// Layout of Config.DataDir:
//
//	lock                    flock held as long as a Server lives
//	postgres/               the cluster, mode 0700, owned by the account that runs it
//	postgres.pgpass         passwords of both roles in libpq's form, mode 0600
//	postgres.socket         link to the socket's directory when that is a temporary one
//
// Invariants:
//   - At most one Server a data directory: the second Start gets ErrLocked.
//   - PostgreSQL never runs as root, never listens on TCP, and asks every
//     connection for a password.
//   - A crash at any instant, of this process, of PostgreSQL or of both, is no
//     obstacle to the next Start.
//   - On Linux the child does not outlive this process: the kernel asks it for a
//     fast shutdown. Elsewhere the next Start stops what was left behind.
//
// It never downloads anything, never changes the rights of a directory it did not
// make, and never restarts a server that died: Done tells, the owner decides.
package pgembed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Names inside the cluster. They are part of the URL and so of what users type.
const (
	databaseName  = "fleetgraph"
	ownerRole     = "fleetgraph"
	superuserRole = "postgres"
)

const (
	// defaultStartTimeout leaves room for the replay of max_wal_size (1 GB) of
	// log after a crash on a slow disk.
	defaultStartTimeout = 2 * time.Minute
	// abortTimeout bounds the fast shutdown of a server whose start failed.
	abortTimeout = 10 * time.Second
)

// ErrLocked reports that another live Server holds the data directory.
var ErrLocked = errors.New("data directory is in use by another server")

// Config says where the server lives. Only DataDir is needed.
type Config struct {
	// DataDir is made when absent. When the process is root, the account that
	// runs PostgreSQL must be able to pass through it and all its parents.
	DataDir string
	// Logger receives PostgreSQL's log, a record a line. Nil discards it.
	Logger *slog.Logger
	// NoFsync trades durability for speed. For tests only: a crash of the machine
	// loses the cluster. Killed processes lose nothing.
	NoFsync bool
	// StartTimeout bounds Start. Zero means two minutes.
	StartTimeout time.Duration
	// Settings are laid over the built-in configuration parameters.
	Settings map[string]string
	// SearchDirs replaces the list of directories in which Find looks for the binaries.
	SearchDirs []string
}

// Server is a running PostgreSQL. Its methods may be called concurrently.
type Server struct {
	child      *child
	lock       *lock
	socket     socketDir
	credential credentials

	stopOnce sync.Once
	stopErr  error
}

// Start makes the cluster if there is none, removes what a crash left behind, and
// returns when the server accepts connections and the database exists. ctx bounds
// the start, not the life of the server; Stop ends that.
//
// Errors: ErrNotFound without binaries, ErrLocked when another Server has the
// directory; otherwise what is wrong with the directory, or PostgreSQL's last log
// lines if it ended by itself. After an error nothing is left running.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = defaultStartTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()

	dataDir, err := makeDataDir(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	lock, err := acquireLock(filepath.Join(dataDir, "lock"))
	if err != nil {
		return nil, err
	}
	server, err := start(ctx, cfg, dataDir, lock)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return server, nil
}

func start(ctx context.Context, cfg Config, dataDir string, lock *lock) (*Server, error) {
	cluster := newCluster(dataDir)
	major, err := cluster.majorVersion()
	if err != nil {
		return nil, err
	}
	binaries, err := findBinaries(ctx, cfg.searchDirs(), major)
	if err != nil {
		return nil, err
	}
	account, err := chooseAccount(cluster)
	if err != nil {
		return nil, err
	}
	if err := account.checkReach(ctx, dataDir, binaries); err != nil {
		return nil, err
	}
	if err := cluster.clearRemains(ctx, cfg.Logger); err != nil {
		return nil, err
	}
	credential, err := cluster.loadCredentials(major != 0)
	if err != nil {
		return nil, err
	}
	if major == 0 {
		if err := cluster.create(ctx, binaries, account, credential.superuser, cfg.NoFsync); err != nil {
			return nil, err
		}
	}
	socket, err := makeSocketDir(cluster, account)
	if err != nil {
		return nil, err
	}
	// Detached: the end of ctx must not kill the server, Stop ends it. Its log is read
	// for as long as it lives.
	//nolint:contextcheck // see above
	child, err := startChild(binaries.command(context.WithoutCancel(ctx), "postgres", account, cluster.dir,
		cluster.arguments(socket, cfg)...), cfg.Logger)
	if err != nil {
		return nil, errors.Join(err, socket.remove())
	}
	server := &Server{child: child, lock: lock, socket: socket, credential: credential}
	if err := server.awaitReady(ctx); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		return nil, errors.Join(err, child.stop(stopCtx), socket.remove())
	}
	return server, nil
}

// URL is the address of the database as its owner, a role that may create
// databases and is no superuser. It holds a password: do not log it. It stays the
// same over a Stop and Start unless the path of DataDir is too long for a socket.
func (s *Server) URL() string {
	return s.socket.url(ownerRole, s.credential.owner, databaseName)
}

// AdminURL is the address of the maintenance database as superuser, for tests and
// repairs. It holds a password: do not log it.
func (s *Server) AdminURL() string {
	return s.socket.url(superuserRole, s.credential.superuser, "postgres")
}

// Done is closed when the PostgreSQL process has ended, asked for or not.
func (s *Server) Done() <-chan struct{} { return s.child.done }

// Stop shuts the server down: open transactions are rolled back, connections cut,
// a checkpoint written. When ctx ends first, it is shut down at once and recovers
// at the next Start; Stop then reports that. Stop always waits for the end of the
// process; later calls wait for the first and return its result.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		s.stopErr = errors.Join(s.child.stop(ctx), s.socket.remove(), s.lock.release())
	})
	return s.stopErr
}

// makeDataDir returns the absolute path without symbolic links: PostgreSQL's
// command line carries it, and a remnant is recognised by it.
func makeDataDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("data directory is not set")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711 // PostgreSQL's account passes through, and sees nothing
	}
	if err := os.MkdirAll(abs, mode); err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return resolved, nil
}
