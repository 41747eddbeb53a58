package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/site"
	"fleetgraph/fleet"
	"fleetgraph/internal/openid"
)

const (
	// issuerPrefix and systemPrefix begin the token ids of callers without a row:
	// those whom an issuer vouches for, and parts of the server.
	issuerPrefix = "oidc:"
	systemPrefix = "system:"
	// sitesFor is how long the ids of the sites that grants name are kept.
	sitesFor = 10 * time.Second
	// AnySite in a grant stands for all sites.
	AnySite = "*"
)

// Issuer is an identity provider whose tokens are accepted, and what it takes to be
// somebody here. NameClaims are those that a caller's name is taken from, the first
// that makes one.
type Issuer struct {
	*openid.Issuer
	NameClaims []string
	Grants     []Grant
}

// Grant gives a role at sites, by their names, to the bearers of tokens whose claim is
// value, or has it in its list.
type Grant struct {
	Claim, Value string
	Role         fleet.Role
	Sites        []string
}

// identify returns the caller that a token of an issuer stands for. A token that no
// grant is for is PERMISSION_DENIED, reason NO_GRANT; while its issuer cannot be asked
// it is UNAVAILABLE.
func (s *Service) identify(ctx context.Context, secret string) (*Caller, error) {
	url, ok := openid.IssuerOf(secret)
	i := slices.IndexFunc(s.issuers, func(issuer Issuer) bool { return issuer.URL() == url })
	if !ok || i < 0 {
		return nil, unknown()
	}
	issuer := s.issuers[i]
	claims, err := issuer.Verify(ctx, secret)
	var (
		refused     *openid.RefusedError
		unavailable *openid.UnavailableError
	)
	switch {
	case errors.Is(err, openid.ErrExpired):
		return nil, expired()
	case errors.As(err, &refused):
		return nil, unknown().WithCause(err)
	case errors.As(err, &unavailable):
		return nil, (&fleet.Error{
			Code: fleet.Unavailable, Reason: "ISSUER_UNAVAILABLE",
			Message: "the issuer of the bearer token does not answer; try again",
		}).WithCause(err)
	case err != nil:
		return nil, err
	}
	return s.granted(ctx, issuer, claims)
}

func (s *Service) granted(ctx context.Context, issuer Issuer, claims *openid.Claims) (*Caller, error) {
	role, sites := issuer.reach(claims)
	if role == "" {
		return nil, fleet.Denied("NO_GRANT", "the bearer token is valid, but no grant of this server is for its claims")
	}
	id := tokenIDOf(issuer.URL(), claims.Subject)
	c := &Caller{
		TokenID: id, Name: issuer.nameOf(claims, id), Role: role,
		AllSites: slices.Contains(sites, AnySite), ExpiresAt: &claims.ExpiresAt,
	}
	if c.AllSites {
		return c, nil
	}
	var err error
	c.SiteIDs, err = s.siteIDs(ctx, sites)
	return c, err
}

// reach is the highest role that a grant gives, "" for none, and the sites at which
// some grant gives that role.
func (i Issuer) reach(claims *openid.Claims) (role fleet.Role, sites []string) {
	for _, grant := range i.Grants {
		if !grant.isFor(claims) || role != "" && !grant.Role.Includes(role) {
			continue
		}
		if grant.Role != role {
			role, sites = grant.Role, nil
		}
		sites = append(sites, grant.Sites...)
	}
	return role, sites
}

// isFor tells whether claims have the value. An address that the issuer has not
// verified is what the bearer says of themselves.
func (g Grant) isFor(claims *openid.Claims) bool {
	if g.Claim == "email" && !slices.Contains(claims.Text("email_verified"), "true") {
		return false
	}
	return slices.Contains(claims.Text(g.Claim), g.Value)
}

// nameOf is the name that histories show. A claim that is no name, or that of a part
// of the server, does not count; the last resort is id.
func (i Issuer) nameOf(claims *openid.Claims, id string) string {
	for _, claim := range i.NameClaims {
		for _, name := range claims.Text(claim) {
			if fleet.CheckName("name", name) == nil && !isReserved(name) {
				return name
			}
		}
	}
	return id
}

// isReserved tells whether a name reads like that of a part of the server.
func isReserved(name string) bool { return strings.HasPrefix(strings.ToLower(name), systemPrefix) }

// tokenIDOf is the same for all tokens of a subject, so that an idempotency key
// outlives a refreshed token.
func tokenIDOf(issuer, subject string) string {
	hash := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return issuerPrefix + hex.EncodeToString(hash[:16])
}

// siteIDs are the ids of sites by their names; names of no site are left out.
func (s *Service) siteIDs(ctx context.Context, names []string) ([]string, error) {
	known, err := s.grantedSites(ctx)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, name := range names {
		if id, ok := known[name]; ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// grantedSites are the sites that grants name, as they were lately.
func (s *Service) grantedSites(ctx context.Context) (map[string]string, error) {
	s.sites.mu.Lock()
	ids, at := s.sites.ids, s.sites.at
	s.sites.mu.Unlock()
	now := s.now()
	if ids != nil && now.Sub(at) < sitesFor {
		return ids, nil
	}
	names := []string{}
	for _, issuer := range s.issuers {
		for _, grant := range issuer.Grants {
			names = append(names, grant.Sites...)
		}
	}
	rows, err := s.client.Site.Query().Where(site.NameIn(names...)).Select(site.FieldID, site.FieldName).All(AsSystem(ctx, "access"))
	if err != nil {
		return nil, err
	}
	ids = make(map[string]string, len(rows))
	for _, row := range rows {
		ids[row.Name] = row.ID
	}
	s.sites.mu.Lock()
	defer s.sites.mu.Unlock()
	s.sites.ids, s.sites.at = ids, now
	return ids, nil
}

// Ends is when the caller's token stands no longer, by the clock of Recheck; nil for
// never.
func (c *Caller) Ends() *time.Time {
	if c.ExpiresAt == nil || !strings.HasPrefix(c.TokenID, issuerPrefix) {
		return c.ExpiresAt
	}
	return new(c.ExpiresAt.Add(openid.Leeway))
}

// Recheck reports whether a caller who was let in earlier would be let in still: nil,
// or UNAUTHENTICATED with reason TOKEN_REVOKED or TOKEN_EXPIRED. It is for connections
// that outlive a request, at intervals of seconds. An issued token costs one look-up
// by its id; of a caller whom an issuer vouches for, only the end of the token counts;
// a part of the server always stands.
func (s *Service) Recheck(ctx context.Context, c *Caller) error {
	switch {
	case strings.HasPrefix(c.TokenID, systemPrefix):
		return nil
	case strings.HasPrefix(c.TokenID, issuerPrefix):
		if end := c.Ends(); end == nil || s.now().Before(*end) {
			return nil
		}
		return expired()
	}
	t, err := s.client.Token.Get(AsSystem(ctx, "access"), c.TokenID)
	if ent.IsNotFound(err) {
		return revoked()
	}
	if err != nil {
		return err
	}
	return s.standing(t)
}
