// Package openidtest is an OpenID Connect issuer for tests: discovery, keys, and
// tokens signed with them, on a loopback listener.
package openidtest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
)

// Audience is what tokens are for unless they say otherwise.
const Audience = "fleetgraph"

// Provider is an issuer. It ends with its test.
type Provider struct {
	URL string
	// Discoveries and Fetches count what was asked of it.
	Discoveries, Fetches atomic.Int64

	address string
	mu      sync.Mutex
	server  *httptest.Server
	keys    []jose.JSONWebKey // private; the last one signs
}

// New starts an issuer.
func New(t *testing.T) *Provider {
	t.Helper()
	p := &Provider{}
	p.Rotate(t)
	p.Start(t)
	t.Cleanup(p.Stop)
	return p
}

// Down returns an issuer that listens only when it is started.
func Down(t *testing.T) *Provider {
	t.Helper()
	p := New(t)
	p.Stop()
	return p
}

// Start has the issuer listen, at the same address each time.
func (p *Provider) Start(t *testing.T) {
	t.Helper()
	address := p.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.Discoveries.Add(1)
		reply(w, map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.Fetches.Add(1)
		reply(w, jose.JSONWebKeySet{Keys: p.public()})
	})
	server := httptest.NewUnstartedServer(mux)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server, p.address, p.URL = server, listener.Addr().String(), server.URL
}

func reply(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

// Stop has the issuer listen no more.
func (p *Provider) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		p.server.Close()
		p.server = nil
	}
}

// Rotate replaces the issuer's keys by one new one.
func (p *Provider) Rotate(t *testing.T) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	id := "key-1"
	if len(p.keys) > 0 {
		var n int
		_, err := fmt.Sscanf(p.keys[0].KeyID, "key-%d", &n)
		require.NoError(t, err)
		id = fmt.Sprintf("key-%d", n+1)
	}
	p.keys = []jose.JSONWebKey{{Key: key, KeyID: id, Algorithm: "RS256", Use: "sig"}}
}

// Key is the private key that signs.
func (p *Provider) Key() jose.JSONWebKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1]
}

func (p *Provider) public() []jose.JSONWebKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]jose.JSONWebKey, len(p.keys))
	for i, key := range p.keys {
		out[i] = key.Public()
	}
	return out
}

// Token signs a token of a subject for an hour, another one each time, with claims over those that it would
// have; one that is nil is left out.
func (p *Provider) Token(t *testing.T, subject string, claims map[string]any) string {
	t.Helper()
	return Sign(t, jose.RS256, p.Key(), p.Claims(subject, claims))
}

// Claims are those of Token.
func (p *Provider) Claims(subject string, claims map[string]any) map[string]any {
	all := map[string]any{
		"iss": p.URL, "aud": Audience, "sub": subject, "jti": rand.Text(),
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range claims {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	return all
}

// Sign signs claims with a key.
func Sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	require.NoError(t, err)
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	require.NoError(t, err)
	return token
}
