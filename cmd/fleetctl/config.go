package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// config is what is stored between runs. It holds a secret.
type config struct {
	URL   string `json:"url,omitempty"`
	Token string `json:"token,omitempty"`
	Site  string `json:"site,omitempty"`
}

// configPath is --config, else FLEETGRAPH_CONFIG, else config.json in the
// fleetgraph folder of XDG_CONFIG_HOME or the system's place for it.
func (a *app) configPath() (string, error) {
	if path := first(a.flags.config, a.getenv("FLEETGRAPH_CONFIG")); path != "" {
		return path, nil
	}
	folder := a.getenv("XDG_CONFIG_HOME")
	if folder == "" {
		var err error
		if folder, err = os.UserConfigDir(); err != nil {
			return "", fmt.Errorf("no place for the configuration file, pass --config: %w", err)
		}
	}
	return filepath.Join(folder, "fleetgraph", "config.json"), nil
}

// storedConfig reads the configuration file; one that does not exist is empty.
func (a *app) storedConfig() (config, error) {
	path, err := a.configPath()
	if err != nil {
		// Flags and environment may be enough.
		return config{}, nil //nolint:nilerr // the place is only needed to store something
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return config{}, nil
	}
	if err != nil {
		return config{}, err
	}
	var c config
	if err := json.Unmarshal(data, &c); err != nil {
		return config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// storeConfig replaces the configuration file in one step. Only its owner may
// read it.
func (a *app) storeConfig(c config) error {
	path, err := a.configPath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	data, err := marshal(c)
	if err != nil {
		return err
	}
	// CreateTemp makes files of mode 0600.
	file, err := os.CreateTemp(filepath.Dir(path), ".config-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// settings are the connection's settings: each from its flag, else from the
// environment, else from the configuration file.
func (a *app) settings() (config, error) {
	stored, err := a.storedConfig()
	if err != nil {
		return config{}, err
	}
	return config{
		URL:   first(a.flags.url, a.getenv("FLEETGRAPH_URL"), stored.URL),
		Token: first(a.flags.token, a.getenv("FLEETGRAPH_TOKEN"), stored.Token),
		Site:  first(a.flags.site, a.getenv("FLEETGRAPH_SITE"), stored.Site),
	}, nil
}

// endpoint turns what a person gives as the server into the URL of its API:
// without a path it is /graphql.
func endpoint(server string) (string, error) {
	if server == "" {
		return "", usagef("no server: pass --url, set FLEETGRAPH_URL, or log in with fleetctl login --url URL")
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", usagef("%q is not the URL of a server, expected for instance https://fleet.example", server)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/graphql"
	}
	u.Fragment = ""
	return u.String(), nil
}

// first is the first of the texts that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
