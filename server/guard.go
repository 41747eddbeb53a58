package server

import (
	"context"
	"crypto/sha256"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"fleetgraph/fleet"
	"fleetgraph/services/access"
)

// How tokens are looked up for an address that many failures came from lately. It
// takes about a millisecond: a few at a time are more than one that guesses can send,
// and leave the database to others.
const (
	doubtedAtOnce  = 4
	doubtedWaiting = 100
	doubtedPatient = 5 * time.Second
)

// guard bounds what failed authentications cost. Nobody is refused for what others do
// at the same address, which may be that of a proxy: from one with too many failures, a
// token that was not good when it last came waits for its turn to be looked up.
type guard struct {
	authenticator
	failures *buckets
	good     *lru.Cache[[sha256.Size]byte, struct{}] // hashes of tokens
	doubted  *turns
}

func newGuard(auth authenticator, r Rate, now func() time.Time) (*guard, error) {
	failures, err := newBuckets(r.Failures, int(r.Failures*failuresBurst), now)
	if err != nil {
		return nil, err
	}
	good, err := lru.New[[sha256.Size]byte, struct{}](maxBuckets)
	return &guard{auth, failures, good, newTurns(doubtedAtOnce, doubtedWaiting, doubtedPatient)}, err
}

// Authenticate is the authenticator's, in its turn.
func (g *guard) Authenticate(ctx context.Context, secret string) (*access.Caller, error) {
	hash, address := sha256.Sum256([]byte(secret)), limitedAddress(ctx)
	if _, good := g.good.Get(hash); !good && g.failures.wait(address) > 0 {
		done, inTime := g.doubted.take(ctx, address)
		if !inTime {
			return nil, tooMany(comeBack, "too many tokens that are not known from one address; try again in "+comeBack.String(), map[string]any{})
		}
		defer done()
	}
	caller, err := g.authenticator.Authenticate(ctx, secret)
	switch refused, ok := fleet.AsError(err); {
	case err == nil:
		g.good.Add(hash, struct{}{})
	case ok && refused.Code == fleet.Unauthenticated:
		g.good.Remove(hash)
		g.failures.take(address)
	}
	return caller, err
}
