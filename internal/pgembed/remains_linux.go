package pgembed

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// seesAllRemnants: /proc shows every process, the postmaster's children too.
const seesAllRemnants = true

// remnants lists the live PostgreSQL processes that work on the cluster. A zombie
// has neither a working directory nor a command line and does not count.
func (c cluster) remnants(int) ([]remnant, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []remnant
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		title, works, err := c.worksHere(filepath.Join("/proc", entry.Name()))
		if err != nil {
			return nil, err
		}
		if works {
			found = append(found, remnant{pid: pid, title: title})
		}
	}
	return found, nil
}

// worksHere compares the working directory, which PostgreSQL sets to its data. In a
// container root may lack the right to see that of another user's process
// (CAP_SYS_PTRACE): then the command line decides, by our -D or our cluster name.
func (c cluster) worksHere(proc string) (title string, works bool, err error) {
	name, err := os.ReadFile(filepath.Join(proc, "comm"))
	if err != nil || strings.TrimSpace(string(name)) != "postgres" {
		return "", false, ignoreGone(err)
	}
	commandLine, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	if err != nil {
		return "", false, ignoreGone(err)
	}
	arguments := strings.TrimRight(string(commandLine), "\x00")
	title = strings.ReplaceAll(arguments, "\x00", " ")
	workingDir, err := os.Stat(filepath.Join(proc, "cwd"))
	if errors.Is(err, fs.ErrPermission) {
		postmaster := strings.Contains(arguments+"\x00", "\x00-D\x00"+c.dir+"\x00")
		return title, postmaster || strings.HasPrefix(title, "postgres: "+c.name+": "), nil
	}
	if err != nil {
		return "", false, ignoreGone(err)
	}
	data, err := os.Stat(c.dir)
	if err != nil {
		return "", false, ignoreGone(err) // no cluster yet
	}
	return title, os.SameFile(workingDir, data), nil
}

// ignoreGone: a process may end between any two looks at it.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
