package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDiffWritesNumberedFilesAndOnlyWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, run(t.Context(), []string{"-dir", dir, "first"}))
	content, err := os.ReadFile(filepath.Join(dir, "0001_first.sql"))
	require.NoError(t, err)
	require.Contains(t, string(content), `CREATE TABLE "sites"`)
	require.EqualError(t, run(t.Context(), []string{"-dir", dir, "second"}), "the migrations already make the schema that ent expects")

	edited := filepath.Join(dir, "0001_first.sql")
	require.NoError(t, os.WriteFile(edited, append(content, "CREATE INDEX \"stray\" ON \"sites\" (\"name\");\n"...), 0o600))
	require.Error(t, run(t.Context(), []string{"-dir", dir, "second"}), "an edit needs a new hash")
	require.NoError(t, run(t.Context(), []string{"-dir", dir, "-hash"}))
	require.NoError(t, run(t.Context(), []string{"-dir", dir, "second"}))
	content, err = os.ReadFile(filepath.Join(dir, "0002_second.sql"))
	require.NoError(t, err)
	require.Contains(t, string(content), `DROP INDEX "stray"`)
}

func TestDiffRefusesBadNames(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {""}, {"Upper"}, {"a b"}, {"a/b"}, {"a", "b"}} {
		require.Error(t, run(t.Context(), args))
	}
}
