package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"fleetgraph/internal/seal"
	"fleetgraph/internal/testdb"
	"fleetgraph/server"
	"fleetgraph/services/sku"
)

// session is a command line that is logged in at a server of its own, whose
// first admin's token it has.
type session struct {
	*surroundings
	dir, database string
}

// startServer runs a server on a fresh database until the test ends, and logs in.
func startServer(t *testing.T) *session {
	t.Helper()
	s := &session{setup(t), t.TempDir(), testdb.New(t)}
	tokenFile, keyFile := filepath.Join(s.dir, "token"), filepath.Join(s.dir, "encryption-key")
	require.NoError(t, seal.CreateFile(keyFile))
	srv, err := server.New(t.Context(), server.Config{
		Listen: "127.0.0.1:0", DatabaseURL: s.database, AdminTokenFile: tokenFile, EncryptionKeyFile: keyFile,
		Logger: slog.New(slog.DiscardHandler), Output: io.Discard,
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	secret, err := os.ReadFile(tokenFile)
	require.NoError(t, err)
	s.stdin = string(secret)
	s.must(t, "login", "--url", "http://"+srv.Addr().String())
	return s
}

// must runs a command line that has to succeed, and returns its output.
func (s *session) must(t *testing.T, args ...string) string {
	t.Helper()
	got := s.run(t, args...)
	require.Equal(t, exitDone, got.code, got.stderr)
	return got.stdout
}

// refused runs a command line that the server has to refuse, and returns the
// error's reason.
func (s *session) refused(t *testing.T, args ...string) string {
	t.Helper()
	got := s.run(t, append(args, "-f", "json")...)
	require.Equal(t, exitFailed, got.code, got.stderr)
	require.Empty(t, got.stdout)
	return errorOf(t, got)["reason"].(string)
}

// file is the path of a file of this test.
func (s *session) file(name string) string { return filepath.Join(s.dir, name) }

// report stores one of the sample inventories as a machine's.
func (s *session) report(t *testing.T, inventory, mac, name string) {
	t.Helper()
	s.must(t, "machine", "report", filepath.Join("testdata", inventory), "--bmc-mac", mac, "--name", name)
}

// steady replaces ids and times, which differ between runs, by what does not.
func steady(output string) string {
	ids := regexp.MustCompile(`\b([a-z]+)_[0-9a-hjkmnp-tv-z]{26}\b`)
	times := regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	seen, count := map[string]string{}, map[string]int{}
	output = ids.ReplaceAllStringFunc(output, func(id string) string {
		if seen[id] == "" {
			prefix, _, _ := strings.Cut(id, "_")
			count[prefix]++
			// As wide as the id, so that tables keep their form.
			seen[id] = prefix + "_" + strings.Repeat("0", 26-len(strconv.Itoa(count[prefix]))) + strconv.Itoa(count[prefix])
		}
		return seen[id]
	})
	return times.ReplaceAllString(output, "2026-01-01T00:00:00Z")
}

// The guide, Creating SKUs for a Site, Viewing SKU information, and Remove a SKU
// from a site.
func TestTheWorkflowOfTheGuide(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1", "--description", "Portland")
	require.Equal(t, "SITE_NOT_FOUND", s.refused(t, "sku", "show", "--site", "elsewhere"))
	require.Equal(t, "[]\n", s.must(t, "sku", "show", "-f", "json"))
	s.report(t, "xe9680_8gpu.json", "c4:5a:b1:c8:38:0d", "dgx-1")
	s.report(t, "xe9680_8gpu.json", "c4:5a:b1:c8:38:0e", "dgx-2")

	file := s.file("dell.xe9680.gpu.1.json")
	require.Empty(t, s.must(t, "-f", "json", "-o", file, "sku", "generate", "dgx-1", "--id", "dell.xe9680.gpu.1"))
	golden(t, "e2e_create.txt", steady(s.must(t, "sku", "create", file)))
	for _, machine := range []string{"dgx-1", "dgx-2"} {
		require.Empty(t, s.must(t, "sku", "assign", "dell.xe9680.gpu.1", machine, "--force"))
	}
	got := s.run(t, "sku", "create", file, "--id", "dell.xe9680.gpu.2")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "Specified SKU matches SKU with ID: dell.xe9680.gpu.1")

	golden(t, "e2e_show_list.txt", steady(s.must(t, "sku", "show")))
	golden(t, "e2e_show.txt", steady(s.must(t, "sku", "show", "dell.xe9680.gpu.1")))
	golden(t, "e2e_show.json", steady(s.must(t, "sku", "show", "-f", "json")))
	golden(t, "e2e_show_extended.txt", steady(s.must(t, "sku", "show", "dell.xe9680.gpu.1", "--extended")))
	golden(t, "e2e_show_machines.txt", steady(s.must(t, "sku", "show-machines", "dell.xe9680.gpu.1")))
	golden(t, "e2e_site.txt", steady(s.must(t, "site", "show", "pdx1")))
	machine := s.must(t, "machine", "show", "dgx-1")
	require.Contains(t, machine, "SKU                 : dell.xe9680.gpu.1\n")
	require.Contains(t, machine, "SKU Comparison Now  : match\n")
	require.Contains(t, machine, "Inventory           : PowerEdge XE9680; 2xCPU; 8xGPU; 2 TiB; 9xNVMe\n")
	require.Equal(t, 2, strings.Count(s.must(t, "machine", "show", "--sku", "dell.xe9680.gpu.1", "-f", "csv"), "PowerEdge"))
	require.Zero(t, strings.Count(s.must(t, "machine", "show", "--unassigned", "-f", "csv"), "PowerEdge"))

	// What show writes, replace and create read.
	shown := s.file("shown.json")
	s.must(t, "sku", "show", "dell.xe9680.gpu.1", "-f", "json", "-o", shown)
	s.must(t, "sku", "replace", shown)
	again := s.must(t, "sku", "show", "dell.xe9680.gpu.1", "-f", "json")
	written, err := os.ReadFile(shown)
	require.NoError(t, err)
	require.JSONEq(t, string(written), again)

	require.Equal(t, "SKU_IN_USE", s.refused(t, "sku", "delete", "dell.xe9680.gpu.1"))
	for _, machine := range []string{"dgx-1", "dgx-2"} {
		s.must(t, "sku", "unassign", machine, "--force")
	}
}

func TestAssignmentAndItsRefusals(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	s.enable(t)
	s.report(t, "xe9680_8gpu.json", "c4:5a:b1:c8:38:0d", "dgx-1")
	s.report(t, "xe9680_7gpu.json", "c4:5a:b1:c8:38:0e", "dgx-2")
	file := s.file("sku.json")
	s.must(t, "-f", "json", "-o", file, "sku", "generate", "dgx-1")
	created := s.must(t, "sku", "create", file, "-f", "json")
	var documents []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(created), &documents))
	name := documents[0].ID
	require.Equal(t, "dell.xe9680.gpu.1", name)

	// dgx-2 lacks a GPU, so it does not match by itself.
	require.Contains(t, s.must(t, "sku", "explain", "dgx-2"), "Expected gpu count (8) does not match actual (7)")
	golden(t, "e2e_explain.txt", steady(s.must(t, "sku", "explain", "dgx-2")))
	s.must(t, "sku", "assign", name, "dgx-2", "--force")
	s.must(t, "sku", "assign", name, "dgx-1", "--force")
	s.report(t, "xe9680_8gpu.json", "c4:5a:b1:c8:38:0d", "dgx-1")
	s.report(t, "xe9680_7gpu.json", "c4:5a:b1:c8:38:0e", "dgx-2")
	machine := s.must(t, "machine", "show", "C4-5A-B1-C8-38-0E")
	require.Contains(t, machine, "SKU Comparison Now  : mismatch, 1 difference\n")
	require.Contains(t, machine, "SkuValidation")
	require.Contains(t, s.must(t, "machine", "history", "dgx-2"), "SKU_MISMATCH")
	require.Equal(t, 2, strings.Count(s.must(t, "machine", "history", "dgx-2", "--limit", "1", "-f", "csv"), "\n"))
	require.NotEmpty(t, s.refused(t, "sku", "assign", name, "dgx-2"))
	require.NotEmpty(t, s.refused(t, "machine", "show", "TEST0001")) // both machines report this serial number
	require.Equal(t, "MACHINE_NOT_FOUND", s.refused(t, "sku", "verify", "no-such-machine"))
	require.Equal(t, "SKU_NOT_FOUND", s.refused(t, "sku", "assign", "no-such-sku", "dgx-2", "--force"))

	s.must(t, "-f", "json", "-o", s.file("seven.json"), "sku", "generate", "dgx-2", "--id", name)
	golden(t, "e2e_preview.txt", steady(s.must(t, "sku", "preview-replace", s.file("seven.json"))))

	s.must(t, "sku", "update-metadata", name, "--device-type", "gpu", "--description", "eight GPUs")
	shown := s.must(t, "sku", "show", name)
	require.Contains(t, shown, "Device Type         : gpu\n")
	require.Contains(t, shown, "Description         : eight GPUs\n")
	s.must(t, "sku", "update-metadata", name, "--device-type", "")
	require.Contains(t, s.must(t, "sku", "show", name, "-f", "json"), `"device_type": null`)

	for _, machine := range []string{"dgx-1", "dgx-2"} {
		s.must(t, "sku", "unassign", machine, "--force")
	}
}

