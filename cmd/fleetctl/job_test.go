package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManyMachinesAreAssignedByOneCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.must(t, "site", "create", "pdx1")
	s.must(t, "site", "config", "apply", "-f", s.write(t, "site.toml", "[bom_validation]\nenabled = true\n"))
	for i := 1; i <= 3; i++ {
		s.report(t, "xe9680_8gpu.json", fmt.Sprintf("c4:5a:b1:c8:38:0%d", i), fmt.Sprintf("dgx-%d", i))
	}
	file := s.file("sku.json")
	s.must(t, "-f", "json", "-o", file, "sku", "generate", "dgx-1", "--id", "dell.xe9680.gpu.9")
	s.report(t, "xe9680_7gpu.json", "c4:5a:b1:c8:38:07", "odd")
	sku := s.file("odd.json")
	s.must(t, "-f", "json", "-o", sku, "sku", "generate", "odd", "--id", "odd.1")
	s.must(t, "sku", "create", sku)
	s.must(t, "sku", "assign", "odd.1", "dgx-2", "--force")

	for _, args := range [][]string{
		{}, {"--all", "--name-prefix", "dgx-"}, {"--where", "x"}, {"--where", "[]"}, {"--state", "x"}, {"--all", "--dry-run", "--wait"},
	} {
		require.Equal(t, exitUsage, s.run(t, append([]string{"sku", "bulk-assign", "odd.1"}, args...)...).code, args)
	}
	require.Equal(t, "SKU_NOT_FOUND", s.refused(t, "sku", "bulk-assign", "none", "--all"))
	got := s.run(t, "sku", "bulk-assign", "odd.1", "--where", `{"colour": "red"}`, "-f", "json")
	require.Equal(t, []any{exitFailed, "where.colour"}, []any{got.code, errorOf(t, got)["field"]})

	dry := s.run(t, "sku", "bulk-assign", "odd.1", "--name-prefix", "dgx-", "--dry-run")
	require.Equal(t, exitDone, dry.code)
	golden(t, "bulk_dry_run.txt", dry.stdout+dry.stderr)
	require.Equal(t, "[]\n", s.must(t, "job", "list", "-f", "json"))

	var job struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(s.must(t, "sku", "bulk-assign", "odd.1", "--name-prefix", "dgx-", "-f", "json")), &job))
	waited := s.run(t, "job", "wait", job.ID)
	require.Equal(t, exitDone, waited.code, waited.stderr)
	require.Empty(t, waited.stderr, "no progress where nobody watches")
	golden(t, "job_show.txt", steady(waited.stdout))
	require.Equal(t, waited.stdout, s.must(t, "job", "show", job.ID))
	golden(t, "job_show.csv", steady(s.must(t, "job", "show", job.ID, "-f", "csv")))
	require.Equal(t, "JOB_ENDED", s.refused(t, "job", "cancel", job.ID))
	require.Equal(t, "JOB_NOT_FOUND", s.refused(t, "job", "show", "job_00000000000000000000000000"))

	failed := s.run(t, "sku", "bulk-assign", "odd.1", "--where", `{"nameIn": ["dgx-1", "dgx-3"]}`, "--state", "UpdatingInventory", "--wait", "-f", "json")
	require.Equal(t, exitDone, failed.code, "they have it: %s", failed.stderr)
	failed = s.run(t, "sku", "bulk-unassign", "--name-prefix", "dgx-", "--wait")
	require.Equal(t, exitFailed, failed.code, "they wait for an inventory")
	require.Contains(t, failed.stdout, "MACHINE_STATE")
	require.Equal(t, exitDone, s.run(t, "sku", "bulk-unassign", "odd.1", "--all", "--force", "--wait").code)
	golden(t, "job_list.txt", steady(s.must(t, "job", "list", "--state", "succeeded")))
	require.Contains(t, s.must(t, "__complete", "job", "wait", ""), job.ID+"\tSUCCEEDED, assign the SKU odd.1")
}

func TestTheProgressOfAJobFitsItsLine(t *testing.T) {
	t.Parallel()
	for done, line := range map[int]string{
		0: "[..............................] 0/10000", 5000: "[###############...............] 5000/10000", 10000: "[##############################] 10000/10000",
	} {
		require.Equal(t, line, progress(jobView{bulkView: &bulkView{Total: 10000, Done: done}}))
	}
	require.Less(t, len(progress(jobView{bulkView: &bulkView{Total: 10000, Done: 9999, Failed: 9999}})), 80)
	require.Equal(t, "PENDING", progress(jobView{State: "PENDING"}))
	require.NotContains(t, progress(jobView{bulkView: &bulkView{Total: 1}}), "failed")
}
