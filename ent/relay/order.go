package relay

import (
	"hash/fnv"
	"io"

	"entgo.io/ent/dialect/sql"
)

// Kind is the form of an order's values.
type Kind uint8

// The kinds of value. An order by id alone carries none beside the id.
const (
	KindID Kind = iota
	KindTime
	KindInt
	KindString
)

// Order is the total order of one connection: by a column that is never null, then
// by id in the same direction, so that an index over (column, id) serves it both ways.
type Order struct {
	Connection string // GraphQL name of the connection's type
	Name       string // GraphQL name of the order field; empty for id alone
	Column     string // the column; the id's for id alone
	ID         string // the id column
	Kind       Kind
	Desc       bool
}

// fingerprint tells cursors of different connections and orders apart.
func (o Order) fingerprint() uint32 {
	direction := " ASC"
	if o.Desc {
		direction = " DESC"
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, o.Connection)
	_, _ = io.WriteString(h, " ")
	_, _ = io.WriteString(h, o.Name)
	_, _ = io.WriteString(h, direction)
	return h.Sum32()
}

// columns lists what is ordered by.
func (o Order) columns() []string {
	if o.Kind == KindID {
		return []string{o.ID}
	}
	return []string{o.Column, o.ID}
}

// side is a predicate over the rows on one side of pos: beyond it in the direction
// of the order, or else before it; with pos itself when inclusive. It is a row
// comparison, which an index over (column, id) can answer.
func (o Order) side(pos *Position, beyond, inclusive bool) func(*sql.Selector) {
	operator := " < "
	if beyond != o.Desc {
		operator = " > "
	}
	if inclusive {
		operator = operator[:2] + "= "
	}
	return func(s *sql.Selector) {
		columns := s.Columns(o.columns()...)
		args := []any{pos.ID}
		if o.Kind != KindID {
			args = []any{pos.Value, pos.ID}
		}
		s.Where(sql.P(func(b *sql.Builder) {
			b.Wrap(func(b *sql.Builder) { b.IdentComma(columns...) })
			b.WriteString(operator)
			b.Wrap(func(b *sql.Builder) { b.Args(args...) })
		}))
	}
}
