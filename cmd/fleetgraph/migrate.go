package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"fleetgraph/internal/pgdb"
	"fleetgraph/migrate"
)

func newMigrate() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a database to the schema of this version",
		Long: "Applies the migrations that a database lacks, and says how many. `serve` does the same when it\n" +
			"starts; run this first where the server's own role may not change the schema.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if url == "" {
				return &usageError{errors.New("--database-url or FLEETGRAPH_DATABASE_URL is needed")}
			}
			db, err := pgdb.Open(cmd.Context(), url, nil)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			applied, err := migrate.Apply(cmd.Context(), db.SQL)
			if err != nil {
				return err
			}
			state, err := migrate.Status(cmd.Context(), db.SQL)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "schema version %d, %d applied now, %d pending\n", state.Version, applied, state.Pending)
			return err
		},
	}
	cmd.Flags().StringVar(&url, "database-url", "", "Postgres to migrate; better given as FLEETGRAPH_DATABASE_URL, which other users do not see")
	return cmd
}
