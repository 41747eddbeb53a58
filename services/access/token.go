package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/site"
	"fleetgraph/ent/token"
	"fleetgraph/fleet"
	"fleetgraph/services/events"
)

const (
	// secretPrefix makes a leaked secret recognisable to scanners.
	secretPrefix = "fgt_"
	// secretBytes of randomness: 256 bits, so that a plain hash of it is safe to
	// store.
	secretBytes = 32
	// usedResolution is how exactly the last use of a token is kept.
	usedResolution = time.Minute
	// maxTokenLifetime bounds expiresIn; what shall live longer is issued without.
	maxTokenLifetime = 3650 * 24 * time.Hour
)

// Service issues, checks and revokes tokens, and accepts those of its issuers.
type Service struct {
	client  *ent.Client
	now     func() time.Time
	issuers []Issuer
	sites   struct { // that grants name
		mu  sync.Mutex
		ids map[string]string // by name; replaced, never changed
		at  time.Time
	}
}

// New returns the service on client, which Intercept has been applied to, with
// now as its clock. Tokens of issuers, whose URLs differ, are accepted beside its own.
func New(client *ent.Client, now func() time.Time, issuers ...Issuer) *Service {
	return &Service{client: client, now: now, issuers: issuers}
}

// Authenticate returns the caller that secret stands for: UNAUTHENTICATED with
// reason TOKEN_INVALID, TOKEN_REVOKED or TOKEN_EXPIRED when it stands for none. What
// does not begin as the service's own tokens do is for its issuers.
func (s *Service) Authenticate(ctx context.Context, secret string) (*Caller, error) {
	if !strings.HasPrefix(secret, secretPrefix) {
		return s.identify(ctx, secret)
	}
	ctx = AsSystem(ctx, "access")
	t, err := s.client.Token.Query().Where(token.SecretHash(hashSecret(secret))).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, unknown()
	}
	if err != nil {
		return nil, err
	}
	if err := s.standing(t); err != nil {
		return nil, err
	}
	c := &Caller{
		TokenID: t.ID, Name: t.Name, Role: t.Role,
		AllSites: t.SiteIds == nil, SiteIDs: t.SiteIds, ExpiresAt: t.ExpiresAt,
	}
	if t.BmcMACAddress != nil {
		c.BmcMac = *t.BmcMACAddress
	}
	return c, s.markUsed(ctx, t)
}

// standing returns an error unless a token is still good.
func (s *Service) standing(t *ent.Token) error {
	switch {
	case t.RevokedAt != nil:
		return revoked()
	case t.ExpiresAt != nil && !s.now().Before(*t.ExpiresAt):
		return expired()
	default:
		return nil
	}
}

func (s *Service) markUsed(ctx context.Context, t *ent.Token) error {
	now := s.now()
	if t.LastUsedAt != nil && now.Sub(*t.LastUsedAt) < usedResolution {
		return nil
	}
	return s.client.Token.Update().Where(token.ID(t.ID)).SetLastUsedAt(now).Exec(ctx)
}

// Bootstrap issues the first admin token of an empty database and returns its
// secret; it returns "" when tokens exist. deliver is called with the secret
// before the token is stored, so that a token which nobody holds is never left
// behind; its error undoes the issue.
func (s *Service) Bootstrap(ctx context.Context, deliver func(secret string) error) (string, error) {
	ctx = AsSystem(ctx, "bootstrap")
	secret := newSecret()
	issued := false
	_, err := Run(ctx, s.client, Mutation{Name: "bootstrap"}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		issued = false
		n, err := tx.Token.Query().Count(ctx)
		if err != nil || n > 0 {
			return nil, err
		}
		t, err := s.store(ctx, tx, newToken{name: "first-admin", role: fleet.RoleAdmin, secret: secret, issuedBy: "system:bootstrap"})
		if err != nil {
			return nil, err
		}
		issued = true
		return []string{t.ID}, deliver(secret)
	})
	if err != nil || !issued {
		return "", err
	}
	return secret, nil
}

// IssueToken is the input of Issue. SiteIDs nil means all sites. An agent's token
// is bound to MachineID, or to SiteID and BmcMacAddress before its machine exists.
type IssueToken struct {
	Name          string
	Role          fleet.Role
	SiteIDs       []string
	MachineID     *string
	SiteID        *string
	BmcMacAddress *string
	ExpiresIn     *time.Duration // nil: until revoked
	Key           string         `json:"-"`
}

