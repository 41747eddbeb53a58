package server

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
)

// documentInputs are the arguments of a document, to find the input that an error
// of gqlparser is about. Its errors carry a place in the text and a message; the
// input is found by the place, and the message only chooses between several faults
// of one place.
type documentInputs struct{ fields []*ast.Field }

// readAgain returns the document of op: gqlgen hands out none that failed. Nil when it
// cannot be parsed.
func readAgain(schema *ast.Schema, op *graphql.OperationContext) *ast.QueryDocument {
	if op.Doc != nil {
		return op.Doc
	}
	doc, ok := op.Stats.GetExtension(measuredKey).(*ast.QueryDocument)
	if !ok {
		return nil
	}
	validator.Walk(schema, doc, &validator.Events{}) // fills in the definitions
	return doc
}

func readInputs(doc *ast.QueryDocument) *documentInputs {
	inputs := &documentInputs{}
	if doc == nil {
		return inputs
	}
	for _, operation := range doc.Operations {
		inputs.collect(operation.SelectionSet)
	}
	for _, fragment := range doc.Fragments {
		inputs.collect(fragment.SelectionSet)
	}
	return inputs
}

func (d *documentInputs) collect(selections ast.SelectionSet) {
	for _, selection := range selections {
		switch selection := selection.(type) {
		case *ast.Field:
			d.fields = append(d.fields, selection)
			d.collect(selection.SelectionSet)
		case *ast.InlineFragment:
			d.collect(selection.SelectionSet)
		}
	}
}

// ofVariable returns the input that a path within the variables leads to, such as
// variable.v.name where v is the argument `input`.
func (d *documentInputs) ofVariable(path ast.Path) []string {
	steps := pathSteps(path)
	if len(steps) < 2 { // the first step is the word "variable"
		return steps
	}
	name := steps[1]
	var use []string
	d.each(func(input []string, value *ast.Value) bool {
		if value.Kind == ast.Variable && value.Raw == name {
			use = input
		}
		return use == nil
	})
	if use == nil {
		use = []string{name}
	}
	return append(use, steps[2:]...)
}

// ofLiteral returns the input at a place in the document, nil where the error is
// about something else.
func (d *documentInputs) ofLiteral(at gqlerror.Location, message string) []string {
	for _, field := range d.fields {
		if isAt(field.Position, at) {
			if name, ok := wrongArgument(field, message); ok {
				return []string{name}
			}
		}
	}
	var found []string
	d.each(func(input []string, value *ast.Value) bool {
		found = wrongInput(input, value, at, message)
		return found == nil
	})
	return found
}

// wrongArgument finds the argument that a field lacks or should not have.
func wrongArgument(field *ast.Field, message string) (name string, ok bool) {
	if field.Definition == nil {
		return "", false
	}
	mentioned := func(name string) bool { return strings.Contains(message, fmt.Sprintf("rgument %q", name)) }
	for _, argument := range field.Definition.Arguments {
		if argument.Type.NonNull && field.Arguments.ForName(argument.Name) == nil && mentioned(argument.Name) {
			return argument.Name, true
		}
	}
	for _, argument := range field.Arguments {
		if field.Definition.Arguments.ForName(argument.Name) == nil && mentioned(argument.Name) {
			return argument.Name, true
		}
	}
	return "", false
}

// wrongInput returns the path of value, or of what value lacks or should not have,
// when that stands at the place; nil otherwise.
func wrongInput(path []string, value *ast.Value, at gqlerror.Location, message string) []string {
	if value.Kind == ast.ObjectValue {
		for _, child := range value.Children {
			if isAt(child.Position, at) {
				return step(path, child.Name)
			}
		}
	}
	if !isAt(value.Position, at) {
		return nil
	}
	if value.Kind == ast.ObjectValue && value.Definition != nil {
		for _, field := range value.Definition.Fields {
			if value.Children.ForName(field.Name) == nil && strings.Contains(message, `"`+value.Definition.Name+"."+field.Name+`"`) {
				return step(path, field.Name)
			}
		}
	}
	return path
}

// each calls visit with every value of every argument and its path, until visit
// returns false.
func (d *documentInputs) each(visit func(path []string, value *ast.Value) bool) {
	for _, field := range d.fields {
		for _, argument := range field.Arguments {
			if !eachValue([]string{argument.Name}, argument.Value, visit) {
				return
			}
		}
	}
}

func eachValue(path []string, value *ast.Value, visit func([]string, *ast.Value) bool) bool {
	if value == nil {
		return true
	}
	if !visit(path, value) {
		return false
	}
	for i, child := range value.Children {
		name := child.Name
		if value.Kind == ast.ListValue {
			name = strconv.Itoa(i)
		}
		if !eachValue(step(path, name), child.Value, visit) {
			return false
		}
	}
	return true
}

func isAt(position *ast.Position, at gqlerror.Location) bool {
	return position != nil && position.Line == at.Line && position.Column == at.Column
}

// step returns path with one more step, sharing no memory with path's other
// continuations.
func step(path []string, name string) []string {
	return append(path[:len(path):len(path)], name)
}

func pathSteps(path ast.Path) []string {
	steps := make([]string, len(path))
	for i, element := range path {
		switch element := element.(type) {
		case ast.PathName:
			steps[i] = string(element)
		case ast.PathIndex:
			steps[i] = strconv.Itoa(int(element))
		}
	}
	return steps
}
