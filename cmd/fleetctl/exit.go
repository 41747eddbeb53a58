package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fleetgraph/fleet"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
)

// usageError is a command line that cannot be carried out as it stands.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// unreachableError is a server that could not be reached or did not answer.
// dropped tells that the connection broke during a call, so that whether the
// call happened is not known.
type unreachableError struct {
	endpoint string
	dropped  bool
	err      error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("the server at %s is unreachable: %v", e.endpoint, e.err)
}

func (e *unreachableError) Unwrap() error { return e.err }

// quietError ends a command with exit code 1 that has already said why, such as
// `sku diff` on a mismatch.
type quietError struct{}

func (quietError) Error() string { return "" }

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, new(usageError)):
		return exitUsage
	case isUnreachable(err):
		return exitUnreachable
	default:
		return exitFailed
	}
}

// isUnreachable tells whether err is a server that is not there, or one that
// says it cannot answer now.
func isUnreachable(err error) bool {
	if errors.As(err, new(*unreachableError)) {
		return true
	}
	e, ok := fleet.AsError(err)
	return ok && e.Code == fleet.Unavailable
}

// report writes err to the standard error, in the form of the output, and
// returns the exit code.
func (a *app) report(err error) int {
	code := exitCode(err)
	if err == nil || errors.As(err, new(quietError)) {
		return code
	}
	e := describeError(err)
	if a.format == formatJSON {
		encoder := json.NewEncoder(a.stderr)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(map[string]any{"error": e})
		return code
	}
	fmt.Fprintln(a.stderr, "error: "+e.String())
	for _, key := range slices.Sorted(maps.Keys(e.Details)) {
		fmt.Fprintf(a.stderr, "  %s: %s\n", visible(key), visible(detailText(e.Details[key])))
	}
	if e.Code == string(fleet.Unauthenticated) {
		fmt.Fprintln(a.stderr, "hint: log in with fleetctl login, or pass --token")
	}
	return code
}

// errorView is an error as scripts read it.
type errorView struct {
	Code    string         `json:"code"`
	Reason  string         `json:"reason"`
	Field   string         `json:"field"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// describeError gives every error a code and a reason. Only usage, transport and
// local file errors get theirs here; all others carry the server's.
func describeError(err error) errorView {
	if e, ok := fleet.AsError(err); ok {
		return errorView{string(e.Code), e.Reason, e.Field, err.Error(), e.Details}
	}
	switch {
	case errors.As(err, new(usageError)):
		return errorView{Code: string(fleet.InvalidArgument), Reason: "USAGE", Message: err.Error()}
	case errors.As(err, new(*unreachableError)):
		return errorView{Code: string(fleet.Unavailable), Reason: "UNREACHABLE", Message: err.Error()}
	case errors.Is(err, context.Canceled):
		return errorView{Code: string(fleet.Aborted), Reason: "INTERRUPTED", Message: "interrupted"}
	default:
		return errorView{Code: string(fleet.InvalidArgument), Reason: "LOCAL", Message: err.Error()}
	}
}

// String is the message with code, reason and field in parentheses, without
// control characters but for line breaks, which are indented.
func (e errorView) String() string {
	lines := strings.Split(e.Message, "\n")
	for i := range lines {
		lines[i] = visible(lines[i])
	}
	message := strings.Join(lines, "\n  ")
	if e.Reason == "USAGE" || e.Reason == "LOCAL" || e.Reason == "UNREACHABLE" || e.Reason == "INTERRUPTED" {
		return message
	}
	origin := e.Code
	if e.Reason != "" {
		origin += " " + e.Reason
	}
	if e.Field != "" {
		origin += " field=" + e.Field
	}
	return fmt.Sprintf("%s (%s)", message, visible(origin))
}

func detailText(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []any:
		texts := make([]string, len(value))
		for i := range value {
			texts[i] = detailText(value[i])
		}
		return strings.Join(texts, ", ")
	default:
		text, _ := json.Marshal(value) // came out of JSON
		return string(text)
	}
}
