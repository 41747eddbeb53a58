package pgembed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating-system user PostgreSQL runs as. PostgreSQL refuses to
// run as root, so a root process lends it another one.
type account struct {
	uid, gid uint32
	name     string
	// own says that it is this process's user: nothing to switch, nothing to chown.
	own bool
}

// chooseAccount returns this process's user unless that is root; then the owner of
// the existing cluster, so that the choice holds when users come and go; then
// postgres, then nobody.
func chooseAccount(cluster cluster) (account, error) {
	owner, exists, err := ownerOf(cluster.dir)
	if err != nil {
		return account{}, err
	}
	if euid := os.Geteuid(); euid != 0 {
		if exists && int(owner.uid) != euid {
			return account{}, fmt.Errorf("%s belongs to user %d, this process is user %d: start it as that user or as root",
				cluster.dir, owner.uid, euid)
		}
		return account{uid: uint32(euid), gid: uint32(os.Getegid()), name: strconv.Itoa(euid), own: true}, nil
	}
	if exists && owner.uid != 0 {
		return owner, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := lookupAccount(name)
		var unknown user.UnknownUserError
		if errors.As(err, &unknown) {
			continue
		}
		return found, err
	}
	return account{}, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it: " +
		"start as another user")
}

func lookupAccount(name string) (account, error) {
	entry, err := user.Lookup(name)
	if err != nil {
		return account{}, err
	}
	uid, err := strconv.ParseUint(entry.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s: %w", name, err)
	}
	gid, err := strconv.ParseUint(entry.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s: %w", name, err)
	}
	return account{uid: uint32(uid), gid: uint32(gid), name: name}, nil
}

func ownerOf(dir string) (owner account, exists bool, err error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return account{}, false, nil
	}
	if err != nil {
		return account{}, false, fmt.Errorf("data directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return account{}, false, fmt.Errorf("data directory %s: owner unknown", dir)
	}
	return account{uid: stat.Uid, gid: stat.Gid, name: strconv.Itoa(int(stat.Uid))}, true, nil
}

// credential is nil for the own account. Supplementary groups are dropped.
func (a account) credential() *syscall.Credential {
	if a.own {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// give makes the account the owner of a file that this process has made.
func (a account) give(path string) error {
	if a.own {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// checkReach tries, as the account, to enter dir and to run the binaries. Trying is
// exact where reading mode bits is not: access lists, mounts, security modules.
// The error names the outermost directory that is closed.
func (a account) checkReach(ctx context.Context, dir string, binaries binaries) error {
	if a.own {
		return nil
	}
	try := func(dir string) error {
		return binaries.command(ctx, "postgres", a, dir, "--version").Run()
	}
	err := try(dir)
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	if err := try("/"); err != nil {
		return fmt.Errorf("user %s, who is to run PostgreSQL, cannot run %s: %w", a.name, binaries.dir, err)
	}
	for _, parent := range ancestors(dir) {
		if try(parent) != nil {
			return fmt.Errorf("user %s, who is to run PostgreSQL because this process is root, cannot enter %s: "+
				"allow it (chmod o+x %s) or choose a data directory elsewhere, such as /var/lib/fleetgraph",
				a.name, parent, parent)
		}
	}
	return fmt.Errorf("user %s, who is to run PostgreSQL, cannot enter %s: %w", a.name, dir, err)
}

// ancestors lists dir and its parents, outermost first, without the root.
func ancestors(dir string) []string {
	if parent := filepath.Dir(dir); parent != dir {
		return append(ancestors(parent), dir)
	}
	return nil
}
