package server

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"fleetgraph/fleet"
	"fleetgraph/services/access"
)

// guard bounds failed authentications by the client's address, before anything is
// looked up: who guesses tokens does not load the database. A token that was good when
// it was last presented is looked up always, so that nobody is locked out by a
// neighbour, or by others behind the same proxy: what headers say of a client's
// address is the client's own text and does not count.
type guard struct {
	authenticator
	failures *buckets
	good     *lru.Cache[[sha256.Size]byte, struct{}] // hashes of tokens
}

func newGuard(auth authenticator, r Rate, now func() time.Time) (*guard, error) {
	failures, err := newBuckets(r.Failures, int(r.Failures*failuresBurst), now)
	if err != nil {
		return nil, err
	}
	good, err := lru.New[[sha256.Size]byte, struct{}](maxBuckets)
	return &guard{auth, failures, good}, err
}

// Authenticate is the authenticator's, within the limit.
func (g *guard) Authenticate(ctx context.Context, secret string) (*access.Caller, error) {
	if g.failures == nil {
		return g.authenticator.Authenticate(ctx, secret)
	}
	hash, address := sha256.Sum256([]byte(secret)), limitedAddress(ctx)
	if _, good := g.good.Get(hash); !good {
		if wait := g.failures.wait(address); wait > 0 {
			return nil, tooMany(wait, "too many failed authentications from one address; try again in "+wait.String(), map[string]any{})
		}
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

type addressKey struct{}

// withAddress keeps the address that a request comes from in its context.
func withAddress(ctx context.Context, r *http.Request) context.Context {
	return context.WithValue(ctx, addressKey{}, r.RemoteAddr)
}

// remoteAddress is the address and port that the request of ctx comes from, "" where
// there is none.
func remoteAddress(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}

// limitedAddress is what counts as one client: an IPv4 address, or the 64 bits of an
// IPv6 address that a network is given.
func limitedAddress(ctx context.Context) string {
	client, err := netip.ParseAddrPort(remoteAddress(ctx))
	if err != nil {
		return ""
	}
	address := client.Addr().Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}
