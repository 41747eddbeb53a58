package server

import (
	"errors"
	"net/http"
	"time"

	"fleetgraph/fleet"
	"fleetgraph/server/graphqlws"
	"fleetgraph/services/access"
)

// comeBack is when to try again what there was no room for.
const comeBack = time.Second

// peerOf is who asks for a WebSocket: by its token where the handshake has one, and
// else by its address, since a browser brings its token later.
func peerOf(r *http.Request) graphqlws.Peer {
	if caller, ok := access.From(r.Context()); ok {
		return graphqlws.Peer{Name: caller.TokenID, Known: true}
	}
	return graphqlws.Peer{Name: limitedAddress(r.Context())}
}

// noSocket answers a request that gets no WebSocket.
func noSocket(w http.ResponseWriter, r *http.Request, status int, why error) {
	refused := &fleet.Error{Code: fleet.InvalidArgument, Reason: "HANDSHAKE_INVALID", Message: why.Error()}
	switch {
	case errors.Is(why, graphqlws.ErrOrigin):
		refused.Code, refused.Reason = fleet.PermissionDenied, "ORIGIN_FOREIGN"
	case errors.Is(why, graphqlws.ErrFull):
		refused.Code, refused.Reason = fleet.ResourceExhausted, "TOO_MANY_SOCKETS"
	case errors.Is(why, graphqlws.ErrStopping):
		refused.Code, refused.Reason = fleet.Unavailable, "STOPPING"
	}
	if status == http.StatusServiceUnavailable {
		refused.Details = map[string]any{retryAfter: fleet.Duration(comeBack)}
	}
	noteError(r.Context(), refused)
	setRetryAfter(w.Header(), refused)
	writeError(w, status, refused)
}
