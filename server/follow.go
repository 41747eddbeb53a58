package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"golang.org/x/sync/singleflight"

	"fleetgraph/fleet"
	"fleetgraph/internal/live"
	"fleetgraph/internal/telemetry"
	"fleetgraph/services/access"
)

// Bounds of what is kept rendered: enough for followers that are some seconds apart.
const (
	renderedEvents = 4096
	renderedBytes  = 16 << 10 // a larger answer is rendered for each follower
)

// operations runs operations for the transports of streams: queries and mutations
// have one answer, subscriptions one for each event. An event is rendered once for
// all followers with the same operation and the same rights.
type operations struct {
	refuser  refuser
	answers  *answers
	present  presenter
	timeout  time.Duration // of a query, a mutation, the opening of a stream, the rendering of an event
	rendered *lru.Cache[renderKey, []byte]
	flight   singleflight.Group
}

// renderKey names one rendered event: which event, and how.
type renderKey struct {
	event string
	how   [sha256.Size]byte
}

func newOperations(refuser refuser, a *answers, timeout time.Duration) (*operations, error) {
	rendered, err := lru.New[renderKey, []byte](renderedEvents)
	if err != nil {
		return nil, fmt.Errorf("cache of rendered events: %w", err)
	}
	return &operations{refuser: refuser, answers: a, present: a.present, timeout: timeout, rendered: rendered}, nil
}

// run runs an operation and hands each answer, as JSON, to emit, whose error ends it.
// refused is what the operation was refused with or broken off for, nil where it ran
// to its end. err tells that it has no end here: emit's error, the end of ctx, or
// live.ErrStopping where another process has to go on.
// readOnly refuses mutations.
func (o *operations) run(ctx context.Context, exec graphql.GraphExecutor, params *graphql.RawParams, readOnly bool, emit func([]byte) error) (refused gqlerror.List, err error) {
	ctx = telemetry.WithTraceID(ctx, telemetry.NewTraceID())
	ctx, ended := notedOperation(ctx, o.present.logger)
	defer ended()
	defer func() {
		if value := recover(); value != nil {
			refused, err = o.errors(ctx, o.present.recovered(ctx, value)), nil
		}
	}()
	op, faults := create(ctx, exec, params)
	noteOperation(ctx, op)
	if faults != nil {
		return exec.DispatchError(graphql.WithOperationContext(ctx, op), o.refuser.refusals(op, faults)).Errors, nil
	}
	if readOnly && op.Operation.Operation == ast.Mutation {
		return o.errors(ctx, fleet.Invalid("", "METHOD_NOT_ALLOWED", "a GET request runs no mutation")), nil
	}
	if op.Operation.Operation != ast.Subscription {
		limited, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		r := o.answer(limited, exec, op)
		if r.refused != nil {
			return r.refused, nil
		}
		return o.hand(ctx, r.answer, emit)
	}
	// The validation counts names, so that one field under two aliases passes; and what
	// variables leave out is known only now.
	if fields := graphql.CollectFields(op, op.Operation.SelectionSet, []string{"Subscription"}); len(fields) != 1 || strings.HasPrefix(fields[0].Name, "__") {
		return o.errors(ctx, fleet.Invalid("", errcode.ValidationFailed, "a subscription selects one field, and that is a stream")), nil
	}
	opened, errs := o.open(ctx, exec, op)
	if errs != nil {
		return errs, nil
	}
	defer opened.Source.Close()
	return o.stream(ctx, exec, op, opened.Source, emit)
}

// hand hands an answer to emit, unless too much waits for the readers of its caller.
func (o *operations) hand(ctx context.Context, answer []byte, emit func([]byte) error) (gqlerror.List, error) {
	release, refused := o.answers.hold(ctx, len(answer))
	if refused != nil {
		return o.errors(ctx, refused), nil
	}
	defer release()
	return nil, emit(answer)
}

// open has a subscription's resolver open its source.
func (o *operations) open(ctx context.Context, exec graphql.GraphExecutor, op *graphql.OperationContext) (*live.Opened, gqlerror.List) {
	ctx, cancel := o.short(ctx)
	defer cancel()
	opening, opened := live.Opening(ctx)
	respond, opening := exec.DispatchOperation(opening, op)
	response := respond(opening)
	switch {
	case opened.Source != nil:
		return opened, nil
	case response == nil || len(response.Errors) == 0:
		return nil, o.errors(ctx, timedOut())
	}
	return nil, response.Errors
}

// short is the context of a step that is not given up with its client: a statement
// that is broken off costs its connection to the database, and clients that come and
// go would have the pool open new ones without end.
func (o *operations) short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), o.timeout)
}

