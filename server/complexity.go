package server

import (
	"context"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/ent/relay"
	"fleetgraph/internal/jsonsize"
)

// plainListLength is what a list of objects that has no page counts for: hardware of
// an inventory, differences of a comparison, types of the schema.
const plainListLength = 10

// conditionCost is what each value of a filter counts for: of SQL's time, a condition
// takes about as much as 50 fields.
const conditionCost = 50

// What a field costs whose value is a document: about the fields that would say as
// much. Details of a change have some kilobytes at most, an inventory up to 2 MiB, of
// which a page of 200 machines may have each once.
const (
	detailsCost   = 100
	inventoryCost = 2000
)

// costHeader asks for the cost of an operation in the answer's extensions; so does
// "cost": true in the request's extensions.
const costHeader = "Fleetgraph-Cost"

// costKey is where the cost is, in the extensions and among gqlgen's figures of an
// operation.
const costKey = "cost"

// operationCost is the cost of an operation, as callers see it.
type operationCost struct {
	Complexity int `json:"complexity"`
	Limit      int `json:"limit"`
}

// complexityLimit is a gqlgen extension that refuses an operation whose answer could be
// too large. A field costs 1, and what is below it as often as the field may repeat
// it: a page by its size, nodes(ids:) by its ids, another list of objects 10 times; a
// value of a filter costs 50, a document 100 or 2000. It is an upper bound: @skip,
// @include and fragments that cannot all apply save nothing.
type complexityLimit struct{ limit int }

var (
	_ graphql.OperationContextMutator = complexityLimit{}
	_ graphql.ResponseInterceptor     = complexityLimit{}
)

// ExtensionName is the extension's name for gqlgen.
func (complexityLimit) ExtensionName() string { return "ComplexityLimit" }

// Validate is gqlgen's check of the extension against a schema.
func (complexityLimit) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext refuses an operation that costs too much.
func (c complexityLimit) MutateOperationContext(_ context.Context, op *graphql.OperationContext) *gqlerror.Error {
	pricing := pricing{variables: op.Variables, fragments: map[*ast.FragmentDefinition]int{}}
	cost := operationCost{pricing.selections(op.Operation.SelectionSet), c.limit}
	op.Stats.SetExtension(costKey, cost)
	if cost.Complexity > c.limit {
		return gqlerror.Wrap(exceeded("TOO_COMPLEX", "complexity of the operation", c.limit, cost.Complexity))
	}
	return nil
}

// InterceptResponse adds the cost to the answer of a query or mutation whose caller
// wants to know it.
func (complexityLimit) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if graphql.HasOperationContext(ctx) {
		op := graphql.GetOperationContext(ctx)
		cost, known := op.Stats.GetExtension(costKey).(operationCost)
		if known && wantsCost(op) && op.Operation.Operation != ast.Subscription {
			graphql.RegisterExtension(ctx, costKey, cost)
		}
	}
	return next(ctx)
}

func wantsCost(op *graphql.OperationContext) bool {
	return op.Headers.Get(costHeader) == "1" || op.Extensions[costKey] == true
}

// pricing computes the cost of one operation of a valid document. A fragment is
// priced once, so that the time is linear in the document's text.
type pricing struct {
	variables map[string]any
	fragments map[*ast.FragmentDefinition]int
}

func (p pricing) selections(set ast.SelectionSet) int {
	cost := 0
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			cost = add(cost, p.field(selection))
		case *ast.InlineFragment:
			cost = add(cost, p.selections(selection.SelectionSet))
		case *ast.FragmentSpread:
			cost = add(cost, p.fragment(selection.Definition))
		}
	}
	return cost
}

func (p pricing) field(field *ast.Field) int {
	cost := add(price(field), multiply(p.repeats(field), p.selections(field.SelectionSet)))
	if where := field.Arguments.ForName("where"); where != nil {
		cost = add(cost, multiply(conditionCost, p.values(where.Value)))
	}
	return cost
}

// price is what a field costs by itself.
func price(field *ast.Field) int {
	switch {
	case field.Name == "inventoryDocument", field.Definition.Type.Name() == "Inventory": // typed or not, the whole of it is read
		return inventoryCost
	case field.Definition.Type.Name() == "JSON":
		return detailsCost
	default:
		return 1
	}
}

// values is how many values a literal has, with those of variables in it.
func (p pricing) values(value *ast.Value) int {
	if value.Kind == ast.Variable {
		return jsonsize.Of(p.variables[value.Raw]).Values
	}
	count := 1
	for _, child := range value.Children {
		count = add(count, p.values(child.Value))
	}
	return count
}

func (p pricing) fragment(fragment *ast.FragmentDefinition) int {
	cost, ok := p.fragments[fragment]
	if !ok {
		cost = p.selections(fragment.SelectionSet)
		p.fragments[fragment] = cost
	}
	return cost
}

// repeats is how often the answer may have what is below a field.
func (p pricing) repeats(field *ast.Field) int {
	switch {
	case len(field.SelectionSet) == 0:
		return 0
	case field.Definition.Arguments.ForName("first") != nil:
		return p.pageSize(field)
	case field.Definition.Type.Elem == nil, isConnection(field.ObjectDefinition): // whose field has paid for its edges
		return 1
	case field.Definition.Arguments.ForName("ids") != nil:
		return p.length(field.Arguments.ForName("ids"))
	default:
		return plainListLength
	}
}

// pageSize is that of the page that a field's arguments ask for, at most.
func (p pricing) pageSize(field *ast.Field) int {
	size := -1
	for _, name := range []string{"first", "last"} {
		if n, err := strconv.Atoi(p.number(field, name)); err == nil { // else it is null, or not given
			size = max(size, min(max(n, 0), relay.MaxPageSize))
		}
	}
	if size < 0 {
		return relay.DefaultPageSize
	}
	return size
}

// number is the text of an argument that is a number, its default where it is not given.
func (p pricing) number(field *ast.Field, name string) string {
	var value *ast.Value
	if given := field.Arguments.ForName(name); given != nil {
		value = given.Value
	} else if defined := field.Definition.Arguments.ForName(name); defined != nil {
		value = defined.DefaultValue
	}
	switch {
	case value == nil:
		return ""
	case value.Kind == ast.Variable:
		text, _ := numberText(p.variables[value.Raw])
		return text
	default:
		return value.Raw
	}
}

// length is that of a list that an argument gives.
func (p pricing) length(argument *ast.Argument) int {
	if argument == nil {
		return 0
	}
	if argument.Value.Kind != ast.Variable {
		return max(len(argument.Value.Children), 1) // one value stands for a list of one
	}
	list, ok := p.variables[argument.Value.Raw].([]any)
	if !ok {
		return 1
	}
	return len(list)
}

// isConnection tells whether a type is a connection: Relay's specification has all
// types whose names end so, and no other.
func isConnection(definition *ast.Definition) bool {
	return definition != nil && strings.HasSuffix(definition.Name, "Connection")
}
