package pgembed

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

const (
	// socketPort is only a part of the socket's file name.
	socketPort = "5432"
	socketFile = ".s.PGSQL." + socketPort
	// maxSocketPath is the shortest limit of our systems: 103 bytes on macOS, 107 on Linux.
	maxSocketPath = 103
	// runtimePrefix marks the directories we may remove from the temporary directory.
	runtimePrefix = "fleetgraph-pg-"
)

// socketDir holds the server's socket and nothing that must last.
type socketDir struct {
	path string
	// link leads from the data directory to a temporary one, so that whoever finds
	// the remains of a crash finds both. "" when path is the cluster's directory.
	link string
}

// makeSocketDir prefers the cluster's directory: it is private already, the URL
// stays the same over restarts, and no cleaner of /tmp takes the socket away after
// ten days. Where its path is too long, or means something else in the list
// syntax of PostgreSQL or in pgx's, a private temporary directory serves.
func makeSocketDir(cluster cluster, account account) (socketDir, error) {
	if fitsSocket(cluster.dir) {
		return socketDir{path: cluster.dir}, nil
	}
	base := os.TempDir()
	if !fitsSocket(filepath.Join(base, runtimePrefix+"0123456789")) {
		base = "/tmp"
	}
	path, err := os.MkdirTemp(base, runtimePrefix) // mode 0700
	if err != nil {
		return socketDir{}, fmt.Errorf("directory of the socket: %w", err)
	}
	dir := socketDir{path: path, link: cluster.socketLink()}
	if err := errors.Join(os.Symlink(path, dir.link), account.give(path)); err != nil {
		return socketDir{}, errors.Join(fmt.Errorf("directory of the socket: %w", err), dir.remove())
	}
	return dir, nil
}

func fitsSocket(dir string) bool {
	return len(filepath.Join(dir, socketFile)) <= maxSocketPath && !strings.ContainsAny(dir, ", \t\n\"'\\@:")
}

func (d socketDir) url(role, password, database string) string {
	address := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(role, password),
		Path:     "/" + database,
		RawQuery: url.Values{"host": {d.path}, "port": {socketPort}, "sslmode": {"disable"}}.Encode(),
	}
	return address.String()
}

// remove takes a temporary directory away. In the cluster's, PostgreSQL removes its
// socket at its end, and clearRemains what a crash left.
func (d socketDir) remove() error {
	if d.link == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(d.path), os.Remove(d.link))
}

func (c cluster) socketLink() string { return filepath.Join(c.dataDir, "postgres.socket") }

// removeOldSocketDir removes the temporary directory of a crashed server. By now the
// name may belong to somebody else, who keeps it.
func (c cluster) removeOldSocketDir() error {
	old, err := os.Readlink(c.socketLink())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	owner, exists, err := ownerOf(old)
	account, _, clusterErr := ownerOf(c.dir)
	if exists && owner.uid == account.uid && strings.HasPrefix(filepath.Base(old), runtimePrefix) {
		err = os.RemoveAll(old)
	}
	if err := errors.Join(err, clusterErr, os.Remove(c.socketLink())); err != nil {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	return nil
}
