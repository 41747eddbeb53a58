package fleet_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

var update = flag.Bool("update", false, "rewrite the diagram in docs")

func positions() []fleet.MachinePosition {
	var all []fleet.MachinePosition
	for _, s := range fleet.MachineState("").Values() {
		all = append(all, fleet.MachinePosition{State: fleet.MachineState(s)})
	}
	for _, sub := range fleet.MachineSubState("").Values() {
		state := fleet.StateBomValidating
		if sub == string(fleet.SubRebooting) || sub == string(fleet.SubRunning) {
			state = fleet.StateValidating
		}
		all = append(all, fleet.MachinePosition{State: state, Sub: fleet.MachineSubState(sub)})
	}
	return all
}

func TestTheTableOfMachineTransitionsHoldsTogether(t *testing.T) {
	t.Parallel()
	all := positions()
	seen := map[string]bool{}
	reached := map[fleet.MachinePosition]bool{{State: fleet.StateIngesting}: true}
	left := map[fleet.MachinePosition]bool{}
	for _, row := range fleet.MachineTransitions() {
		require.NotEmpty(t, row.From, row.Event)
		require.NotEmpty(t, row.To, row.Event)
		for _, from := range row.From {
			for _, to := range row.To {
				require.Contains(t, all, from)
				require.Contains(t, all, to)
				move := fmt.Sprintf("%s %s %s", from, row.Event, to)
				require.False(t, seen[move], "%s stands in the table twice", move)
				seen[move] = true
				reached[to], left[from] = true, true
			}
		}
	}
	for _, p := range all {
		if p.State == fleet.StateFailed || p == (fleet.MachinePosition{State: fleet.StateBomValidating}) || p == (fleet.MachinePosition{State: fleet.StateValidating}) {
			require.False(t, reached[p], "nothing leads to %s yet, or it needs a sub-state", p)
			continue
		}
		require.True(t, reached[p], "nothing leads to %s", p)
		require.True(t, left[p], "nothing leads out of %s", p)
	}
}

func TestOnlyTheRowsOfTheTableAreAllowed(t *testing.T) {
	t.Parallel()
	count := 0
	for _, from := range positions() {
		for _, to := range positions() {
			for _, row := range fleet.MachineTransitions() {
				allowed := fleet.AllowsMachineTransition(from, row.Event, to)
				inRow := slices.ContainsFunc(fleet.MachineTransitions(), func(r fleet.MachineTransition) bool {
					return r.Event == row.Event && slices.Contains(r.From, from) && slices.Contains(r.To, to)
				})
				require.Equal(t, inRow, allowed, "%s + %s -> %s", from, row.Event, to)
				if allowed {
					count++
				}
			}
			for _, recorded := range []fleet.MachineEvent{
				fleet.EventDiscovered, fleet.EventRenamed, fleet.EventSkuAssigned, fleet.EventSkuUnassigned, fleet.EventInventoryOverdue,
				fleet.EventWorkFailed, fleet.EventAlertRaised, fleet.EventAlertCleared, fleet.EventMachineDeleted,
			} {
				require.False(t, fleet.AllowsMachineTransition(from, recorded, to), recorded)
			}
		}
	}
	require.NotZero(t, count)
}

func TestTheDocumentedDiagramIsThatOfTheTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("    [*] --> INGESTING: " + string(fleet.EventDiscovered) + "\n")
	name := func(p fleet.MachinePosition) string {
		if p.Sub != "" {
			return string(p.Sub)
		}
		return string(p.State)
	}
	for _, row := range fleet.MachineTransitions() {
		for _, from := range row.From {
			for _, to := range row.To {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", name(from), name(to), row.Event)
			}
		}
	}
	documented(t, "../docs/machine-states.md", b.String())
}

func TestIDsTellTheirTypeAndSortByTime(t *testing.T) {
	t.Parallel()
	first := fleet.NewID(fleet.PrefixMachine)
	prefix, ok := fleet.IDPrefix(first)
	require.True(t, ok, first)
	require.Equal(t, fleet.PrefixMachine, prefix)
	seen := map[string]bool{}
	for range 1000 {
		id := fleet.NewID(fleet.PrefixMachine)
		require.False(t, seen[id])
		require.GreaterOrEqual(t, id[:len("machine_")+9], first[:len("machine_")+9])
		seen[id] = true
	}
	for _, bad := range []string{"", "machine", "machine_", "_" + first[8:], first + "0", first[:len(first)-1], strings.ToUpper(first), "machine_8" + first[9:], "machine_" + strings.Repeat("u", 26)} {
		_, ok := fleet.IDPrefix(bad)
		require.False(t, ok, bad)
	}
	require.NoError(t, fleet.CheckID("machineId", fleet.PrefixMachine, first))
	err, ok := fleet.AsError(fleet.CheckID("skuId", fleet.PrefixSku, first))
	require.True(t, ok)
	require.Equal(t, fleet.InvalidArgument, err.Code)
	require.Equal(t, "skuId", err.Field)
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"90s": "1m30s", "24h": "1d", "30d": "30d", "1d12h": "36h", "0s": "0s", "1h30m": "1h30m", "36500d": "36500d", "500ms": "500ms",
	} {
		d, err := fleet.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, fleet.FormatDuration(d), text)
		again, err := fleet.ParseDuration(fleet.FormatDuration(d))
		require.NoError(t, err, text)
		require.Equal(t, d, again)
	}
	for _, bad := range []string{"", "5", "0", "-1s", "+1s", "1d-1h", "1.5d", "d", "1w", " 1s", "1s ", "36501d", "99999999h", "1dd", "9999999999999d", "1d2d", "NaNs"} {
		_, err := fleet.ParseDuration(bad)
		require.Error(t, err, bad)
	}
}

func TestParseMac(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"C4:5A:B1:C8:38:0D", "c4-5a-b1-c8-38-0d", "c45a.b1c8.380d", "C45AB1C8380D"} {
		mac, err := fleet.ParseMac("bmcMacAddress", form)
		require.NoError(t, err, form)
		require.Equal(t, "c4:5a:b1:c8:38:0d", mac)
	}
	for _, bad := range []string{"", "c4:5a", "zz:5a:b1:c8:38:0d", "c4:5a:b1:c8:38:0d:00", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", strings.Repeat(":", 20) + "c45ab1c8380d"} {
		_, err := fleet.ParseMac("bmcMacAddress", bad)
		e, ok := fleet.AsError(err)
		require.True(t, ok, bad)
		require.Equal(t, "bmcMacAddress", e.Field)
	}
}

func TestPlatform(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"SKU=090E;ModelName=PowerEdge R750": "sku_090e_modelname_poweredge_r750", "HGX-B200": "hgx_b200", "a  b": "a__b",
		"": "default", " \n": "default", "x.y/z+w": "x.y/z+w",
	} {
		require.Equal(t, want, fleet.Platform(text), text)
	}
}
