package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fleetgraph/internal/telemetry"
	"fleetgraph/server"
	"fleetgraph/server/graphqlws"
	"fleetgraph/services/sku"
)

const defaultListen = "127.0.0.1:8080"

func newServe() *cobra.Command {
	var (
		cfg                 server.Config
		logFormat, logLevel string
		origins, proxies    []string
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: "Runs the server until it gets SIGINT or SIGTERM.\n\n" +
			"Without --database-url it starts a Postgres of its own in the data directory, from the system's\n" +
			"binaries. On an empty database it prints the first admin token and the URL that signs in with it.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, _, err := net.SplitHostPort(cfg.Listen); err != nil {
				return &usageError{fmt.Errorf("--listen: %w", err)}
			}
			if err := checkLimits(cmd.Flags()); err != nil {
				return err
			}
			var err error
			if cfg.Origins, err = graphqlws.ParseOrigins(origins); err != nil {
				return &usageError{fmt.Errorf("--allow-origin: %w", err)}
			}
			if cfg.Proxies, err = server.ParseProxies(proxies); err != nil {
				return &usageError{fmt.Errorf("--trusted-proxy: %w", err)}
			}
			logger, err := telemetry.NewLogger(cmd.ErrOrStderr(), logFormat, logLevel)
			if err != nil {
				return &usageError{err}
			}
			cfg.Logger, cfg.Output = logger, cmd.OutOrStdout()
			cfg.EncryptionKey = os.Getenv("FLEETGRAPH_ENCRYPTION_KEY") // no flag: lists of processes show flags
			cfg.Terminal = cfg.Output == io.Writer(os.Stdout) && term.IsTerminal(int(os.Stdout.Fd()))
			if cfg.DatabaseURL == "" && cfg.DataDir == "" {
				if cfg.DataDir, err = defaultDataDir(); err != nil {
					return &usageError{err}
				}
			}
			s, err := server.New(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return s.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Listen, "listen", defaultListen, "address to listen on; port 0 takes a free one")
	flags.StringVar(&cfg.DataDir, "data-dir", "", "directory of the server's own Postgres (default $XDG_DATA_HOME/fleetgraph, ~/.local/share/fleetgraph, or /var/lib/fleetgraph as root)")
	flags.StringVar(&cfg.DatabaseURL, "database-url", "", "Postgres to use instead of one of its own; better given as FLEETGRAPH_DATABASE_URL, which other users do not see")
	flags.StringVar(&cfg.AdminTokenFile, "admin-token-file", "", "file to write the first admin token to")
	flags.StringVar(&cfg.EncryptionKeyFile, "encryption-key-file", "", "file of the key that seals credentials of machines (see encryption-key); the key itself may be in FLEETGRAPH_ENCRYPTION_KEY instead (default encryption-key.json in the data directory, made at the first start, with a Postgres of its own)")
	flags.StringVar(&cfg.OIDCConfigFile, "oidc-config", "", "TOML file of the OpenID Connect issuers whose tokens are accepted, and what they may do (docs/authentication.md)")
	addRate(flags, &cfg.Rate)
	flags.BoolVar(&cfg.Demo, "demo", false, "fill a database without sites with a site of sample machines")
	limits := sku.DefaultLimits()
	flags.IntVar(&cfg.SkuLimits.PatternLength, "sku-pattern-length", limits.PatternLength, "bytes of one PCI pattern of a SKU")
	flags.IntVar(&cfg.SkuLimits.PatternsPerSku, "sku-patterns", limits.PatternsPerSku, "PCI patterns of one SKU")
	flags.IntVar(&cfg.SkuLimits.PatternSteps, "sku-pattern-steps", limits.PatternSteps, "cost of one PCI pattern: 1 a plain character, 16 an instruction of a regular expression")
	flags.IntVar(&cfg.SkuLimits.StepsPerSku, "sku-steps", limits.StepsPerSku, "cost of all PCI patterns of one SKU")
	addLimits(flags, &cfg.Limits)
	addCallerLimits(flags, &cfg.Callers)
	addSocketLimits(flags, &cfg.Sockets)
	flags.StringSliceVar(&proxies, "trusted-proxy", nil, "address or network of a proxy whose X-Forwarded-For tells the address of a client, such as 10.1.0.0/16; repeated or with commas for several")
	flags.StringSliceVar(&origins, "allow-origin", nil, "origin of a page that may open a WebSocket, beside the server's own, such as https://console.example.com; repeated or with commas for several")
	flags.BoolVar(&cfg.HideSchema, "hide-schema", false, "answer no introspection, and suggest no names in errors")
	flags.StringVar(&logFormat, "log-format", telemetry.FormatText, "text or json")
	flags.StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
	return cmd
}

// defaultDataDir follows the XDG base directory specification; root, who stands for
// the system, has no home of that kind.
func defaultDataDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/fleetgraph", nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fleetgraph"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("there is no home directory; give --data-dir: %w", err)
	}
	return filepath.Join(home, ".local", "share", "fleetgraph"), nil
}
