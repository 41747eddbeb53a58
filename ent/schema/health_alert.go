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

// HealthAlert is something wrong with a machine that stands until its reason is
// gone; then the row is removed and the history keeps it.
type HealthAlert struct{ ent.Schema }

// Mixin of the HealthAlert.
func (HealthAlert) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{prefix: fleet.PrefixHealthAlert}}
}

// Fields of the HealthAlert.
func (HealthAlert) Fields() []ent.Field {
	return []ent.Field{
		field.String("site_id").Immutable().
			Comment("Id of the machine's site."),
		field.String("machine_id").Immutable().
			Comment("Id of the machine that the alert stands on."),
		field.String("alert_id").Immutable().NotEmpty().MaxRuneLen(fleet.MaxNameLength).
			Comment("What is wrong, such as SkuValidation."),
		field.String("source").Immutable().NotEmpty().MaxRuneLen(fleet.MaxNameLength).
			Comment("What raised the alert, such as sku-validation; only it may clear it."),
		field.String("target").Immutable().Default("").MaxRuneLen(256).
			Comment("The part concerned; empty for the whole machine."),
		field.String("message").
			Comment("What a person should read; one line a difference."),
		field.String("tenant_message").Optional().Nillable().
			Comment("What a tenant may read; null where a tenant should see nothing."),
		field.Strings("classifications").
			Comment("What the alert entails, such as PREVENT_ALLOCATIONS."),
		field.Time("in_alert_since").Default(time.Now).
			Annotations(entgql.OrderField("IN_ALERT_SINCE")).
			Comment("Since when the alert stands in its present form."),
	}
}

// Edges of the HealthAlert.
func (HealthAlert) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("site", Site.Type).Ref("health_alerts").Field("site_id").Unique().Required().Immutable().
			Comment("The machine's site."),
		edge.From("machine", Machine.Type).Ref("health_alerts").Field("machine_id").Unique().Required().Immutable().
			Comment("The machine that the alert stands on."),
	}
}

// Indexes of the HealthAlert.
func (HealthAlert) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("machine_id", "source", "alert_id", "target").Unique().StorageKey("health_alerts_machine_id_source_key"),
		index.Fields("site_id", "in_alert_since", "id").StorageKey("health_alerts_site_id_in_alert_since_order"),
		index.Fields("in_alert_since", "id").StorageKey("health_alerts_in_alert_since_id_order"),
		index.Fields("alert_id").StorageKey("health_alerts_alert_id_filter"),
	}
}

// Annotations of the HealthAlert.
func (HealthAlert) Annotations() []schema.Annotation {
	return []schema.Annotation{connection(), entgql.QueryField().Description("Alerts that stand at the sites that the caller may see.")}
}
