package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"fleetgraph/ent"
	"fleetgraph/internal/seal"
	"fleetgraph/services/expected"
)

// ownKeyFile is the key of a server with its own Postgres, within the data directory.
const ownKeyFile = "encryption-key.json"

// openKey makes the box that seals credentials: of the key that is given, or of the
// server's own beside its own Postgres, which it makes at the first start. With another
// Postgres and no key it returns nil, and the server refuses credentials. A key that
// does not open what is stored ends the start.
func openKey(ctx context.Context, cfg Config, client *ent.Client) (*seal.Box, error) {
	stored, err := expected.CheckKey(ctx, client, nil)
	if err != nil {
		return nil, err
	}
	key, source, err := readKey(cfg, stored)
	if err != nil {
		return nil, fmt.Errorf("encryption key: %w", err)
	}
	if key == nil {
		message := "no encryption key: credentials of machines cannot be stored"
		if stored {
			message += ", and those in the database are of no use"
		}
		cfg.Logger.WarnContext(ctx, message, slog.String("remedy", "fleetgraph encryption-key FILE, then serve --encryption-key-file FILE"))
		return nil, nil //nolint:nilnil // no key is no fault
	}
	box, err := seal.Open(key)
	if err != nil {
		return nil, fmt.Errorf("encryption key: %s: %w", source, err)
	}
	if _, err := expected.CheckKey(ctx, client, box); err != nil {
		if errors.Is(err, expected.ErrOtherKey) {
			err = fmt.Errorf("encryption key: %s: %w", source, err)
		}
		return nil, err
	}
	return box, nil
}

// readKey reads the key, nil where there is none to be had, and tells where it is from.
// stored tells that the database holds credentials already.
func readKey(cfg Config, stored bool) (key []byte, source string, err error) {
	switch {
	case cfg.EncryptionKey != "" && cfg.EncryptionKeyFile != "":
		return nil, "", errors.New("give the key or the file of the key, not both")
	case cfg.EncryptionKey != "":
		return []byte(cfg.EncryptionKey), "the environment", nil
	case cfg.EncryptionKeyFile != "":
		key, err := seal.ReadFile(cfg.EncryptionKeyFile)
		return key, cfg.EncryptionKeyFile, err
	case cfg.DatabaseURL != "":
		return nil, "", nil
	}
	path := filepath.Join(cfg.DataDir, ownKeyFile)
	key, err = seal.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, path, err
	}
	if stored { // a new key would hide that the old one is gone
		return nil, "", fmt.Errorf("%s is gone, and the database holds credentials that only it opens: put it back", path)
	}
	if err := seal.CreateFile(path); err != nil {
		return nil, "", err
	}
	key, err = seal.ReadFile(path)
	return key, path, err
}
