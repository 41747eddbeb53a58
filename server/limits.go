package server

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"fleetgraph/fleet"
	"fleetgraph/internal/jsonsize"
)

// Limits are what one request may use. Zero means the default. Whatever lies beyond
// is refused before anything of it is executed, and what is of the document before
// it is validated, which takes time quadratic in it.
type Limits struct {
	BodyBytes        int64         // of an HTTP request
	DocumentBytes    int           // of a document's text
	DocumentTokens   int           // of a document; also how many nodes it has with its fragments written out
	Definitions      int           // operations and fragments of a document
	Depth            int           // fields within fields
	RootFields       int           // of one operation
	Aliases          int           // of one operation, its fragments written out
	Directives       int           // of one operation, its fragments written out
	Complexity       int           // of one operation: about the fields of its largest answer
	ValueDepth       int           // lists and objects within each other, of one literal or of the variables
	AnswerBytes      int64         // of one answer
	VariableValues   int           // values within the variables; an input object counts as all the fields of its type
	OperationTimeout time.Duration // from the last byte of the request to the answer
}

// DefaultLimits are the limits of a server that was told nothing else.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes:        8 << 20, // an inventory is up to 2 MiB, a batch of SKUs more
		DocumentBytes:    256 << 10,
		DocumentTokens:   10_000, // GraphiQL's introspection query has 300
		Definitions:      100,
		Depth:            20, // GraphiQL's introspection query has 15
		RootFields:       20,
		Aliases:          200,
		Directives:       200,
		Complexity:       500_000,  // GraphiQL's introspection query has 52 000
		AnswerBytes:      16 << 20, // 200 machines with an inventory of 80 KiB each
		ValueDepth:       70,       // an inventory may be 64 deep
		VariableValues:   400_000,  // 10 000 expected machines of 12 fields, with labels, are replaced at once
		OperationTimeout: 30 * time.Second,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	orDefault(&l.BodyBytes, d.BodyBytes)
	orDefault(&l.DocumentBytes, d.DocumentBytes)
	orDefault(&l.DocumentTokens, d.DocumentTokens)
	orDefault(&l.Definitions, d.Definitions)
	orDefault(&l.Depth, d.Depth)
	orDefault(&l.RootFields, d.RootFields)
	orDefault(&l.Aliases, d.Aliases)
	orDefault(&l.Directives, d.Directives)
	orDefault(&l.Complexity, d.Complexity)
	orDefault(&l.AnswerBytes, d.AnswerBytes)
	orDefault(&l.ValueDepth, d.ValueDepth)
	orDefault(&l.VariableValues, d.VariableValues)
	orDefault(&l.OperationTimeout, d.OperationTimeout)
	return l
}

func orDefault[T comparable](value *T, byDefault T) {
	var zero T
	if *value == zero {
		*value = byDefault
	}
}

// exceeded is the refusal of what lies beyond a limit.
func exceeded(reason, what string, limit, actual int) *fleet.Error {
	details := map[string]any{"limit": limit}
	message := fmt.Sprintf("%s: at most %d", what, limit)
	if actual > 0 && actual < saturated {
		details["actual"] = actual
		message += fmt.Sprintf(", not %d", actual)
	}
	return (&fleet.Error{Code: fleet.ResourceExhausted, Reason: reason, Message: message}).WithDetails(details)
}

// documentLimits is a gqlgen extension that holds documents and variables to the
// limits. It parses a document that it does not know a first time, since gqlgen hands
// out none that it has not validated.
type documentLimits struct {
	schema        *ast.Schema
	limits        Limits
	introspection bool
	known         graphql.Cache[*ast.QueryDocument] // what was within the limits, and valid
}

var _ graphql.OperationParameterMutator = documentLimits{}

// ExtensionName is the extension's name for gqlgen.
func (documentLimits) ExtensionName() string { return "DocumentLimits" }

