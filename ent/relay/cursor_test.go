package relay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

func order(kind Kind) Order {
	return Order{Connection: "MachineConnection", Name: "NAME", Column: "name", ID: "id", Kind: kind}
}

func TestACursorGivesBackItsPosition(t *testing.T) {
	t.Parallel()
	for kind, value := range map[Kind]any{
		KindID:     nil,
		KindString: "a name, naïve",
		KindInt:    int64(-7),
		KindTime:   time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC),
	} {
		c := order(kind).Encode("machine_01h455vb4pex5vsknk084sn02q", value)
		pos, err := order(kind).decode("after", &c)
		require.NoError(t, err)
		require.Equal(t, &Position{ID: "machine_01h455vb4pex5vsknk084sn02q", Value: value}, pos)
	}
}

func TestACursorHoldsForItsConnectionFieldAndDirectionOnly(t *testing.T) {
	t.Parallel()
	mine := order(KindString)
	c := mine.Encode("id", "v")
	for _, change := range []func(*Order){
		func(o *Order) { o.Connection = "SkuConnection" },
		func(o *Order) { o.Name = "VENDOR" },
		func(o *Order) { o.Desc = true },
	} {
		other := mine
		change(&other)
		_, err := other.decode("before", &c)
		e, ok := fleet.AsError(err)
		require.True(t, ok)
		require.Equal(t, ReasonCursorForeign, e.Reason)
		require.Equal(t, "before", e.Field)
	}
}

func TestNoCursorIsNoPosition(t *testing.T) {
	t.Parallel()
	pos, err := order(KindTime).decode("after", nil)
	require.NoError(t, err)
	require.Nil(t, pos)
}

func FuzzDecode(f *testing.F) {
	f.Add("")
	f.Add("garbage")
	f.Add(string(order(KindTime).Encode("id", time.Unix(0, 0))))
	f.Add(string(order(KindString).Encode("id", "a\x00b")))
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []Kind{KindID, KindTime, KindInt, KindString} {
			c := Cursor(text)
			pos, err := order(kind).decode("after", &c)
			if err == nil {
				require.Equal(t, c, order(kind).Encode(pos.ID, pos.Value))
				continue
			}
			e, ok := fleet.AsError(err)
			require.True(t, ok)
			require.Equal(t, fleet.InvalidArgument, e.Code)
		}
	})
}
