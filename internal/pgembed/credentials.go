package pgembed

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// credentials are the passwords of the two roles.
//
// Why passwords on a socket in a closed directory: trust would let in whatever
// else runs as the account (the system's own PostgreSQL runs as postgres, too),
// and peer needs a passwd entry for our user, which containers often lack.
type credentials struct {
	owner, superuser string
}

// loadCredentials reads the passwords, or invents them when there is no cluster.
// They are on disk before the cluster is, so a crash cannot separate the two.
func (c cluster) loadCredentials(clusterExists bool) (credentials, error) {
	path := filepath.Join(c.dataDir, "postgres.pgpass")
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !clusterExists {
		fresh := credentials{owner: rand.Text(), superuser: rand.Text()}
		return fresh, writeDurably(path, fresh.format())
	}
	if err != nil {
		return credentials{}, fmt.Errorf("passwords of the database: %w", err)
	}
	var read credentials
	for line := range strings.Lines(string(content)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		switch {
		case len(fields) != 5:
		case fields[3] == ownerRole:
			read.owner = fields[4]
		case fields[3] == superuserRole:
			read.superuser = fields[4]
		}
	}
	if read.owner == "" || read.superuser == "" {
		return credentials{}, fmt.Errorf("passwords of the database: %s lacks role %s or %s", path, ownerRole, superuserRole)
	}
	return read, nil
}

// format is libpq's password file, so that `PGPASSFILE=… psql` works.
func (c credentials) format() string {
	return fmt.Sprintf("*:*:*:%s:%s\n*:*:*:%s:%s\n", ownerRole, c.owner, superuserRole, c.superuser)
}

// writeDurably leaves the whole content or nothing, readable by this user only.
func writeDurably(path, content string) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // made with 0600
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncDir(filepath.Dir(path))
}
