package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"fleetgraph/fleet"
)

// ReasonArgumentInvalid is the reason of an argument that is not of its type.
const ReasonArgumentInvalid = "ARGUMENT_INVALID"

// Selection is what an operation selects at one place of the answer. Where several
// selections lead to one row, under whatever aliases, they are one Selection.
type Selection struct {
	operation *graphql.OperationContext
	set       ast.SelectionSet
}

// Field is every selection of a field with the same arguments, under whatever
// aliases.
type Field struct {
	Name string
	// Key tells selections of the field with different arguments apart.
	Key       string
	Args      map[string]any
	Selection Selection
}

// Current returns the selection of the field that is being resolved; ok is false
// outside GraphQL.
func Current(ctx context.Context) (_ Selection, ok bool) {
	fc := graphql.GetFieldContext(ctx)
	if fc == nil || fc.Field.Field == nil || !graphql.HasOperationContext(ctx) {
		return Selection{}, false
	}
	return Selection{operation: graphql.GetOperationContext(ctx), set: fc.Field.Selections}, true
}

// Selects reports whether the operation selects anything below the fields named by
// path, seen from the field that is being resolved.
func Selects(ctx context.Context, path ...string) bool {
	s, ok := Current(ctx)
	if !ok {
		return false
	}
	s, err := s.At(path...)
	return err != nil || len(s.set) > 0
}

// CurrentOf is Current, but ok is false too unless the field that is being resolved
// is of the type named. It guards against reading the selection of some other field
// whose resolver asks for rows on the way.
func CurrentOf(ctx context.Context, typeName string) (_ Selection, ok bool) {
	s, ok := Current(ctx)
	if !ok {
		return s, false
	}
	definition := graphql.GetFieldContext(ctx).Field.Definition
	return s, definition != nil && definition.Type.Name() == typeName
}

// Resolving reports whether the field that is being resolved is one of names on an
// object of one of the types named, and returns its Key.
func Resolving(ctx context.Context, objects []string, names ...string) (key string, ok bool) {
	fc := graphql.GetFieldContext(ctx)
	if fc == nil || !slices.Contains(objects, fc.Object) || fc.Field.Field == nil || !slices.Contains(names, fc.Field.Name) || !graphql.HasOperationContext(ctx) {
		return "", false
	}
	key, _, err := fieldKey(fc.Field.Field, graphql.GetOperationContext(ctx).Variables)
	return key, err == nil
}

// Fields lists what is selected on an object of any of the types named, in order of
// first mention.
func (s Selection) Fields(objects ...string) ([]Field, error) {
	if s.operation == nil || len(s.set) == 0 {
		return nil, nil
	}
	// Fragments on the type itself apply, and so does every fragment on an interface or
	// union: which of those the type belongs to is not known here, and reading a column
	// too many is harmless where one too few is a wrong answer.
	satisfies := s.abstract(s.set, objects, map[string]bool{})
	var fields []Field
	index := map[string]int{}
	for _, f := range graphql.CollectFields(s.operation, s.set, satisfies) {
		key, args, err := fieldKey(f.Field, s.operation.Variables)
		if err != nil {
			return nil, err
		}
		i, seen := index[key]
		if !seen {
			i = len(fields)
			index[key] = i
			fields = append(fields, Field{Name: f.Name, Key: key, Args: args, Selection: Selection{operation: s.operation}})
		}
		fields[i].Selection = fields[i].Selection.merge(f.Selections)
	}
	return fields, nil
}

// At returns the merged selection below the fields named by path.
func (s Selection) At(path ...string) (Selection, error) {
	for _, name := range path {
		below := Selection{operation: s.operation}
		// No object type is given: every fragment counts.
		for _, f := range graphql.CollectFields(s.operation, s.set, nil) {
			if f.Name == name {
				below = below.merge(f.Selections)
			}
		}
		s = below
	}
	return s, nil
}

// merge returns a selection of both. It never appends in place: gqlgen caches by the
// address of a selection set.
func (s Selection) merge(set ast.SelectionSet) Selection {
	if len(s.set) == 0 {
		s.set = set
		return s
	}
	s.set = slices.Concat(s.set, set)
	return s
}

// abstract appends the interfaces and unions that fragments of set are on.
func (s Selection) abstract(set ast.SelectionSet, types []string, visited map[string]bool) []string {
	add := func(condition string, below ast.SelectionSet) {
		if d := definitionOf(below); condition != "" && d != nil && d.IsAbstractType() && !slices.Contains(types, condition) {
			types = append(types, condition)
		}
		types = s.abstract(below, types, visited)
	}
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.InlineFragment:
			add(sel.TypeCondition, sel.SelectionSet)
		case *ast.FragmentSpread:
			if fragment := s.operation.Doc.Fragments.ForName(sel.Name); fragment != nil && !visited[sel.Name] {
				visited[sel.Name] = true
				add(fragment.TypeCondition, fragment.SelectionSet)
			}
		}
	}
	return types
}

