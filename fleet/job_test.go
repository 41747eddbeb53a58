package fleet_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

func TestTheTableOfJobTransitionsIsAllThatMovesAJob(t *testing.T) {
	t.Parallel()
	events := []fleet.JobEvent{}
	for _, row := range fleet.JobTransitions() {
		require.NotContains(t, events, row.Event, "an event stands in the table once")
		events = append(events, row.Event)
	}
	moves := []string{}
	left := map[fleet.JobState]bool{}
	reached := map[fleet.JobState]bool{}
	for _, text := range fleet.JobState("").Values() {
		from := fleet.JobState(text)
		for _, event := range append(events, "", "NONE") {
			to, ok := fleet.NextJobState(from, event)
			if !ok {
				require.Equal(t, from, to)
				continue
			}
			moves = append(moves, fmt.Sprintf("%s %s %s", from, event, to))
			reached[to], left[from] = true, true
		}
		require.NotEqual(t, from.HasEnded(), left[from], "what has ended is left by nothing, and nothing else is a dead end")
	}
	require.Equal(t, []string{
		"PENDING STARTED RUNNING", "PENDING CANCELLED CANCELLED",
		"RUNNING PROGRESS RUNNING", "RUNNING SUCCEEDED SUCCEEDED", "RUNNING FAILED FAILED", "RUNNING CANCELLED CANCELLED",
	}, moves)
	for _, text := range fleet.JobState("").Values() {
		require.Equal(t, text != string(fleet.JobPending), reached[fleet.JobState(text)], text)
	}
}

func TestTheDocumentedDiagramOfJobsIsThatOfTheTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, row := range fleet.JobTransitions() {
		if len(row.From) == 0 {
			fmt.Fprintf(&b, "    [*] --> %s: %s\n", row.To, row.Event)
		}
		for _, from := range row.From {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", from, row.To, row.Event)
		}
	}
	documented(t, "../docs/jobs.md", b.String())
}

// documented compares the diagram of a page with the one that its table makes.
func documented(t *testing.T, path, moves string) {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), "```mermaid")
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, "```\n")
	require.True(t, ok)
	want := before + "```mermaid\nstateDiagram-v2\n" + moves + "```\n" + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(page), "run go test ./fleet -update")
}
