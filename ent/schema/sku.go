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

	"fleetgraph/ent/annotation"
	"fleetgraph/fleet"
)

// Sku describes one hardware configuration of a site.
type Sku struct{ ent.Schema }

// Mixin of the Sku.
func (Sku) Mixin() []ent.Mixin { return []ent.Mixin{identified{prefix: fleet.PrefixSku}, created{}} }

// Fields of the Sku.
func (Sku) Fields() []ent.Field {
	return []ent.Field{
		field.String("site_id").Immutable().
			Comment("Id of the site that defines the SKU."),
		field.String("name").Immutable().NotEmpty().MaxRuneLen(fleet.MaxSkuNameLength).
			Annotations(entgql.OrderField("NAME")).
			Comment("Name of the SKU, unique at its site; by convention vendor.model.node_type.index."),
		field.String("description").Default("").
			Comment("Free text for people; a generated SKU summarises its hardware here."),
		field.String("device_type").Optional().Nillable().MaxRuneLen(fleet.MaxSkuNameLength).
			Comment("The operator's own classification; never compared."),
		field.Int("schema_version").
			Comment("Version of the rules by which machines are compared with the SKU, 0 to 5."),
		field.JSON("components", fleet.SkuComponents{}).
			Annotations(entgql.Type("SkuComponents")).
			Comment("The hardware that the SKU describes."),
		field.String("match_key").
			Annotations(hidden()).
			Comment("Digest of what every match must agree in; narrows candidates before any comparison."),
		field.Int("revision").Default(1).
			Comment("Number of the SKU's present edit; pass it as expectedRevision to refuse a lost update."),
		field.Time("updated_at").Default(time.Now).
			Annotations(entgql.OrderField("UPDATED_AT")).
			Comment("When it was last edited."),
	}
}

// Edges of the Sku.
func (Sku) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("site", Site.Type).Ref("skus").Field("site_id").Unique().Required().Immutable().
			Comment("The site that defines the SKU."),
		edge.To("machines", Machine.Type).Annotations(connection(), annotation.CountField("machineCount"), entsql.OnDelete(entsql.Restrict)).
			Comment("Machines that the SKU is assigned to."),
		edge.To("expected_machines", ExpectedMachine.Type).Annotations(connection()).
			Comment("Expected machines that name the SKU."),
	}
}

// Indexes of the Sku.
func (Sku) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("site_id", "name").Unique().StorageKey("skus_site_id_name_key"),
		index.Fields("site_id", "match_key").StorageKey("skus_site_id_match_key_candidates"),
		index.Fields("site_id", "created_at", "id").StorageKey("skus_site_id_created_at_order"),
		index.Fields("name", "id").StorageKey("skus_name_id_order"),
		index.Fields("created_at", "id").StorageKey("skus_created_at_id_order"),
		index.Fields("updated_at", "id").StorageKey("skus_updated_at_id_order"),
		index.Fields("device_type").StorageKey("skus_device_type_filter"),
	}
}

// Annotations of the Sku.
func (Sku) Annotations() []schema.Annotation {
	return []schema.Annotation{connection(), entgql.QueryField().Description("SKUs of every site that the caller may see.")}
}
