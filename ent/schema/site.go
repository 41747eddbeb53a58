package schema

import (
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"fleetgraph/fleet"
)

// Site is a data hall: the boundary of names, tokens and configuration.
type Site struct{ ent.Schema }

// Mixin of the Site.
func (Site) Mixin() []ent.Mixin { return []ent.Mixin{identified{prefix: fleet.PrefixSite}, created{}} }

// Fields of the Site.
func (Site) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Unique().NotEmpty().MaxRuneLen(fleet.MaxNameLength).
			Annotations(entgql.OrderField("NAME")).
			Comment("Name of the site, unique in the fleet."),
		field.String("description").Default("").
			Comment("Free text for people."),
		field.JSON("bom_validation", fleet.BomValidation{}).Default(fleet.DefaultBomValidation).
			Annotations(entgql.Type("BomValidation")).
			Comment("How the hardware of the site's machines is held against SKUs."),
		field.JSON("machine_validation", fleet.MachineValidation{}).Default(fleet.DefaultMachineValidation).
			Annotations(entgql.Type("MachineValidation")).
			Comment("How the site's machines are tested; values that are raised or ignored show as they take effect."),
		field.Int("revision").Default(1).
			Comment("Number of the site's present edit; pass it as expectedRevision to refuse a lost update."),
		field.Time("updated_at").Default(time.Now).
			Annotations(entgql.OrderField("UPDATED_AT")).
			Comment("When it was last edited."),
	}
}

// Edges of the Site.
func (Site) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("skus", Sku.Type).Annotations(connection()).
			Comment("SKUs defined at this site."),
		edge.To("machines", Machine.Type).Annotations(connection()).
			Comment("Machines at this site."),
		edge.To("expected_machines", ExpectedMachine.Type).Annotations(connection()).
			Comment("Machines that are expected at this site."),
		edge.To("validation_tests", ValidationTest.Type).Annotations(connection()).
			Comment("Tests that the site can run on its machines, in all their versions."),
		edge.To("allocations", Allocation.Type).Annotations(connection()).
			Comment("Allocations at this site."),
		edge.To("health_alerts", HealthAlert.Type).Annotations(connection()).
			Comment("Alerts that stand at this site."),
		edge.To("jobs", Job.Type).Annotations(connection()).
			Comment("Jobs at this site."),
		edge.To("transitions", Transition.Type).Annotations(connection()).
			Comment("History of everything at this site."),
	}
}

// Indexes of the Site.
func (Site) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("name", "id").StorageKey("sites_name_id_order"),
		index.Fields("created_at", "id").StorageKey("sites_created_at_id_order"),
		index.Fields("updated_at", "id").StorageKey("sites_updated_at_id_order"),
	}
}

// Annotations of the Site.
func (Site) Annotations() []schema.Annotation {
	return []schema.Annotation{connection(), entgql.QueryField().Description("Sites that the caller may see.")}
}
