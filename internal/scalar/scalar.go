// Package scalar reads and writes the graph's scalars: ID, Time, Long, Duration
// and JSON. A value read from a literal and the same value read from a variable are
// accepted or refused alike.
package scalar

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"fleetgraph/fleet"
)

// MaxLong is the largest Long: 2^53-1, the last integer that every JSON reader
// holds exactly. The smallest is -MaxLong.
const MaxLong = 1<<53 - 1

// MarshalTime writes t as RFC 3339 in UTC, with sub-seconds where it has any.
func MarshalTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, strconv.Quote(t.UTC().Format(time.RFC3339Nano)))
	})
}

// UnmarshalTime reads RFC 3339.
func UnmarshalTime(v any) (time.Time, error) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, fmt.Errorf("a Time is an RFC 3339 string, not %s", kindOf(v))
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not an RFC 3339 time", s)
	}
	return t.UTC(), nil
}

// MarshalID writes id.
func MarshalID(id string) graphql.Marshaler { return graphql.MarshalString(id) }

// UnmarshalID reads a string, or an integer as its digits.
func UnmarshalID(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	default:
		return "", fmt.Errorf("an ID is a string, not %s", kindOf(v))
	}
}

// MarshalLong writes n.
func MarshalLong(n int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.FormatInt(n, 10)) })
}

// UnmarshalLong reads an integer or a decimal string within ±MaxLong.
func UnmarshalLong(v any) (int64, error) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case int:
		text = strconv.Itoa(v)
	case float64: // a literal with a point or an exponent; its text, as a variable, is refused below
		return 0, fmt.Errorf("a Long is an integer or a decimal string, not %v", v)
	default:
		return 0, fmt.Errorf("a Long is an integer or a decimal string, not %s", kindOf(v))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > MaxLong || n < -MaxLong {
		return 0, fmt.Errorf("%q is not an integer within ±(2^53-1)", text)
	}
	return n, nil
}

// MarshalDuration writes d in the form that UnmarshalDuration reads.
func MarshalDuration(d time.Duration) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(fleet.FormatDuration(d))) })
}

// UnmarshalDuration reads Go's form plus d, such as 90s, 24h or 30d.
func UnmarshalDuration(v any) (time.Duration, error) {
	s, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("a Duration is a string such as 90s, 24h or 30d, not %s", kindOf(v))
	}
	return fleet.ParseDuration(s)
}

// MarshalJSON writes raw as it is; an empty value is null.
func MarshalJSON(raw json.RawMessage) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		if len(raw) == 0 {
			raw = json.RawMessage("null")
		}
		_, _ = w.Write(raw)
	})
}

// UnmarshalJSON reads any value.
func UnmarshalJSON(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("not a JSON value: %w", err)
	}
	return raw, nil
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number, int, int64, float64:
		return "a number"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return fmt.Sprintf("%T", v)
	}
}
