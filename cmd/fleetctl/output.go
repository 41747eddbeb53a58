package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
)

// format is a form of the output.
type format string

const (
	formatTable format = "ascii-table"
	formatJSON  format = "json"
	formatCSV   format = "csv"
	formatYAML  format = "yaml"
)

func formatNames() []string {
	return []string{string(formatTable), string(formatJSON), string(formatCSV), string(formatYAML)}
}

func (a *app) readFormat() error {
	switch f := format(a.flags.format); f {
	case formatTable, formatJSON, formatCSV, formatYAML:
		a.format = f
	case "table":
		a.format = formatTable
	default:
		return usagef("unknown format %q, expected one of %s", a.flags.format, strings.Join(formatNames(), ", "))
	}
	return nil
}

// guessFormat looks for -f json in a command line that may turn out not to
// parse, so that its error has the form that was asked for.
func guessFormat(args []string) format {
	for i, arg := range args {
		value, joined := strings.CutPrefix(arg, "--format=")
		if !joined {
			value, joined = strings.CutPrefix(arg, "-f")
			value = strings.TrimPrefix(value, "=")
			if arg != "-f" && arg != "--format" && !joined {
				continue
			}
			if (arg == "-f" || arg == "--format") && i+1 < len(args) {
				value = args[i+1]
			}
		}
		if value == string(formatJSON) {
			return formatJSON
		}
	}
	return formatTable
}

// result is what a command has to show, in every form. The table form is page,
// or else grid; the CSV form is grid. A command whose result is a matter of
// course leaves both nil and shows nothing in a table.
type result struct {
	data any
	page func(*page)
	grid *grid
}

// grid is a list: a table, and the rows of a CSV file.
type grid struct {
	headers []string
	rows    [][]cell
}

func (g *grid) add(cells ...cell) { g.rows = append(g.rows, cells) }

// cell is the lines of one cell of a grid, as they are: tables escape them.
type cell []string

func text(s string) cell { return cell{s} }

// number is a cell of a whole number.
func number[T int | int64](n T) cell { return cell{fmt.Sprint(n)} }

// optional is a cell that is empty for nil.
func optional(s *string) cell {
	if s == nil {
		return text("")
	}
	return text(*s)
}

// show writes r in the form and to the place that the flags ask for. A file is
// only written once the whole output is there.
func (a *app) show(r result) error {
	var out bytes.Buffer
	if err := a.render(&out, r); err != nil {
		return err
	}
	if a.flags.output != "" {
		return os.WriteFile(a.flags.output, out.Bytes(), 0o644)
	}
	_, err := a.stdout.Write(out.Bytes())
	return err
}

func (a *app) render(w io.Writer, r result) error {
	switch a.format {
	case formatJSON:
		data, err := marshal(r.data)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	case formatYAML:
		data, err := marshal(r.data)
		if err != nil {
			return err
		}
		data, err = yaml.JSONToYAML(data)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	case formatCSV:
		if r.grid == nil {
			return nil
		}
		return r.grid.writeCSV(w)
	default:
		p := &page{w: w, width: a.width()}
		switch {
		case r.page != nil:
			r.page(p)
		case r.grid != nil:
			p.table(0, r.grid)
		}
		return nil
	}
}

// marshal writes indented JSON that leaves <, > and & alone: they stand in PCI
// patterns.
func marshal(data any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(data); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (g *grid) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(g.headers); err != nil {
		return err
	}
	for _, row := range g.rows {
		record := make([]string, len(row))
		for i, c := range row {
			record[i] = strings.Join(c, "\n")
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// note tells a person what happened. It goes to the standard error and only
// accompanies the table form: scripts read the output or the exit code.
func (a *app) note(format string, args ...any) {
	if a.format == formatTable {
		fmt.Fprintln(a.stderr, visible(fmt.Sprintf(format, args...)))
	}
}

// warn tells a person what looks wrong, whatever the form of the output.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintln(a.stderr, "warning: "+visible(fmt.Sprintf(format, args...)))
}

// list returns items, or an empty list in place of nil, which JSON would write
// as null.
func list[T any](items []T) []T { return append([]T{}, items...) }

// plural counts things in words.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
