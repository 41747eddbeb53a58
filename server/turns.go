package server

import (
	"context"
	"sync"
	"time"
)

// turns lets each of many keys do a few things at a time, one after the other in the
// order in which they came. A key that does nothing takes no memory.
type turns struct {
	atOnce, waiting int
	patience        time.Duration

	mu sync.Mutex
	of map[string]*line
}

// line is those of one key.
type line struct {
	inside int
	queue  []chan struct{} // closed when it is one's turn
}

func newTurns(atOnce, waiting int, patience time.Duration) *turns {
	return &turns{atOnce: atOnce, waiting: waiting, patience: patience, of: map[string]*line{}}
}

// take waits for a turn of key; ok is false where too many wait, or for too long, or
// ctx ends. done ends the turn.
func (t *turns) take(ctx context.Context, key string) (done func(), ok bool) {
	done = func() { t.give(key) }
	turn, ok := t.join(key)
	if !ok || turn == nil {
		return done, ok
	}
	patience := time.NewTimer(t.patience)
	defer patience.Stop()
	select {
	case <-turn:
		return done, true
	case <-ctx.Done():
	case <-patience.C:
	}
	if !t.withdraw(key, turn) { // it has come meanwhile
		done()
	}
	return nil, false
}

// join takes a turn, or a place among those who wait for one, whose channel it returns.
func (t *turns) join(key string) (turn chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of[key]
	if l == nil {
		l = &line{}
		t.of[key] = l
	}
	switch {
	case l.inside < t.atOnce:
		l.inside++
		return nil, true
	case len(l.queue) >= t.waiting:
		return nil, false
	}
	turn = make(chan struct{})
	l.queue = append(l.queue, turn)
	return turn, true
}

// give hands a turn to the next who waits.
func (t *turns) give(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of[key]
	if len(l.queue) > 0 {
		close(l.queue[0])
		l.queue = l.queue[1:]
		return
	}
	if l.inside--; l.inside == 0 {
		delete(t.of, key)
	}
}

// withdraw gives a place up; false where its turn has come.
func (t *turns) withdraw(key string, turn chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of[key]
	if l == nil {
		return false
	}
	for i, waiting := range l.queue {
		if waiting == turn {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			return true
		}
	}
	return false
}
