package server

import (
	"context"
	"fmt"

	"fleetgraph/fleet"
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
	if issued != "" {
		return tell(cfg, "Admin token: in %s\n", cfg.AdminTokenFile)
	}
	return welcomeBack(ctx, tokens, cfg, url)
}

// welcomeBack tells where the server is. On a terminal it offers to sign in with the
// token in the file, if that still works; a service's output ends in a log, where no
// token belongs.
func welcomeBack(ctx context.Context, tokens *access.Service, cfg Config, url string) error {
	secret, err := readSecret(cfg.AdminTokenFile)
	if err != nil {
		return err
	}
	works := false
	if secret != "" {
		_, err := tokens.Authenticate(ctx, secret)
		if _, refused := fleet.AsError(err); err != nil && !refused {
			return err
		}
		works = err == nil
	}
	if works && cfg.Terminal {
		_, err = fmt.Fprintf(cfg.Output, "Sign in: %s#token=%s\n", url, secret)
	} else {
		_, err = fmt.Fprintf(cfg.Output, "Open: %s\n", url)
	}
	switch {
	case err != nil:
		return err
	case works:
		return tell(cfg, "Admin token: in %s\n", cfg.AdminTokenFile)
	default:
		return tell(cfg, "There is no admin token of this database in %s: it had tokens before.\n", cfg.AdminTokenFile)
	}
}

// tell says something of the admin token file, where one is given.
func tell(cfg Config, format, file string) error {
	if file == "" {
		return nil
	}
	_, err := fmt.Fprintf(cfg.Output, format, file)
	return err
}
