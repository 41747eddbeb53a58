package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsesOfAVariableAreCountedAsTheParserSeesThem(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]int{
		`subscription($after: Cursor) { machine(id: "x", after: $after) { x } }`:                               2,
		`subscription($after: Cursor, $afterwards: Cursor) { machine(after: $after) { x } }`:                   2,
		`subscription($after: Cursor) { machine(after: $after) { machine { alerts(after: $ after) } } }`:       3,
		`subscription($after: Cursor) { machine(after: $after) { machine { alerts(after: $,after) } } }`:       3,
		"subscription($after: Cursor) { machine(after: $after) { machine { alerts(after: $ # x\n after) } } }": 3,
		`subscription($after: Cursor) { machine(after: $after, text: "$after") { after } }`:                    2,
		`subscription { machine { after } }`:                                                                   0,
	} {
		require.Equal(t, want, uses(document, "after"), document)
	}
}
