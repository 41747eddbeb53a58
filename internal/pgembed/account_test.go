package pgembed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPostgresNeverRunsAsRoot(t *testing.T) {
	t.Parallel()
	dir := tempDataDir(t)
	startServer(t, Config{DataDir: dir})
	process, exists, err := ownerOf(filepath.Join(dir, "postgres", "postmaster.pid"))
	require.NoError(t, err)
	require.True(t, exists)
	require.NotZero(t, process.uid)
	if os.Geteuid() != 0 {
		require.Equal(t, os.Geteuid(), int(process.uid))
	}
}

func TestRootKeepsTheAccountThatOwnsTheCluster(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can choose")
	}
	nobody, err := lookupAccount("nobody")
	require.NoError(t, err)
	dir := tempDataDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "postgres"), 0o700))
	require.NoError(t, os.Chmod(dir, 0o711)) //nolint:gosec // the account passes through
	require.NoError(t, nobody.give(filepath.Join(dir, "postgres")))
	startServer(t, Config{DataDir: dir})
	owner, _, err := ownerOf(filepath.Join(dir, "postgres", "PG_VERSION"))
	require.NoError(t, err)
	require.Equal(t, nobody.uid, owner.uid)
}

func TestADirectoryTheAccountCannotEnterIsNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root lends an account")
	}
	closed := filepath.Join(tempDataDir(t), "closed")
	require.NoError(t, os.MkdirAll(closed, 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(closed), 0o711)) //nolint:gosec // the account passes through
	_, err := Start(t.Context(), Config{DataDir: filepath.Join(closed, "data")})
	require.ErrorContains(t, err, "cannot enter "+resolved(t, closed)+": allow it")
	require.NoDirExists(t, filepath.Join(closed, "data", "postgres"))
}

func TestAncestorsRunFromTheOutside(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"/a", "/a/b", "/a/b/c"}, ancestors("/a/b/c"))
	require.Empty(t, ancestors("/"))
}
