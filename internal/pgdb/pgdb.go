// Package pgdb opens the database: one pool of pgx connections, which ent, River
// and hand-written SQL share, and reads PostgreSQL's errors.
//
// Invariants: one pool a process; every time read from the database is in UTC; no
// error of this package carries a password. It knows no table.
package pgdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	applicationName = "fleetgraph"
	// connectTimeout bounds one dial with its handshake; pgx has no bound of its own.
	connectTimeout = 10 * time.Second
)

// DB is the pool in both its forms. Both draw on the same connections, so that code
// which holds one of either and waits for another can starve the rest.
type DB struct {
	Pool *pgxpool.Pool
	// SQL is the pool behind database/sql, for ent. It keeps no idle connections of its own.
	SQL *sql.DB

	committed chan struct{}
}

// Committed tells that a transaction of ent has been committed since the last
// receive; one signal stands for any number of them. There is one receiver.
func (db *DB) Committed() <-chan struct{} { return db.committed }

// Connect opens a connection beside the pool, for who listens on it.
func (db *DB) Connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, db.Pool.Config().ConnConfig)
}

// Open connects to the server of a URL or a keyword string and makes sure that it
// answers. The size of the pool is max(8, 4 a core), the application name
// "fleetgraph", the connect timeout 10 s; the URL's pool_max_conns,
// application_name, connect_timeout and the other settings of pgx overrule them.
// The tracer, where there is one, sees every statement.
func Open(ctx context.Context, url string, tracer pgx.QueryTracer) (*DB, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return &DB{Pool: pool, SQL: stdlib.OpenDBFromPool(pool), committed: make(chan struct{}, 1)}, nil
}

// Close ends all connections. It waits for those in use: end the users first.
func (db *DB) Close() error {
	err := db.SQL.Close()
	db.Pool.Close()
	return err
}

func parse(url string) (*pgxpool.Config, error) {
	if url == "" { // pgx would take it as "all from PG* variables"
		return nil, errors.New("open the database: no URL")
	}
	config, err := pgxpool.ParseConfig(url) // its errors are redacted
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	// A pool configuration does not tell a default from a setting; a connection's
	// still has the pool's settings among its parameters.
	given, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if _, ok := given.RuntimeParams["pool_max_conns"]; !ok {
		config.MaxConns = max(8, 4*int32(min(runtime.GOMAXPROCS(0), 1024))) //nolint:gosec // bounded
	}
	if _, ok := given.RuntimeParams["pool_max_conn_lifetime_jitter"]; !ok {
		config.MaxConnLifetimeJitter = config.MaxConnLifetime / 10 // they were opened together
	}
	connection := config.ConnConfig
	if _, ok := connection.RuntimeParams["application_name"]; !ok {
		connection.RuntimeParams["application_name"] = applicationName
	}
	if connection.ConnectTimeout == 0 {
		connection.ConnectTimeout = connectTimeout
	}
	config.AfterConnect = readTimesInUTC
	return config, nil
}

// readTimesInUTC: by default pgx returns times in the process's zone, and an answer
// would depend on where the server stands.
func readTimesInUTC(_ context.Context, conn *pgx.Conn) error {
	instant := &pgtype.Type{
		Name:  "timestamptz",
		OID:   pgtype.TimestamptzOID,
		Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	}
	conn.TypeMap().RegisterType(instant)
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name:  "_timestamptz",
		OID:   pgtype.TimestamptzArrayOID,
		Codec: &pgtype.ArrayCodec{ElementType: instant},
	})
	return nil
}
