package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

const (
	firstMac  = "c4:5a:b1:c8:38:0d"
	secondMac = "c4:5a:b1:c8:38:0e"
	bmcSecret = "a-secret-of-the-bmc"
)

// write stores a file of this test and returns its path.
func (s *session) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// The guide, Assign a SKU through the expected machine.
func TestExpectedMachinesAreAddedPatchedAndShown(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	password := s.write(t, "password", bmcSecret+"\n")
	added := s.must(t, "expected-machine", "add", "--bmc-mac-address", "C4:5A:B1:C8:38:0D", "--bmc-username", "root", "--bmc-password-file", password,
		"--chassis-serial-number", "SERIAL-1", "--sku-id", "sku123", "--fallback-dpu-serial-number", "MT1", "--fallback-dpu-serial-number", "MT2",
		"--name", "node-1", "--description", "first", "--label", "row:A", "--label", "spare", "--rack-id", "R1", "--bmc-ip-address", "10.0.0.9",
		"--dpu-mode", "nic_mode", "--host-nics", `[{"mac_address": "02:00:00:00:00:01", "primary": true}]`,
		"--default-pause-ingestion-and-poweron", "--dpf-enabled=false", "--bmc-retain-credentials", "--disable-lockdown")
	golden(t, "em_add.txt", steady(added))
	s.must(t, "em", "add", "--bmc-mac-address", secondMac, "--bmc-username", "root", "--bmc-password", bmcSecret, "--chassis-serial-number", "SERIAL-2")

	golden(t, "em_patch.txt", steady(s.must(t, "em", "patch", "--bmc-mac-address", firstMac, "--sku-id", "new_sku", "--label", "row:B")))
	s.must(t, "em", "patch", "--bmc-mac-address", firstMac, "--description", "second")
	golden(t, "em_show.txt", steady(s.must(t, "em", "show")))
	golden(t, "em_show_extended.txt", steady(s.must(t, "em", "show", "--extended")))
	golden(t, "em_show.json", steady(s.must(t, "em", "show", firstMac, "-f", "json")))
	golden(t, "em_show.csv", steady(s.must(t, "em", "show", "-f", "csv")))
	require.NotContains(t, s.must(t, "em", "show", "-f", "json"), bmcSecret)
	require.Contains(t, s.must(t, "__complete", "em", "show", ""), secondMac+"\n")

	id := strings.Split(s.must(t, "em", "show", secondMac, "-f", "json"), `"`)[3]
	require.Contains(t, s.must(t, "em", "show", "--id", id), "SERIAL-2")
	require.Contains(t, s.must(t, "em", "patch", "--id", id, "--bmc-mac-address", "c4:5a:b1:c8:38:0f"), "c4:5a:b1:c8:38:0f")
	require.Equal(t, "[]\n", s.must(t, "em", "show", secondMac, "-f", "json"))
	require.Equal(t, "EXPECTED_MACHINE_NOT_FOUND", s.refused(t, "em", "delete", secondMac))
	require.Equal(t, "MAC_TAKEN", s.refused(t, "em", "patch", "--id", id, "--bmc-mac-address", firstMac))
	require.Equal(t, "SERIAL_INVALID", s.refused(t, "em", "patch", "--id", id, "--chassis-serial-number", "x"))
	got := s.run(t, "em", "delete", firstMac)
	require.Equal(t, "deleted the expected machine "+firstMac+"\n", got.stderr)
	require.NotContains(t, s.must(t, "em", "show"), firstMac)
}

