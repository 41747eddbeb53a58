package pgembed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cluster is the data on disk: PostgreSQL's own directory and our files beside it.
type cluster struct {
	dataDir string
	dir     string // dataDir/postgres
	// name is shown in the titles of all its processes, by which a remnant is told
	// from any other PostgreSQL on the machine.
	name string
}

func newCluster(dataDir string) cluster {
	dir := filepath.Join(dataDir, "postgres")
	sum := sha256.Sum256([]byte(dir))
	return cluster{dataDir: dataDir, dir: dir, name: "fleetgraph-" + hex.EncodeToString(sum[:6])}
}

// majorVersion of the cluster, 0 when there is none yet.
func (c cluster) majorVersion() (int, error) {
	content, err := os.ReadFile(filepath.Join(c.dir, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(c.dir)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
			return 0, nil
		}
		return 0, errors.Join(fmt.Errorf("%s is no PostgreSQL data directory and not empty", c.dir), err)
	}
	if err != nil {
		return 0, fmt.Errorf("data directory: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, fmt.Errorf("data directory %s: version: %w", c.dir, err)
	}
	return major, nil
}

// create runs initdb on a directory of another name and renames it when complete:
// a crash in between leaves no half cluster, and the next start begins anew.
func (c cluster) create(ctx context.Context, binaries binaries, account account, password string, noSync bool) (err error) {
	unfinished := c.dir + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	if err := os.Mkdir(unfinished, 0o700); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	if err := account.give(unfinished); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	passwordFile := filepath.Join(c.dataDir, "postgres.initdb-password")
	defer func() { err = errors.Join(err, os.Remove(passwordFile)) }()
	if err := os.WriteFile(passwordFile, []byte(password+"\n"), 0o600); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	if err := account.give(passwordFile); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	args := []string{
		"--pgdata=" + unfinished, "--username=" + superuserRole, "--pwfile=" + passwordFile,
		"--auth=scram-sha-256", "--locale=C", "--encoding=UTF8", "--data-checksums", "--no-instructions",
	}
	if noSync {
		args = append(args, "--no-sync")
	}
	cmd := binaries.command(ctx, "initdb", account, unfinished, args...)
	if output, err := runOnOneThread(cmd); err != nil {
		return fmt.Errorf("initdb: %w: %s", errors.Join(err, ctx.Err()), tail(string(output), 10))
	}
	if err := os.Remove(c.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("initdb: %w", err) // an empty one, or majorVersion would have refused
	}
	if err := os.Rename(unfinished, c.dir); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	return syncDir(c.dataDir)
}

// arguments of the server. They stand on the command line and not in
// postgresql.conf so that a cluster made by an older release follows this one.
//
// No TCP: the socket's directory is closed to everybody but the account and root.
// No ERROR text, no statement and no detail in the log: they repeat values that
// clients sent, and the client has been told.
func (c cluster) arguments(socket socketDir, cfg Config) []string {
	settings := map[string]string{
		"listen_addresses":        "",
		"port":                    socketPort,
		"unix_socket_directories": socket.path,
		"unix_socket_permissions": "0700",
		"cluster_name":            c.name,

		"max_connections": "100",
		"shared_buffers":  "128MB",
		"timezone":        "UTC",
		// synchronous_commit stays on: the kernel has each commit, and killed processes lose none.
		"fsync":            onOff(!cfg.NoFsync),
		"full_page_writes": onOff(!cfg.NoFsync),

		"logging_collector":       "off",
		"log_destination":         "stderr",
		"log_timezone":            "UTC",
		"log_line_prefix":         logPrefix,
		"log_error_verbosity":     "terse",
		"log_min_error_statement": "panic",
	}
	maps.Copy(settings, cfg.Settings)
	args := []string{"-D", c.dir}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", key+"="+settings[key])
	}
	return args
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// syncDir makes a rename inside dir last.
func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// tail returns the last lines of a program's output.
func tail(output string, lines int) string {
	all := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
