package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"fleetgraph/internal/seal"
)

func newEncryptionKey() *cobra.Command {
	return &cobra.Command{
		Use:   "encryption-key FILE",
		Short: "Write a new encryption key",
		Long: "Writes a new key into a file that does not exist yet and only its owner reads. With it, `serve\n" +
			"--encryption-key-file FILE` seals the credentials of machines in the database. Keep a copy: without the\n" +
			"key they cannot be read. A server with its own Postgres makes its own key.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{fmt.Errorf("%s takes one argument, the file to write", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := seal.CreateFile(args[0])
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s exists: a key that is replaced leaves unreadable what it has sealed", args[0])
			}
			if err != nil {
				return fmt.Errorf("encryption key: %w", err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", args[0])
			return err
		},
	}
}
