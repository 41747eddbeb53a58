package access

import (
	"context"
	"slices"

	"entgo.io/ent/dialect/sql"

	"fleetgraph/ent"
	"fleetgraph/ent/intercept"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/site"
	"fleetgraph/ent/sku"
	"fleetgraph/ent/token"
	"fleetgraph/ent/transition"
	"fleetgraph/fleet"
)

// Intercept makes every read through client, and through its transactions, see
// only what the context's caller may see. A read without a caller fails.
func Intercept(client *ent.Client) {
	client.Intercept(intercept.Func(func(ctx context.Context, q intercept.Query) error {
		c, ok := From(ctx)
		if !ok {
			return Missing()
		}
		if restrict := rule(c, q.Type()); restrict != nil {
			q.WhereP(restrict)
		}
		return nil
	}))
}

// rule is the one rule of visibility: which rows of a type exist for c. Nil means
// all of them. A type that is not listed is bound to no site and read by the
// system only.
func rule(c *Caller, entity string) func(*sql.Selector) {
	if c.Role == fleet.RoleAgent {
		return agentRule(c, entity)
	}
	switch {
	case entity == ent.TypeToken:
		return tokenRule(c)
	case entity == ent.TypeTransition && c.Role != fleet.RoleAdmin:
		return ofNoToken(c)
	case c.AllSites:
		return nil
	}
	switch entity {
	case ent.TypeSite:
		return in(site.FieldID, c.SiteIDs)
	case ent.TypeSku, ent.TypeMachine, ent.TypeHealthAlert, ent.TypeTransition, ent.TypeExpectedMachine,
		ent.TypeAllocation, ent.TypeAllocationMembership, ent.TypeMachineClaim, ent.TypeWorkItem,
		ent.TypeJob, ent.TypeBulkItem, ent.TypeValidationTest:
		return in("site_id", c.SiteIDs)
	default:
		return nothing
	}
}

// ofNoToken hides the history of tokens, as the tokens themselves are hidden.
func ofNoToken(c *Caller) func(*sql.Selector) {
	return func(s *sql.Selector) {
		s.Where(sql.NEQ(s.C(transition.FieldSubjectType), fleet.SubjectToken))
		if !c.AllSites {
			s.Where(sql.In(s.C(transition.FieldSiteID), anys(c.SiteIDs)...))
		}
	}
}

// Follows returns what of a site's history a caller may follow live, by the rule for
// reading it: all of it but what happens to tokens, which is for admins. kinds, where
// there are any, are the only ones wanted.
func (c *Caller) Follows(kinds []fleet.SubjectType) func(*ent.Transition) bool {
	return func(t *ent.Transition) bool {
		return (t.SubjectType != fleet.SubjectToken || c.Role == fleet.RoleAdmin) && (kinds == nil || slices.Contains(kinds, t.SubjectType))
	}
}

// agentRule lets an agent see its site, the site's SKUs, and of machines only its
// own with what hangs on it.
func agentRule(c *Caller, entity string) func(*sql.Selector) {
	switch entity {
	case ent.TypeSite:
		return in(site.FieldID, c.SiteIDs)
	case ent.TypeSku:
		return in(sku.FieldSiteID, c.SiteIDs)
	case ent.TypeMachine:
		return func(s *sql.Selector) { s.Where(ownMachine(s.C, c)) }
	case ent.TypeHealthAlert, ent.TypeTransition, ent.TypeWorkItem, ent.TypeMachineClaim:
		return ofOwnMachine(c)
	default:
		return nothing
	}
}

// tokenRule lets admins see the tokens that reach no further than they do.
func tokenRule(c *Caller) func(*sql.Selector) {
	switch {
	case c.Role != fleet.RoleAdmin:
		return nothing
	case c.AllSites:
		return nil
	default:
		return func(s *sql.Selector) {
			s.Where(sql.P(func(b *sql.Builder) {
				b.Ident(s.C(token.FieldSiteIds)).WriteString(" IS NOT NULL AND ").
					Ident(s.C(token.FieldSiteIds)).WriteString(" <@ to_jsonb(").Arg(c.SiteIDs).WriteString("::text[])")
			}))
		}
	}
}

func ownMachine(column func(string) string, c *Caller) *sql.Predicate {
	return sql.And(
		sql.In(column(machine.FieldSiteID), anys(c.SiteIDs)...),
		sql.EQ(column(machine.FieldBmcMACAddress), c.BmcMac),
	)
}

// ofOwnMachine shows what hangs on the agent's machine, by the column machine_id.
func ofOwnMachine(c *Caller) func(*sql.Selector) {
	return func(s *sql.Selector) {
		t := sql.Table(machine.Table)
		s.Where(sql.In(s.C("machine_id"), sql.Select(t.C(machine.FieldID)).From(t).Where(ownMachine(t.C, c))))
	}
}

func in(column string, values []string) func(*sql.Selector) {
	return func(s *sql.Selector) { s.Where(sql.In(s.C(column), anys(values)...)) }
}

func nothing(s *sql.Selector) { s.Where(sql.False()) }

func anys(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
