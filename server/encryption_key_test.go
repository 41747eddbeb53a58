package server

import (
	"bytes"
	"encoding/base64"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/seal"
	"fleetgraph/internal/testdb"
)

// store has a server store credentials.
func (r running) store(t *testing.T) {
	t.Helper()
	var site struct {
		Data struct {
			CreateSite struct{ Site struct{ ID string } }
		}
	}
	r.query(t, `mutation { createSite(input: {name: "here"}) { site { id } } }`, &site)
	var out any
	r.query(t, `mutation { createExpectedMachine(input: {siteId: "`+site.Data.CreateSite.Site.ID+`", expectedMachine: {
		bmcMacAddress: "02:00:00:00:00:01", bmcUsername: "root", bmcPassword: "hunter2"}}) { expectedMachine { id } } }`, &out)
}

// failsToStart returns why a server does not start.
func failsToStart(t *testing.T, cfg Config) string {
	t.Helper()
	cfg.Listen, cfg.Output, cfg.Logger = "127.0.0.1:0", io.Discard, slog.New(slog.DiscardHandler)
	_, err := New(t.Context(), cfg)
	require.Error(t, err)
	return err.Error()
}

func TestAServerStartsWithTheKeyOfItsDatabaseOnly(t *testing.T) {
	t.Parallel()
	url, dir := testdb.New(t), t.TempDir()
	path, other := filepath.Join(dir, "key"), filepath.Join(dir, "other")
	require.NoError(t, seal.CreateFile(path))
	require.NoError(t, seal.CreateFile(other))
	key, err := seal.ReadFile(path)
	require.NoError(t, err)

	first := start(t, Config{DatabaseURL: url, EncryptionKeyFile: other})
	require.NotEmpty(t, first.token, "there is nothing to open yet")
	second := start(t, Config{DatabaseURL: url, EncryptionKey: string(key)})
	second.token = first.token
	second.store(t)
	for _, cfg := range []Config{{EncryptionKeyFile: path}, {EncryptionKey: base64.StdEncoding.EncodeToString(key)}, {}} {
		cfg.DatabaseURL = url
		start(t, cfg)
	}
	require.Contains(t, failsToStart(t, Config{DatabaseURL: url, EncryptionKeyFile: other}), other+": the encryption key does not open the credentials in the database")
}

func TestAServerRefusesWhatIsNoKey(t *testing.T) {
	t.Parallel()
	url, dir := testdb.New(t), t.TempDir()
	readable, broken := filepath.Join(dir, "readable"), filepath.Join(dir, "broken")
	require.NoError(t, seal.CreateFile(readable))
	require.NoError(t, os.Chmod(readable, 0o644)) //nolint:gosec // what is refused
	require.NoError(t, os.WriteFile(broken, []byte("hunter2"), 0o600))
	for text, cfg := range map[string]Config{
		"chmod 600 it":                 {EncryptionKeyFile: readable},
		broken + ": not an encryption": {EncryptionKeyFile: broken},
		"no such file":                 {EncryptionKeyFile: filepath.Join(dir, "absent")},
		"is not a file":                {EncryptionKeyFile: dir},
		"the environment: not an":      {EncryptionKey: "hunter2"},
		"not both":                     {EncryptionKey: "x", EncryptionKeyFile: broken},
	} {
		cfg.DatabaseURL = url
		message := failsToStart(t, cfg)
		require.Contains(t, message, "encryption key: ")
		require.Contains(t, message, text)
		require.NotContains(t, message, "hunter2")
	}
}

func TestWithoutAKeyTheLogSaysSoOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := New(t.Context(), Config{
		DatabaseURL: testdb.New(t), Listen: "127.0.0.1:0", Output: io.Discard, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	require.NoError(t, s.close(t.Context()))
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("credentials of machines cannot be stored")))
	require.Contains(t, log.String(), "fleetgraph encryption-key FILE")
}