// Validate is gqlgen's check of the extension against a schema.
func (documentLimits) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationParameters refuses what is beyond the limits.
func (d documentLimits) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	if err := d.checkVariables(params.Variables); err != nil {
		return gqlerror.Wrap(err)
	}
	if len(params.Query) > d.limits.DocumentBytes {
		return gqlerror.Wrap(exceeded("DOCUMENT_TOO_LARGE", "bytes of the document", d.limits.DocumentBytes, len(params.Query)))
	}
	if document, known := d.known.Get(ctx, params.Query); known {
		return d.checkCoercion(document, params)
	}
	document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: params.Query}, d.limits.DocumentTokens)
	if err != nil {
		return d.unparsed(err)
	}
	graphql.GetOperationContext(ctx).Stats.SetExtension(measuredKey, document)
	if refused := d.check(document); refused != nil {
		return refused
	}
	return d.checkCoercion(document, params)
}

// measuredKey is where gqlgen's figures of an operation have the document that was
// measured: for errors, which tell of what gqlgen found invalid.
const measuredKey = "measured"

// checkCoercion refuses variables that would take long to bring to their types: that
// looks for every field of an input object's type, of which a filter's has hundreds.
func (d documentLimits) checkCoercion(document *ast.QueryDocument, params *graphql.RawParams) *gqlerror.Error {
	operation := document.Operations.ForName(params.OperationName)
	if operation == nil {
		return nil
	}
	left := d.limits.VariableValues
	for _, variable := range operation.VariableDefinitions {
		left = d.coerced(variable.Type, params.Variables[variable.Variable], left)
	}
	if left < 0 {
		return gqlerror.Wrap(exceeded("TOO_MANY_VALUES", "values in the variables, with the fields of their types", d.limits.VariableValues, 0))
	}
	return nil
}

// coerced returns how many values are left of a number when those of a variable are
// taken off; it stops below zero. The type may not exist.
func (d documentLimits) coerced(of *ast.Type, value any, left int) int {
	left--
	switch value := value.(type) {
	case []any:
		if of.Elem == nil {
			return left // of the wrong type, and not looked into
		}
		for i := 0; i < len(value) && left >= 0; i++ {
			left = d.coerced(of.Elem, value[i], left)
		}
	case map[string]any:
		definition := d.schema.Types[of.Name()]
		if definition == nil || definition.Kind != ast.InputObject {
			return left
		}
		left -= len(definition.Fields)
		for _, field := range definition.Fields {
			if child, given := value[field.Name]; given && left >= 0 {
				left = d.coerced(field.Type, child, left)
			}
		}
	}
	return left
}

// checkVariables is for transports that did not look at the JSON before they read it.
func (d documentLimits) checkVariables(variables map[string]any) *fleet.Error {
	size := jsonsize.Of(variables)
	size.Depth-- // the object of all variables is none itself
	return d.limits.checkSize(size)
}

// checkRequest refuses a request whose document or variables are beyond the limits, while
// it is still text: read, it is many times its size.
func (l Limits) checkRequest(body []byte) *fleet.Error {
	const outside = 2 // the object of the request, and that of all variables
	size := jsonsize.OfText(body, jsonsize.Size{Depth: l.ValueDepth + outside, Values: l.VariableValues, Text: l.DocumentBytes})
	size.Depth -= outside
	return l.checkSize(size)
}

func (l Limits) checkSize(size jsonsize.Size) *fleet.Error {
	switch {
	case size.Depth > l.ValueDepth:
		return exceeded("VALUE_TOO_DEEP", "lists and objects within each other in the variables", l.ValueDepth, size.Depth)
	case size.Values > l.VariableValues:
		return exceeded("TOO_MANY_VALUES", "values in the variables", l.VariableValues, size.Values)
	case size.Text > l.DocumentBytes:
		return exceeded("DOCUMENT_TOO_LARGE", "bytes of the document", l.DocumentBytes, size.Text)
	}
	return nil
}

// How gqlparser begins its refusal of what is beyond a limit of its own; it gives no
// other sign.
const (
	tokenLimitMessage   = "exceeded token limit"
	nestingLimitMessage = "exceeded maximum nesting depth"
)