// definitionOf returns the type that a selection set is on.
func definitionOf(set ast.SelectionSet) *ast.Definition {
	if len(set) == 0 {
		return nil
	}
	switch sel := set[0].(type) {
	case *ast.Field:
		return sel.ObjectDefinition
	case *ast.InlineFragment:
		return sel.ObjectDefinition
	case *ast.FragmentSpread:
		return sel.ObjectDefinition
	}
	return nil
}

// fieldKey returns the name of a field with its arguments in a canonical form.
func fieldKey(f *ast.Field, variables map[string]any) (string, map[string]any, error) {
	if f.Definition == nil || len(f.Definition.Arguments) == 0 {
		return f.Name, nil, nil
	}
	// ArgumentMap panics on a literal that does not parse, such as an Int of 30 digits.
	for _, arg := range f.Arguments {
		if _, err := arg.Value.Value(variables); err != nil {
			return "", nil, fleet.Invalid(arg.Name, ReasonArgumentInvalid, "%s of %s cannot be read", arg.Name, f.Name)
		}
	}
	args := f.ArgumentMap(variables)
	if len(args) == 0 {
		return f.Name, nil, nil
	}
	canonical, err := json.Marshal(args)
	if err != nil {
		return "", nil, fmt.Errorf("arguments of %s: %w", f.Name, err)
	}
	return f.Name + string(canonical), args, nil
}

// ArgsOf reads the page arguments of a connection that is about to be loaded ahead
// of its own resolver.
func ArgsOf(args map[string]any) (Args, error) {
	var a Args
	for _, size := range []struct {
		name string
		dst  **int
	}{{"first", &a.First}, {"last", &a.Last}} {
		v, ok := args[size.name]
		if !ok || v == nil {
			continue
		}
		n, err := graphql.UnmarshalInt(v)
		if err != nil {
			return a, fleet.Invalid(size.name, ReasonPageSize, "%s is not a number of items", size.name)
		}
		*size.dst = &n
	}
	for _, cursor := range []struct {
		name string
		dst  **Cursor
	}{{"after", &a.After}, {"before", &a.Before}} {
		v, ok := args[cursor.name]
		if !ok || v == nil {
			continue
		}
		c := new(Cursor)
		if err := c.UnmarshalGQL(v); err != nil {
			return a, fleet.Invalid(cursor.name, ReasonCursorInvalid, "%s is not a cursor", cursor.name)
		}
		*cursor.dst = c
	}
	return a, nil
}

// Input reads an input object of a connection that is about to be loaded ahead of its
// own resolver. Errors carry the argument in their path.
func Input(ctx context.Context, argument, typeName string, raw, dst any) error {
	ctx = graphql.WithPathContext(ctx, graphql.NewPathWithField(argument))
	return graphql.UnmarshalNamedInputFromContext(ctx, typeName, raw, dst)
}

// Wanted is what an operation wants of a connection.
type Wanted struct {
	Edges, Total, Next, Previous, Cursors bool
	// Node is what is selected of the items; nil where no item is selected.
	Node *Selection
	// Whole is set outside GraphQL, where everything but the total is wanted whole.
	Whole bool
}

// Everything is wanted where no operation says what is.
func Everything() Wanted {
	return Wanted{Edges: true, Total: true, Next: true, Previous: true, Cursors: true, Whole: true}
}

// Rows reports whether any row has to be fetched for the page.
func (w Wanted) Rows(p Page) bool {
	if w.Next || w.Previous || w.Cursors {
		return true
	}
	return w.Edges && p.Size > 0
}

// Connection reads a selection on a connection of the type named.
func (s Selection) Connection(connection, edge string) (Wanted, error) {
	var w Wanted
	items := Selection{operation: s.operation}
	fields, err := s.Fields(connection)
	if err != nil {
		return w, err
	}
	for _, f := range fields {
		switch f.Name {
		case "totalCount":
			w.Total = true
		case "nodes":
			w.Edges = true
			items, w.Node = items.merge(f.Selection.set), &items
		case "edges":
			w.Edges = true
			below, err := f.Selection.Fields(edge)
			if err != nil {
				return w, err
			}
			for _, g := range below {
				if g.Name == "node" {
					items, w.Node = items.merge(g.Selection.set), &items
				}
			}
		case "pageInfo":
			below, err := f.Selection.Fields("PageInfo")
			if err != nil {
				return w, err
			}
			for _, g := range below {
				switch g.Name {
				case "hasNextPage":
					w.Next = true
				case "hasPreviousPage":
					w.Previous = true
				case "startCursor", "endCursor":
					w.Cursors = true
				}
			}
		}
	}
	return w, nil
}
