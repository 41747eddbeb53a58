package notify

import (
	"context"
	"errors"
	"sync"
)

// ErrBehind tells a follower that the hub no longer has what comes next for it.
var ErrBehind = errors.New("notify: the follower has fallen behind")

// ErrClosed tells a follower that it has everything and nothing more comes.
var ErrClosed = errors.New("notify: the hub is closed")

// Bounds of what a topic keeps for followers that are a little behind. What is older
// they read from where it is stored.
const (
	windowEvents = 1024
	windowBytes  = 1 << 20
)

// Hub hands events to the followers of topics, each event once and in the order of
// Publish. A topic exists while it is followed. A follower that takes its time costs
// the others nothing: there is no queue of its own, only its place in the topic's
// window.
type Hub[E any] struct {
	size   func(E) int
	mu     sync.Mutex
	topics map[string]*topic[E]
	closed bool
}

// NewHub returns a hub; size is what an event holds in memory, in bytes.
func NewHub[E any](size func(E) int) *Hub[E] {
	return &Hub[E]{size: size, topics: map[string]*topic[E]{}}
}

// topic is the window of one topic: its last events, and how many were before them.
type topic[E any] struct {
	followers int // under the hub's mutex

	mu      sync.Mutex
	window  []E // never changed in place: followers hold parts of it
	bytes   int
	before  int
	changed chan struct{} // closed by the next Publish
	closed  bool
}

// Followed tells whether anybody follows a topic.
func (h *Hub[E]) Followed(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topics[name] != nil
}

// Publish hands events to those who follow the topic.
func (h *Hub[E]) Publish(name string, events []E) {
	h.mu.Lock()
	t := h.topics[name]
	h.mu.Unlock()
	if t == nil || len(events) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		t.bytes += h.size(e)
	}
	drop, all := 0, len(t.window)+len(events)
	for at := func(i int) E {
		if i < len(t.window) {
			return t.window[i]
		}
		return events[i-len(t.window)]
	}; drop < all-1 && (all-drop > windowEvents || t.bytes > windowBytes); drop++ {
		t.bytes -= h.size(at(drop))
	}
	kept := make([]E, 0, all-drop)
	if drop < len(t.window) {
		kept = append(append(kept, t.window[drop:]...), events...)
	} else {
		kept = append(kept, events[drop-len(t.window):]...)
	}
	t.window, t.before = kept, t.before+drop
	t.tell()
}

// tell wakes those who wait.
func (t *topic[E]) tell() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// Close ends all following: each follower still gets what was published before.
func (h *Hub[E]) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, t := range h.topics {
		t.mu.Lock()
		t.closed = true
		t.tell()
		t.mu.Unlock()
	}
}

// Follow joins a topic at its end. Leave ends it.
func (h *Hub[E]) Follow(name string) *Follower[E] {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[name]
	if t == nil {
		t = &topic[E]{changed: make(chan struct{}), closed: h.closed}
		h.topics[name] = t
	}
	t.followers++
	f := &Follower[E]{hub: h, name: name, topic: t}
	f.Rejoin()
	return f
}

// Follower is one place in a topic. It is used by one goroutine.
type Follower[E any] struct {
	hub   *Hub[E]
	name  string
	topic *topic[E]
	next  int
}

// Rejoin moves to the topic's end. What is stored has to be read after it, so that
// nothing falls between the two.
func (f *Follower[E]) Rejoin() {
	f.topic.mu.Lock()
	defer f.topic.mu.Unlock()
	f.next = f.topic.before + len(f.topic.window)
}

// Next waits for events and returns all there are: at least one, or ErrBehind,
// ErrClosed or the end of ctx.
func (f *Follower[E]) Next(ctx context.Context) ([]E, error) {
	for {
		events, changed, err := f.take()
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns what has come since the last call, and a channel that is closed when
// there is more.
func (f *Follower[E]) take() (events []E, changed <-chan struct{}, err error) {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.next < t.before {
		return nil, nil, ErrBehind
	}
	events = t.window[f.next-t.before:]
	f.next = t.before + len(t.window)
	if len(events) == 0 && t.closed {
		return nil, nil, ErrClosed
	}
	return events, t.changed, nil
}

// Changed is closed when there is something new.
func (f *Follower[E]) Changed() <-chan struct{} {
	f.topic.mu.Lock()
	defer f.topic.mu.Unlock()
	return f.topic.changed
}

// Leave ends the following.
func (f *Follower[E]) Leave() {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	if f.topic.followers--; f.topic.followers == 0 {
		delete(f.hub.topics, f.name)
	}
}
