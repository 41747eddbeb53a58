package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/Khan/genqlient/graphql"

	"fleetgraph/fleet"
)

const (
	maxRetries  = 2
	retryDelay  = 250 * time.Millisecond // before the first retry; four times that before the second
	maxHeldUp   = time.Minute            // in all, by a server that wants fewer operations a second
	maxResponse = 256 << 20              // bytes
)

// connection sends operations over HTTP. An operation that did not get through,
// or that the server could not carry out just then, is sent again as it was:
// mutations carry an idempotency key, so they take effect once.
type connection struct {
	endpoint string
	token    string
	timeout  time.Duration // of one attempt
	delay    time.Duration
	http     *http.Client
}

func newConnection(endpoint, token string, timeout time.Duration) *connection {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &connection{
		endpoint: endpoint,
		token:    token,
		timeout:  timeout,
		delay:    retryDelay,
		http: &http.Client{
			Transport: transport,
			// A redirect would turn the POST into a GET and could carry the token elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// MakeRequest implements graphql.Client. Errors are *fleet.Error as the server
// gave them, or *unreachableError.
func (c *connection) MakeRequest(ctx context.Context, req *graphql.Request, resp *graphql.Response) error {
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	delay, held := c.delay, time.Duration(0)
	for attempt := 0; ; {
		err := c.send(ctx, body, resp)
		wait, limited := heldUp(err)
		switch {
		case err == nil:
			return nil
		case limited && held+wait <= maxHeldUp:
			held += wait
		case attempt == maxRetries || !worthRepeating(err, attempt):
			return err
		default:
			wait = delay
			attempt, delay = attempt+1, delay*4
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// heldUp tells that the server refused a call since there were too many, and how long
// it wants to be left alone.
func heldUp(err error) (wait time.Duration, limited bool) {
	refused, ok := fleet.AsError(err)
	if !ok || refused.Reason != "RATE_LIMITED" {
		return 0, false
	}
	text, _ := refused.Details["retryAfter"].(string)
	wait, err = fleet.ParseDuration(text)
	return max(wait, time.Millisecond), err == nil
}

// worthRepeating tells whether the same call may succeed in a moment. A server
// that refuses connections from the start is not awaited; one that does so after
// a connection broke is probably starting again.
func worthRepeating(err error, attempt int) bool {
	var unreachable *unreachableError
	if errors.As(err, &unreachable) {
		return unreachable.dropped || attempt > 0
	}
	return isUnreachable(err)
}

func (c *connection) send(ctx context.Context, body []byte, resp *graphql.Response) error {
	attempt, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(attempt, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/graphql-response+json, application/json;q=0.9")
	request.Header.Set("User-Agent", "fleetctl")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err != nil {
		return c.unreachable(ctx, err)
	}
	if len(data) > maxResponse {
		return &fleet.Error{Code: fleet.ResourceExhausted, Reason: "RESPONSE_TOO_LARGE", Message: "the server's answer is too large"}
	}
	return c.read(response, data, resp)
}

// answer is the GraphQL response with the extensions that errors carry here.
type answer struct {
	Data   json.RawMessage `json:"data"`
	Errors []struct {
		Message    string `json:"message"`
		Extensions struct {
			Code    fleet.Code     `json:"code"`
			Reason  string         `json:"reason"`
			Field   string         `json:"field"`
			Details map[string]any `json:"details"`
		} `json:"extensions"`
	} `json:"errors"`
}

func (c *connection) read(response *http.Response, data []byte, resp *graphql.Response) error {
	var a answer
	if !isJSON(response) || json.Unmarshal(data, &a) != nil || a.Data == nil && len(a.Errors) == 0 {
		return c.notGraphQL(response)
	}
	if len(a.Errors) > 0 {
		e := a.Errors[0]
		message := e.Message
		if more := len(a.Errors) - 1; more > 0 {
			message += fmt.Sprintf(" (and %d more errors)", more)
		}
		code := e.Extensions.Code
		if code == "" {
			code = fleet.Internal
		}
		return &fleet.Error{
			Code: code, Reason: e.Extensions.Reason, Field: e.Extensions.Field,
			Message: message, Details: e.Extensions.Details,
		}
	}
	if err := json.Unmarshal(a.Data, resp.Data); err != nil {
		return &fleet.Error{Code: fleet.Internal, Reason: "RESPONSE_INVALID", Message: fmt.Sprintf("the server's answer does not have the expected form: %v", err)}
	}
	return nil
}

func isJSON(response *http.Response) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || kind == "application/graphql-response+json")
}

// notGraphQL is what stands between the command line and the server answering
// instead: a proxy, or another server.
func (c *connection) notGraphQL(response *http.Response) error {
	switch response.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &unreachableError{endpoint: c.endpoint, dropped: true, err: errors.New(response.Status)}
	case http.StatusUnauthorized:
		return &fleet.Error{Code: fleet.Unauthenticated, Reason: "HTTP_401", Message: "the server wants a valid token"}
	case http.StatusForbidden:
		return &fleet.Error{Code: fleet.PermissionDenied, Reason: "HTTP_403", Message: "the server refused the call"}
	}
	return &fleet.Error{
		Code: fleet.FailedPrecondition, Reason: "NOT_GRAPHQL",
		Message: fmt.Sprintf("%s answered %s and no GraphQL: is the URL right?", c.endpoint, response.Status),
	}
}

// unreachable tells what kept a call from being answered. A connection that broke
// is told apart from one that was never made or took too long.
func (c *connection) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return &unreachableError{endpoint: c.endpoint, err: fmt.Errorf("no answer within %s", c.timeout)}
	case errors.As(err, &dns):
		return &unreachableError{endpoint: c.endpoint, err: errors.New(dns.Error())}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &unreachableError{endpoint: c.endpoint, err: errors.New("connection refused")}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		strings.Contains(err.Error(), "server closed"):
		return &unreachableError{endpoint: c.endpoint, dropped: true, err: errors.New("the connection broke")}
	}
	return &unreachableError{endpoint: c.endpoint, err: unwrapURL(err)}
}

// unwrapURL takes off the operation and the URL that net/http puts before an
// error: the message names the endpoint already.
func unwrapURL(err error) error {
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "Post ") {
		return inner
	}
	return err
}
