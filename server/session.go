package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fleetgraph/fleet"
	"fleetgraph/internal/tally"
	"fleetgraph/server/graphqlws"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// openTimeout bounds the look-up of a token.
const openTimeout = 10 * time.Second

// sessions lets in those who stay. A token is looked up when its stream begins, when
// something happens to it, and now and then; its time is watched.
type sessions struct {
	auth    authenticator
	feed    *events.Feed
	present presenter
	limiter *rateLimiter
	streams *tally.Tally // by the id of the token
}

// open lets in who is connected: the caller of ctx, or whom the payload of
// connection_init names by its key "authorization", in any case.
func (s *sessions) open(ctx context.Context, payload map[string]any) (*graphqlws.Session, error) {
	// Not broken off with the client: that would cost the connection to the database.
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	defer cancel()
	caller, ok := access.From(ctx)
	if header, given := authorization(payload); given || !ok {
		var err error
		if caller, err = authenticate(look, s.auth, header); err != nil {
			return nil, s.refusal(ctx, err)
		}
		noteCaller(ctx, caller)
	}
	leave, err := s.enter(caller)
	if err != nil {
		return nil, s.refusal(ctx, err)
	}
	changed, unwatch, err := s.feed.Watch(look, caller.TokenID)
	if err != nil {
		leave()
		return nil, s.refusal(ctx, err)
	}
	done := func() { unwatch(); leave() }
	// What happened to the token before that was told to nobody.
	first := changed()
	if err := s.check(look, caller); err != nil {
		done()
		return nil, s.refusal(ctx, err)
	}
	return &graphqlws.Session{
		As:      func(ctx context.Context) context.Context { return access.WithCaller(ctx, caller) },
		Expires: caller.Ends(),
		Check:   func(ctx context.Context) error { return s.check(ctx, caller) },
		Changed: func() <-chan struct{} {
			if next := first; next != nil {
				first = nil
				return next
			}
			return changed()
		},
		Close: done,
	}, nil
}

// enter counts one more stream of a caller, until it leaves.
func (s *sessions) enter(caller *access.Caller) (leave func(), err error) {
	if !s.streams.Take(caller.TokenID, 1) {
		return nil, (&fleet.Error{
			Code: fleet.ResourceExhausted, Reason: "TOO_MANY_STREAMS", Message: "the token has as many streams as it may",
		}).WithDetails(map[string]any{"limit": s.streams.Most(), retryAfter: fleet.Duration(comeBack)})
	}
	return func() { s.streams.Give(caller.TokenID, 1) }, nil
}

// refusal is why a session is not opened. What is not the caller's fault is for now:
// clients give up on another one.
func (s *sessions) refusal(ctx context.Context, err error) error {
	shown := s.present.shown(ctx, err, "")
	switch shown.Code {
	case fleet.Unavailable, fleet.ResourceExhausted, fleet.Internal, fleet.Aborted:
		return fmt.Errorf("%w: %w", graphqlws.ErrTryAgain, shown)
	case fleet.Unauthenticated, fleet.PermissionDenied, fleet.InvalidArgument, fleet.NotFound, fleet.AlreadyExists, fleet.FailedPrecondition:
	}
	return shown
}

// allow counts one operation of a socket against its caller's rate.
func (s *sessions) allow(ctx context.Context) error {
	caller, ok := access.From(ctx)
	if !ok {
		return access.Missing()
	}
	if refused := s.limiter.allow(caller); refused != nil {
		return refused
	}
	return nil
}

// check returns an error when the caller's token stands no longer. A database that
// does not answer ends nobody's session.
func (s *sessions) check(ctx context.Context, caller *access.Caller) error {
	err := s.auth.Recheck(ctx, caller)
	if known, ok := fleet.AsError(err); ok && (known.Code == fleet.Unauthenticated || known.Code == fleet.PermissionDenied) {
		return known
	}
	return nil
}

// authorization finds the header in the payload of a connection_init.
func authorization(payload map[string]any) (header []string, given bool) {
	for key, value := range payload {
		if strings.EqualFold(key, "authorization") {
			text, _ := value.(string)
			header, given = append(header, text), true
		}
	}
	return header, given
}
