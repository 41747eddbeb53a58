// Package access knows who is calling, what they may do, and at which sites. It
// issues and checks bearer tokens, hides the rows of other sites from every read,
// and runs mutations: role, transaction and idempotency key in one place. It
// never stores or logs a secret.
package access

import (
	"context"
	"time"

	"entgo.io/ent/dialect/sql"

	"fleetgraph/ent/relay"
	"fleetgraph/fleet"
)

// Caller is who is calling, as their token says. TokenID is the id of an issued token,
// and for others a text that stays the same for the same caller.
type Caller struct {
	TokenID   string
	Name      string
	Role      fleet.Role
	AllSites  bool
	SiteIDs   []string // ids of the sites the caller is bound to, when not AllSites
	BmcMac    string   // for an agent: its machine's BMC, at the one site in SiteIDs
	ExpiresAt *time.Time
}

// SeesSite reports whether rows of the site exist for the caller.
func (c *Caller) SeesSite(id string) bool {
	if c.AllSites {
		return true
	}
	for _, s := range c.SiteIDs {
		if s == id {
			return true
		}
	}
	return false
}

// Scope is what a caller may see and do, without who it is: callers of one scope get
// the same answers.
type Scope struct {
	Role     fleet.Role
	AllSites bool
	SiteIDs  []string
	BmcMac   string
}

// Scope returns the caller's scope.
func (c *Caller) Scope() Scope { return Scope{c.Role, c.AllSites, c.SiteIDs, c.BmcMac} }

type callerKey struct{}

// WithCaller returns a context whose reads and changes are c's.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	ctx = relay.WithRule(ctx, func(entity string) func(*sql.Selector) { return rule(c, entity) })
	return context.WithValue(ctx, callerKey{}, c)
}

// From returns the caller of ctx, if there is one.
func From(ctx context.Context) (*Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(*Caller)
	return c, ok
}

// AsSystem returns a context in which part, a part of the server itself, acts as
// an admin of all sites; histories show its name as the actor.
func AsSystem(ctx context.Context, part string) context.Context {
	return WithCaller(ctx, &Caller{TokenID: systemPrefix + part, Name: systemPrefix + part, Role: fleet.RoleAdmin, AllSites: true})
}

// OnBehalf is AsSystem for what part does because a person asked for it before, and was
// allowed to then: histories show that person's name.
func OnBehalf(ctx context.Context, part, name string) context.Context {
	return WithCaller(ctx, &Caller{TokenID: "system:" + part, Name: name, Role: fleet.RoleAdmin, AllSites: true})
}

// Require returns the caller of ctx when its role includes role: UNAUTHENTICATED
// without a caller, PERMISSION_DENIED with a smaller one.
func Require(ctx context.Context, role fleet.Role) (*Caller, error) {
	c, ok := From(ctx)
	if !ok {
		return nil, Missing()
	}
	if !c.Role.Includes(role) {
		return nil, fleet.Denied("ROLE_TOO_SMALL", "this needs role %s; the token %q has role %s", role, c.Name, c.Role).
			WithDetails(map[string]any{"required": role, "role": c.Role})
	}
	return c, nil
}

// RequireOrAgent is Require, but lets agents pass: the caller checks that the machine
// is theirs.
func RequireOrAgent(ctx context.Context, role fleet.Role) (*Caller, error) {
	if c, ok := From(ctx); ok && c.Role == fleet.RoleAgent {
		return c, nil
	}
	return Require(ctx, role)
}

// IsAgent tells whether the caller of ctx is an agent.
func IsAgent(ctx context.Context) bool {
	c, ok := From(ctx)
	return ok && c.Role == fleet.RoleAgent
}

// Missing is the error of a call without a token.
func Missing() *fleet.Error { return unauthenticated("TOKEN_MISSING", "a bearer token is required") }