// unparsed is the refusal of a document beyond the parser's limits. Any other fault
// of the text is left to gqlgen, which comes to it again.
func (d documentLimits) unparsed(err error) *gqlerror.Error {
	switch message := err.Error(); {
	case strings.Contains(message, tokenLimitMessage):
		return gqlerror.Wrap(exceeded("DOCUMENT_TOO_LARGE", "tokens of the document", d.limits.DocumentTokens, 0))
	case strings.Contains(message, nestingLimitMessage):
		return gqlerror.Wrap(exceeded("DOCUMENT_TOO_DEEP", "fields within fields", d.limits.Depth, 0))
	default:
		return nil
	}
}

// check measures the definitions of a document, one after the other, and stops at
// the first that is beyond a limit.
func (d documentLimits) check(document *ast.QueryDocument) *gqlerror.Error {
	if n := len(document.Operations) + len(document.Fragments); n > d.limits.Definitions {
		return gqlerror.Wrap(exceeded("TOO_MANY_DEFINITIONS", "operations and fragments of the document", d.limits.Definitions, n))
	}
	m := newMeasurer(document)
	nodes, comparisons := 0, 0
	measured := func(s shape, set ast.SelectionSet) *gqlerror.Error {
		if m.cycle != nil {
			return cyclic(m.cycle)
		}
		if refused := d.beyond(s); refused != nil {
			return gqlerror.Wrap(refused)
		}
		// Validation walks each definition with its fragments written out.
		if nodes = add(nodes, s.nodes); nodes > d.limits.DocumentTokens {
			return gqlerror.Wrap(exceeded("DOCUMENT_TOO_LARGE", "nodes of the document with its fragments written out", d.limits.DocumentTokens, nodes))
		}
		if nodes <= alwaysComparable {
			return nil
		}
		if comparisons += m.comparisons(set); comparisons > maxComparisons {
			return gqlerror.Wrap(exceeded("TOO_MANY_REPETITIONS", "comparisons of what the document selects repeatedly in one place", maxComparisons, comparisons))
		}
		return nil
	}
	for _, operation := range document.Operations {
		if refused := measured(m.operation(operation), operation.SelectionSet); refused != nil {
			return refused
		}
	}
	for _, fragment := range document.Fragments {
		s := m.fragment(fragment)
		s.roots = 0
		if refused := measured(s, fragment.SelectionSet); refused != nil {
			return refused
		}
	}
	if m.introspects && !d.introspection {
		return gqlerror.Wrap(fleet.Denied("INTROSPECTION_DISABLED", "this server does not describe its schema"))
	}
	return nil
}

func (d documentLimits) beyond(s shape) *fleet.Error {
	for _, of := range []struct {
		reason, what  string
		limit, actual int
	}{
		{"DOCUMENT_TOO_DEEP", "fields within fields", d.limits.Depth, s.depth},
		{"TOO_MANY_ROOT_FIELDS", "root fields of an operation", d.limits.RootFields, s.roots},
		{"TOO_MANY_ALIASES", "aliases of an operation", d.limits.Aliases, s.aliases},
		{"TOO_MANY_DIRECTIVES", "directives of an operation", d.limits.Directives, s.directives},
		{"VALUE_TOO_DEEP", "lists and objects within each other in a literal", d.limits.ValueDepth, s.valueDepth},
	} {
		if of.actual > of.limit {
			return exceeded(of.reason, of.what, of.limit, of.actual)
		}
	}
	return nil
}

// cyclic refuses a fragment within itself, as validation would, which tells of each
// cycle with the whole way around it.
func cyclic(spread *ast.FragmentSpread) *gqlerror.Error {
	err := gqlerror.Wrap(fleet.Invalid("", errcode.ValidationFailed, "the fragment is spread within itself"))
	err.Locations = []gqlerror.Location{{Line: spread.Position.Line, Column: spread.Position.Column}}
	return err
}

// saturated stands for every number that is as large or larger.
const saturated = math.MaxInt32

// add adds two numbers that are not negative.
func add(a, b int) int { return min(a+b, saturated) }

// multiply multiplies two numbers that are not negative.
func multiply(a, b int) int {
	if a != 0 && b > saturated/a {
		return saturated
	}
	return a * b
}
