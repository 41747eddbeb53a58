package jsonsize_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/jsonsize"
)

func unlimited() jsonsize.Size {
	return jsonsize.Size{Depth: math.MaxInt, Values: math.MaxInt, Text: math.MaxInt}
}

func TestTheSizeOfATextIsThatOfItsValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]jsonsize.Size{
		`7`:                                     {0, 1, 0},
		`"a,[\",{"`:                             {0, 1, 0},
		`[1,2,3]`:                               {1, 4, 0},
		`{"a":1,"b":[1,{"c":"x\\"},2]}`:         {3, 7, 1},
		`[[[[1]]]]`:                             {4, 5, 0},
		`{"a":["long text"],"bc":"\"\u00e9\\"}`: {2, 4, 3}, // é has two bytes, at least one
	} {
		require.Equal(t, want, jsonsize.OfText([]byte(text), unlimited()), text)
		var value any
		require.NoError(t, json.Unmarshal([]byte(text), &value))
		want.Text = 0
		require.Equal(t, want, jsonsize.Of(value), text)
	}
}

func TestWhatIsBeyondTheLimitIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	limit := jsonsize.Size{Depth: 10, Values: 100, Text: 1000}
	require.Equal(t, 11, jsonsize.OfText([]byte(strings.Repeat("[", 1000)), limit).Depth)
	require.Equal(t, 101, jsonsize.OfText([]byte("["+strings.Repeat("1,", 1000)), limit).Values)
	require.Equal(t, 1001, jsonsize.OfText([]byte(`{"`+strings.Repeat("x", 1001)+`":[[[`), limit).Text)
}

func FuzzOfText(f *testing.F) {
	for _, seed := range []string{``, `"`, `"\`, `"\u`, `]]]`, `{"a`, "\x00", `{"a":["\\",{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := jsonsize.OfText(text, unlimited())
		var value any
		if json.Unmarshal(text, &value) != nil {
			return
		}
		want := jsonsize.Of(value)
		require.GreaterOrEqual(t, got.Depth, want.Depth) // a member given twice is read once
		require.GreaterOrEqual(t, got.Values, want.Values)
	})
}
