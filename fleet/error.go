package fleet

import (
	"errors"
	"fmt"
)

// Code is the class of an error, from a closed list. A client decides by Code
// whether to correct its input, retry, or give up.
type Code string

// The closed list of codes. Adding one is a change of the contract.
const (
	InvalidArgument    Code = "INVALID_ARGUMENT"
	NotFound           Code = "NOT_FOUND"
	AlreadyExists      Code = "ALREADY_EXISTS"
	FailedPrecondition Code = "FAILED_PRECONDITION"
	Aborted            Code = "ABORTED"
	PermissionDenied   Code = "PERMISSION_DENIED"
	Unauthenticated    Code = "UNAUTHENTICATED"
	ResourceExhausted  Code = "RESOURCE_EXHAUSTED"
	Unavailable        Code = "UNAVAILABLE"
	Internal           Code = "INTERNAL"
)

// Error is the one error type that reaches a caller. Reason is a stable
// upper-case word a program may switch on; Field is the dotted path of the bad
// input, empty when the fault is not in one; Details is what the message counts
// or lists. Cause is logged and never shown.
type Error struct {
	Code    Code
	Reason  string
	Field   string
	Message string
	Details map[string]any
	Cause   error
}

// Error returns the message for people, without code or cause.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }

// WithDetails returns a copy of e that carries details.
func (e *Error) WithDetails(details map[string]any) *Error {
	c := *e
	c.Details = details
	return &c
}

// WithCause returns a copy of e that carries the error it came from.
func (e *Error) WithCause(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// At returns a copy of e whose field is prefixed with path, for input that is
// nested in a list or an object: At("skus.3") turns "name" into "skus.3.name".
func (e *Error) At(path string) *Error {
	c := *e
	switch {
	case path == "":
	case c.Field == "":
		c.Field = path
	default:
		c.Field = path + "." + c.Field
	}
	return &c
}

// Invalid reports malformed input in field: INVALID_ARGUMENT.
func Invalid(field, reason, format string, args ...any) *Error {
	return &Error{Code: InvalidArgument, Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Missing reports that what field names does not exist or is hidden from the
// caller: NOT_FOUND. The two cases are not told apart on purpose.
func Missing(field, reason, format string, args ...any) *Error {
	return &Error{Code: NotFound, Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Exists reports a natural key that is taken: ALREADY_EXISTS.
func Exists(field, reason, format string, args ...any) *Error {
	return &Error{Code: AlreadyExists, Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Precondition reports well-formed input that the present state refuses:
// FAILED_PRECONDITION.
func Precondition(reason, format string, args ...any) *Error {
	return &Error{Code: FailedPrecondition, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Conflict reports a lost race: ABORTED. Reading again and repeating may succeed.
func Conflict(reason, format string, args ...any) *Error {
	return &Error{Code: Aborted, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Denied reports a caller whose role does not allow the operation:
// PERMISSION_DENIED.
func Denied(reason, format string, args ...any) *Error {
	return &Error{Code: PermissionDenied, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// AsError returns the *Error in err's chain, if there is one.
func AsError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}