// Issue issues a token and returns its id and its secret; the secret is empty in
// the answer to a repeat. A caller bound to sites issues within them only.
func (s *Service) Issue(ctx context.Context, in IssueToken) (id, secret string, err error) {
	c, err := Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return "", "", err
	}
	if err := checkIssue(c, &in); err != nil {
		return "", "", err
	}
	secret = newSecret()
	out, err := Run(ctx, s.client, Mutation{Name: "issueToken", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		n := newToken{name: in.Name, role: in.Role, siteIDs: in.SiteIDs, secret: secret, issuedBy: c.Name}
		if in.ExpiresIn != nil {
			n.expiresAt = new(s.now().Add(*in.ExpiresIn))
		}
		if in.Role == fleet.RoleAgent {
			if err := bindAgent(ctx, tx, in, &n); err != nil {
				return nil, err
			}
		}
		for i, siteID := range in.SiteIDs {
			ok, err := tx.Site.Query().Where(site.ID(siteID)).Exist(ctx)
			if err != nil {
				return nil, err
			}
			if !ok {
				return nil, fleet.Missing("siteIds."+strconv.Itoa(i), "SITE_NOT_FOUND", "site not found: %s", siteID)
			}
		}
		t, err := s.store(ctx, tx, n)
		if err != nil {
			return nil, err
		}
		return []string{t.ID}, nil
	})
	if err != nil {
		return "", "", err
	}
	if out.Repeated {
		secret = ""
	}
	return out.Result[0], secret, nil
}

// checkIssue checks what needs no database, and settles BmcMacAddress in its
// normal form.
func checkIssue(c *Caller, in *IssueToken) error {
	if err := fleet.CheckName("name", in.Name); err != nil {
		return err
	}
	if isReserved(in.Name) { // histories show it
		return fleet.Invalid("name", "NAME_RESERVED", "names that begin with %q are those of parts of the server", systemPrefix)
	}
	if d := in.ExpiresIn; d != nil && (*d <= 0 || *d > maxTokenLifetime) {
		return fleet.Invalid("expiresIn", "DURATION_INVALID", "a token is valid for more than nothing and at most %s", fleet.FormatDuration(maxTokenLifetime))
	}
	if in.Role == fleet.RoleAgent {
		return checkAgent(in)
	}
	switch {
	case in.MachineID != nil:
		return fleet.Invalid("machineId", "NOT_AN_AGENT", "only an agent's token is bound to a machine")
	case in.SiteID != nil:
		return fleet.Invalid("siteId", "NOT_AN_AGENT", "only an agent's token is bound to a site and a BMC; use siteIds")
	case in.BmcMacAddress != nil:
		return fleet.Invalid("bmcMacAddress", "NOT_AN_AGENT", "only an agent's token is bound to a BMC")
	case in.SiteIDs == nil && !c.AllSites:
		return fleet.Denied("SITES_TOO_WIDE", "a caller bound to sites may not issue a token of all sites")
	case in.SiteIDs != nil && len(in.SiteIDs) == 0:
		return fleet.Invalid("siteIds", "LIST_EMPTY", "name at least one site, or leave siteIds out for all sites")
	}
	for i, id := range in.SiteIDs {
		if err := fleet.CheckID("siteIds."+strconv.Itoa(i), fleet.PrefixSite, id); err != nil {
			return err
		}
		if slices.Contains(in.SiteIDs[:i], id) {
			return fleet.Invalid("siteIds."+strconv.Itoa(i), "DUPLICATE", "site %s is named twice", id)
		}
	}
	return nil
}

func checkAgent(in *IssueToken) error {
	switch {
	case in.SiteIDs != nil:
		return fleet.Invalid("siteIds", "AGENT_BINDING", "an agent's token is bound to machineId, or to siteId and bmcMacAddress")
	case in.MachineID != nil && (in.SiteID != nil || in.BmcMacAddress != nil):
		return fleet.Invalid("machineId", "AGENT_BINDING", "give machineId, or siteId and bmcMacAddress, not both")
	case in.MachineID != nil:
		return fleet.CheckID("machineId", fleet.PrefixMachine, *in.MachineID)
	case in.SiteID == nil && in.BmcMacAddress == nil:
		return fleet.Invalid("machineId", "AGENT_BINDING", "an agent's token needs machineId, or siteId and bmcMacAddress")
	case in.SiteID == nil:
		return fleet.Invalid("siteId", "AGENT_BINDING", "an agent's token that names a BMC needs its siteId too")
	case in.BmcMacAddress == nil:
		return fleet.Invalid("bmcMacAddress", "AGENT_BINDING", "an agent's token that names a site needs a bmcMacAddress too")
	}
	mac, err := fleet.ParseMac("bmcMacAddress", *in.BmcMacAddress)
	if err != nil {
		return err
	}
	in.BmcMacAddress = &mac
	return fleet.CheckID("siteId", fleet.PrefixSite, *in.SiteID)
}

