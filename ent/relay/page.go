package relay

import (
	"slices"

	"entgo.io/ent/dialect/sql"

	"fleetgraph/fleet"
)

// The sizes of a page.
const (
	DefaultPageSize = 50
	MaxPageSize     = 200
)

// Reasons of refused page arguments.
const (
	ReasonPageSize     = "PAGE_SIZE_INVALID"
	ReasonPageConflict = "PAGE_ARGUMENTS_CONFLICT"
)

// PageInfo says where a page lies in its connection.
type PageInfo struct {
	HasNextPage     bool
	HasPreviousPage bool
	StartCursor     *Cursor
	EndCursor       *Cursor
}

// Args are the arguments that choose a page.
type Args struct {
	After  *Cursor
	First  *int
	Before *Cursor
	Last   *int
}

// Page is a checked request: at most Size rows strictly between After and Before, from
// the end when Reverse.
type Page struct {
	Size          int
	Reverse       bool
	After, Before *Position
	order         Order
}

// Page checks the arguments against the order of their connection.
func (a Args) Page(o Order) (Page, error) {
	p := Page{Size: DefaultPageSize, Reverse: a.Last != nil, order: o}
	if a.First != nil && a.Last != nil {
		return p, fleet.Invalid("last", ReasonPageConflict, "%s takes first or last, not both", o.Connection)
	}
	for _, size := range []struct {
		name  string
		value *int
	}{{"first", a.First}, {"last", a.Last}} {
		if size.value == nil {
			continue
		}
		if *size.value < 0 || *size.value > MaxPageSize {
			return p, fleet.Invalid(size.name, ReasonPageSize, "%s of %s is %d: a page holds 0 to %d items", size.name, o.Connection, *size.value, MaxPageSize)
		}
		p.Size = *size.value
	}
	var err error
	if p.After, err = o.decode("after", a.After); err != nil {
		return p, err
	}
	p.Before, err = o.decode("before", a.Before)
	return p, err
}

// Limit is the number of rows to fetch: one more than the page holds, which tells
// whether there are more without counting.
func (p Page) Limit() int { return p.Size + 1 }

// Bounds are the predicates that the cursors make.
func (p Page) Bounds() []func(*sql.Selector) {
	var bounds []func(*sql.Selector)
	if p.After != nil {
		bounds = append(bounds, p.order.side(p.After, true, false))
	}
	if p.Before != nil {
		bounds = append(bounds, p.order.side(p.Before, false, false))
	}
	return bounds
}

// OrderBy puts the rows in the order in which they are fetched.
func (p Page) OrderBy(s *sql.Selector) {
	for _, c := range p.order.columns() {
		s.OrderBy(p.term(s.C(c)))
	}
}

func (p Page) term(column string) string {
	if p.order.Desc != p.Reverse {
		return sql.Desc(column)
	}
	return sql.Asc(column)
}

// rowNumber names the column by which PerParent cuts.
const rowNumber = "page_row"

// PerParent returns a modifier that fetches the page of each parent at once: it
// numbers the rows of each value of the column parent in the page's order and keeps
// the first Limit of each.
func (p Page) PerParent(parent string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		columns := s.UnqualifiedColumns()
		rows := s.Clone().SetDistinct(false)
		rows.AppendSelectExprAs(sql.RowNumber().PartitionBy(s.C(parent)).OrderExpr(sql.ExprFunc(func(b *sql.Builder) {
			for i, c := range p.order.columns() {
				if i > 0 {
					b.Comma()
				}
				b.WriteString(p.term(s.C(c)))
			}
		})), rowNumber)
		rows.As(s.TableName())
		page := sql.Dialect(s.Dialect()).
			Select(rows.Columns(columns...)...).
			From(rows).
			Where(sql.LTE(rows.C(rowNumber), p.Limit())).
			OrderBy(rows.C(parent), rows.C(rowNumber)).
			WithContext(s.Context())
		*s = *page
	}
}

// Loaded is what was read of a connection beside its rows.
type Loaded struct {
	TotalCount int
	// Preceding and Following say whether rows lie outside the cursors. They are read
	// only when a flag of the page info was asked for and a cursor bounds that side.
	Preceding, Following bool
}

// Preceding selects the rows before the page's cursors, to learn whether there are
// any; nil where wanted does not ask or no cursor bounds that side.
func (p Page) Preceding(wanted Wanted) func(*sql.Selector) {
	if !wanted.Previous || p.After == nil {
		return nil
	}
	return p.order.side(p.After, false, true)
}

// Following is Preceding for the other side.
func (p Page) Following(wanted Wanted) func(*sql.Selector) {
	if !wanted.Next || p.Before == nil {
		return nil
	}
	return p.order.side(p.Before, true, true)
}

// Cut takes the page out of the rows that were fetched, in the connection's order,
// and says whether more lie on either side. It does not change rows.
func Cut[T any](p Page, rows []T, loaded Loaded) ([]T, PageInfo) {
	info := PageInfo{HasPreviousPage: loaded.Preceding, HasNextPage: loaded.Following}
	if len(rows) > p.Size {
		rows = rows[:p.Size]
		if p.Reverse {
			info.HasPreviousPage = true
		} else {
			info.HasNextPage = true
		}
	}
	if p.Reverse {
		rows = slices.Clone(rows)
		slices.Reverse(rows)
	}
	return rows, info
}
