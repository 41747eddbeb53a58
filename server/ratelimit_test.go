package server

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/services/access"
)

func TestALimitIsRefilledWithTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l, err := newRateLimiter(Rate{Operations: 10, Burst: 3}, func() time.Time { return now })
	require.NoError(t, err)
	one, two := &access.Caller{TokenID: "token_1"}, &access.Caller{TokenID: "token_2"}
	for range 3 {
		require.Nil(t, l.allow(one))
	}
	refused := l.allow(one)
	require.NotNil(t, refused)
	require.Equal(t, "RATE_LIMITED", refused.Reason)
	require.Nil(t, l.allow(two))
	header := http.Header{}
	setRetryAfter(header, refused)
	require.Equal(t, "1", header.Get("Retry-After"), "a part of a second is a whole one")
	now = now.Add(101 * time.Millisecond)
	require.Nil(t, l.allow(one))
	require.NotNil(t, l.allow(one), "a refused operation is not paid for, nor saved up")
	now = now.Add(time.Hour)
	for range 3 {
		require.Nil(t, l.allow(one))
	}
	require.NotNil(t, l.allow(one))
}

func TestNoLimit(t *testing.T) {
	t.Parallel()
	l, err := newRateLimiter(Rate{}, time.Now)
	require.NoError(t, err)
	for range 100_000 {
		require.Nil(t, l.allow(&access.Caller{TokenID: "token_1"}))
	}
}

func TestLimitsAreBoundedInMemoryAndExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	b, err := newBuckets(1, 100, func() time.Time { return now })
	require.NoError(t, err)
	for i := range 2 * maxBuckets {
		b.take(strconv.Itoa(i))
	}
	require.Equal(t, maxBuckets, b.of.Len())
	var all sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for range 8 {
		all.Go(func() {
			for range 100 {
				if b.take("one") == 0 {
					mu.Lock()
					allowed++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, 100, allowed)
}

func TestAClientIsItsAddressOrItsNetwork(t *testing.T) {
	t.Parallel()
	for remote, client := range map[string]string{
		"192.0.2.1:99":               "192.0.2.1",
		"[::ffff:192.0.2.1]:99":      "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:99":  "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:100": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1":           "fe80::/64",
		"@":                          "",
	} {
		require.Equal(t, client, limitedAddress(Proxies{}.withAddress(t.Context(), &http.Request{RemoteAddr: remote})), remote)
	}
	require.Empty(t, limitedAddress(t.Context()))
}
