package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettingsPrecedence(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"url":"file-url","token":"file-token","site":"file-site"}`), 0o600))
	env := map[string]string{"FLEETGRAPH_CONFIG": file}
	settings := func(flags globalFlags) config {
		t.Helper()
		got, err := (&app{flags: flags, process: process{getenv: func(key string) string { return env[key] }}}).settings()
		require.NoError(t, err)
		return got
	}
	require.Equal(t, config{"file-url", "file-token", "file-site"}, settings(globalFlags{}))
	env["FLEETGRAPH_URL"], env["FLEETGRAPH_TOKEN"], env["FLEETGRAPH_SITE"] = "env-url", "env-token", "env-site"
	require.Equal(t, config{"env-url", "env-token", "env-site"}, settings(globalFlags{}))
	require.Equal(t, config{"flag-url", "flag-token", "flag-site"}, settings(globalFlags{url: "flag-url", token: "flag-token", site: "flag-site"}))
	require.Equal(t, config{"env-url", "env-token", "env-site"}, settings(globalFlags{config: "no-such-file"}))
	clear(env)
	require.Equal(t, config{}, settings(globalFlags{config: "no-such-file"}))
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"https://fleet.example":                "https://fleet.example/graphql",
		"https://fleet.example/":               "https://fleet.example/graphql",
		"http://[::1]:8080/graphql":            "http://[::1]:8080/graphql",
		"https://proxy.example/fleet/graphql/": "https://proxy.example/fleet/graphql/",
	} {
		got, err := endpoint(server)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, server := range []string{"", "fleet.example", "ftp://fleet.example", "http://", "://"} {
		_, err := endpoint(server)
		require.ErrorAs(t, err, new(usageError), server)
	}
}

func TestLoginChecksAndStoresTheToken(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.serve(t, func(w http.ResponseWriter, c call) {
		if c.Token != "good" {
			w.Header().Set("Content-Type", "application/graphql-response+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"errors":[{"message":"unknown token","extensions":{"code":"UNAUTHENTICATED","reason":"TOKEN_UNKNOWN"}}]}`))
			return
		}
		reply(w, viewerReply)
	})
	url := s.env["FLEETGRAPH_URL"]
	delete(s.env, "FLEETGRAPH_URL")
	file := filepath.Join(s.env["XDG_CONFIG_HOME"], "fleetgraph", "config.json")

	s.stdin = "bad\n"
	got := s.run(t, "login", "--url", url)
	require.Equal(t, outcome{exitFailed, "", "error: unknown token (UNAUTHENTICATED TOKEN_UNKNOWN)\nhint: log in with fleetctl login, or pass --token\n"}, got)
	require.NoFileExists(t, file)

	s.stdin = "good\n"
	got = s.run(t, "login", "--url", url, "--site", "pdx1")
	require.Equal(t, outcome{exitDone, "", "logged in at " + url + "/graphql as ops (ADMIN)\n"}, got)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, `{"url":"`+url+`","token":"good","site":"pdx1"}`, string(data))

	got = s.run(t, "whoami", "-f", "csv")
	require.Equal(t, outcome{exitDone, "Name,Role,Sites,Expires\nops,ADMIN,all,never\n", ""}, got)

	got = s.run(t, "logout")
	require.Equal(t, outcome{exitDone, "", "logged out\n"}, got)
	data, err = os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, `{"url":"`+url+`","site":"pdx1"}`, string(data))
	require.Equal(t, exitFailed, s.run(t, "whoami").code)
}

func TestLoginWithoutATokenIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, stdin := range []string{"", "\n", "two words"} {
		s.stdin = stdin
		require.Equal(t, exitUsage, s.run(t, "login", "--url", "https://fleet.invalid").code)
	}
}

func TestABrokenConfigurationFileIsAnError(t *testing.T) {
	t.Parallel()
	s := setup(t)
	file := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	got := s.run(t, "whoami", "--config", file)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, file)
}

func TestOpenConnectionsAreToldApart(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]bool{
		"https://fleet.example/graphql": false, "http://localhost:8080/graphql": false, "http://127.0.0.1/graphql": false,
		"http://[::1]/graphql": false, "http://fleet.example/graphql": true, "http://10.0.0.1/graphql": true,
	} {
		require.Equal(t, want, isOpen(server), server)
	}
}