func TestExpectedMachinesOfAFile(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	const one = `{"bmc_mac_address": "C4:5A:B1:C8:38:0D", "bmc_username": "root", "bmc_password": "` + bmcSecret + `",
		"chassis_serial_number": "SERIAL-1", "sku_id": "dell.r750.gpu.1"}`
	const two = `{"bmc_mac_address": "C4:5A:B1:C8:38:0E", "bmc_username": "root", "bmc_password": "` + bmcSecret + `",
		"chassis_serial_number": "SERIAL-2", "dpu_mode": "no_dpu", "metadata": {"name": "node-2", "description": "d", "labels": [{"key": "k", "value": "v"}, {"key": "l"}]},
		"host_nics": [{"mac_address": "02:00:00:00:00:01", "nic_type": "onboard", "fixed_ip": "10.0.0.2", "fixed_mask": "255.255.255.0", "fixed_gateway": "10.0.0.1", "primary": true}],
		"host_lifecycle_profile": {"disable_lockdown": true}, "rack_id": "R1", "bmc_ip_address": "10.0.0.9", "dpf_enabled": true}`
	all := s.write(t, "all.json", `{"expected_machines": [`+one+`,`+two+`], "expected_machines_count": 2}`)
	got := s.run(t, "em", "replace-all", "--filename", all)
	require.Equal(t, outcome{stderr: "deleted 0 expected machines and registered 2 at the site pdx1\n"}, got)
	golden(t, "em_replaced.json", steady(s.must(t, "em", "show", "-f", "json")))

	wrong := s.write(t, "wrong.json", `{"expected_machines": [`+one+`], "expected_machines_count": 3, "comment": 1}`)
	got = s.run(t, "em", "replace-all", "--filename", wrong, "-f", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.JSONEq(t, `{"deleted_count": 2, "created_count": 1}`, got.stdout)
	require.Equal(t, "warning: "+wrong+": ignored unknown keys: comment\nwarning: "+wrong+" holds 1 expected machine, not 3 as its expected_machines_count says\n", got.stderr)

	// An invalid entry leaves all as it was.
	require.Equal(t, "DUPLICATE", s.refused(t, "em", "replace-all", "--filename", s.write(t, "twice.json", `[`+one+`,`+two+`,`+one+`]`)))
	require.Contains(t, s.must(t, "em", "show"), "SERIAL-1")

	changed := s.write(t, "update.yaml", "bmc_mac_address: c4-5a-b1-c8-38-0d\nbmc_username: admin\nbmc_password: "+bmcSecret+"\n"+
		"chassis_serial_number: SERIAL-9\nmetadata: {name: node-1, colour: red}\nskuid: x\n")
	got = s.run(t, "em", "update", "--filename", changed)
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, "warning: "+changed+": ignored unknown keys: metadata.colour, skuid\n", got.stderr)
	golden(t, "em_update.txt", steady(got.stdout))

	for name, content := range map[string]string{
		"lacks bmc_password":                         `{"bmc_mac_address": "c4:5a:b1:c8:38:0d", "bmc_username": "u", "chassis_serial_number": "SERIAL"}`,
		"lacks bmc_mac_address, bmc_password":        `{"bmc_username": "u", "chassis_serial_number": "SERIAL", "bmc_password": null}`,
		`"dpus" is no DPU mode`:                      strings.Replace(one, `{`, `{"dpu_mode": "dpus", `, 1),
		"cannot unmarshal array into Go struct":      strings.Replace(one, `"`+bmcSecret+`"`, `["`+bmcSecret+`"]`, 1),
		"invalid character":                          `{x`,
		"expected_machine not found: c4:5a:b1:c8:38": strings.Replace(one, "0D", "77", 1),
	} {
		got := s.run(t, "em", "update", "--filename", s.write(t, "bad.json", content))
		require.Equal(t, exitFailed, got.code, name)
		require.Contains(t, strings.ToLower(got.stderr), strings.ToLower(strings.TrimSuffix(name, "{")))
		require.NotContains(t, got.stderr, bmcSecret)
	}
	got = s.run(t, "em", "replace-all", "--filename", s.write(t, "bad.json", `{"expected_machines": [`+one+`, {}]}`))
	require.Contains(t, got.stderr, "expected machine 1: lacks bmc_mac_address, bmc_password, bmc_username, chassis_serial_number")
	got = s.run(t, "em", "replace-all", "--filename", s.write(t, "bad.json", `{}`))
	require.Contains(t, got.stderr, "lacks expected_machines")
	got = s.run(t, "em", "replace-all", "--filename", s.write(t, "none.json", `{"expected_machines": []}`))
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "none.json holds no expected machine: to delete all of the site, use `em erase --confirm`")
	require.NotEmpty(t, s.must(t, "em", "show", "-f", "csv"))

	require.Equal(t, exitUsage, s.run(t, "em", "erase").code)
	require.Contains(t, s.must(t, "em", "show"), "SERIAL-9")
	got = s.run(t, "em", "erase", "--confirm")
	require.Equal(t, outcome{stderr: "deleted 1 expected machine and registered 0 at the site pdx1\n"}, got)
	require.Equal(t, "[]\n", s.must(t, "em", "show", "-f", "json"))
}

