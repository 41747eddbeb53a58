package server

import (
	"regexp"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"fleetgraph/fleet"
)

// unnamedOperation is what gqlgen says of a document of several operations where the
// request names none.
const unnamedOperation = "operation  not found"

// maxRefusals bounds how many faults of one document are told: a document of
// nothing but faults has thousands.
const maxRefusals = 20

// maxSuggesting is the longest message of an error that is worth suggestions: a name
// is compared with hundreds of others.
const maxSuggesting = 200

// maxMessage bounds what a message repeats of the document.
const maxMessage = 1000

// wrongVariable is what gqlparser says of a variable of the wrong type: in Go's words,
// and of a number that fits none of Go's with another one.
var wrongVariable = regexp.MustCompile(`^(?:cannot use .* as|must be an?) (\w+).*$`)

// refuser turns what gqlparser says of a document or its variables into the errors that
// callers know, naming the input that is missing or of the wrong type.
type refuser struct {
	schema   *ast.Schema
	suggests bool // names that may have been meant
}

// refusals leaves errors of another origin alone.
func (r refuser) refusals(op *graphql.OperationContext, found gqlerror.List) gqlerror.List {
	var inputs *documentInputs
	if slices.ContainsFunc(found, func(err *gqlerror.Error) bool { return err.Extensions["code"] == errcode.ValidationFailed }) {
		doc := readAgain(r.schema, op)
		found = r.suggesting(op, doc, found)
		inputs = readInputs(doc)
	}
	if len(found) > maxRefusals {
		found = found[:maxRefusals]
	}
	out := make(gqlerror.List, len(found))
	for i, err := range found {
		out[i] = refuse(inputs, err)
	}
	return out
}

// suggesting returns the errors of validation again, with suggestions, when they are
// few and short.
func (r refuser) suggesting(op *graphql.OperationContext, doc *ast.QueryDocument, found gqlerror.List) gqlerror.List {
	long := func(err *gqlerror.Error) bool { return len(err.Message) > maxSuggesting }
	if !r.suggests || op.Doc != nil || doc == nil || len(found) > maxRefusals || slices.ContainsFunc(found, long) {
		return found
	}
	again := validator.ValidateWithRules(r.schema, doc, suggestingRules())
	for _, err := range again {
		errcode.Set(err, errcode.ValidationFailed)
	}
	if len(again) == 0 { // the error was of something else, such as a document without operations
		return found
	}
	return again
}

func isProtocolError(err *gqlerror.Error) bool {
	code := err.Extensions["code"]
	return code == errcode.ParseFailed || code == errcode.ValidationFailed
}

func refuse(inputs *documentInputs, err *gqlerror.Error) *gqlerror.Error {
	if !isProtocolError(err) {
		return err
	}
	message := lowerFirst(strings.TrimSuffix(err.Message, "."))
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	if err.Message == unnamedOperation {
		message = "the document has several operations: say which one in operationName"
	}
	refusal := fleet.Invalid("", errcode.ValidationFailed, "%s", message)
	switch {
	case err.Extensions["code"] == errcode.ParseFailed:
		refusal.Reason = errcode.ParseFailed
	case len(err.Path) > 0: // of a variable: its path is within the variables, not within a response
		message = wrongVariable.ReplaceAllString(message, "this is not of type $1")
		path := inputs.ofVariable(err.Path)
		refusal.Field = fieldName(path)
		refusal.Message = strings.Join(path, ".") + ": " + message
	case len(err.Locations) > 0:
		refusal.Field = fieldName(inputs.ofLiteral(err.Locations[0], err.Message))
	}
	return &gqlerror.Error{Err: refusal, Message: refusal.Message, Locations: err.Locations}
}

// fieldName is the form in which errors name an input: its path inside the argument
// `input`, and for any other argument the path with the argument's name.
func fieldName(path []string) string {
	if len(path) > 1 && path[0] == "input" {
		path = path[1:]
	}
	return strings.Join(path, ".")
}

// lowerFirst puts a message of gqlparser into our form, but for a word that is
// written in capitals for another reason.
func lowerFirst(message string) string {
	if len(message) > 1 && message[0] >= 'A' && message[0] <= 'Z' && (message[1] < 'A' || message[1] > 'Z') {
		return strings.ToLower(message[:1]) + message[1:]
	}
	return message
}
