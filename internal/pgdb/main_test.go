package pgdb_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m, nil)) }

func open(t *testing.T, url string) *pgdb.DB {
	t.Helper()
	db, err := pgdb.Open(t.Context(), url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
