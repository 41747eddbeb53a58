package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is one run of the measurements.
type Report struct {
	Time     time.Time `json:"time"`
	Commit   string    `json:"commit"`
	Go       string    `json:"go"`
	Postgres string    `json:"postgres"`
	System   string    `json:"system"`
	CPU      string    `json:"cpu"`
	Cores    int       `json:"cores"`
	Rows     []Row     `json:"rows"`
}

// Row is one figure. Ratio compares it with the row that it is measured against;
// Want says what the ratio should be.
type Row struct {
	Name   string  `json:"name"`
	Figure float64 `json:"figure"`
	Unit   string  `json:"unit"`
	Ratio  float64 `json:"ratio,omitempty"`
	Beside string  `json:"beside,omitempty"`
	Want   string  `json:"want,omitempty"`
}

func describe(ctx context.Context) *Report {
	r := &Report{
		Time: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH, CPU: cpuModel(), Cores: runtime.NumCPU(),
	}
	if out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		r.Commit = strings.TrimSpace(string(out))
	}
	return r
}

// cpuModel is the processor's name, where /proc tells it.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func (r *Report) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "%s, %d cores, %s, %s, Postgres %s, commit %s\n\n", r.CPU, r.Cores, r.System, r.Go, r.Postgres, r.Commit)
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "measurement\tfigure\tunit\tratio\tbeside\twant")
	for _, row := range r.Rows {
		ratio := ""
		if row.Ratio != 0 {
			ratio = fmt.Sprintf("%.2f", row.Ratio)
		}
		_, _ = fmt.Fprintf(t, "%s\t%.4g\t%s\t%s\t%s\t%s\n", row.Name, row.Figure, row.Unit, ratio, row.Beside, row.Want)
	}
	_ = t.Flush()
}

// write keeps the report as a file of its own, so that the history stays.
func (r *Report) write(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, r.Time.Format("20060102T150405Z")+".json")
	return path, os.WriteFile(path, append(body, '\n'), 0o644)
}

func median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}