func TestExpectedMachinesAreShownPageByPage(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	s.must(t, "em", "add", "--bmc-mac-address", "02:00:00:00:00:00", "--bmc-username", "u", "--bmc-password", bmcSecret, "--chassis-serial-number", "SERIAL")
	db, err := pgx.Connect(t.Context(), s.database)
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `
		INSERT INTO expected_machines (id, created_at, bmc_mac_address, fallback_dpu_serial_numbers, labels, host_nics, updated_at, site_id)
		SELECT 'expected_' || lpad(n::text, 26, '0'), created_at, '02:00:00:00:0' || n / 100 || ':' || lpad((n % 100)::text, 2, '0'), '[]', '[]', '[]', updated_at, site_id
		FROM expected_machines, generate_series(1, 449) n`)
	require.NoError(t, err)
	require.NoError(t, db.Close(t.Context()))
	lines := strings.Split(strings.TrimSpace(s.must(t, "em", "show", "-f", "csv")), "\n")
	require.Len(t, lines, 1+450)
	for i, line := range lines[1:] {
		require.Equal(t, fmt.Sprintf("02:00:00:00:%02d:%02d", i/100, i%100), strings.Split(line, ",")[1])
	}
}

func TestExpectedMachineUsage(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.env["FLEETGRAPH_URL"] = "http://127.0.0.1:1"
	full := []string{"--bmc-mac-address", firstMac, "--bmc-username", "root", "--chassis-serial-number", "SERIAL-1"}
	for name, test := range map[string]struct {
		args []string
		text string
	}{
		"a missing flag":         {[]string{"add", "--bmc-mac-address", firstMac}, "required flag(s)"},
		"no password":            {append([]string{"add"}, full...), "--bmc-password-file FILE"},
		"two passwords":          {append([]string{"add", "--bmc-password", "x", "--bmc-password-file", "y"}, full...), "bmc-password"},
		"ports that are no JSON": {append([]string{"add", "--bmc-password", "x", "--host-nics", "x"}, full...), "--host-nics"},
		"a mode that is none":    {append([]string{"add", "--bmc-password", "x", "--dpu-mode", "x"}, full...), "dpu_mode, nic_mode, no_dpu"},
		"a patch of nothing":     {[]string{"patch", "--sku-id", "new_sku"}, "--id"},
		"no file":                {[]string{"update"}, "filename"},
		"no confirmation":        {[]string{"erase"}, "--confirm"},
		"a MAC address too many": {[]string{"show", firstMac, "--id", "x"}, "not both"},
		"an unknown command":     {[]string{"ad"}, `unknown command "ad"`},
	} {
		got := s.run(t, append([]string{"expected-machine"}, test.args...)...)
		require.Equal(t, exitUsage, got.code, "%s: %s", name, got.stderr)
		require.Contains(t, got.stderr, test.text, name)
	}
	for _, args := range [][]string{
		append([]string{"add", "--bmc-password", "p", "--sku-id", "sku123"}, full...),
		{"patch", "--bmc-mac-address", firstMac, "--sku-id", "new_sku"},
	} {
		require.Equal(t, exitUnreachable, s.run(t, append([]string{"em"}, args...)...).code, "parsed, and sent")
	}
}
