package graphqlws

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// running is one operation that is alive.
type running struct {
	id     []byte // as JSON
	cancel context.CancelFunc
}

// subscribe starts an operation.
func (c *connection) subscribe(ctx context.Context, m message) {
	if c.session == nil {
		c.close(ctx, codeUnauthorized, "Unauthorized")
		return
	}
	if m.ID == nil || *m.ID == "" {
		c.close(ctx, codeBadRequest, "Subscribe without id")
		return
	}
	id, err := json.Marshal(*m.ID)
	if err != nil {
		c.close(ctx, codeBadRequest, "Invalid id")
		return
	}
	if refused := c.transport.config.Check(ctx, m.Payload); refused != nil {
		c.refuse(ctx, id, refused)
		return
	}
	params, err := operation(m.Payload)
	if err != nil {
		c.close(ctx, codeBadRequest, "Invalid payload of subscribe")
		return
	}
	run, cancel := context.WithCancel(c.session.As(ctx))
	op := &running{id: id, cancel: cancel}
	switch err := c.add(*m.ID, op); {
	case errors.Is(err, errTaken):
		op.cancel()
		c.close(ctx, codeSubscriberExists, "Subscriber for "+*m.ID+" already exists")
	case err != nil:
		op.cancel()
		c.refuse(ctx, id, c.transport.config.Refuse(ctx, c.limits.Operations))
	default:
		c.running.Go(func() { c.operate(run, *m.ID, op, params) })
	}
}

// refuse ends an operation that has not begun.
func (c *connection) refuse(ctx context.Context, id []byte, refused gqlerror.List) {
	payload, err := json.Marshal(refused)
	if err != nil {
		c.close(ctx, codeInternal, "Internal error")
		return
	}
	c.send(ctx, frame(typeError, id, payload))
}

var (
	errTaken    = errors.New("graphqlws: the id is taken")
	errTooMany  = errors.New("graphqlws: too many operations")
	errFinished = errors.New("graphqlws: the operation is over")
)

func (c *connection) add(id string, op *running) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.operations[id] != nil:
		return errTaken
	case len(c.operations) >= c.limits.Operations:
		return errTooMany
	}
	c.operations[id] = op
	return nil
}

// operate runs an operation to its end.
func (c *connection) operate(ctx context.Context, id string, op *running, params *graphql.RawParams) {
	defer op.cancel()
	refused, err := c.transport.config.Run(ctx, c.exec, params, func(answer []byte) error { return c.next(ctx, id, op, answer) })
	if errors.Is(err, errSlow) {
		c.close(ctx, codeTryAgain, "Slow reader: come back with the last cursor")
		return
	}
	last := frame(typeComplete, op.id, nil)
	if refused != nil {
		payload, encoding := json.Marshal(refused)
		if encoding != nil {
			c.close(ctx, codeInternal, "Internal error")
			return
		}
		last = frame(typeError, op.id, payload)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.operations[id] == op {
		// The id is free before the client can know that the operation is over.
		delete(c.operations, id)
		if err == nil {
			c.out.force(text(last))
		}
	}
	c.leaveWhenIdle()
}

// next sends one answer, unless the client has completed the operation. Of one that
// takes all the room there is for messages that wait, it returns when that is written,
// so that what an operation holds is known to whoever runs it.
func (c *connection) next(ctx context.Context, id string, op *running, answer []byte) error {
	next := text(frame(typeNext, op.id, answer))
	if len(next.data) > c.limits.QueuedBytes {
		next.left = make(chan struct{})
	}
	err := await(ctx, c.limits.WriteTimeout, func() (<-chan struct{}, error) {
		// Under the lock: nobody may get this once the id is another operation's.
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.operations[id] != op {
			return nil, errFinished
		}
		return c.out.tryPut(next)
	})
	if err == nil && next.left != nil {
		<-next.left // within the time-out of a write
	}
	return err
}

// complete ends an operation as its client asks. One that is over already may cross
// with its end.
func (c *connection) complete(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if op := c.operations[id]; op != nil {
		op.cancel()
		delete(c.operations, id)
	}
	c.leaveWhenIdle()
}

// alive is how many operations live on the connection.
func (c *connection) alive() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.operations)
}
