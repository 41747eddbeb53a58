package sdldiff_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/sdldiff"
)

const base = `
interface Node { id: ID! }
type Query { machine(name: String!, first: Int): Machine, machines: [Machine!]! }
type Machine implements Node { id: ID!, name: String, state: State! }
enum State { READY FAILED }
union Subject = Machine
input Filter { name: String, state: State! }`

func TestWhatBreaksClientsIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after string
		want  []string
	}{
		"nothing": {base, nil},
		"additions, an input that may be left out, an answer that is null less often": {`
			interface Node { id: ID! } interface Named { name: String! }
			type Query { machine(name: String, first: Int, last: Int = 3): Machine!, machines(where: Filter): [Machine!]!, more: Int }
			type Machine implements Node & Named { id: ID!, name: String!, state: State! }
			enum State { READY FAILED NEW } type Rack { id: ID! } union Subject = Machine | Rack
			input Filter { name: String, state: State, more: Int, required: Int! = 1 }`, nil},
		"removals": {`
			interface Node { id: ID! }
			type Query { machine(name: String!): Machine }
			type Machine { id: ID!, name: String, state: State! }
			enum State { READY } type Rack { id: ID! } union Subject = Rack
			input Filter { name: String, state: State! }`, []string{
			"argument Query.machine(first:) was removed", "enum value State.FAILED was removed", "field Query.machines was removed",
			"type Machine no longer implements Node", "union Subject lost Machine",
		}},
		"types": {`
			interface Node { id: ID! }
			type Query { machine(name: Int!, first: Int!, extra: Int!): Machine, machines: [Machine]! }
			type Machine implements Node { id: ID!, name: Int, state: State }
			enum State { READY FAILED } scalar Subject
			input Filter { name: String!, state: State!, extra: Int! }`, []string{
			"argument Query.machine(extra:) is new and required", "argument Query.machine(first:) is Int!, was Int",
			"argument Query.machine(name:) is Int!, was String!", "field Filter.name is String!, was String",
			"field Machine.name is Int, was String", "field Machine.state is State, was State!",
			"field Query.machines is [Machine]!, was [Machine!]!", "input field Filter.extra is new and required",
			"type Subject is SCALAR, was UNION",
		}},
		"a type": {`interface Node { id: ID! } type Query { machine(name: String!, first: Int): Node, machines: [Node!]! }
			enum State { READY FAILED } union Subject = Other type Other { id: ID! } input Filter { name: String, state: State! }`, []string{
			"field Query.machine is Node, was Machine", "field Query.machines is [Node!]!, was [Machine!]!", "type Machine was removed", "union Subject lost Machine",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, err := sdldiff.Parse("before", base)
			require.NoError(t, err)
			after, err := sdldiff.Parse("after", test.after)
			require.NoError(t, err)
			require.Equal(t, test.want, sdldiff.Breaking(before, after))
		})
	}
}
