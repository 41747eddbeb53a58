package server

import (
	"context"
	"sync"
	"time"

	"fleetgraph/server/graphqlws"
	"fleetgraph/services/events"
)

// flushTimeout is how long a stop waits for followers to get what is theirs.
const flushTimeout = 5 * time.Second

// following is what subscriptions live on: the feed, and the sockets of its
// followers.
type following struct {
	feed    *events.Feed
	sockets *graphqlws.Transport
	running sync.WaitGroup
	end     context.CancelFunc
}

// start runs the feed until stop.
func (f *following) start(ctx context.Context) {
	ctx, f.end = context.WithCancel(context.WithoutCancel(ctx))
	f.running.Go(func() { f.feed.Run(ctx) })
}

// stop hands out the last changes, ends all streams behind them, and closes the
// sockets.
func (f *following) stop(ctx context.Context) {
	f.end()
	f.running.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	f.sockets.Stop(ctx)
}
