package relay

import (
	"context"

	"entgo.io/ent/dialect/sql"
)

// A Rule tells which rows of an entity type exist for a caller: it restricts a
// selection of them. Nil means all of them.
type Rule func(entity string) func(*sql.Selector)

type ruleKey struct{}

// WithRule returns a context whose filters over edges see what rule lets them see.
// Interceptors do the same for queries, but never reach a condition on the other
// side of an edge, by which a caller could find out what it may not read.
func WithRule(ctx context.Context, rule Rule) context.Context {
	return context.WithValue(ctx, ruleKey{}, rule)
}

// Visible is the condition that the caller of the query's context may see a row.
func Visible(entity string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		rule, ok := s.Context().Value(ruleKey{}).(Rule)
		if !ok {
			return
		}
		if restrict := rule(entity); restrict != nil {
			restrict(s)
		}
	}
}
