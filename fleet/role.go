package fleet

import "io"

// Role is what a caller may do. Viewer, operator and admin include one another in
// this order; agent stands aside and acts on its own machine only.
type Role string

// The roles.
const (
	RoleViewer   Role = "VIEWER"   // reads everything but secrets
	RoleOperator Role = "OPERATOR" // also assigns, unassigns and verifies SKUs, reports inventories, allocates and releases machines, raises and clears alerts
	RoleAdmin    Role = "ADMIN"    // also manages sites, SKUs, expected machines and tokens, deletes machines, and may force
	RoleAgent    Role = "AGENT"    // acts on its own machine only
)

// Values lists the roles, for ent.
func (Role) Values() []string {
	return []string{string(RoleViewer), string(RoleOperator), string(RoleAdmin), string(RoleAgent)}
}

// MarshalGQL writes the GraphQL form.
func (r Role) MarshalGQL(w io.Writer) { marshalEnum(w, r) }

// UnmarshalGQL reads the GraphQL form.
func (r *Role) UnmarshalGQL(v any) error { return unmarshalEnum(r, v, r.Values()) }

// Includes reports whether r may do all that other may.
func (r Role) Includes(other Role) bool {
	if r == RoleAgent || other == RoleAgent {
		return r == other
	}
	return r.rank() >= other.rank()
}

func (r Role) rank() int {
	switch r {
	case RoleViewer:
		return 1
	case RoleOperator:
		return 2
	case RoleAdmin:
		return 3
	default:
		return 0
	}
}
