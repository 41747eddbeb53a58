package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/telemetry"
)

// presenter turns errors into what a caller may see. It is the last gate: an error
// that is not known to be meant for callers becomes INTERNAL, whose cause is logged
// under the trace id that the caller gets.
type presenter struct{ logger *slog.Logger }

// present is gqlgen's error presenter. It does not change err, which gqlgen may
// hand to several requests.
func (p presenter) present(ctx context.Context, err error) *gqlerror.Error {
	out := &gqlerror.Error{}
	var located *gqlerror.Error
	if errors.As(err, &located) {
		out.Path, out.Locations = located.Path, located.Locations
	}
	input := inputPath(ctx, out.Path)
	if input != nil {
		out.Path = out.Path[:len(out.Path)-len(input)]
	}
	shown := p.shown(ctx, err, fieldName(pathSteps(input)))
	noteError(ctx, shown)
	out.Message, out.Extensions = shown.Message, extensions(shown)
	if len(out.Path) > 0 {
		// Clients that hand on no more than the extensions need the path there too.
		out.Extensions["path"] = out.Path
	}
	return out
}

// shown decides what the caller sees of err; input names the input that could not
// be read, empty where the error is about something else.
func (p presenter) shown(ctx context.Context, err error, input string) *fleet.Error {
	known, ok := fleet.AsError(err)
	switch {
	case ok && known.Code == fleet.Internal:
		if known.Details["traceId"] != nil {
			return known // logged before
		}
		return p.internal(ctx, err)
	case ok:
		if known.Cause != nil {
			p.logger.WarnContext(ctx, "refused", slog.String("reason", known.Reason), slog.Any("err", known.Cause))
		}
		if input != "" && known.Field == "" {
			known = known.At(input)
		}
		return known
	case input != "":
		return fleet.Invalid(input, "VALUE_INVALID", "%s", plainMessage(err))
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return timedOut()
	case pgdb.Unavailable(err):
		p.logger.WarnContext(ctx, "database unavailable", slog.Any("err", err))
		return &fleet.Error{Code: fleet.Unavailable, Reason: "DATABASE_UNAVAILABLE", Message: "the database does not answer; try again"}
	case pgdb.Unstorable(err):
		return fleet.Invalid("", "TEXT_INVALID", "a text holds a character that cannot be stored")
	case pgdb.Retryable(err):
		return fleet.Conflict("CONTENTION", "too many changes to the same objects at once; try again")
	default:
		return p.internal(ctx, err)
	}
}

// recovered is gqlgen's recover function.
func (p presenter) recovered(ctx context.Context, value any) error {
	cause, ok := value.(error)
	if !ok {
		cause = fmt.Errorf("%v", value)
	}
	p.logger.ErrorContext(ctx, "panic", slog.Any("err", cause), slog.String("stack", string(debug.Stack())))
	return concealed(ctx)
}

func (p presenter) internal(ctx context.Context, err error) *fleet.Error {
	p.logger.ErrorContext(ctx, "internal error", slog.Any("err", err))
	return concealed(ctx)
}

// concealed is all that a caller learns of an error that is not for them.
func concealed(ctx context.Context) *fleet.Error {
	return &fleet.Error{
		Code: fleet.Internal, Reason: "INTERNAL", Message: "internal error",
		Details: map[string]any{"traceId": telemetry.TraceID(ctx)},
	}
}

func timedOut() *fleet.Error {
	return &fleet.Error{Code: fleet.Unavailable, Reason: "TIMEOUT", Message: "the operation was cut off before it ended"}
}

// inputPath returns the part of an error's path that lies below the field being
// resolved: gqlgen appends to a field's path the path of the argument that it could
// not read.
func inputPath(ctx context.Context, path ast.Path) ast.Path {
	field := graphql.GetFieldContext(ctx)
	if field == nil {
		return nil
	}
	own := field.Path()
	if len(path) <= len(own) {
		return nil
	}
	for i := range own {
		if path[i] != own[i] {
			return nil
		}
	}
	return path[len(own):]
}

// plainMessage is err's message without gqlerror's prefix of file and path.
func plainMessage(err error) string {
	var located *gqlerror.Error
	if errors.As(err, &located) {
		return lowerFirst(located.Message)
	}
	return lowerFirst(err.Error())
}

// extensions are the machine-readable part of an error; what is empty is left out.
func extensions(e *fleet.Error) map[string]any {
	out := map[string]any{"code": e.Code}
	if e.Reason != "" {
		out["reason"] = e.Reason
	}
	if e.Field != "" {
		out["field"] = e.Field
	}
	if len(e.Details) > 0 {
		out["details"] = e.Details
	}
	return out
}
