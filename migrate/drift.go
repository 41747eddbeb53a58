package migrate

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"

	entmigrate "fleetgraph/ent/migrate"
)

// Drift returns the statements that would turn the database's schema into the one
// that ent expects; empty means that they agree. It changes nothing.
func Drift(ctx context.Context, db *sql.DB) (string, error) {
	driver := entsql.OpenDB(dialect.Postgres, db)
	var statements bytes.Buffer
	err := entmigrate.NewSchema(driver).WriteTo(ctx, &statements, schema.WithDropColumn(true), schema.WithDropIndex(true))
	if err != nil {
		return "", fmt.Errorf("compare the schema: %w", err)
	}
	return statements.String(), nil
}
