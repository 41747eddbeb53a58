package server

import (
	"context"
	"fmt"

	"fleetgraph/services/access"
)

// greet issues the first admin token of an empty database, and tells the user where
// the server is and how to sign in.
//
// The token is delivered before it is stored: a crash in between leaves a file with
// a token that does not work, and the next start issues another. The other way
// round it would leave a database that nobody can sign in to.
func greet(ctx context.Context, tokens *access.Service, cfg Config, url string) error {
	issued, err := tokens.Bootstrap(ctx, func(secret string) error {
		if cfg.AdminTokenFile != "" {
			if err := writeSecret(cfg.AdminTokenFile, secret); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(cfg.Output, "First admin token, shown once: %s\nSign in: %s#token=%s\n", secret, url, secret)
		return err
	})
	if err != nil {
		return fmt.Errorf("first admin token: %w", err)
	}
	if issued == "" {
		if _, err := fmt.Fprintf(cfg.Output, "Open: %s\n", url); err != nil {
			return err
		}
	}
	return tellTokenFile(cfg)
}

func tellTokenFile(cfg Config) error {
	if cfg.AdminTokenFile == "" {
		return nil
	}
	found, err := exists(cfg.AdminTokenFile)
	if err != nil {
		return fmt.Errorf("admin token file: %w", err)
	}
	if !found {
		_, err = fmt.Fprintf(cfg.Output, "There is no admin token in %s: the database had tokens before.\n", cfg.AdminTokenFile)
		return err
	}
	_, err = fmt.Fprintf(cfg.Output, "Admin token: in %s\n", cfg.AdminTokenFile)
	return err
}
