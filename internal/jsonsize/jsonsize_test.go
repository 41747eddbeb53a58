package jsonsize_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/jsonsize"
)

func TestTheSizeOfATextIsThatOfItsValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ depth, values int }{
		`7`:                             {0, 1},
		`"a,[\",{"`:                     {0, 1},
		`[1,2,3]`:                       {1, 4},
		`{"a":1,"b":[1,{"c":"x\\"},2]}`: {3, 7},
		`[[[[1]]]]`:                     {4, 5},
	} {
		depth, values := jsonsize.OfText([]byte(text))
		require.Equal(t, want.depth, depth, text)
		require.Equal(t, want.values, values, text)
		var value any
		require.NoError(t, json.Unmarshal([]byte(text), &value))
		depth, values = jsonsize.Of(value)
		require.Equal(t, want.depth, depth, text)
		require.Equal(t, want.values, values, text)
	}
}

func TestTheSizeOfATextThatIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `"`, `"\`, `]]]`, `{"a`, "\x00"} {
		depth, values := jsonsize.OfText([]byte(text))
		require.LessOrEqual(t, depth, 1, text)
		require.Positive(t, values, text)
	}
}
