package pgdb

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Kind is what an error of PostgreSQL means to a caller who can do something about it.
type Kind int

// The kinds. All but the last two come with the name of the constraint, for NotNull
// with that of the column.
const (
	KindNone       Kind = iota // no error of PostgreSQL, or one without a kind
	KindUnique                 // 23505: a row with this key exists
	KindForeignKey             // 23503: the row pointed at is missing, or is still pointed at
	KindCheck                  // 23514: a check refuses the row
	KindNotNull                // 23502: a value is missing
	KindExclusion              // 23P01: the row overlaps with another

	KindSerialization // 40001: lost a race under snapshot isolation; a new transaction may win
	KindDeadlock      // 40P01: chosen to break a deadlock; a new transaction may win
)

// The SQLSTATEs of appendix A of PostgreSQL's manual that have a kind.
func kindOf(sqlState string) Kind {
	switch sqlState {
	case "23505":
		return KindUnique
	case "23503":
		return KindForeignKey
	case "23514":
		return KindCheck
	case "23502":
		return KindNotNull
	case "23P01":
		return KindExclusion
	case "40001":
		return KindSerialization
	case "40P01":
		return KindDeadlock
	}
	return KindNone
}

// ErrorCode is the SQLSTATE of the PostgreSQL error in err's chain, "" if there is none.
func ErrorCode(err error) string {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return ""
	}
	return refused.Code
}

// Constraint tells which constraint err violates, also through ent's wrapping. name
// is the constraint's, the column's for KindNotNull, and "" for the kinds without.
func Constraint(err error) (name string, kind Kind) {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return "", KindNone
	}
	kind = kindOf(refused.Code)
	if kind == KindNotNull {
		return refused.ColumnName, kind
	}
	return refused.ConstraintName, kind
}

// Unstorable reports that an argument is text that PostgreSQL cannot hold, such as
// one with a NUL character: no row has it.
func Unstorable(err error) bool { return ErrorCode(err) == "22021" }

// Retryable reports that the whole transaction may succeed when run anew: a
// serialization failure or a deadlock. PostgreSQL has rolled it back.
func Retryable(err error) bool {
	kind := kindOf(ErrorCode(err))
	return kind == KindSerialization || kind == KindDeadlock
}

// Unavailable reports that the server could not be reached, is starting, stopping
// or full, or that the connection broke. Whether a statement that was under way has
// taken effect is not known. It is meant for errors of the database only: those of
// other connections may look the same.
func Unavailable(err error) bool {
	if code := ErrorCode(err); code != "" {
		switch {
		case strings.HasPrefix(code, "08"): // connection exceptions
			return true
		case code == "57P01", code == "57P02", code == "57P03": // shutdown, crash, starting
			return true
		case code == "53300": // too many connections
			return true
		}
		return false
	}
	var dial *pgconn.ConnectError
	var network *net.OpError
	return errors.As(err, &dial) || errors.As(err, &network) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, driver.ErrBadConn)
}
