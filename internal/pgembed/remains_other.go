//go:build unix && !linux

package pgembed

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
)

// seesAllRemnants: only the postmaster can be recognised here, not its children.
const seesAllRemnants = false

// remnants asks ps for the process that postmaster.pid names.
func (c cluster) remnants(postmaster int) ([]remnant, error) {
	if postmaster == 0 {
		return nil, nil
	}
	output, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(postmaster)).Output() //nolint:noctx // instant
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, nil // no such process
	}
	if err != nil {
		return nil, err
	}
	title := strings.TrimSpace(string(output))
	if !strings.Contains(title, "postgres") || !strings.Contains(title+" ", " -D "+c.dir+" ") {
		return nil, nil
	}
	return []remnant{{pid: postmaster, title: title}}, nil
}
