package pgdb_test

import (
	"net/url"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/testdb"
)

func withParameters(t *testing.T, address string, parameters map[string]string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	query := parsed.Query()
	for key, value := range parameters {
		query.Set(key, value)
	}
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

func TestOpenSetsThePoolAndTheApplicationName(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.New(t))
	require.Equal(t, int32(max(8, 4*runtime.GOMAXPROCS(0))), db.Pool.Config().MaxConns) //nolint:gosec // cores
	require.Equal(t, 10*time.Second, db.Pool.Config().ConnConfig.ConnectTimeout)
	var name string
	require.NoError(t, db.Pool.QueryRow(t.Context(), "SHOW application_name").Scan(&name))
	require.Equal(t, "fleetgraph", name)
}

func TestTheURLOverrulesThePool(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"3", "4"} { // 4 is pgx's own default
		t.Run("pool_max_conns="+size, func(t *testing.T) {
			t.Parallel()
			db := open(t, withParameters(t, testdb.New(t), map[string]string{
				"pool_max_conns": size, "application_name": "drill", "connect_timeout": "3",
				"pool_max_conn_lifetime_jitter": "1s",
			}))
			config := db.Pool.Config()
			require.Equal(t, size, string(rune('0'+config.MaxConns)))
			require.Equal(t, 3*time.Second, config.ConnConfig.ConnectTimeout)
			require.Equal(t, time.Second, config.MaxConnLifetimeJitter)
			var name string
			require.NoError(t, db.SQL.QueryRowContext(t.Context(), "SHOW application_name").Scan(&name))
			require.Equal(t, "drill", name)
		})
	}
}

func TestBothFormsShareTheConnections(t *testing.T) {
	t.Parallel()
	db := open(t, withParameters(t, testdb.New(t), map[string]string{"pool_max_conns": "1"}))
	var first, second int
	require.NoError(t, db.Pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&first))
	require.NoError(t, db.SQL.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&second))
	require.Equal(t, first, second)
}

func TestTimesComeInUTC(t *testing.T) {
	t.Parallel()
	db := open(t, withParameters(t, testdb.New(t), map[string]string{"timezone": "Asia/Tokyo"}))
	want := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	const instant = "SELECT '2026-01-02 12:04:05.000006+09'::timestamptz"
	var got time.Time
	require.NoError(t, db.Pool.QueryRow(t.Context(), instant).Scan(&got))
	require.Equal(t, want, got)
	require.NoError(t, db.SQL.QueryRowContext(t.Context(), instant).Scan(&got))
	require.Equal(t, want, got)
	var several []time.Time
	require.NoError(t, db.Pool.QueryRow(t.Context(), "SELECT ARRAY['2026-01-02 12:04:05.000006+09'::timestamptz]").Scan(&several))
	require.Equal(t, []time.Time{want}, several)
}

func TestOpenRefusesWithoutShowingThePassword(t *testing.T) {
	t.Parallel()
	wrong, err := url.Parse(testdb.New(t))
	require.NoError(t, err)
	wrong.User = url.UserPassword("fleetgraph", "hidden")
	for name, address := range map[string]string{
		"empty":          "",
		"bad port":       "postgres://u:hidden@localhost:port/x",
		"bad setting":    "postgres://u:hidden@localhost/x?pool_max_conns=many",
		"nobody there":   "postgres://u:hidden@127.0.0.1:1/x",
		"wrong password": wrong.String(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := pgdb.Open(t.Context(), address, nil)
			require.ErrorContains(t, err, "open the database")
			require.NotContains(t, err.Error(), "hidden")
		})
	}
}