// answer runs a query or a mutation, or renders the event of ctx.
func (o *operations) answer(ctx context.Context, exec graphql.GraphExecutor, op *graphql.OperationContext) rendering {
	response, release := o.answers.make(ctx, exec, op)
	defer release()
	if response == nil {
		return rendering{refused: o.errors(ctx, timedOut())}
	}
	if op.Operation.Operation == ast.Subscription && (response.Data == nil || bytes.Equal(response.Data, []byte("null"))) {
		return rendering{refused: response.Errors} // without the cursor nobody could go on behind it
	}
	return rendering{answer: encode(response), faulty: len(response.Errors) > 0}
}

func (o *operations) stream(ctx context.Context, exec graphql.GraphExecutor, op *graphql.OperationContext, source live.Source, emit func([]byte) error) (gqlerror.List, error) {
	how, err := identity(ctx, op)
	if err != nil {
		return o.errors(ctx, err), nil
	}
	for {
		event, err := source.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.Is(err, live.ErrStopping), err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			return o.errors(ctx, err), nil
		}
		answer, refused := o.render(ctx, exec, op, renderKey{event.Key, how}, event)
		if refused != nil {
			return refused, nil
		}
		if refused, err := o.hand(ctx, answer, emit); refused != nil || err != nil {
			return refused, err
		}
	}
}

// rendering is what came of rendering an event: an answer, or errors.
type rendering struct {
	answer  []byte
	faulty  bool // the answer has errors, which another attempt may not have
	refused gqlerror.List
}

// render is the answer of an event, by whoever renders it first.
func (o *operations) render(ctx context.Context, exec graphql.GraphExecutor, op *graphql.OperationContext, key renderKey, event live.Event) ([]byte, gqlerror.List) {
	fresh := func() rendering {
		ctx, cancel := o.short(live.Rendering(ctx, event))
		defer cancel()
		return o.answer(ctx, exec, op)
	}
	if key.event == "" {
		r := fresh()
		return r.answer, r.refused
	}
	if answer, ok := o.rendered.Get(key); ok {
		return answer, nil
	}
	shared, _, _ := o.flight.Do(key.event+string(key.how[:]), func() (any, error) {
		if answer, ok := o.rendered.Get(key); ok {
			return rendering{answer: answer}, nil
		}
		r := fresh()
		if r.refused == nil && !r.faulty && len(r.answer) <= renderedBytes {
			o.rendered.Add(key, r.answer)
		}
		return r, nil
	})
	r, _ := shared.(rendering)
	return r.answer, r.refused
}

// identity is what a rendered event depends on beside the event: the operation, its
// variables, and what exists for the caller. Where a stream was entered does not
// count, so that those who come back share with those who stayed.
func identity(ctx context.Context, op *graphql.OperationContext) (how [sha256.Size]byte, err error) {
	variables := maps.Clone(op.Variables)
	for _, selection := range op.Operation.SelectionSet {
		field, ok := selection.(*ast.Field)
		if !ok {
			continue
		}
		after := field.Arguments.ForName("after")
		if after != nil && after.Value.Kind == ast.Variable && uses(op.RawQuery, after.Value.Raw) == 2 { // its declaration and this
			delete(variables, after.Value.Raw)
		}
	}
	caller, ok := access.From(ctx)
	if !ok {
		return how, access.Missing()
	}
	text, err := json.Marshal([]any{op.RawQuery, op.OperationName, variables, caller.Scope()})
	if err != nil {
		return how, fmt.Errorf("identity of an operation: %w", err)
	}
	return sha256.Sum256(text), nil
}

// uses counts the mentions of a variable in a document, which is valid.
func uses(document, variable string) (n int) {
	tokens := lexer.New(&ast.Source{Input: document})
	for named := false; ; {
		token, err := tokens.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			return n
		}
		if named && token.Kind == lexer.Name && token.Value == variable {
			n++
		}
		if token.Kind != lexer.Comment { // may stand between
			named = token.Kind == lexer.Dollar
		}
	}
}

// checking measures what a socket brings before it is read: read, it is many times
// its size.
func (o *operations) checking(limits Limits) func(context.Context, []byte) gqlerror.List {
	return func(ctx context.Context, payload []byte) gqlerror.List {
		if refused := limits.checkRequest(payload); refused != nil {
			return o.errors(ctx, refused)
		}
		return nil
	}
}

// tooMany is the refusal of one more operation on a connection.
func (o *operations) tooMany(ctx context.Context, limit int) gqlerror.List {
	return o.errors(ctx, &fleet.Error{
		Code: fleet.ResourceExhausted, Reason: "TOO_MANY_OPERATIONS",
		Message: "the connection has as many operations as it may", Details: map[string]any{"limit": limit},
	})
}

// errors is err as callers see it.
func (o *operations) errors(ctx context.Context, err error) gqlerror.List {
	return gqlerror.List{o.present.present(ctx, err)}
}
