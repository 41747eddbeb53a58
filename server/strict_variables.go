package server

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// strictVariables is a gqlgen extension that holds variables to the input coercion
// of the specification (3.5 Scalars): gqlgen takes 7 for a String, "7" for an Int
// and "true" for a Boolean, none of which it takes as literals, and an Int beyond
// 32 bits, which it could not return.
type strictVariables struct{ schema *ast.Schema }

var _ graphql.OperationContextMutator = strictVariables{}

// ExtensionName is the extension's name for gqlgen.
func (strictVariables) ExtensionName() string { return "StrictVariables" }

// Validate is gqlgen's check of the extension against a schema.
func (strictVariables) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext refuses an operation with a variable of the wrong type.
func (s strictVariables) MutateOperationContext(_ context.Context, op *graphql.OperationContext) *gqlerror.Error {
	for _, variable := range op.Operation.VariableDefinitions {
		path := ast.Path{ast.PathName("variable"), ast.PathName(variable.Variable)}
		if err := s.check(path, variable.Type, op.Variables[variable.Variable]); err != nil {
			errcode.Set(err, errcode.ValidationFailed)
			return err
		}
	}
	return nil
}

// check expects what gqlgen's own coercion lets through.
func (s strictVariables) check(path ast.Path, of *ast.Type, value any) *gqlerror.Error {
	if value == nil {
		return nil
	}
	if of.Elem != nil {
		list := reflect.ValueOf(value)
		if list.Kind() != reflect.Slice { // one value stands for a list of one
			return s.check(path, of.Elem, value)
		}
		for i := range list.Len() {
			if err := s.check(pathStep(path, ast.PathIndex(i)), of.Elem, list.Index(i).Interface()); err != nil {
				return err
			}
		}
		return nil
	}
	definition := s.schema.Types[of.NamedType]
	if definition.Kind == ast.InputObject {
		object, _ := value.(map[string]any)
		for _, field := range definition.Fields {
			if object[field.Name] == nil {
				continue // a filter has hundreds of fields: no path for those that are not given
			}
			if err := s.check(pathStep(path, ast.PathName(field.Name)), field.Type, object[field.Name]); err != nil {
				return err
			}
		}
		return nil
	}
	if definition.BuiltIn && !isBuiltIn(of.NamedType, value) {
		return gqlerror.ErrorPathf(path, "this is not of type %s", of.NamedType)
	}
	return nil
}

// isBuiltIn reports whether a JSON value may stand for a built-in scalar.
func isBuiltIn(name string, value any) bool {
	number, isNumber := numberText(value)
	switch name {
	case "String":
		_, ok := value.(string)
		return ok
	case "ID":
		_, ok := value.(string)
		return ok || isNumber && isInteger(number, 64)
	case "Boolean":
		_, ok := value.(bool)
		return ok
	case "Int":
		return isNumber && isInteger(number, 32)
	case "Float":
		return isNumber
	default:
		return true
	}
}

// numberText returns the text of a number. Numbers come from JSON with their
// digits, from a default value or gqlgen's coercion as Go's types.
func numberText(value any) (text string, ok bool) {
	switch value := value.(type) {
	case json.Number:
		return value.String(), true
	case int64:
		return strconv.FormatInt(value, 10), true
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64), true
	default:
		return "", false
	}
}

// isInteger reports whether text is an integer of so many bits. What gqlgen reads
// after this takes digits only, so 1.0 and 1e3 are refused, as they are as literals.
func isInteger(text string, bits int) bool {
	_, err := strconv.ParseInt(text, 10, bits)
	return err == nil
}

// pathStep returns path with one more step, sharing no memory with path's other
// continuations.
func pathStep(path ast.Path, element ast.PathElement) ast.Path {
	return append(path[:len(path):len(path)], element)
}
