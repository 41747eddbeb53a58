package server

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/fleet"
	"fleetgraph/internal/tally"
	"fleetgraph/services/access"
)

const (
	// fieldBytes is what a field counts for beside its text: its name, and a value that
	// is no text.
	fieldBytes = 16
	// freeAnswer is how large an answer may be without counting against its caller's
	// share, which is taken in pieces of that size.
	freeAnswer = 64 << 10
)

// answers bounds the bytes of answers: of each, and of all that one caller has at one
// time, from when they are made until their readers have taken them. gqlgen builds an
// answer as a whole; so its bytes are counted as its fields are resolved, and the rest
// of one that is too large is not resolved at all.
type answers struct {
	present presenter
	most    int64        // of one
	shares  *tally.Tally // of all of one caller, by the id of its token
}

func newAnswers(p presenter, most, share int64) *answers {
	return &answers{present: p, most: most, shares: tally.New(share)}
}

// make runs an operation, once: nil where ctx has ended before the answer, which is
// gqlgen's way to say so. release is called when the answer has been taken.
func (a *answers) make(ctx context.Context, exec graphql.GraphExecutor, op *graphql.OperationContext) (_ *graphql.Response, release func()) {
	m := &meter{answers: a, holding: a.of(ctx), changes: op.Operation.Operation == ast.Mutation}
	unmeasured := op.ResolverMiddleware
	op.ResolverMiddleware = func(ctx context.Context, next graphql.Resolver) (any, error) {
		return unmeasured(ctx, func(ctx context.Context) (any, error) { return m.resolve(ctx, next) })
	}
	defer func() { op.ResolverMiddleware = unmeasured }()
	respond, ctx := exec.DispatchOperation(ctx, op)
	response := respond(ctx)
	if response != nil {
		m.settle(int64(len(response.Data)))
	}
	if refused := m.refused.Load(); refused != nil && response != nil {
		// Not without data, as what was refused before its execution.
		response = &graphql.Response{Data: json.RawMessage("null"), Errors: gqlerror.List{a.present.present(ctx, refused)}}
	}
	return response, m.holding.release
}

// hold counts an answer that waits for its reader until release is called.
func (a *answers) hold(ctx context.Context, bytes int) (release func(), refused *fleet.Error) {
	h := a.of(ctx)
	if !h.upTo(int64(bytes)) {
		return nil, a.tooMany()
	}
	return h.release, nil
}

func (a *answers) of(ctx context.Context) *holding {
	h := &holding{shares: a.shares}
	if caller, ok := access.From(ctx); ok {
		h.key = caller.TokenID
	}
	return h
}

func (a *answers) tooLarge() *fleet.Error {
	return exceeded("ANSWER_TOO_LARGE", "bytes of the answer", int(a.most), 0)
}

func (a *answers) tooMany() *fleet.Error {
	return exceeded("TOO_MANY_ANSWERS", "bytes of all answers of one token that are made or wait for their readers", int(a.shares.Most()), 0)
}

// holding is what one answer takes of its caller's share.
type holding struct {
	shares *tally.Tally
	key    string
	mu     sync.Mutex
	bytes  int64
	over   bool // released, or refused
}

// upTo makes the holding cover so many bytes, in whole pieces; false where the share
// does not have them. The first piece is free.
func (h *holding) upTo(bytes int64) bool {
	wanted := max(bytes-1, 0) / freeAnswer * freeAnswer
	h.mu.Lock()
	defer h.mu.Unlock()
	switch more := wanted - h.bytes; {
	case h.over:
		return false
	case more < 0:
		h.shares.Give(h.key, -more)
	case more > 0 && !h.shares.Take(h.key, more):
		return false
	}
	h.bytes = wanted
	return true
}

func (h *holding) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes > 0 {
		h.shares.Give(h.key, h.bytes)
	}
	h.bytes, h.over = 0, true
}

// meter counts the bytes of one answer while it is made. Fields are resolved by many
// goroutines.
type meter struct {
	answers *answers
	holding *holding
	changes bool // what is a mutation is carried out, whatever becomes of its answer
	used    atomic.Int64
	refused atomic.Pointer[fleet.Error]
}

// resolve is next's value, as long as there is room for it. Behind that, null stands
// for everything: what comes of it is answered to nobody, and an error for each field
// would be an answer that is too large again.
func (m *meter) resolve(ctx context.Context, next graphql.Resolver) (any, error) {
	if m.refused.Load() != nil && !m.changes {
		return graphql.Null, nil
	}
	value, err := next(ctx)
	if m.refused.Load() != nil {
		return graphql.Null, nil //nolint:nilerr // see above
	}
	size := bytesOf(value)
	if used := m.used.Add(size); used > m.answers.most || used/freeAnswer != (used-size)/freeAnswer {
		m.grow(used)
	}
	return value, err
}

// grow accounts for an answer of at least so many bytes.
func (m *meter) grow(used int64) {
	switch {
	case used > m.answers.most:
		m.refuse(m.answers.tooLarge())
	case !m.holding.upTo(used):
		m.refuse(m.answers.tooMany())
	}
}

// settle accounts for the answer as it is, whose length was an estimate before.
func (m *meter) settle(bytes int64) {
	if m.refused.Load() == nil {
		m.grow(bytes)
	}
	if m.refused.Load() != nil {
		m.holding.upTo(0)
	}
}

func (m *meter) refuse(err *fleet.Error) { m.refused.CompareAndSwap(nil, err) }

// bytesOf is about what a field's own value takes in the answer: of an object its
// fields come on their own.
func bytesOf(value any) int64 {
	n := fieldBytes
	switch value := value.(type) {
	case string:
		n += len(value)
	case *string:
		if value != nil {
			n += len(*value)
		}
	case json.RawMessage:
		n += len(value)
	case []string:
		for _, text := range value {
			n += len(text) + fieldBytes
		}
	}
	return int64(n)
}
