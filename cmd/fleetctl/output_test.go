package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

func TestVisibleEscapesWhatATerminalObeys(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Größe 日本":         "Größe 日本",
		"\x1b[31mred":      `\x1b[31mred`,
		"a\tb\r\nc":        `a\tb\r\nc`,
		"\u009b2J":         `\u009b2J`,
		"abc\u202etxt.exe": `abc\u202etxt.exe`,
		"\xff":             `\ufffd`,
		"a\u2028b\x00":     `a\u2028b\x00`,
	} {
		require.Equal(t, want, visible(in))
	}
}

func TestTableEscapesEveryCell(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	g := &grid{headers: []string{"Name", "Message"}}
	g.add(text("\x1b]0;owned\a"), cell{"first\x1b[2J", "second\n"})
	(&page{w: &out}).table(2, g)
	require.NotContains(t, out.String(), "\x1b")
	golden(t, "table_escaped.txt", out.String())
}

func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	g := &grid{headers: []string{"Model", "Count", "PCI Patterns"}}
	for range 2 {
		g.add(text("Dell Ent NVMe FIPS CM6 RI 3.84TB"), number(1), cell{"^/devices/pci0000:48/0000:48:01\\.0/0000:49:00\\.0/nvme$", "/nvme"})
	}
	for _, width := range []int{60, 80, 100} {
		var out bytes.Buffer
		(&page{w: &out, width: width}).table(10, g)
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), width)
		}
		if width == 60 {
			golden(t, "table_narrow.txt", out.String())
		}
	}
}

func TestWrapBreaksWordsOnlyWhereItMust(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"short", 10, []string{"short"}},
		{"GB200 Compute Tray", 13, []string{"GB200 Compute", "Tray"}},
		{"WAITING_FOR_SKU_ASSIGNMENT", 20, []string{"WAITING_FOR_SKU_", "ASSIGNMENT"}},
		{"dell.gb200computetray.gpu.1", 22, []string{"dell.gb200computetray.", "gpu.1"}},
		{"2026-11-30T21:42:01Z", 12, []string{"2026-11-30T2", "1:42:01Z"}},
		{"日本語日本語", 5, []string{"日本", "語日", "本語"}},
		{"a  b", 3, []string{"a", "b"}},
	} {
		require.Equal(t, test.want, wrap(test.line, test.width), test.line)
	}
}

func TestSkuListAndDetail(t *testing.T) {
	t.Parallel()
	minimum, device := int64(7_000_000), "storage"
	description := "two groups, one open bound"
	at := time.Date(2026, 9, 20, 8, 15, 30, 123456000, time.UTC)
	documents := []sku.Document{{
		ID: "dell.r760.storage.1", Description: &description, Created: &at, SchemaVersion: 5, DeviceType: &device,
		Components: fleet.SkuComponents{
			Chassis:           fleet.Chassis{Vendor: "Dell Inc.", Model: "PowerEdge R760", Architecture: "x86_64"},
			Cpus:              []fleet.Cpu{{Vendor: "GenuineIntel", Model: "Intel(R) Xeon(R) Silver 4416+", ThreadCount: 40, Count: 2}},
			InfinibandDevices: []fleet.InfinibandDevice{{Vendor: "Mellanox Technologies", Model: "MT2910 Family [ConnectX-7]", Count: 2, InactiveDevices: []int{0, 1}}},
			Storage: []fleet.StorageGroup{
				{Model: "Dell BOSS-N1", Count: 1, PciPatterns: []string{"/0000:01:00\\.0/nvme"}},
				{Count: 8, MinSizeMb: &minimum, PciPatterns: []string{"/0000:6[5-8]:00\\.0/nvme", "/0000:a[1-4]:00\\.0/nvme"}},
			},
			Memory: []fleet.Memory{{MemoryType: "DDR5", CapacityMb: 16384, Count: 16}},
			Tpm:    &fleet.Tpm{Vendor: "NPCT75x", Version: "2.0"},
		},
		AssociatedMachineIDs: []string{"machine_1", "machine_2"},
	}, {ID: "empty", SchemaVersion: 0}}
	for name, extended := range map[string]bool{"": false, "_extended": true} {
		a := &app{flags: globalFlags{extended: extended}, process: process{getenv: func(string) string { return "" }}}
		for _, f := range []format{formatTable, formatCSV, formatJSON, formatYAML} {
			a.format = f
			var out bytes.Buffer
			require.NoError(t, a.render(&out, result{data: documents, grid: a.skuGrid(documents)}))
			golden(t, "sku_list"+name+"."+strings.TrimPrefix(string(f), "ascii-"), out.String())
		}
		a.format = formatTable
		var out bytes.Buffer
		require.NoError(t, a.render(&out, result{page: func(p *page) {
			a.skuPage(p, documents[0], []client.SkuMachine{{Id: "machine_1", Name: "r760-1"}, {Id: "machine_2", Name: "r760-2"}})
		}}))
		golden(t, "sku_detail"+name+".table", out.String())
	}
}

func TestPagesStopAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ limit, total, read, calls int }{
		{0, 0, 0, 1}, {0, 200, 200, 1}, {0, 450, 450, 3}, {10, 450, 10, 1}, {250, 450, 250, 2}, {500, 450, 450, 3},
	} {
		read, calls := 0, 0
		err := pages(test.limit, func(n int, _ *string) (int, client.Page, error) {
			calls++
			n = min(n, test.total-read)
			read += n
			cursor := "c"
			return n, client.Page{HasNextPage: read < test.total, EndCursor: &cursor}, nil
		})
		require.NoError(t, err)
		require.Equal(t, []int{test.read, test.calls}, []int{read, calls})
	}
}
