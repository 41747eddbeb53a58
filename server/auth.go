package server

import (
	"context"
	"net/http"
	"strings"

	"fleetgraph/fleet"
	"fleetgraph/server/graphqlws"
	"fleetgraph/services/access"
)

// authenticator knows whose token a secret is, and whether it is theirs still.
type authenticator interface {
	Authenticate(ctx context.Context, secret string) (*access.Caller, error)
	Recheck(ctx context.Context, caller *access.Caller) error
}

// signedIn lets requests with a valid bearer token through, as their caller. Only
// the header counts: there is no cookie, so that no other site can make a browser
// act for its user.
func signedIn(auth authenticator, p presenter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions { // tells nothing, and needs no caller
			w.Header().Set("Allow", "GET, POST, OPTIONS")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		ctx := r.Context()
		caller, err := authenticate(ctx, auth, r.Header.Values("Authorization"))
		if err != nil {
			p.refuse(w, r, err)
			return
		}
		noteCaller(ctx, caller)
		next.ServeHTTP(w, r.WithContext(access.WithCaller(ctx, caller)))
	})
}

// orInit lets a WebSocket without the header through to where its connection_init has to
// bring the token: a browser's cannot have the header.
func orInit(signed, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if graphqlws.Supports(r) && len(r.Header.Values("Authorization")) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		signed.ServeHTTP(w, r)
	})
}

// refuse answers a request that is refused before any operation.
func (p presenter) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p.refuseAs(w, r, err, `Bearer realm="fleetgraph"`)
}

// refuseAs is refuse with how a client may say who it is.
func (p presenter) refuseAs(w http.ResponseWriter, r *http.Request, err error, challenge string) {
	refused := p.shown(r.Context(), err, "")
	noteError(r.Context(), refused)
	if refused.Code == fleet.Unauthenticated {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	setRetryAfter(w.Header(), refused)
	writeError(w, statusOf(refused.Code), refused)
}

func authenticate(ctx context.Context, auth authenticator, headers []string) (*access.Caller, error) {
	if len(headers) != 1 {
		return nil, tokenMissing()
	}
	scheme, secret, _ := strings.Cut(headers[0], " ")
	if secret = strings.TrimSpace(secret); !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return nil, tokenMissing()
	}
	return auth.Authenticate(ctx, secret)
}

func tokenMissing() *fleet.Error {
	return &fleet.Error{Code: fleet.Unauthenticated, Reason: "TOKEN_MISSING", Message: "a bearer token is required"}
}

// statusOf is the HTTP status of a request that was refused before any operation.
func statusOf(code fleet.Code) int {
	switch code {
	case fleet.Unauthenticated:
		return http.StatusUnauthorized
	case fleet.PermissionDenied:
		return http.StatusForbidden
	case fleet.Unavailable:
		return http.StatusServiceUnavailable
	case fleet.ResourceExhausted:
		return http.StatusTooManyRequests
	case fleet.InvalidArgument, fleet.NotFound, fleet.AlreadyExists, fleet.FailedPrecondition, fleet.Aborted:
		return http.StatusBadRequest
	case fleet.Internal:
	}
	return http.StatusInternalServerError
}
