package sku

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"fleetgraph/fleet"
)

// memoryFigure is a GPU memory text and the number of GPUs that report it. MiB
// is 0 where the text is not a figure.
type memoryFigure struct {
	text  string
	mib   int64
	count int
}

// memoryFault is a number of GPUs whose memory is not the expected one.
type memoryFault struct {
	expected, actual string
	count            int
}

// maxGpuMemoryMib bounds a readable figure so that the tolerance cannot overflow.
const maxGpuMemoryMib = 1 << 40

// parseGpuMemory reads a text such as "81559 MiB" or "80 GB" into MiB, rounded;
// a number alone is MiB. It returns 0 for what is no positive figure, such as
// "[N/A]".
func parseGpuMemory(text string) int64 {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(text)
	}
	amount, err := strconv.ParseFloat(text[:end], 64)
	if err != nil {
		return 0
	}
	var mib float64
	switch strings.ToLower(strings.TrimSpace(text[end:])) {
	case "", "mib", "m":
		mib = amount
	case "gib", "g":
		mib = amount * (1 << 10)
	case "tib", "t":
		mib = amount * (1 << 20)
	case "kib", "k":
		mib = amount / (1 << 10)
	case "b":
		mib = amount / (1 << 20)
	case "mb":
		mib = amount * 1e6 / (1 << 20)
	case "gb":
		mib = amount * 1e9 / (1 << 20)
	case "tb":
		mib = amount * 1e12 / (1 << 20)
	}
	if mib > maxGpuMemoryMib {
		return 0
	}
	return int64(mib + 0.5)
}

// withinTolerance tells whether two figures are equal: within one eighth of the
// expected one, because ECC changes what the driver reports.
func withinTolerance(expected, actual int64) bool {
	difference := max(expected, actual) - min(expected, actual)
	return difference*8 <= expected
}

// alikeMemory tells whether one figure can stand for all of the entries of one
// model: the readable ones lie within one eighth of the smallest.
func alikeMemory(gpus []fleet.Gpu) bool {
	var lowest, highest int64
	for _, g := range gpus {
		mib := parseGpuMemory(g.TotalMemory)
		if mib == 0 {
			continue
		}
		if lowest == 0 || mib < lowest {
			lowest = mib
		}
		highest = max(highest, mib)
	}
	return withinTolerance(lowest, highest)
}

// compareGpuMemory compares the figures of one model. Of equally many readable
// figures the n-th smallest of either side belong together, which finds a pairing
// within the tolerance whenever there is one. Otherwise (a GPU is missing or has
// no figure) each actual figure has to be near some expected one. Unread is set
// where a figure was left out because it cannot be read.
func compareGpuMemory(expected, actual []memoryFigure) (faults []memoryFault, unread bool) {
	e, eTotal, eUnread := readable(expected)
	a, aTotal, aUnread := readable(actual)
	unread = eUnread || aUnread
	if len(e) == 0 || len(a) == 0 {
		return nil, unread
	}
	if eTotal != aTotal {
		for _, figure := range a {
			near := func(x memoryFigure) bool { return withinTolerance(x.mib, figure.mib) }
			if !slices.ContainsFunc(e, near) {
				faults = append(faults, memoryFault{expected: e[0].text, actual: figure.text, count: figure.count})
			}
		}
		return faults, unread
	}
	for i, j := 0, 0; i < len(e) && j < len(a); {
		n := min(e[i].count, a[j].count)
		if !withinTolerance(e[i].mib, a[j].mib) {
			faults = append(faults, memoryFault{expected: e[i].text, actual: a[j].text, count: n})
		}
		if e[i].count -= n; e[i].count == 0 {
			i++
		}
		if a[j].count -= n; a[j].count == 0 {
			j++
		}
	}
	return faults, unread
}

// readable returns the figures that are figures, smallest first and each once,
// the number of their GPUs, and whether others were left out.
func readable(figures []memoryFigure) (sorted []memoryFigure, total int, unread bool) {
	sorted = make([]memoryFigure, 0, len(figures))
	for _, f := range figures {
		if f.mib == 0 {
			unread = true
			continue
		}
		sorted = append(sorted, f)
		total += f.count
	}
	sorted = mergeTotals(sorted,
		func(a, b memoryFigure) int { return cmp.Or(cmp.Compare(a.mib, b.mib), cmp.Compare(a.text, b.text)) },
		func(into *memoryFigure, f memoryFigure) { into.count += f.count })
	return sorted, total, unread
}
