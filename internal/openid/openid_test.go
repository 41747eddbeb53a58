package openid_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"fleetgraph/internal/openid"
	"fleetgraph/internal/openid/openidtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that a test moves.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) forward(d time.Duration) { c.ahead.Add(int64(d)) }

func setup(t *testing.T) (*openidtest.Provider, *openid.Issuer, *clock) {
	t.Helper()
	p, c := openidtest.New(t), &clock{}
	return p, openid.New(p.URL, openidtest.Audience, c.now), c
}

func TestClaimsOfAGoodToken(t *testing.T) {
	t.Parallel()
	p, issuer, _ := setup(t)
	require.Zero(t, p.Discoveries.Load(), "nothing is asked before there is a token")
	token := p.Token(t, "user-1", map[string]any{
		"groups": []any{"a", 7, "b"}, "email_verified": true, "realm_access": map[string]any{"roles": []string{"r"}},
		"https://example.com/roles": "x", "aud": []string{"other", openidtest.Audience},
	})
	url, ok := openid.IssuerOf(token)
	require.True(t, ok)
	require.Equal(t, p.URL, url)
	for range 3 {
		claims, err := issuer.Verify(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, "user-1", claims.Subject)
		require.WithinDuration(t, time.Now().Add(time.Hour), claims.ExpiresAt, time.Minute)
		for name, want := range map[string][]string{
			"groups": {"a", "b"}, "email_verified": {"true"}, "realm_access.roles": {"r"}, "https://example.com/roles": {"x"},
			"none": nil, "realm_access": nil, "realm_access.none": nil, "groups.a": nil, "": nil, ".": nil, "exp": nil,
		} {
			require.Equal(t, want, claims.Text(name), name)
		}
	}
	require.Equal(t, int64(1), p.Discoveries.Load())
	require.Equal(t, int64(1), p.Fetches.Load(), "keys are kept")
}

