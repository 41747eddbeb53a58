package relay

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"

	"fleetgraph/fleet"
)

// Reasons of a refused cursor.
const (
	ReasonCursorInvalid = "CURSOR_INVALID"
	ReasonCursorForeign = "CURSOR_FOREIGN"
)

// Cursor is an opaque position, as clients hold it. It is read when a page is
// asked for, not when it arrives: only then is it known which argument it is and
// which order it must have.
type Cursor string

// MarshalGQL writes the GraphQL form.
func (c Cursor) MarshalGQL(w io.Writer) { graphql.MarshalString(string(c)).MarshalGQL(w) }

// UnmarshalGQL reads the GraphQL form. What is not a string becomes a cursor that
// no page accepts.
func (c *Cursor) UnmarshalGQL(v any) error {
	if s, ok := v.(string); ok {
		*c = Cursor(s)
		return nil
	}
	*c = Cursor(fmt.Sprintf("%T", v))
	return nil
}

// Position is a place in an order: the value of the order's column and the id, which
// breaks ties. Value is nil where the order is by id alone.
type Position struct {
	ID    string
	Value any
}

// The form of a cursor, in base64url without padding: a checksum of the rest (4
// bytes), the fingerprint of its order (4), the length of the id (1), the id, the
// value. The checksum tells garbage from a cursor of another order; it is no
// signature, since a forged position shows nothing that `where` could not.
const (
	cursorHeader = 9
	cursorMaxLen = 4096
)

// Encode returns the cursor of a row: its id and its value in the column of o, of
// the Go type that o.Kind says.
func (o Order) Encode(id string, value any) Cursor {
	buf := make([]byte, cursorHeader, cursorHeader+len(id)+32)
	binary.BigEndian.PutUint32(buf[4:], o.fingerprint())
	buf[8] = byte(len(id))
	buf = append(buf, id...)
	switch v := value.(type) {
	case time.Time:
		buf = binary.BigEndian.AppendUint64(buf, uint64(v.Unix()))
		buf = binary.BigEndian.AppendUint32(buf, uint32(v.Nanosecond()))
	case int64:
		buf = binary.BigEndian.AppendUint64(buf, uint64(v))
	case string:
		buf = append(buf, v...)
	}
	binary.BigEndian.PutUint32(buf, crc32.ChecksumIEEE(buf[4:]))
	return Cursor(base64.RawURLEncoding.EncodeToString(buf))
}

// decode reads a cursor that must be of the order o. argument names it in errors.
func (o Order) decode(argument string, c *Cursor) (*Position, error) {
	if c == nil {
		return nil, nil //nolint:nilnil // an absent cursor is an absent bound, not a missing result
	}
	invalid := fleet.Invalid(argument, ReasonCursorInvalid, "%s is not a cursor that this server gave out", argument)
	if len(*c) > cursorMaxLen {
		return nil, invalid
	}
	buf, err := base64.RawURLEncoding.Strict().DecodeString(string(*c))
	if err != nil || len(buf) < cursorHeader || binary.BigEndian.Uint32(buf) != crc32.ChecksumIEEE(buf[4:]) {
		return nil, invalid
	}
	if binary.BigEndian.Uint32(buf[4:]) != o.fingerprint() {
		return nil, fleet.Invalid(argument, ReasonCursorForeign,
			"%s is a cursor of another connection or stream, or of another order", argument)
	}
	end := cursorHeader + int(buf[8])
	if len(buf) < end {
		return nil, invalid
	}
	pos := &Position{ID: string(buf[cursorHeader:end])}
	value := buf[end:]
	ok := isText(pos.ID)
	switch o.Kind {
	case KindID:
		ok = ok && len(value) == 0
	case KindTime:
		if ok = ok && len(value) == 12; ok {
			t := time.Unix(int64(binary.BigEndian.Uint64(value)), int64(binary.BigEndian.Uint32(value[8:]))).UTC()
			ok = t.Year() >= 0 && t.Year() <= 9999
			pos.Value = t
		}
	case KindInt:
		if ok = ok && len(value) == 8; ok {
			pos.Value = int64(binary.BigEndian.Uint64(value))
		}
	case KindString:
		ok = ok && isText(string(value))
		pos.Value = string(value)
	}
	if !ok {
		return nil, invalid
	}
	return pos, nil
}

// isText reports whether Postgres can store s as text.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// ReadCursor reads a cursor of o, which argument names in errors: reason
// CURSOR_INVALID for what is none, CURSOR_FOREIGN for one of another order.
func (o Order) ReadCursor(argument string, c Cursor) (Position, error) {
	pos, err := o.decode(argument, &c)
	if err != nil {
		return Position{}, err
	}
	return *pos, nil
}
