package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	prettytext "github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// page writes a detail for people: labelled fields, lines and tables. All text
// that it is given is escaped, for names and messages come from elsewhere and a
// terminal obeys control characters.
type page struct {
	w     io.Writer
	width int // columns of the terminal; 0 for no limit
}

// labelWidth is the column at which the colon of a field stands.
const labelWidth = 20

// tableIndent is the indentation of a table within a detail.
const tableIndent = 10

func (p *page) field(label, value string) {
	fmt.Fprintf(p.w, "%-*s: %s\n", labelWidth, label, visible(value))
}

// optional writes a field that is empty for nil.
func (p *page) optional(label string, value *string) {
	if value == nil {
		value = new(string)
	}
	p.field(label, *value)
}

func (p *page) line(format string, args ...any) {
	fmt.Fprintln(p.w, visible(fmt.Sprintf(format, args...)))
}

// raw writes text as it is, which ends in a line end.
func (p *page) raw(text string) { fmt.Fprint(p.w, text) }

func (p *page) blank() { fmt.Fprintln(p.w) }

// section writes a title and its table, or says that there is nothing.
func (p *page) section(title string, g *grid) {
	if len(g.rows) == 0 {
		p.line("%s: none", title)
		return
	}
	p.line("%s:", title)
	p.table(tableIndent, g)
}

// table writes g in ASCII, wrapping the widest columns where the lines would not
// fit the terminal.
func (p *page) table(indent int, g *grid) {
	rows := [][]cell{make([]cell, len(g.headers))}
	measures := make([]measure, len(g.headers))
	for i, h := range g.headers {
		rows[0][i] = text(h)
		measures[i].take(h)
	}
	for _, cells := range g.rows {
		row := make([]cell, len(cells))
		for i, c := range cells {
			for _, line := range c {
				line = visible(line)
				row[i] = append(row[i], line)
				measures[i].take(line)
			}
		}
		rows = append(rows, row)
	}
	widths := fit(measures, p.width-indent)
	t := table.NewWriter()
	style := table.StyleDefault
	style.Format.Header = prettytext.FormatDefault
	for i, cells := range rows {
		row := make(table.Row, len(cells))
		for j, c := range cells {
			var lines []string
			for _, line := range c {
				lines = append(lines, wrap(line, widths[j])...)
			}
			row[j] = strings.Join(lines, "\n")
			style.Options.SeparateRows = style.Options.SeparateRows || i > 0 && len(lines) > 1
		}
		if i == 0 {
			t.AppendHeader(row)
		} else {
			t.AppendRow(row)
		}
	}
	t.SetStyle(style)
	for line := range strings.Lines(t.Render()) {
		fmt.Fprintf(p.w, "%s%s\n", strings.Repeat(" ", indent), strings.TrimSuffix(line, "\n"))
	}
}

// width is the number of columns to fit output into: COLUMNS where it is set,
// the terminal's where the output goes to one, else no limit.
func (a *app) width() int {
	if a.flags.output != "" {
		return 0
	}
	if n, err := strconv.Atoi(a.getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	file, ok := a.stdout.(*os.File)
	if !ok {
		return 0
	}
	n, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return n
}

// visible escapes what a terminal would obey instead of show: control
// characters, line breaks, bytes that are no UTF-8, and the format characters
// that reorder or hide text.
func visible(s string) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !hidden(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

func hidden(r rune) bool {
	return r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
