// Package live is what the resolvers of subscriptions and the transports that serve
// them agree on. gqlgen has a resolver return a channel of what it renders one by one;
// here a resolver opens a Source, and each event of it is rendered by an execution of
// its own. A transport thus knows an event before it is rendered, and renders it once
// for all followers that asked for the same.
package live

import (
	"context"
	"errors"
)

// Event is one item of a source. Two events with one key are the same: what was
// rendered of the one, for the same operation and the same rights, serves for the
// other. An event without a key is rendered for its own follower.
type Event struct {
	Key   string
	Value any
}

// Source is where the events of one subscription come from. It is used by one
// goroutine.
type Source interface {
	// Next waits for the next event: io.EOF at the end, ErrStopping when the process
	// stops.
	Next(ctx context.Context) (Event, error)
	// Close ends it.
	Close()
}

// ErrStopping tells that there are more events, but not from this process.
var ErrStopping = errors.New("the server is stopping")

// errNoStream is the error of a subscription over a transport that cannot serve it.
var errNoStream = errors.New("live: the transport has no streams")

type (
	openKey   struct{}
	renderKey struct{}
)

// Opening returns a context in which a subscription's resolver opens its source, and
// where that will be.
func Opening(ctx context.Context) (context.Context, *Opened) {
	opened := &Opened{}
	return context.WithValue(ctx, openKey{}, opened), opened
}

// Opened holds the source that a resolver has opened; nil where it refused.
type Opened struct{ Source Source }

// Rendering returns a context in which a subscription's resolver returns e.
func Rendering(ctx context.Context, e Event) context.Context {
	return context.WithValue(ctx, renderKey{}, e)
}

// Stream is what a subscription's resolver returns: by open its source, or by build
// one event in the form that the graph has for it.
func Stream[T any](ctx context.Context, open func() (Source, error), build func(Event) (T, error)) (<-chan T, error) {
	if e, ok := ctx.Value(renderKey{}).(Event); ok {
		value, err := build(e)
		if err != nil {
			return nil, err
		}
		one := make(chan T, 1)
		one <- value
		close(one)
		return one, nil
	}
	opened, ok := ctx.Value(openKey{}).(*Opened)
	if !ok {
		return nil, errNoStream
	}
	source, err := open()
	if err != nil {
		return nil, err
	}
	opened.Source = source
	none := make(chan T)
	close(none)
	return none, nil
}
