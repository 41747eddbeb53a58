package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGenerateFromAnInventoryFile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		golden string
		args   []string
	}{
		{"generate_xe9680.txt", []string{"--inventory", "testdata/xe9680_8gpu.json"}},
		{"generate_xe9680.json", []string{"--inventory", "testdata/xe9680_8gpu.json", "-f", "json"}},
		{"generate_xe9680.yaml", []string{"--inventory", "testdata/xe9680_8gpu.json", "-f", "yaml"}},
		{"generate_xe9680.csv", []string{"--inventory", "testdata/xe9680_8gpu.json", "-f", "csv"}},
		{"generate_x86_v4.json", []string{"--inventory", "testdata/x86_info.json", "-f", "json", "--schema-version", "4", "--id", "dell.r750.gpu.7"}},
		{"generate_x86_v0.txt", []string{"--inventory", "testdata/x86_info.json", "--schema-version", "0"}},
		{"generate_x86_lids.txt", []string{"--inventory", "testdata/x86_info.json", "--ib-lids", "946dae03002ac752=1,946dae03002ac753=0x2,946dae03002ac101=0xffff"}},
	} {
		t.Run(test.golden, func(t *testing.T) {
			t.Parallel()
			got := setup(t).run(t, append([]string{"sku", "generate"}, test.args...)...)
			require.Equal(t, exitDone, got.code, got.stderr)
			require.Empty(t, got.stderr)
			golden(t, test.golden, got.stdout)
		})
	}
}

func TestGenerateMakesTheComponentsThatTheDataSetExpects(t *testing.T) {
	t.Parallel()
	for inventory, want := range map[string]string{"xe9680_8gpu.json": "xe9680_8gpu.v5.json", "x86_info.json": "x86_info.v4.json"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			expected, err := (&app{}).readDocument(filepath.Join("testdata", want), "")
			require.NoError(t, err)
			made := s.run(t, "sku", "generate", "--inventory", filepath.Join("testdata", inventory),
				"--schema-version", strconv.Itoa(expected.SchemaVersion), "-f", "json")
			require.Equal(t, exitDone, made.code, made.stderr)
			read, err := (&app{process: process{stdin: strings.NewReader(made.stdout)}}).readDocument("-", "")
			require.NoError(t, err)
			wanted, err := marshal(expected.Components)
			require.NoError(t, err)
			got, err := marshal(read.Components)
			require.NoError(t, err)
			require.JSONEq(t, string(wanted), string(got))
			require.Equal(t, expected.Description, read.Description)
		})
	}
}

func TestGenerateReadsTheStandardInputAndWritesAFile(t *testing.T) {
	t.Parallel()
	s := setup(t)
	data, err := os.ReadFile("testdata/xe9680_8gpu.json")
	require.NoError(t, err)
	s.stdin = string(data)
	file := filepath.Join(t.TempDir(), "dell.xe9680.gpu.1.json")
	got := s.run(t, "-f", "json", "-o", file, "sku", "g", "--inventory", "-")
	require.Equal(t, outcome{}, got)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	golden(t, "generate_xe9680.json", string(written))
}

func TestDiff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seven := filepath.Join(dir, "seven.json")
	require.Equal(t, exitDone, setup(t).run(t, "sku", "generate", "--inventory", "testdata/xe9680_7gpu.json", "-f", "json", "-o", seven).code)
	for _, test := range []struct {
		name, golden     string
		actual, expected string
		format           string
		code             int
	}{
		{"a SKU matches itself", "diff_match.json", "testdata/xe9680_8gpu.v5.json", "testdata/xe9680_8gpu.v5.json", "json", exitDone},
		{"a match says so", "diff_match.txt", "testdata/xe9680_8gpu.v5.json", "testdata/xe9680_8gpu.v5.json", "table", exitDone},
		{"a missing GPU is a mismatch", "diff_gpu.json", seven, "testdata/xe9680_8gpu.v5.json", "json", exitFailed},
		{"a missing GPU shows both figures", "diff_gpu.txt", seven, "testdata/xe9680_8gpu.v5.json", "table", exitFailed},
		{"other hardware", "diff_other.csv", "testdata/x86_info.v4.json", "testdata/xe9680_8gpu.v4.json", "csv", exitFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := setup(t).run(t, "sku", "diff", "--actual", test.actual, "--expected", test.expected, "-f", test.format)
			require.Equal(t, test.code, got.code, got.stderr)
			require.Empty(t, got.stderr)
			golden(t, test.golden, got.stdout)
		})
	}
}

func TestDiffRefusesWhatIsNoSku(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.stdin = `{"id": "a", "components": {"cpus": 3}}`
	got := s.run(t, "sku", "diff", "--actual", "-", "--expected", "testdata/xe9680_8gpu.v5.json", "-f", "json")
	require.Equal(t, exitUsage, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, `"field":"components.cpus"`)

	got = s.run(t, "sku", "diff", "--actual", "no-such-file", "--expected", "testdata/xe9680_8gpu.v5.json")
	require.Equal(t, exitUsage, got.code)
	require.Equal(t, "error: open no-such-file: no such file or directory\n", got.stderr)
}

func TestYamlReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sku.yaml")
	got := setup(t).run(t, "sku", "generate", "--inventory", "testdata/xe9680_8gpu.json", "-f", "yaml", "-o", file)
	require.Equal(t, outcome{}, got)
	got = setup(t).run(t, "sku", "diff", "--actual", file, "--expected", "testdata/xe9680_8gpu.v5.json")
	require.Equal(t, exitDone, got.code, got.stderr)
}

func TestAListOfSkusReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := setup(t)
	first := s.run(t, "sku", "generate", "--inventory", "testdata/xe9680_8gpu.json", "-f", "json")
	s.stdin = "[" + first.stdout + "]"
	got := s.run(t, "sku", "diff", "--actual", "-", "--expected", "testdata/xe9680_8gpu.v5.json")
	require.Equal(t, exitDone, got.code, got.stderr)
}
