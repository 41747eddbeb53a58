package seal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxFile is more than any keyset has, in bytes.
const maxFile = 1 << 20

// ReadFile reads a keyset from a file that only its owner, or its group, has access
// to: a key that every account of the machine can read protects nothing.
func ReadFile(path string) (key []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o007 != 0:
		return nil, fmt.Errorf("%s has mode %04o: every account has access to it; chmod 600 it", path, info.Mode().Perm())
	}
	key, err = io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// CreateFile writes a fresh key into a file that does not exist yet and only its
// owner reads: fs.ErrExist where it does. The file appears whole or not at all, and
// is on the disk when CreateFile returns; of two calls at once one succeeds.
func CreateFile(path string) (err error) {
	key, err := NewKey()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, ".encryption-key-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	_, err = file.Write(key)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil { // unlike a rename, never replaces a key
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
