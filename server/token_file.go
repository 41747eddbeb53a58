package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// writeSecret puts a secret into a file that only its owner reads. It appears whole
// or not at all, and is on the disk when writeSecret returns.
func writeSecret(path, secret string) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("admin token file: %w", err)
	}
	file, err := os.CreateTemp(dir, ".admin-token-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("admin token file: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("admin token file: %w", errors.Join(err, os.Remove(file.Name())))
		}
	}()
	_, err = file.WriteString(secret + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readSecret reads the secret in a file; it is empty where there is no file.
func readSecret(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("admin token file: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