func TestManySkusAndOlderOnes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	one, err := (&app{}).readDocument(filepath.Join("testdata", "full_sku_data_v4.json"), "")
	require.NoError(t, err)
	const total = pageSize + 10
	batch := struct {
		Skus []sku.Document `json:"skus"`
	}{}
	for i := range total {
		d := one
		d.ID = fmt.Sprintf("dell.r760.gpu.%d", i+1)
		d.Components.Chassis.Model = fmt.Sprintf("PowerEdge R760 rev %d", i+1)
		batch.Skus = append(batch.Skus, d)
	}
	data, err := marshal(batch)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.file("skus.json"), data, 0o600))

	got := s.run(t, "sku", "create", s.file("skus.json"))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "SKU version is no longer supported")
	require.Equal(t, "[]\n", s.must(t, "sku", "show", "-f", "json"))

	s.must(t, "sku", "create", s.file("skus.json"), "--accept-older-versions", "--timeout", "5m")
	require.Equal(t, total+1, strings.Count(s.must(t, "sku", "show", "-f", "csv"), "\n"))
	require.Equal(t, 10+1, strings.Count(s.must(t, "sku", "show", "-f", "csv", "--limit", "10"), "\n"))
	require.Equal(t, total, strings.Count(s.must(t, "sku", "show", "-f", "json"), `"schema_version": 4`))
	require.Contains(t, s.must(t, "__complete", "sku", "show", ""), "dell.r760.gpu.1\n")

	require.NoError(t, os.WriteFile(s.file("metadata.csv"), []byte("dell.r760.gpu.1,gpu,one\ndell.r760.gpu.2,,two\nno-such-sku,gpu,\n"), 0o600))
	got = s.run(t, "sku", "bulk-update-metadata", s.file("metadata.csv"))
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, "line 3: error: SKU ID not found: no-such-sku (NOT_FOUND SKU_NOT_FOUND field=sku)\nupdated 2 of 3 SKUs\n", got.stderr)
	require.Contains(t, s.must(t, "sku", "show", "dell.r760.gpu.2"), "Description         : two\n")
}