func TestEveryAsymmetricAlgorithmOfTheKeyIsAccepted(t *testing.T) {
	t.Parallel()
	p, issuer, _ := setup(t)
	for _, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.RS512, jose.PS256} {
		key := p.Key()
		_, err := issuer.Verify(t.Context(), openidtest.Sign(t, algorithm, jose.JSONWebKey{Key: key.Key, KeyID: key.KeyID}, p.Claims("u", nil)))
		require.NoError(t, err, algorithm)
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	p, issuer, _ := setup(t)
	other := openidtest.New(t)
	rsaKey, ok := p.Key().Key.(*rsa.PrivateKey)
	require.True(t, ok)
	der, err := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	require.NoError(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	part := func(v any) string {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	good := p.Token(t, "u", nil)
	pieces := strings.Split(good, ".")
	hs := func(secret []byte) string {
		return openidtest.Sign(t, jose.HS256, jose.JSONWebKey{Key: secret, KeyID: p.Key().KeyID}, p.Claims("u", nil))
	}
	for name, token := range map[string]string{
		"wrong audience":               p.Token(t, "u", map[string]any{"aud": "other"}),
		"no audience":                  p.Token(t, "u", map[string]any{"aud": nil}),
		"wrong issuer":                 p.Token(t, "u", map[string]any{"iss": other.URL}),
		"issuer with a slash":          p.Token(t, "u", map[string]any{"iss": p.URL + "/"}),
		"no subject":                   p.Token(t, "u", map[string]any{"sub": nil}),
		"not valid yet":                p.Token(t, "u", map[string]any{"nbf": time.Now().Add(openid.Leeway + 5*time.Second).Unix()}),
		"signed by another issuer":     openidtest.Sign(t, jose.RS256, other.Key(), p.Claims("u", nil)),
		"none":                         part(map[string]string{"alg": "none"}) + "." + part(p.Claims("u", nil)) + ".",
		"none in another case":         part(map[string]string{"alg": "nOnE"}) + "." + part(p.Claims("u", nil)) + ".",
		"no signature":                 pieces[0] + "." + pieces[1] + ".",
		"other claims":                 pieces[0] + "." + part(p.Claims("root", nil)) + "." + pieces[2],
		"HS256 with the public key":    hs(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"HS256 with the DER of it":     hs(der),
		"HS256 with the modulus":       hs(rsaKey.N.Bytes()),
		"another kind of key":          openidtest.Sign(t, jose.ES256, jose.JSONWebKey{Key: curve, KeyID: p.Key().KeyID}, p.Claims("u", nil)),
		"a key that the token brings":  embedded(t, curve, p.Claims("u", nil)),
		"not a token":                  "x",
		"nothing":                      "",
		"two parts":                    pieces[0] + "." + pieces[1],
		"claims that are no object":    pieces[0] + "." + part("x") + "." + pieces[2],
		"more than a token ever holds": p.Token(t, "u", map[string]any{"x": strings.Repeat("x", 20_000)}),
	} {
		_, err := issuer.Verify(t.Context(), token)
		var refused *openid.RefusedError
		require.ErrorAs(t, err, &refused, "%s: %v", name, err)
		if len(token) > 20 {
			require.NotContains(t, err.Error(), token[len(token)-20:], name)
		}
	}
	_, err = issuer.Verify(t.Context(), good)
	require.NoError(t, err)
	for _, no := range []string{hs(der), "x", "", good + "x" + strings.Repeat("x", 20_000), pieces[0] + "." + part(map[string]any{}) + "." + pieces[2]} {
		_, ok := openid.IssuerOf(no)
		require.False(t, ok)
	}
}

// embedded is a token whose header has the key that it is signed with.
func embedded(t *testing.T, key *ecdsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, &jose.SignerOptions{EmbedJWK: true})
	require.NoError(t, err)
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	signed, err := signer.Sign(payload)
	require.NoError(t, err)
	token, err := signed.CompactSerialize()
	require.NoError(t, err)
	return token
}

func TestATokenEndsWithItsTimeAndTheLeewayOfTheClocks(t *testing.T) {
	t.Parallel()
	p, issuer, clock := setup(t)
	token := p.Token(t, "u", map[string]any{"exp": time.Now().Add(time.Minute).Unix()})
	_, err := issuer.Verify(t.Context(), token)
	require.NoError(t, err)
	clock.forward(time.Minute + openid.Leeway - 5*time.Second)
	_, err = issuer.Verify(t.Context(), token)
	require.NoError(t, err)
	clock.forward(10 * time.Second)
	_, err = issuer.Verify(t.Context(), token)
	require.ErrorIs(t, err, openid.ErrExpired)
	_, err = issuer.Verify(t.Context(), p.Token(t, "u", map[string]any{"exp": nil}))
	require.ErrorIs(t, err, openid.ErrExpired, "a token without an end has none")
	clock.forward(-time.Hour)
	_, err = issuer.Verify(t.Context(), p.Token(t, "u", map[string]any{"nbf": time.Now().Add(-time.Hour).Unix()}))
	require.NoError(t, err)
}

func TestANewKeyIsFetchedWhenATokenNamesIt(t *testing.T) {
	t.Parallel()
	p, issuer, clock := setup(t)
	old := p.Token(t, "u", nil)
	_, err := issuer.Verify(t.Context(), old)
	require.NoError(t, err)
	p.Rotate(t)
	_, err = issuer.Verify(t.Context(), old)
	require.NoError(t, err, "nobody has asked for the new key yet")
	_, err = issuer.Verify(t.Context(), p.Token(t, "u", nil))
	require.NoError(t, err)
	require.Equal(t, int64(2), p.Fetches.Load())
	_, err = issuer.Verify(t.Context(), old)
	require.Error(t, err, "the issuer has withdrawn that key")

	// A key that is withdrawn while no token names another is trusted for an hour.
	current := p.Token(t, "u", map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()})
	p.Rotate(t)
	clock.forward(61 * time.Minute)
	require.Eventually(t, func() bool {
		_, err := issuer.Verify(t.Context(), current)
		return err != nil
	}, 10*time.Second, 10*time.Millisecond)
}

func TestUnknownKeysDoNotHammerTheIssuer(t *testing.T) {
	t.Parallel()
	p, issuer, clock := setup(t)
	good := p.Token(t, "u", nil)
	_, err := issuer.Verify(t.Context(), good)
	require.NoError(t, err)
	key := p.Key()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := range 50 {
				key := jose.JSONWebKey{Key: key.Key, KeyID: fmt.Sprint("made-up-", worker, "-", n)}
				_, err := issuer.Verify(t.Context(), openidtest.Sign(t, jose.RS256, key, p.Claims("u", nil)))
				var refused *openid.RefusedError
				if !errors.As(err, &refused) {
					t.Errorf("%v", err)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, p.Fetches.Load(), int64(3))
	_, err = issuer.Verify(t.Context(), good)
	require.NoError(t, err)
	p.Rotate(t)
	clock.forward(10 * time.Second)
	_, err = issuer.Verify(t.Context(), p.Token(t, "u", nil))
	require.NoError(t, err, "a rotation is noticed under fire")
	require.LessOrEqual(t, p.Fetches.Load(), int64(4))
}

func TestAnIssuerThatCannotBeAskedIsNoRefusal(t *testing.T) {
	t.Parallel()
	p, c := openidtest.Down(t), &clock{}
	issuer := openid.New(p.URL, openidtest.Audience, c.now)
	var unavailable *openid.UnavailableError
	for range 5 {
		_, err := issuer.Verify(t.Context(), p.Token(t, "u", nil))
		require.ErrorAs(t, err, &unavailable)
	}
	p.Start(t)
	_, err := issuer.Verify(t.Context(), p.Token(t, "u", nil))
	require.ErrorAs(t, err, &unavailable, "it is not asked again so soon")
	require.Zero(t, p.Discoveries.Load())
	c.forward(5 * time.Second)
	_, err = issuer.Verify(t.Context(), p.Token(t, "u", nil))
	require.NoError(t, err)

	// Its keys outlive it for a day.
	p.Stop()
	long := p.Token(t, "u", map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()})
	for range 3 {
		c.forward(7 * time.Hour)
		_, err = issuer.Verify(t.Context(), long)
		require.NoError(t, err)
	}
	c.forward(4 * time.Hour)
	_, err = issuer.Verify(t.Context(), long)
	require.ErrorAs(t, err, &unavailable)
	// And what they do not know, nobody can say.
	p.Start(t)
	c.forward(time.Minute)
	_, err = issuer.Verify(t.Context(), long)
	require.NoError(t, err)
	p.Stop()
	p.Rotate(t)
	_, err = issuer.Verify(t.Context(), p.Token(t, "u", nil))
	require.ErrorAs(t, err, &unavailable)
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	elsewhere := openidtest.New(t)
	for name, answer := range map[string]func(w http.ResponseWriter, self string){
		"an error": func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusInternalServerError) },
		"a page":   func(w http.ResponseWriter, _ string) { _, _ = w.Write([]byte("<html>")) },
		"a flood":  func(w http.ResponseWriter, _ string) { _, _ = w.Write([]byte(strings.Repeat(" ", 2<<20))) },
		"another name": func(w http.ResponseWriter, _ string) {
			_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, elsewhere.URL, elsewhere.URL+"/keys")
		},
		"no keys": func(w http.ResponseWriter, self string) { _, _ = fmt.Fprintf(w, `{"issuer":%q}`, self) },
		"keys in clear": func(w http.ResponseWriter, self string) {
			_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"http://192.0.2.1/keys"}`, self)
		},
		"a redirect": func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", elsewhere.URL+"/.well-known/openid-configuration")
			w.WriteHeader(http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var server *httptest.Server
			server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				answer(w, server.URL)
			}))
			t.Cleanup(server.Close)
			_, err := openid.New(server.URL, openidtest.Audience, time.Now).Verify(t.Context(), elsewhere.Token(t, "u", map[string]any{"iss": server.URL}))
			var unavailable *openid.UnavailableError
			require.ErrorAs(t, err, &unavailable, name)
		})
	}
}

func TestURLsOfIssuers(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"https://login.example.com", "https://login.example.com/realms/a/", "http://127.0.0.1:8", "http://[::1]:8/x", "http://localhost"} {
		require.NoError(t, openid.CheckURL(good), good)
	}
	for _, bad := range []string{"", "login.example.com", "http://login.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1", "ftp://localhost", "https://", "https://u:p@example.com", "https://example.com/#a", "http://localhost.example.com", "::"} {
		require.Error(t, openid.CheckURL(bad), bad)
	}
}

func FuzzIssuerOf(f *testing.F) {
	for _, seed := range []string{"", "..", "a.b.c", "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhIn0.c2ln", `{"payload":"eyJpc3MiOiJhIn0","signatures":[]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if url, ok := openid.IssuerOf(token); ok {
			require.NotEmpty(t, url)
		}
	})
}
