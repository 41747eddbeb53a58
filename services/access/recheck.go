package access

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/token"
)

// Recheck tells whether the caller's token still stands: UNAUTHENTICATED, reason
// TOKEN_REVOKED or TOKEN_EXPIRED, where it does not.
func (s *Service) Recheck(ctx context.Context, c *Caller) error {
	t, err := s.client.Token.Query().Where(token.ID(c.TokenID)).Only(AsSystem(ctx, "access"))
	switch {
	case ent.IsNotFound(err):
		return unauthenticated("TOKEN_INVALID", "the bearer token is not known")
	case err != nil:
		return err
	case t.RevokedAt != nil:
		return unauthenticated("TOKEN_REVOKED", "the bearer token was revoked")
	case t.ExpiresAt != nil && !s.now().Before(*t.ExpiresAt):
		return unauthenticated("TOKEN_EXPIRED", "the bearer token has expired")
	}
	return nil
}
