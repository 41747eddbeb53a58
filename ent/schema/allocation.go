package schema

import (
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"fleetgraph/fleet"
)

// Allocation is machines of a site in one tenant's hands, under a name.
type Allocation struct{ ent.Schema }

// Mixin of the Allocation.
func (Allocation) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{prefix: fleet.PrefixAllocation}, created{}}
}

// Fields of the Allocation.
func (Allocation) Fields() []ent.Field {
	return []ent.Field{
		field.String("site_id").Immutable().
			Comment("Id of the allocation's site."),
		field.String("name").Immutable().NotEmpty().MaxRuneLen(fleet.MaxNameLength).
			Annotations(entgql.OrderField("NAME")).
			Comment("Name of the allocation, unique at its site."),
	}
}

// Edges of the Allocation.
func (Allocation) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("site", Site.Type).Ref("allocations").Field("site_id").Unique().Required().Immutable().
			Comment("The allocation's site."),
		edge.To("memberships", AllocationMembership.Type).Annotations(connection()).
			Comment("Machines that are or were in the allocation."),
	}
}

// Indexes of the Allocation.
func (Allocation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("site_id", "name").Unique().StorageKey("allocations_site_id_name_key"),
		index.Fields("name", "id").StorageKey("allocations_name_id_order"),
		index.Fields("created_at", "id").StorageKey("allocations_created_at_id_order"),
	}
}

// Annotations of the Allocation.
func (Allocation) Annotations() []schema.Annotation {
	return []schema.Annotation{connection(), entgql.QueryField().Description("Allocations at the sites that the caller may see.")}
}

// AllocationMembership is a machine's time in an allocation.
type AllocationMembership struct{ ent.Schema }

// Mixin of the AllocationMembership.
func (AllocationMembership) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{prefix: fleet.PrefixMembership}}
}

// Fields of the AllocationMembership.
func (AllocationMembership) Fields() []ent.Field {
	return []ent.Field{
		field.String("site_id").Immutable().
			Annotations(hidden()).
			Comment("Id of the site."),
		field.String("allocation_id").Immutable().
			Comment("Id of the allocation."),
		field.String("machine_id").Optional().Nillable().
			Comment("Id of the machine; null when it was deleted since."),
		field.String("machine_name").Immutable().
			Comment("Name of the machine when it was allocated."),
		field.Time("allocated_at").Immutable().Default(time.Now).
			Annotations(entgql.OrderField("ALLOCATED_AT")).
			Comment("When the machine came into the allocation."),
		field.Time("released_at").Optional().Nillable().
			Comment("When it was given back; null while it is in the allocation."),
	}
}

// Edges of the AllocationMembership.
func (AllocationMembership) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("allocation", Allocation.Type).Ref("memberships").Field("allocation_id").Unique().Required().Immutable().
			Comment("The allocation."),
		edge.From("machine", Machine.Type).Ref("memberships").Field("machine_id").Unique().
			Annotations(entsql.OnDelete(entsql.SetNull)).
			Comment("The machine; null when it was deleted since."),
	}
}

// Indexes of the AllocationMembership.
func (AllocationMembership) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("machine_id").Unique().StorageKey("allocation_memberships_machine_id_current_key").
			Annotations(entsql.IndexWhere("(released_at IS NULL)")),
		index.Fields("machine_id", "allocated_at", "id").StorageKey("allocation_memberships_machine_id_allocated_at_order"),
		index.Fields("allocation_id", "allocated_at", "id").StorageKey("allocation_memberships_allocation_id_allocated_at_order"),
		index.Fields("allocated_at", "id").StorageKey("allocation_memberships_allocated_at_id_order"),
	}
}

// Annotations of the AllocationMembership.
func (AllocationMembership) Annotations() []schema.Annotation {
	return []schema.Annotation{connection()}
}

// MachineClaim is what holds a machine for itself: one row a machine, whatever the
// kind, so that nothing ever has a machine together with another.
type MachineClaim struct{ ent.Schema }

// Mixin of the MachineClaim.
func (MachineClaim) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{prefix: fleet.PrefixClaim}, created{}}
}

// Fields of the MachineClaim.
func (MachineClaim) Fields() []ent.Field {
	return []ent.Field{
		field.String("site_id").Immutable().
			Annotations(hidden()).
			Comment("Id of the site."),
		field.String("machine_id").Immutable().
			Comment("Id of the machine."),
		field.Enum("kind").GoType(fleet.ClaimKind("")).
			Annotations(entgql.Type("ClaimKind")).
			Comment("What kind of holder it is."),
		field.String("holder_id").
			Comment("Id of the allocation, run or job that holds the machine."),
	}
}

// Edges of the MachineClaim.
func (MachineClaim) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("machine", Machine.Type).Ref("claim").Field("machine_id").Unique().Required().Immutable().
			Comment("The machine."),
	}
}

// Indexes of the MachineClaim.
func (MachineClaim) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("created_at", "id").StorageKey("machine_claims_created_at_id_order"),
		index.Fields("holder_id").StorageKey("machine_claims_holder_id_lookup"),
	}
}
