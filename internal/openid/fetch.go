package openid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	fetchTimeout = 10 * time.Second
	// maxDocument bounds what an issuer answers, in bytes.
	maxDocument = 1 << 20
)

// errAskedLately refuses a fetch so soon after others.
var errAskedLately = errors.New("the issuer was asked a moment ago")

// CheckURL returns an error unless a URL is https, or http on this machine.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return errors.New("not an absolute URL")
	case u.User != nil || u.Fragment != "":
		return errors.New("a URL without user and fragment is required")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	default:
		return errors.New("https is required, but for a loopback address")
	}
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// newClient fetches documents of an issuer, at most burst at once and then one in a
// while.
func newClient(every time.Duration, burst int, now func() time.Time) *http.Client {
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	transport.DisableKeepAlives = true // fetches are hours apart
	return &http.Client{
		Timeout:   fetchTimeout,
		Transport: &fetcher{base: transport, limit: rate.NewLimiter(rate.Every(every), burst), now: now},
		// An issuer answers for itself: what it redirects to is refused as no answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetcher gets JSON documents whole, within its limits. Every failure is an
// UnavailableError, which is given again to whoever asks too soon after.
type fetcher struct {
	base  http.RoundTripper
	limit *rate.Limiter
	now   func() time.Time

	mu   sync.Mutex
	last error // of the last fetch
}

func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	if !f.limit.AllowN(f.now(), 1) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.last != nil {
			return nil, f.last
		}
		return nil, errAskedLately
	}
	response, err := f.fetch(r)
	if err != nil {
		err = &UnavailableError{err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = err
	return response, err
}

func (f *fetcher) fetch(r *http.Request) (*http.Response, error) {
	response, err := f.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s", r.URL.Redacted(), response.Status)
	case len(body) > maxDocument:
		return nil, fmt.Errorf("%s answers more than %d bytes", r.URL.Redacted(), maxDocument)
	case !json.Valid(body):
		return nil, fmt.Errorf("%s answers something other than JSON", r.URL.Redacted())
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
