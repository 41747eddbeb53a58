package graphqlws

import (
	"context"
	"errors"
	"sync"
	"time"
)

// watch pings, and ends the connection with its session: it waits for the time of the
// next ping, the end of the session, and signs that it may have ended.
type watch struct {
	connection *connection
	opened     <-chan struct{} // nil when it has been seen
	ping       *time.Ticker
	check      *time.Ticker
	expires    <-chan time.Time
	expiry     *time.Timer
	changed    <-chan struct{}
	checking   chan error // nil while there is no check
	again      bool       // a sign came while there was one
	checks     sync.WaitGroup
}

// run watches until ctx ends.
func (w *watch) run(ctx context.Context) {
	defer w.stop()
	c := w.connection
	for {
		var ping, check <-chan time.Time
		if w.ping != nil {
			ping, check = w.ping.C, w.check.C
		}
		select {
		case <-ctx.Done():
			return
		case <-w.opened:
			w.begin()
		case <-ping:
			_, _ = c.out.tryPut(text(framePing)) // who has this much to read needs no ping
		case <-w.expires:
			c.close(ctx, codeUnauthorized, "Unauthorized: the token has expired")
		case <-check:
			w.look(ctx)
		case <-w.changed:
			w.changed = c.session.Changed()
			w.again = w.checking != nil
			w.look(ctx)
		case err := <-w.checking:
			w.checking = nil
			if err != nil {
				c.close(ctx, codeForbidden, "Forbidden: "+err.Error())
			} else if w.again {
				w.again = false
				w.look(ctx)
			}
		}
	}
}

// begin watches over the session that was opened.
func (w *watch) begin() {
	c := w.connection
	w.opened = nil
	w.ping, w.check = time.NewTicker(c.limits.PingInterval), time.NewTicker(c.limits.CheckInterval)
	if c.session.Expires != nil {
		w.expiry = time.NewTimer(time.Until(*c.session.Expires))
		w.expires = w.expiry.C
	}
	if c.session.Changed != nil {
		w.changed = c.session.Changed()
	}
}

// look asks whether the session still stands, beside the writing. An answer that
// cannot be had counts for nothing.
func (w *watch) look(ctx context.Context) {
	if w.checking != nil || w.connection.session.Check == nil {
		return
	}
	w.checking = make(chan error, 1)
	answer, check := w.checking, w.connection.session.Check
	w.checks.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.connection.limits.WriteTimeout)
		defer cancel()
		err := check(ctx)
		if ctx.Err() != nil || errors.Is(err, context.Canceled) {
			err = nil
		}
		answer <- err
	})
}

func (w *watch) stop() {
	if w.ping != nil {
		w.ping.Stop()
		w.check.Stop()
	}
	if w.expiry != nil {
		w.expiry.Stop()
	}
	w.checks.Wait()
}