// bindAgent fills in the one site and BMC that an agent's token is bound to.
func bindAgent(ctx context.Context, tx *ent.Client, in IssueToken, n *newToken) error {
	if in.MachineID != nil {
		m, err := tx.Machine.Query().Where(machine.ID(*in.MachineID)).Only(ctx)
		if ent.IsNotFound(err) {
			return fleet.Missing("machineId", "MACHINE_NOT_FOUND", "machine not found: %s", *in.MachineID)
		}
		if err != nil {
			return err
		}
		n.machineID, n.bmcMac, n.siteIDs = &m.ID, &m.BmcMACAddress, []string{m.SiteID}
		return nil
	}
	ok, err := tx.Site.Query().Where(site.ID(*in.SiteID)).Exist(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return fleet.Missing("siteId", "SITE_NOT_FOUND", "site not found: %s", *in.SiteID)
	}
	n.bmcMac, n.siteIDs = in.BmcMacAddress, []string{*in.SiteID}
	return nil
}

// Revoke revokes a token at once and returns its id. Revoking it again changes
// nothing.
func (s *Service) Revoke(ctx context.Context, tokenID, key string) (string, error) {
	if _, err := Require(ctx, fleet.RoleAdmin); err != nil {
		return "", err
	}
	if err := fleet.CheckID("tokenId", fleet.PrefixToken, tokenID); err != nil {
		return "", err
	}
	_, err := Run(ctx, s.client, Mutation{Name: "revokeToken", Key: key, Input: tokenID}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		t, err := tx.Token.Query().Where(token.ID(tokenID)).ForUpdate().Only(ctx)
		if ent.IsNotFound(err) {
			return nil, fleet.Missing("tokenId", "TOKEN_NOT_FOUND", "token not found: %s", tokenID)
		}
		if err != nil || t.RevokedAt != nil {
			return []string{tokenID}, err
		}
		if err := tx.Token.Update().Where(token.ID(tokenID)).SetRevokedAt(s.now()).Exec(ctx); err != nil {
			return nil, err
		}
		return []string{tokenID}, record(ctx, tx, tokenEvent(ctx, s.now(), t, "TOKEN_REVOKED"))
	})
	return tokenID, err
}

type newToken struct {
	name, secret, issuedBy string
	role                   fleet.Role
	siteIDs                []string
	machineID, bmcMac      *string
	expiresAt              *time.Time
}

func (s *Service) store(ctx context.Context, tx *ent.Client, n newToken) (*ent.Token, error) {
	create := tx.Token.Create().
		SetName(n.name).SetRole(n.role).SetSecretHash(hashSecret(n.secret)).SetIssuedBy(n.issuedBy).
		SetNillableMachineID(n.machineID).SetNillableBmcMACAddress(n.bmcMac).SetNillableExpiresAt(n.expiresAt).
		SetCreatedAt(s.now())
	if n.siteIDs != nil {
		create.SetSiteIds(n.siteIDs)
	}
	t, err := create.Save(ctx)
	if err != nil {
		return nil, err
	}
	return t, record(ctx, tx, tokenEvent(ctx, s.now(), t, "TOKEN_ISSUED"))
}

// record appends e with all of the token's history in sight, which may span sites
// that the caller does not see.
func record(ctx context.Context, tx *ent.Client, e events.Transition) error {
	return events.Append(AsSystem(ctx, "access"), tx, e)
}

// tokenEvent is a token's history entry; it belongs to a site only where the
// token is bound to just one.
func tokenEvent(ctx context.Context, now time.Time, t *ent.Token, cause string) events.Transition {
	e := events.Transition{
		SubjectType: fleet.SubjectToken, SubjectID: t.ID, Cause: cause, Actor: Actor(ctx), At: now,
		Details: map[string]any{"name": t.Name, "role": t.Role, "siteIds": t.SiteIds},
	}
	if len(t.SiteIds) == 1 {
		e.SiteID = &t.SiteIds[0]
	}
	return e
}

// Actor is the name that histories show for the caller of ctx.
func Actor(ctx context.Context) string {
	if c, ok := From(ctx); ok {
		return c.Name
	}
	return "unknown"
}

func newSecret() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails on supported platforms
	return secretPrefix + base64.RawURLEncoding.EncodeToString(b)
}

func hashSecret(secret string) []byte {
	h := sha256.Sum256([]byte(strings.TrimSpace(secret)))
	return h[:]
}

func unknown() *fleet.Error { return unauthenticated("TOKEN_INVALID", "the bearer token is not known") }

func revoked() *fleet.Error { return unauthenticated("TOKEN_REVOKED", "the bearer token was revoked") }

func expired() *fleet.Error { return unauthenticated("TOKEN_EXPIRED", "the bearer token has expired") }

func unauthenticated(reason, message string) *fleet.Error {
	return &fleet.Error{Code: fleet.Unauthenticated, Reason: reason, Message: message}
}
