// Package openid verifies the bearer tokens of OpenID Connect issuers: signature by
// the issuer's published keys, issuer, audience and time. It tells a token that is
// refused from an issuer that cannot be asked, and asks an issuer no more often than
// its limits say, whatever tokens strangers present.
package openid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/sync/singleflight"
)

const (
	// Leeway is how far the clocks of the issuer and of this process may be apart.
	Leeway = 30 * time.Second
	// maxToken bounds a token, in bytes: the largest that issuers make carry some
	// hundreds of groups.
	maxToken = 16 << 10
	// refreshAfter is when an issuer's keys are fetched anew although all is well, so
	// that a key it has withdrawn is not trusted for much longer.
	refreshAfter = time.Hour
	// trustedFor is how long keys are used while the issuer cannot be asked.
	trustedFor = 24 * time.Hour
	// Discovery is tried at most once in discoverEvery.
	discoverEvery = 5 * time.Second
	// Keys are fetched at most once in keysEvery, and keysBurst times at once: a token
	// with a key that is not known causes a fetch, and anyone can make up such tokens.
	keysEvery = 10 * time.Second
	keysBurst = 3
)

// ErrExpired is a token whose time is over.
var ErrExpired = errors.New("the token has expired")

// RefusedError is a token that is not one of the issuer's for this audience.
type RefusedError struct{ Cause error }

func (e *RefusedError) Error() string { return "token refused: " + e.Cause.Error() }
func (e *RefusedError) Unwrap() error { return e.Cause }

// UnavailableError is an issuer that does not answer as it should, so that nothing
// can be said of a token.
type UnavailableError struct{ Cause error }

func (e *UnavailableError) Error() string { return "issuer unavailable: " + e.Cause.Error() }
func (e *UnavailableError) Unwrap() error { return e.Cause }

// Claims are what an issuer says about a bearer.
type Claims struct {
	Subject   string
	ExpiresAt time.Time
	Values    map[string]any // all claims, as JSON decodes them
}

// Issuer verifies the tokens of one issuer for one audience. It asks the issuer when
// the first token is presented, not before. It is safe for concurrent use.
type Issuer struct {
	url, audience   string
	now             func() time.Time
	discovery, keys *http.Client
	flight          singleflight.Group // one discovery at a time

	mu  sync.Mutex
	set oidc.KeySet // nil until discovered
	at  time.Time   // when set was discovered
}

// New returns the issuer of a URL, with now as its clock.
func New(url, audience string, now func() time.Time) *Issuer {
	return &Issuer{
		url: url, audience: audience, now: now,
		discovery: newClient(discoverEvery, 1, now), keys: newClient(keysEvery, keysBurst, now),
	}
}

// URL is the issuer's, as its tokens have it.
func (i *Issuer) URL() string { return i.url }

// IssuerOf returns what a token says of its issuer, unverified; ok is false for what
// is no signed token of an algorithm that is accepted.
func IssuerOf(token string) (url string, ok bool) {
	if len(token) > maxToken {
		return "", false
	}
	parsed, err := jwt.ParseSigned(token, algorithms())
	if err != nil {
		return "", false
	}
	var claims jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil {
		return "", false
	}
	return claims.Issuer, claims.Issuer != ""
}

// algorithms are those that are accepted: each has a private key that only the
// issuer holds.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// Verify returns the claims of a token: ErrExpired, a RefusedError or an
// UnavailableError where there are none.
func (i *Issuer) Verify(ctx context.Context, token string) (*Claims, error) {
	if len(token) > maxToken {
		return nil, &RefusedError{errors.New("the token is too large")}
	}
	set, err := i.keySet(ctx)
	if err != nil {
		return nil, err
	}
	config := &oidc.Config{ClientID: i.audience, Now: func() time.Time { return i.now().Add(-Leeway) }}
	for _, algorithm := range algorithms() {
		config.SupportedSigningAlgs = append(config.SupportedSigningAlgs, string(algorithm))
	}
	keys := &heard{set: set}
	verified, err := oidc.NewVerifier(i.url, keys, config).Verify(ctx, token)
	var (
		unavailable *UnavailableError
		expired     *oidc.TokenExpiredError
	)
	switch {
	case err == nil:
		return i.claims(verified)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(keys.err, &unavailable):
		return nil, unavailable
	case errors.As(err, &expired):
		return nil, ErrExpired
	default:
		return nil, &RefusedError{err}
	}
}

func (i *Issuer) claims(verified *oidc.IDToken) (*Claims, error) {
	out := &Claims{Subject: verified.Subject, ExpiresAt: verified.Expiry}
	if out.Subject == "" {
		return nil, &RefusedError{errors.New("the token has no subject")}
	}
	if err := verified.Claims(&out.Values); err != nil {
		return nil, &RefusedError{err}
	}
	// The library lets a token be five minutes ahead of its time.
	var begin struct {
		NotBefore *float64 `json:"nbf"`
	}
	if err := verified.Claims(&begin); err != nil {
		return nil, &RefusedError{err}
	}
	if begin.NotBefore != nil && float64(i.now().Add(Leeway).Unix()) < *begin.NotBefore {
		return nil, &RefusedError{errors.New("the token is not valid yet")}
	}
	return out, nil
}

// heard keeps the error of a key set, of which the verifier hands on the text only.
type heard struct {
	set oidc.KeySet
	err error
}

func (h *heard) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := h.set.VerifySignature(ctx, token)
	h.err = err
	return payload, err
}

// keySet returns the issuer's keys, which it discovers where they are not known. Keys
// that are due for a refresh are good for the call that notices.
func (i *Issuer) keySet(ctx context.Context) (oidc.KeySet, error) {
	i.mu.Lock()
	set, age := i.set, i.now().Sub(i.at)
	i.mu.Unlock()
	if set != nil && age < refreshAfter {
		return set, nil
	}
	found := i.flight.DoChan("", i.discover)
	if set != nil && age < trustedFor {
		return set, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-found:
		if result.Err != nil {
			return nil, result.Err
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.set, nil
	}
}

// discover asks the issuer where its keys are. It belongs to no call: several may wait
// for it, and what it finds outlives them. The clients bound how long it takes.
func (i *Issuer) discover() (any, error) {
	ctx := context.Background()
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.discovery), i.url)
	if err != nil {
		return nil, &UnavailableError{err}
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, &UnavailableError{err}
	}
	if err := CheckURL(document.Keys); err != nil {
		return nil, &UnavailableError{fmt.Errorf("jwks_uri: %w", err)}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.set, i.at = oidc.NewRemoteKeySet(oidc.ClientContext(ctx, i.keys), document.Keys), i.now()
	return nil, nil //nolint:nilnil // the result is in the issuer
}

// Text is a claim as texts: the one that it is, or those of a list. A name that is no
// claim is the path of one within objects, such as realm_access.roles.
func (c *Claims) Text(name string) []string { return texts(lookup(c.Values, name)) }
