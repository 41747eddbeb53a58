// Package sdldiff finds what breaks clients between two GraphQL schemas: what was
// removed or renamed, a type or nullability that changed, an argument or input field
// that became required. Descriptions, deprecations and additions break nothing, new
// enum values and union members included, which clients are told to expect.
package sdldiff

import (
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// Parse reads a schema in SDL; name is that of its file, for errors.
func Parse(name, sdl string) (*ast.Schema, error) {
	return gqlparser.LoadSchema(&ast.Source{Name: name, Input: sdl})
}

// Breaking returns a sentence for each change from before to after that breaks
// clients, sorted; none when every document that was valid still is and every answer
// still has the form that its reader knows.
func Breaking(before, after *ast.Schema) []string {
	d := &differ{}
	for name, old := range before.Types {
		if old.BuiltIn {
			continue
		}
		now := after.Types[name]
		switch {
		case now == nil:
			d.add("type %s was removed", name)
		case now.Kind != old.Kind:
			d.add("type %s is %s, was %s", name, now.Kind, old.Kind)
		default:
			d.definition(old, now)
		}
	}
	slices.Sort(d.changes)
	return d.changes
}

type differ struct{ changes []string }

func (d *differ) add(format string, args ...any) {
	d.changes = append(d.changes, fmt.Sprintf(format, args...))
}

func (d *differ) definition(old, now *ast.Definition) {
	input := old.Kind == ast.InputObject
	for _, f := range old.Fields {
		at := old.Name + "." + f.Name
		g := now.Fields.ForName(f.Name)
		switch {
		case g == nil:
			d.add("field %s was removed", at)
		case input && !accepts(g.Type, f.Type), !input && !answers(g.Type, f.Type):
			d.add("field %s is %s, was %s", at, g.Type, f.Type)
		default:
			d.arguments(at, f.Arguments, g.Arguments)
		}
	}
	for _, g := range now.Fields {
		if input && old.Fields.ForName(g.Name) == nil && g.Type.NonNull && g.DefaultValue == nil {
			d.add("input field %s.%s is new and required", now.Name, g.Name)
		}
	}
	for _, v := range old.EnumValues {
		if now.EnumValues.ForName(v.Name) == nil {
			d.add("enum value %s.%s was removed", old.Name, v.Name)
		}
	}
	for _, member := range old.Types {
		if !slices.Contains(now.Types, member) {
			d.add("union %s lost %s", old.Name, member)
		}
	}
	for _, face := range old.Interfaces {
		if !slices.Contains(now.Interfaces, face) {
			d.add("type %s no longer implements %s", old.Name, face)
		}
	}
}

func (d *differ) arguments(at string, old, now ast.ArgumentDefinitionList) {
	for _, a := range old {
		b := now.ForName(a.Name)
		switch {
		case b == nil:
			d.add("argument %s(%s:) was removed", at, a.Name)
		case !accepts(b.Type, a.Type):
			d.add("argument %s(%s:) is %s, was %s", at, a.Name, b.Type, a.Type)
		}
	}
	for _, b := range now {
		if old.ForName(b.Name) == nil && b.Type.NonNull && b.DefaultValue == nil {
			d.add("argument %s(%s:) is new and required", at, b.Name)
		}
	}
}

// answers tells whether a reader of old can read now: the same type, or one that is
// null less often.
func answers(now, old *ast.Type) bool {
	if old.NonNull && !now.NonNull {
		return false
	}
	if old.Elem != nil || now.Elem != nil {
		return old.Elem != nil && now.Elem != nil && answers(now.Elem, old.Elem)
	}
	return now.NamedType == old.NamedType
}

// accepts tells whether what was valid for old is valid for now: the same type, or
// one that may be null more often.
func accepts(now, old *ast.Type) bool { return answers(old, now) }