func TestTenThousandSkusAreShownPageByPage(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	s.report(t, "xe9680_8gpu.json", "c4:5a:b1:c8:38:0d", "dgx-1")
	file := s.file("sku.json")
	s.must(t, "-f", "json", "-o", file, "sku", "generate", "dgx-1", "--id", "kind-00000")
	s.must(t, "sku", "create", file)
	db, err := pgx.Connect(t.Context(), s.database)
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `
		INSERT INTO skus (id, created_at, site_id, name, description, schema_version, components, match_key, revision, updated_at)
		SELECT 'sku_' || lpad(n::text, 26, '0'), created_at, site_id, 'kind-' || lpad(n::text, 5, '0'), description, schema_version, components, n::text, 1, updated_at
		FROM skus, generate_series(1, 9999) n`)
	require.NoError(t, err)
	require.NoError(t, db.Close(t.Context()))
	lines := strings.Split(strings.TrimSpace(s.must(t, "sku", "show", "-f", "csv")), "\n")
	require.Len(t, lines, 1+10_000)
	for i, line := range lines[1:] {
		require.Equal(t, fmt.Sprintf("kind-%05d", i), line[:strings.Index(line, ",")])
	}
	require.Len(t, strings.Split(strings.TrimSpace(s.must(t, "sku", "show", "-f", "csv", "--limit", "450")), "\n"), 1+450)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	s.must(t, "site", "create", "pdx2")
	issued := s.must(t, "token", "issue", "grafana", "--role", "viewer", "--site", "pdx1", "--expires-in", "30d", "-f", "json")
	var token struct{ ID, Secret string }
	require.NoError(t, json.Unmarshal([]byte(issued), &token))
	require.NotEmpty(t, token.Secret)

	who := s.must(t, "whoami", "--token", token.Secret)
	require.Contains(t, who, "Role                : VIEWER\n")
	require.Contains(t, who, "Sites               : pdx1\n")
	require.NotEmpty(t, s.refused(t, "site", "create", "pdx3", "--token", token.Secret))
	require.Contains(t, s.must(t, "site", "show", "--token", token.Secret), "pdx1")
	require.NotContains(t, s.must(t, "site", "show", "--token", token.Secret), "pdx2")

	s.must(t, "token", "issue", "agent", "--role", "agent", "--site", "pdx2", "--bmc-mac", "c4:5a:b1:c8:38:0d")
	require.Contains(t, s.must(t, "token", "show"), "grafana")
	require.Equal(t, s.must(t, "token", "show"), s.must(t, "token", "list"))
	shown := s.must(t, "token", "show", "grafana")
	for _, line := range []string{"Role                : VIEWER\n", "Sites               : pdx1\n", "Issued By           : first-admin\n", "Revoked             : never\n"} {
		require.Contains(t, shown, line)
	}
	require.NotContains(t, shown, "Last Used           : never")
	require.Regexp(t, `Expires             : 20\d\d-`, shown)
	require.NotContains(t, shown, token.Secret)
	var one struct {
		ID       string
		Sites    []string
		Expires  *time.Time
		LastUsed *time.Time `json:"last_used"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.must(t, "token", "show", "grafana", "-f", "json")), &one))
	require.Equal(t, token.ID, one.ID)
	require.Equal(t, []string{"pdx1"}, one.Sites)
	require.WithinDuration(t, time.Now().Add(30*24*time.Hour), *one.Expires, time.Hour)
	require.WithinDuration(t, time.Now(), *one.LastUsed, 2*time.Minute)
	require.Contains(t, s.must(t, "token", "show", "agent"), "Last Used           : never\n")
	require.Equal(t, "TOKEN_NOT_FOUND", s.refused(t, "token", "show", "nobody"))
	s.must(t, "token", "revoke", "grafana")
	require.NotContains(t, s.must(t, "token", "show", token.ID), "Revoked             : never")
	got := s.run(t, "whoami", "--token", token.Secret)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "UNAUTHENTICATED")
	require.Equal(t, "TOKEN_NOT_FOUND", s.refused(t, "token", "revoke", "grafana"))
}
