package main

import (
	"strings"

	prettytext "github.com/jedib0t/go-pretty/v6/text"
)

// measure is what a column needs: the width of its longest line, of its longest
// word, and of its longest piece, which is what stands between the places where a
// name may be broken.
type measure struct{ line, word, piece int }

func (m *measure) take(line string) {
	m.line = max(m.line, prettytext.StringWidth(line))
	for word := range strings.FieldsSeq(line) {
		m.word = max(m.word, prettytext.StringWidth(word))
		for _, piece := range pieces(word) {
			m.piece = max(m.piece, prettytext.StringWidth(piece))
		}
	}
}

// narrowest is the width below which no column is wrapped.
const narrowest = 10

// fit gives columns their widths. Where a table of whole lines takes more than
// limit, it narrows the widest columns: first between words, then within names,
// then anywhere. A limit of 0 or less is none.
func fit(columns []measure, limit int) []int {
	total := 1
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = c.line
		total += c.line + 3
	}
	if limit <= 0 {
		return widths
	}
	for _, least := range []func(measure) int{
		func(m measure) int { return max(narrowest, m.word) },
		func(m measure) int { return max(narrowest, m.piece) },
		func(measure) int { return narrowest },
	} {
		for total > limit {
			widest := -1
			for i, w := range widths {
				if w > least(columns[i]) && (widest < 0 || w > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			total--
		}
	}
	return widths
}

// wrap breaks a line into lines of at most width columns: after blanks, else
// within names, else anywhere.
func wrap(line string, width int) []string {
	if prettytext.StringWidth(line) <= width {
		return []string{line}
	}
	var lines []string
	var current strings.Builder
	used := 0
	add := func(part string) {
		current.WriteString(part)
		used += prettytext.StringWidth(part)
	}
	end := func() {
		lines = append(lines, strings.TrimRight(current.String(), " "))
		current.Reset()
		used = 0
	}
	for _, word := range strings.SplitAfter(line, " ") {
		bare := prettytext.StringWidth(strings.TrimRight(word, " "))
		if used > 0 && used+bare > width {
			end()
		}
		if bare <= width {
			add(word)
			continue
		}
		for _, piece := range pieces(word) {
			bare := prettytext.StringWidth(strings.TrimRight(piece, " "))
			if used > 0 && used+bare > width {
				end()
			}
			if bare <= width {
				add(piece)
				continue
			}
			for _, r := range piece {
				if used > 0 && used+prettytext.RuneWidth(r) > width {
					end()
				}
				add(string(r))
			}
		}
	}
	end()
	return lines
}

// pieces splits a word after the marks that separate the parts of names and
// paths. Times have none of them.
func pieces(word string) []string {
	var parts []string
	for {
		i := strings.IndexAny(word, "/._")
		if i < 0 || i == len(word)-1 {
			return append(parts, word)
		}
		parts = append(parts, word[:i+1])
		word = word[i+1:]
	}
}
