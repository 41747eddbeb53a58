package server

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"fleetgraph/fleet"
	"fleetgraph/services/access"
)

const (
	auditMessage = "audit"
	// outcomeOK is the outcome of a mutation that was carried out; of others it is the
	// code of their error.
	outcomeOK = "OK"
	// maxAudited bounds the lines of one document, maxAuditedValues the values of one
	// field in a line.
	maxAudited       = 100
	maxAuditedValues = 10
)

// audit writes a line in the log for each attempt of a mutation, by whatever transport
// it came and however it ended. Of the input it shows ids, by their type, and the
// fields of auditedNames; never another field, and never a message, which may repeat
// what was put in.
type audit struct {
	schema *ast.Schema
	tokens int // of a document
	logger *slog.Logger
}

var _ interface {
	graphql.HandlerExtension
	graphql.ResponseInterceptor
} = audit{}

// ExtensionName is gqlgen's question for a name.
func (audit) ExtensionName() string { return "Audit" }

// Validate is gqlgen's question whether the schema fits.
func (audit) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptResponse sees every response: gqlgen makes one of a refused document too.
func (a audit) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	start := time.Now()
	response := next(ctx)
	if response == nil || !graphql.HasOperationContext(ctx) {
		return response
	}
	op := graphql.GetOperationContext(ctx)
	for _, field := range a.attempts(op, response.Data != nil) {
		a.log(ctx, op, attempt{field, time.Since(start)}, response.Errors)
	}
	return response
}

// attempt is one mutation of an operation, and the time that the operation took.
type attempt struct {
	field *ast.Field
	took  time.Duration
}

// attempts are the mutations of an operation; of one that was executed, those that its
// directives leave.
func (a audit) attempts(op *graphql.OperationContext, executed bool) []*ast.Field {
	doc, operation := op.Doc, op.Operation
	if doc == nil && strings.Contains(op.RawQuery, string(ast.Mutation)) {
		// gqlgen hands out no document that is not valid.
		var err error
		if doc, err = parser.ParseQueryWithTokenLimit(&ast.Source{Input: op.RawQuery}, a.tokens); err != nil {
			return nil
		}
		operation = doc.Operations.ForName(op.OperationName)
	}
	if operation == nil || operation.Operation != ast.Mutation {
		return nil
	}
	var found []*ast.Field
	if executed {
		for _, field := range graphql.CollectFields(op, operation.SelectionSet, []string{a.schema.Mutation.Name}) {
			found = append(found, field.Field)
		}
	} else {
		found = rootFields(doc, operation.SelectionSet, map[string]bool{})
	}
	known := slices.DeleteFunc(found, func(f *ast.Field) bool { return a.schema.Mutation.Fields.ForName(f.Name) == nil })
	return known[:min(len(known), maxAudited)]
}

// rootFields are the fields of a selection and its fragments, each of which is looked
// at once: those of a document that is not valid may contain each other.
func rootFields(doc *ast.QueryDocument, selections ast.SelectionSet, seen map[string]bool) []*ast.Field {
	var found []*ast.Field
	for _, selection := range selections {
		switch selection := selection.(type) {
		case *ast.Field:
			found = append(found, selection)
		case *ast.InlineFragment:
			found = append(found, rootFields(doc, selection.SelectionSet, seen)...)
		case *ast.FragmentSpread:
			if fragment := doc.Fragments.ForName(selection.Name); fragment != nil && !seen[selection.Name] {
				seen[selection.Name] = true
				found = append(found, rootFields(doc, fragment.SelectionSet, seen)...)
			}
		}
	}
	return found
}

func (a audit) log(ctx context.Context, op *graphql.OperationContext, of attempt, errs gqlerror.List) {
	outcome, reason := outcomeOf(of.field, errs)
	attrs := []slog.Attr{slog.String("mutation", of.field.Name), slog.String("outcome", outcome)}
	if reason != "" {
		attrs = append(attrs, slog.String("reason", reason))
	}
	if caller, ok := access.From(ctx); ok {
		attrs = append(attrs, slog.String("caller", caller.Name), slog.String("token_id", caller.TokenID), slog.String("role", string(caller.Role)))
	}
	attrs = append(attrs, slog.String("remote", remoteAddress(ctx)), slog.Duration("took", of.took))
	if input := a.input(of.field, op.Variables); len(input) > 0 {
		attrs = append(attrs, slog.Attr{Key: "input", Value: slog.GroupValue(input...)})
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, auditMessage, attrs...)
}

// outcomeOf is how a mutation ended. An error below its field is of reading the result
// after the change was made.
func outcomeOf(field *ast.Field, errs gqlerror.List) (outcome, reason string) {
	for _, err := range errs {
		if len(err.Path) > 1 || len(err.Path) == 1 && err.Path[0] != ast.PathName(field.Alias) {
			continue
		}
		code, _ := err.Extensions["code"].(fleet.Code)
		reason, _ = err.Extensions["reason"].(string)
		return string(code), reason
	}
	return outcomeOK, ""
}

// auditedNames are the fields of inputs, beside ids, whose values are shown: names of
// objects.
func auditedNames() map[string]bool {
	return map[string]bool{"name": true, "skuName": true, "allocationName": true, "alertId": true, "bmcMacAddress": true}
}

// input is what is shown of a mutation's input; nothing where that could not be read.
func (a audit) input(field *ast.Field, variables map[string]any) []slog.Attr {
	if field.Definition == nil || variables == nil {
		return nil
	}
	shown := map[string][]string{}
	values := field.ArgumentMap(variables)
	for _, argument := range field.Definition.Arguments {
		a.collect(shown, argument.Name, argument.Type, values[argument.Name])
	}
	attrs := make([]slog.Attr, 0, len(shown))
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		texts := shown[name]
		switch more := len(texts) - maxAuditedValues; {
		case more > 0:
			attrs = append(attrs, slog.Any(name, append(texts[:maxAuditedValues:maxAuditedValues], fmt.Sprintf("and %d more", more))))
		case len(texts) == 1:
			attrs = append(attrs, slog.String(name, texts[0]))
		default:
			attrs = append(attrs, slog.Any(name, texts))
		}
	}
	return attrs
}

// collect adds what is shown of a value of a type, which the field name has.
func (a audit) collect(shown map[string][]string, name string, of *ast.Type, value any) {
	switch value := value.(type) {
	case map[string]any:
		definition := a.schema.Types[of.Name()]
		if definition == nil || definition.Kind != ast.InputObject {
			return
		}
		for _, field := range definition.Fields {
			a.collect(shown, field.Name, field.Type, value[field.Name])
		}
	case string:
		switch {
		case of.Name() == "ID":
			if _, ok := fleet.IDPrefix(value); !ok {
				value = "malformed"
			}
		case of.Name() != "String" || !auditedNames()[name] || fleet.CheckNamed(name, value, fleet.MaxSkuNameLength) != nil:
			return
		}
		shown[name] = append(shown[name], value)
	default:
		// gqlparser makes a list of one of a value, of the value's type.
		if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
			for i := range list.Len() {
				a.collect(shown, name, of, list.Index(i).Interface())
			}
		}
	}
}
