package pgembed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeInstallation answers --version and nothing else.
func fakeInstallation(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
	for _, program := range []string{"initdb", "postgres"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755)) //nolint:gosec // a program
	}
	return dir
}

func TestFindReturnsAnInstalledPostgres(t *testing.T) {
	t.Parallel()
	dir, err := Find()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "initdb"))
}

func TestMissingBinariesSayHowToInstallThem(t *testing.T) {
	t.Parallel()
	for name, dirs := range map[string][]string{
		"nothing to search":     {},
		"empty directory":       {t.TempDir()},
		"too old":               {fakeInstallation(t, "14.9 (Debian 14.9-1)")},
		"relative PATH entries": {"", "."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Start(t.Context(), Config{DataDir: t.TempDir(), SearchDirs: dirs})
			require.ErrorIs(t, err, ErrNotFound)
			require.ErrorContains(t, err, "install")
		})
	}
}

func TestTheNewestInstallationWinsAndPathAmongEquals(t *testing.T) {
	t.Parallel()
	old, first, second := fakeInstallation(t, "15.18"), fakeInstallation(t, "17beta1"), fakeInstallation(t, "17.2")
	found, err := findBinaries(t.Context(), []string{old, first, second}, 0)
	require.NoError(t, err)
	require.Equal(t, binaries{dir: first, major: 17}, found)
}

func TestAClusterIsOpenedByItsOwnMajorVersionOnly(t *testing.T) {
	t.Parallel()
	dirs := []string{fakeInstallation(t, "17.2"), fakeInstallation(t, "16.1")}
	found, err := findBinaries(t.Context(), dirs, 16)
	require.NoError(t, err)
	require.Equal(t, 16, found.major)
	_, err = findBinaries(t.Context(), dirs, 15)
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "written by PostgreSQL 15, installed is 17")
}

func TestInstallCommandFitsTheSystem(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]string{
		"ID=debian\n": "apt-get install postgresql",
		"NAME=\"Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n": "apt-get install postgresql",
		"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n":           "dnf install postgresql-server",
		"ID=alpine\n": "apk add postgresql",
		"":            "your system's package manager, package postgresql (server)",
	} {
		require.Equal(t, want, installCommand("linux", release), release)
	}
	require.Equal(t, "brew install postgresql@17", installCommand("darwin", ""))
}
