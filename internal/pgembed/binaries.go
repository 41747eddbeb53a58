package pgembed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// minMajor is the oldest PostgreSQL the schema is tested on.
const minMajor = 15

// ErrNotFound reports that no usable PostgreSQL is installed. The error's text
// names the command that installs it.
var ErrNotFound = errors.New("no PostgreSQL server binaries of version 15 or newer")

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// binaries is one installation.
type binaries struct {
	dir   string
	major int
}

// Find returns the directory of the newest usable PostgreSQL (15 or later): first
// of those on PATH, then of those where the packages of Debian, PGDG, Alpine and
// Homebrew put theirs. The error is ErrNotFound with the install command.
func Find() (binDir string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	found, err := findBinaries(ctx, Config{}.searchDirs(), 0)
	return found.dir, err
}

func (c Config) searchDirs() []string {
	if c.SearchDirs != nil {
		return c.SearchDirs
	}
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
	} {
		matches, _ := filepath.Glob(pattern) // the only error is a bad pattern
		dirs = append(dirs, matches...)
	}
	return dirs
}

// findBinaries returns the newest installation, or with major != 0 the one of that
// version: a cluster can be opened by its own major version only.
func findBinaries(ctx context.Context, dirs []string, major int) (binaries, error) {
	var found []binaries
	for _, dir := range dirs {
		if candidate, ok := inspect(ctx, dir); ok && candidate.major >= minMajor {
			found = append(found, candidate)
		}
	}
	if err := ctx.Err(); err != nil {
		return binaries{}, fmt.Errorf("look for PostgreSQL: %w", err) // an inspection may have been cut short
	}
	if len(found) == 0 {
		release, _ := os.ReadFile("/etc/os-release") // absent: the general hint
		return binaries{}, fmt.Errorf("%w: install them with `%s`, or name a server in FLEETGRAPH_DATABASE_URL",
			ErrNotFound, installCommand(runtime.GOOS, string(release)))
	}
	// The sort is stable, so PATH wins among equals.
	slices.SortStableFunc(found, func(a, b binaries) int { return cmp.Compare(b.major, a.major) })
	if major == 0 {
		return found[0], nil
	}
	if i := slices.IndexFunc(found, func(b binaries) bool { return b.major == major }); i >= 0 {
		return found[i], nil
	}
	return binaries{}, fmt.Errorf("%w: the data was written by PostgreSQL %d, installed is %d; install %d or use pg_upgrade",
		ErrNotFound, major, found[0].major, major)
}

// inspect accepts a directory only with both programs: client-only packages and
// Debian's wrappers in /usr/bin lack them.
func inspect(ctx context.Context, dir string) (binaries, bool) {
	if !filepath.IsAbs(dir) {
		return binaries{}, false // an empty or relative PATH entry is the caller's directory
	}
	for _, program := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, program))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return binaries{}, false
		}
	}
	output, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	match := versionPattern.FindSubmatch(output)
	if err != nil || match == nil {
		return binaries{}, false
	}
	major, err := strconv.Atoi(string(match[1]))
	return binaries{dir: dir, major: major}, err == nil
}

func installCommand(goos, osRelease string) string {
	if goos == "darwin" {
		return "brew install postgresql@17"
	}
	for _, hint := range []struct{ system, command string }{
		{"debian", "apt-get install postgresql"},
		{"ubuntu", "apt-get install postgresql"},
		{"fedora", "dnf install postgresql-server"},
		{"rhel", "dnf install postgresql-server"},
		{"suse", "zypper install postgresql-server"},
		{"alpine", "apk add postgresql"},
		{"arch", "pacman -S postgresql"},
	} {
		for line := range strings.Lines(osRelease) {
			key, value, _ := strings.Cut(line, "=")
			if (key == "ID" || key == "ID_LIKE") && strings.Contains(value, hint.system) {
				return hint.command
			}
		}
	}
	return "your system's package manager, package postgresql (server)"
}

// command prepares a program of the installation to run as the account, in a
// process group of its own, so that Ctrl-C at the terminal reaches only us, and
// with an environment that holds none of our secrets and none of libpq's PG*
// variables, several of which the server reads too. The end of ctx kills the group.
func (b binaries) command(ctx context.Context, program string, account account, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(b.dir, program), args...)
	cmd.Dir = dir // ours may be closed to the account
	cmd.Env = []string{"LC_ALL=C"}
	for _, key := range []string{"PATH", "LD_LIBRARY_PATH", "TZDIR"} {
		if value, ok := os.LookupEnv(key); ok {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: account.credential()}
	endWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}
