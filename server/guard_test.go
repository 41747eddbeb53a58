package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/services/access"
)

// slowAuth knows tokens that begin with "good", takes its time, and counts.
type slowAuth struct {
	stubAuth
	takes       time.Duration
	inside, max atomic.Int64
	looked      atomic.Int64
}

func (a *slowAuth) Authenticate(_ context.Context, secret string) (*access.Caller, error) {
	a.looked.Add(1)
	inside := a.inside.Add(1)
	defer a.inside.Add(-1)
	for most := a.max.Load(); inside > most && !a.max.CompareAndSwap(most, inside); most = a.max.Load() {
	}
	<-time.After(a.takes)
	if strings.HasPrefix(secret, "good") {
		return &access.Caller{Name: secret}, nil
	}
	return nil, &fleet.Error{Code: fleet.Unauthenticated, Reason: "TOKEN_INVALID", Message: "no such token"}
}

func from(t *testing.T, address string) context.Context {
	t.Helper()
	return Proxies{}.withAddress(t.Context(), &http.Request{RemoteAddr: address})
}

// TestNewcomersAreLetInBesideWhoGuesses has 900 guesses a second from the address of a
// newcomer.
func TestNewcomersAreLetInBesideWhoGuesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		auth := &slowAuth{takes: 2 * time.Millisecond}
		g, err := newGuard(auth, DefaultRate(), time.Now)
		require.NoError(t, err)
		var guesses sync.WaitGroup
		for range 9000 {
			guesses.Go(func() {
				_, err := g.Authenticate(from(t, "192.0.2.1:9"), "bad")
				require.Error(t, err)
			})
			time.Sleep(time.Second / 900) //nolint:forbidigo // the bubble's time, which passes at once
		}
		for i := range 20 {
			began := time.Now()
			_, err := g.Authenticate(from(t, "192.0.2.1:10"), "good"+strings.Repeat("x", i))
			require.NoError(t, err)
			require.Less(t, time.Since(began), time.Second)
		}
		guesses.Wait()
		require.LessOrEqual(t, auth.max.Load(), int64(doubtedAtOnce+1), "and a database that is asked by few")
		require.Empty(t, g.doubted.of)
	})
}

// TestMoreGuessesThanThereIsTimeForAreRefused has them come at once.
func TestMoreGuessesThanThereIsTimeForAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		auth := &slowAuth{takes: time.Second}
		g, err := newGuard(auth, Rate{Failures: 0.01}, time.Now)
		require.NoError(t, err)
		_, err = g.Authenticate(from(t, "192.0.2.1:9"), "bad")
		require.Error(t, err)
		_, err = g.Authenticate(from(t, "192.0.2.2:9"), "good")
		require.NoError(t, err)
		auth.looked.Store(0)
		var refused atomic.Int64
		var guesses sync.WaitGroup
		for range 1000 {
			guesses.Go(func() {
				_, err := g.Authenticate(from(t, "192.0.2.1:9"), "bad")
				if known, _ := fleet.AsError(err); known.Code == fleet.ResourceExhausted {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		require.EqualValues(t, 1000-doubtedAtOnce-doubtedWaiting, refused.Load(), "who finds the line full goes at once")
		for address, secret := range map[string]string{"192.0.2.1:9": "good", "192.0.2.3:9": "good as well"} {
			began := time.Now()
			_, err := g.Authenticate(from(t, address), secret)
			require.NoError(t, err)
			require.Equal(t, time.Second, time.Since(began), "who was known, and who comes from elsewhere, does not wait")
		}
		guesses.Wait()
		require.LessOrEqual(t, auth.looked.Load(), int64(doubtedAtOnce*(doubtedPatient/time.Second+1)+2))
		require.Empty(t, g.doubted.of)
	})
}

func TestAClientBehindTrustedProxiesIsTheLastThatNoneOfThemIs(t *testing.T) {
	t.Parallel()
	proxies, err := ParseProxies([]string{"10.1.0.0/16", "192.0.2.7", "2001:db8::/32"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"no proxy":                            {"198.51.100.1:9", []string{"203.0.113.1"}, "198.51.100.1:9"},
		"a proxy that says nothing":           {"10.1.2.3:9", nil, "10.1.2.3:9"},
		"a client":                            {"10.1.2.3:9", []string{"203.0.113.1"}, "203.0.113.1"},
		"a client that makes up another":      {"10.1.2.3:9", []string{"203.0.113.9, 203.0.113.1"}, "203.0.113.1"},
		"a client through two proxies":        {"192.0.2.7:9", []string{"203.0.113.9, 203.0.113.1, 10.1.0.9"}, "203.0.113.1"},
		"the same in two lines":               {"192.0.2.7:9", []string{"203.0.113.9, 203.0.113.1", "10.1.0.9"}, "203.0.113.1"},
		"with a port":                         {"10.1.2.3:9", []string{"203.0.113.1:77"}, "203.0.113.1"},
		"of IPv6":                             {"[2001:db8::1]:9", []string{"[2001:dead::1]:77"}, "2001:dead::1"},
		"of IPv6 without brackets":            {"10.1.2.3:9", []string{"2001:dead::1"}, "2001:dead::1"},
		"IPv4 in the clothes of IPv6":         {"[::ffff:10.1.2.3]:9", []string{"::ffff:203.0.113.1"}, "203.0.113.1"},
		"what is no address":                  {"10.1.2.3:9", []string{"unknown"}, "10.1.2.3:9"},
		"what is no address behind a proxy":   {"10.1.2.3:9", []string{"203.0.113.1, x, 10.1.0.9"}, "10.1.0.9"},
		"proxies only":                        {"10.1.2.3:9", []string{"10.1.0.8, 10.1.0.9"}, "10.1.0.8"},
		"an address beside a trusted network": {"10.2.0.1:9", []string{"203.0.113.1"}, "10.2.0.1:9"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		require.Equal(t, c.want, proxies.client(r), name)
		require.Equal(t, c.remote, Proxies(nil).client(r), "nobody is trusted unless named")
	}
	for _, text := range []string{"", "*", "10.0.0.0/33", "example.com", "10.0.0.1:80", "::ffff:10.0.0.0/104"} {
		_, err := ParseProxies([]string{text})
		require.Error(t, err, text)
	}
}
