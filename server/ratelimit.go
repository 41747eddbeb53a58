package server

import (
	"math"
	"net/http"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"fleetgraph/fleet"
	"fleetgraph/services/access"
)

// Rate is what callers may ask of one server process. Zero means no bound.
type Rate struct {
	Operations float64 // of one token, a second
	Burst      int     // of one token, at once
	Failures   float64 // failed authentications of one client address, a second, before its tokens wait for their turn; ten times that at once
}

// DefaultRate is far above what people and agents ask for, and about what a process
// on two cores can answer.
func DefaultRate() Rate { return Rate{Operations: 100, Burst: 500, Failures: 10} }

const (
	// maxBuckets bounds the keys of a limit: each takes some 200 bytes.
	maxBuckets = 10_000
	// failuresBurst is how many seconds' worth of failures may come at once.
	failuresBurst = 10
)

// buckets is a limit for each of many keys. Where there are too many keys, the one
// unused for longest is forgotten, and begins afresh.
type buckets struct {
	limit rate.Limit
	burst int
	now   func() time.Time
	of    *lru.Cache[string, *rate.Limiter]
}

// newBuckets returns a limit of events a second and burst at once; nil, which never
// refuses, where perSecond is zero.
func newBuckets(perSecond float64, burst int, now func() time.Time) (*buckets, error) {
	if perSecond <= 0 {
		return nil, nil //nolint:nilnil // no limit is no fault
	}
	of, err := lru.New[string, *rate.Limiter](maxBuckets)
	return &buckets{limit: rate.Limit(perSecond), burst: max(burst, 1), now: now, of: of}, err
}

// take counts an event of key, unless that is over the limit: then it returns how long
// it is until the next one is not.
func (b *buckets) take(key string) time.Duration { return b.next(key, (*rate.Limiter).AllowN) }

// wait is how long it is until the next event of key is within the limit.
func (b *buckets) wait(key string) time.Duration {
	return b.next(key, func(l *rate.Limiter, now time.Time, n int) bool { return l.TokensAt(now) >= float64(n) })
}

func (b *buckets) next(key string, allowed func(*rate.Limiter, time.Time, int) bool) time.Duration {
	if b == nil {
		return 0
	}
	limiter, ok := b.of.Get(key)
	if !ok {
		limiter = rate.NewLimiter(b.limit, b.burst)
		if first, found, _ := b.of.PeekOrAdd(key, limiter); found {
			limiter = first
		}
	}
	now := b.now()
	if allowed(limiter, now, 1) {
		return 0
	}
	missing := max(1-limiter.TokensAt(now), 0)
	return time.Duration(math.Ceil(missing/float64(b.limit)*1000)+1) * time.Millisecond
}

// rateLimiter bounds the operations of a caller, by whatever transport they come.
type rateLimiter struct {
	rate    Rate
	buckets *buckets
}

func newRateLimiter(r Rate, now func() time.Time) (*rateLimiter, error) {
	of, err := newBuckets(r.Operations, r.Burst, now)
	return &rateLimiter{rate: r, buckets: of}, err
}

// allow counts an operation of the caller, and returns why it is not to be run: nil,
// or RESOURCE_EXHAUSTED, reason RATE_LIMITED, whose details say when to try again.
func (l *rateLimiter) allow(c *access.Caller) *fleet.Error {
	wait := l.buckets.take(c.TokenID)
	if wait == 0 {
		return nil
	}
	return tooMany(wait, "too many operations with one token; try again in "+wait.String(),
		map[string]any{"operationsPerSecond": l.rate.Operations, "burst": l.rate.Burst})
}

// limited lets a caller's request through while it is within the limit.
func limited(l *rateLimiter, p presenter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if caller, ok := access.From(r.Context()); ok {
			if refused := l.allow(caller); refused != nil {
				p.refuse(w, r, refused)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// retryAfter is the key of a refusal's details that says when to try again.
const retryAfter = "retryAfter"

func tooMany(wait time.Duration, message string, details map[string]any) *fleet.Error {
	details[retryAfter] = fleet.Duration(wait)
	return &fleet.Error{Code: fleet.ResourceExhausted, Reason: "RATE_LIMITED", Message: message, Details: details}
}

// setRetryAfter says in a header, in whole seconds, what the details of a refusal say.
func setRetryAfter(header http.Header, refused *fleet.Error) {
	if wait, ok := refused.Details[retryAfter].(fleet.Duration); ok {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(time.Duration(wait).Seconds()))))
	}
}
