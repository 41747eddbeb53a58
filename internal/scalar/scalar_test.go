package scalar_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"fleetgraph/internal/scalar"
)

func written(m graphql.Marshaler) string {
	var b strings.Builder
	m.MarshalGQL(&b)
	return b.String()
}

func TestALongIsAcceptedAndRefusedAlikeByLiteralAndByVariable(t *testing.T) {
	t.Parallel()
	// A literal comes as int64 or float64, a variable as json.Number, either as string.
	for text, literal := range map[string]any{
		"0": int64(0), "-1": int64(-1), "4294967296": int64(4294967296),
		"9007199254740991": int64(9007199254740991), "-9007199254740991": int64(-9007199254740991),
	} {
		for _, v := range []any{literal, json.Number(text), text} {
			n, err := scalar.UnmarshalLong(v)
			require.NoError(t, err, "%T %v", v, v)
			require.Equal(t, text, written(scalar.MarshalLong(n)))
		}
	}
	for text, literal := range map[string]any{
		"1.0": 1.0, "1e3": 1e3, "0.5": 0.5, "9007199254740992": int64(9007199254740992), "-9007199254740992": int64(-9007199254740992),
		"9.007199254740993e15": 9.007199254740993e15,
	} {
		for _, v := range []any{literal, json.Number(text), text} {
			_, err := scalar.UnmarshalLong(v)
			require.Error(t, err, "%T %v", v, v)
		}
	}
	for _, v := range []any{nil, true, "", " 1", "1 ", "0x1", "1_000", "one", []any{1}, map[string]any{}} {
		_, err := scalar.UnmarshalLong(v)
		require.Error(t, err, "%T %v", v, v)
	}
}

func TestAnIDIsText(t *testing.T) {
	t.Parallel()
	for _, v := range []any{"7", json.Number("7"), int64(7)} {
		id, err := scalar.UnmarshalID(v)
		require.NoError(t, err)
		require.Equal(t, `"7"`, written(scalar.MarshalID(id)))
	}
	for v, kind := range map[any]string{nil: "null", true: "a boolean", 1.5: "a number"} {
		_, err := scalar.UnmarshalID(v)
		require.EqualError(t, err, "an ID is a string, not "+kind)
	}
	_, err := scalar.UnmarshalID(map[string]any{})
	require.EqualError(t, err, "an ID is a string, not an object")
}

func TestTimesAreWrittenInUTCWithWhatTheyHave(t *testing.T) {
	t.Parallel()
	at, err := scalar.UnmarshalTime("2026-11-30T22:00:00.123456+02:00")
	require.NoError(t, err)
	require.Equal(t, `"2026-11-30T20:00:00.123456Z"`, written(scalar.MarshalTime(at)))
	for _, v := range []any{"2026-11-30", "now", "", 5, nil} {
		_, err := scalar.UnmarshalTime(v)
		require.Error(t, err, "%v", v)
	}
}

func TestDurationsAndJSONComeBackAsTheyWent(t *testing.T) {
	t.Parallel()
	d, err := scalar.UnmarshalDuration("30d")
	require.NoError(t, err)
	require.Equal(t, 30*24*time.Hour, d)
	require.Equal(t, `"30d"`, written(scalar.MarshalDuration(d)))
	_, err = scalar.UnmarshalDuration(30)
	require.Error(t, err)
	raw, err := scalar.UnmarshalJSON(map[string]any{"n": json.Number("9007199254740993")})
	require.NoError(t, err)
	require.Equal(t, `{"n":9007199254740993}`, written(scalar.MarshalJSON(raw)))
	require.Equal(t, "null", written(scalar.MarshalJSON(nil)))
}
