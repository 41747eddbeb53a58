package graphqlws

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

var (
	errClosing = errors.New("graphqlws: the connection is closing")
	errSlow    = errors.New("graphqlws: the reader is too slow")
)

// closing is why and how a connection ends.
type closing struct {
	code   int
	reason string // at most 123 bytes
}

// outgoing is one message of the connection, or a control frame of its own.
type outgoing struct {
	kind int // of gorilla's message types
	data []byte
	left chan struct{} // closed when the message was written or dropped; nil where nobody waits for that
}

func text(data []byte) outgoing { return outgoing{kind: websocket.TextMessage, data: data} }

// leave tells those who wait that messages are no longer held.
func leave(frames []outgoing) {
	for _, frame := range frames {
		if frame.left != nil {
			close(frame.left)
		}
	}
}

// outbox is what waits for the connection's writer: at most limit bytes, or one
// message.
type outbox struct {
	limit int
	ready chan struct{} // there is something to write

	mu     sync.Mutex
	frames []outgoing
	bytes  int
	close  *closing
	drop   bool          // nothing is to be written before the close
	space  chan struct{} // closed by the next take; nil while nobody waits
}

func newOutbox(limit int) *outbox { return &outbox{limit: limit, ready: make(chan struct{}, 1)} }

// put adds a message, waiting for space until ctx ends: errSlow after patience.
func (o *outbox) put(ctx context.Context, frame outgoing, patience time.Duration) error {
	return await(ctx, patience, func() (<-chan struct{}, error) { return o.tryPut(frame) })
}

// await tries until there is space: errSlow after patience.
func await(ctx context.Context, patience time.Duration, try func() (space <-chan struct{}, err error)) error {
	var timeout *time.Timer
	for {
		space, err := try()
		if err != nil || space == nil {
			return err
		}
		if timeout == nil {
			timeout = time.NewTimer(patience)
			defer timeout.Stop()
		}
		select {
		case <-space:
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			return errSlow
		}
	}
}

// tryPut adds a message, or returns a channel that is closed when there is space.
func (o *outbox) tryPut(frame outgoing) (space <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.close != nil:
		return nil, errClosing
	case o.bytes > 0 && o.bytes+len(frame.data) > o.limit:
		if o.space == nil {
			o.space = make(chan struct{})
		}
		return o.space, nil
	}
	o.add(frame)
	return nil, nil //nolint:nilnil // no channel: there was space
}

// force adds a message whatever waits: a short one that ends something.
func (o *outbox) force(frame outgoing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.close == nil {
		o.add(frame)
	}
}

func (o *outbox) add(frame outgoing) {
	o.frames, o.bytes = append(o.frames, frame), o.bytes+len(frame.data)
	o.signal()
}

// finish takes no more messages: the connection is closed after what waits, or
// instead of it when drop is set. The first call counts.
func (o *outbox) finish(c closing, drop bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.close != nil {
		return
	}
	o.close, o.drop = &c, drop
	if drop {
		o.empty()
	}
	o.signal()
}

// end drops what still waits: there is no writer any more, and finish was called.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.empty()
}

func (o *outbox) empty() {
	leave(o.frames)
	o.frames, o.bytes = nil, 0
}

// finishing tells whether finish was called.
func (o *outbox) finishing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.close != nil
}

// dropping tells whether finish was called, and nothing is to be written before the
// close.
func (o *outbox) dropping() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.drop
}

func (o *outbox) signal() {
	select {
	case o.ready <- struct{}{}:
	default: // told already
	}
}

// take returns all that waits, and how the connection is to be closed after it, if
// so. Whoever takes messages calls leave when they are written.
func (o *outbox) take() ([]outgoing, *closing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames := o.frames
	o.frames, o.bytes = nil, 0
	if o.space != nil {
		close(o.space)
		o.space = nil
	}
	return frames, o.close
}
