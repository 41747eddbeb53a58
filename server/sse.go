package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"fleetgraph/fleet"
	"fleetgraph/server/graphqlws"
)

// keepAlive is how often a stream without events says that it is alive: proxies cut
// what is silent for a minute.
const keepAlive = 12 * time.Second

// streamTransport serves operations as server-sent events, by the distinct
// connections mode of the graphql-sse protocol (enisdenjo/graphql-sse, PROTOCOL.md):
// a request, a stream. It reads requests as httpTransport does.
type streamTransport struct {
	http       httpTransport
	operations *operations
	sessions   *sessions
	patience   time.Duration // for one write to a slow reader
	again      time.Duration // between two looks whether the session still stands
	streams    *atomic.Int64 // that are open
	most       int64         // streams at once
}

var _ graphql.Transport = streamTransport{}

// Supports is gqlgen's question whether a request is for this transport.
func (streamTransport) Supports(r *http.Request) bool {
	mediaType, ok := responseType(r.Header.Values("Accept"))
	return ok && mediaType == typeEvents
}

// Do answers one request.
func (t streamTransport) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	params := &graphql.RawParams{Headers: r.Header, ReadTime: graphql.TraceTiming{Start: graphql.Now()}}
	if status, err := t.http.read(w, r, params); err != nil {
		writeError(w, status, err)
		return
	}
	params.ReadTime.End = graphql.Now()
	defer t.streams.Add(-1)
	if t.streams.Add(1) > t.most {
		refused := &fleet.Error{
			Code: fleet.ResourceExhausted, Reason: "TOO_MANY_STREAMS",
			Message: "the server has as many streams as it may", Details: map[string]any{"limit": t.most, retryAfter: fleet.Duration(comeBack)},
		}
		t.sessions.present.refuse(w, r, refused)
		return
	}
	session, err := t.sessions.open(r.Context(), nil)
	if err != nil {
		t.sessions.present.refuse(w, r, err)
		return
	}
	defer session.Close()
	ctx, cancel := context.WithCancel(session.As(r.Context()))
	defer cancel()
	stream := &eventStream{w: w, control: http.NewResponseController(w), patience: t.patience}
	if err := stream.open(); err != nil {
		return
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { t.watch(ctx, cancel, stream, session) })
	t.serve(ctx, exec, params, r.Method == http.MethodGet, stream)
}

func (t streamTransport) serve(ctx context.Context, exec graphql.GraphExecutor, params *graphql.RawParams, readOnly bool, stream *eventStream) {
	refused, err := t.operations.run(ctx, exec, params, readOnly, func(answer []byte) error { return stream.send("next", answer) })
	if err != nil {
		return // without an end: the client comes back
	}
	if refused != nil {
		if stream.send("next", encode(&graphql.Response{Errors: refused})) != nil {
			return
		}
	}
	_ = stream.send("complete", nil)
}

// watch keeps the stream alive, and ends it with its session.
func (t streamTransport) watch(ctx context.Context, cancel context.CancelFunc, stream *eventStream, session *graphqlws.Session) {
	defer cancel()
	alive, again := time.NewTicker(keepAlive), time.NewTicker(t.again)
	defer alive.Stop()
	defer again.Stop()
	var expires <-chan time.Time
	if session.Expires != nil {
		timer := time.NewTimer(time.Until(*session.Expires))
		defer timer.Stop()
		expires = timer.C
	}
	changed := session.Changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-expires:
			return
		case <-alive.C:
			if stream.comment() != nil {
				return
			}
			continue
		case <-again.C:
		case <-changed:
			changed = session.Changed()
		}
		if !t.stands(ctx, session) {
			return
		}
	}
}

// stands asks whether the session still does, for no longer than a write may take: the
// time goes on meanwhile.
func (t streamTransport) stands(ctx context.Context, session *graphqlws.Session) bool {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.patience)
	defer cancel()
	return session.Check(limited) == nil
}

// eventStream is the body of a stream. Its methods may be called at the same time.
type eventStream struct {
	mu       sync.Mutex
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

func (s *eventStream) open() error {
	// The deadlines of the server are those of requests that are answered at once.
	if err := errors.Join(s.control.SetReadDeadline(time.Time{}), s.control.SetWriteDeadline(time.Now().Add(s.patience))); err != nil {
		return err
	}
	s.w.Header().Set("Content-Type", typeEvents+"; charset=utf-8")
	s.w.Header().Set("X-Accel-Buffering", "no") // nginx would collect the events
	s.w.WriteHeader(http.StatusOK)
	return s.comment()
}

// comment sends what clients ignore.
func (s *eventStream) comment() error { return s.out([]byte(":\n\n")) }

// send sends an event.
func (s *eventStream) send(event string, data []byte) error {
	frame := make([]byte, 0, len(event)+len(data)+32)
	frame = append(append(append(frame, "event: "...), event...), "\ndata: "...)
	return s.out(append(append(frame, data...), "\n\n"...))
}

func (s *eventStream) out(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.control.SetWriteDeadline(time.Now().Add(s.patience)); err != nil {
		return err
	}
	if _, err := s.w.Write(frame); err != nil {
		return err
	}
	return s.control.Flush()
}
