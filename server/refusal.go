package server

import (
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/fleet"
)

// unnamedOperation is what gqlgen says of a document of several operations where the
// request names none.
const unnamedOperation = "operation  not found"

// maxRefusals bounds how many faults of one document are told: a document of
// nothing but faults has thousands.
const maxRefusals = 20

// tokenLimitMessage is how gqlparser begins its refusal of a document with too many
// tokens; it gives no other sign.
const tokenLimitMessage = "exceeded token limit"

// refusals turns what gqlparser says of a document or its variables into the errors
// that callers know, naming the input that is missing or of the wrong type. Errors
// of another origin are left alone.
func refusals(schema *ast.Schema, op *graphql.OperationContext, found gqlerror.List) gqlerror.List {
	if len(found) > maxRefusals {
		found = found[:maxRefusals]
	}
	var inputs *documentInputs
	out := make(gqlerror.List, len(found))
	for i, err := range found {
		if err.Extensions["code"] == errcode.ValidationFailed && inputs == nil {
			inputs = readInputs(schema, op)
		}
		out[i] = refuse(inputs, err)
	}
	return out
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
	if err.Message == unnamedOperation {
		message = "the document has several operations: say which one in operationName"
	}
	refusal := fleet.Invalid("", errcode.ValidationFailed, "%s", message)
	switch {
	case strings.HasPrefix(err.Message, tokenLimitMessage):
		refusal = &fleet.Error{Code: fleet.ResourceExhausted, Reason: "DOCUMENT_TOO_LARGE", Message: message}
	case err.Extensions["code"] == errcode.ParseFailed:
		refusal.Reason = errcode.ParseFailed
	case len(err.Path) > 0: // of a variable: its path is within the variables, not within a response
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
