package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEncryptionKeyIsWrittenOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key.json")
	got := run(t, nil, "encryption-key", path)
	require.Equal(t, result{0, "wrote " + path + "\n", ""}, got)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	key, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, json.Valid(key))

	got = run(t, nil, "encryption-key", path)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "exists")
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, key, again)
	got = run(t, nil, "encryption-key", filepath.Join(path, "below"))
	require.Equal(t, exitFailed, got.code)
	for _, args := range [][]string{{"encryption-key"}, {"encryption-key", path, path}} {
		require.Equal(t, exitUsage, run(t, nil, args...).code)
	}
}

func TestAServerWithItsOwnPostgresMakesItsKeyAndKeepsIt(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	path := filepath.Join(dir, "encryption-key.json")
	first := serve(t, nil, "--data-dir", dir)
	token := first.token()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	key, err := os.ReadFile(path)
	require.NoError(t, err)
	var site struct {
		Data struct {
			CreateSite struct{ Site struct{ ID string } }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(first.query(t, token, `mutation{createSite(input:{name:"hall-1"}){site{id}}}`)), &site))
	require.Contains(t, first.query(t, token, `mutation{createExpectedMachine(input:{siteId:"`+site.Data.CreateSite.Site.ID+`",expectedMachine:{
		bmcMacAddress:"02:00:00:00:00:01",bmcUsername:"root",bmcPassword:"hunter2"}}){expectedMachine{hasBmcCredentials}}}`), `"hasBmcCredentials":true`)
	require.Zero(t, first.terminate(t))
	require.NotContains(t, first.stderr.String(), "hunter2")

	second := serve(t, nil, "--data-dir", dir)
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, key, again)
	require.Zero(t, second.terminate(t))

	require.NoError(t, os.Rename(path, path+".moved"))
	got := run(t, nil, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "put it back")
	require.NoFileExists(t, path)
	third := serve(t, []string{"FLEETGRAPH_ENCRYPTION_KEY=" + string(key)}, "--data-dir", dir)
	require.Zero(t, third.terminate(t))
	fourth := serve(t, []string{"FLEETGRAPH_ENCRYPTION_KEY_FILE=" + path + ".moved"}, "--data-dir", dir)
	require.Zero(t, fourth.terminate(t))
}
