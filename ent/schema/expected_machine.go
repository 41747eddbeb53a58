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

// ExpectedMachine is what an operator knows of a machine before it is seen. Its SKU,
// name and what else a machine has are copied at first sight and never again.
type ExpectedMachine struct{ ent.Schema }

// Mixin of the ExpectedMachine.
func (ExpectedMachine) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{prefix: fleet.PrefixExpected}, created{}}
}

// Fields of the ExpectedMachine.
func (ExpectedMachine) Fields() []ent.Field {
	return []ent.Field{
		field.String("site_id").Immutable().
			Comment("Id of the site that the machine is expected at."),
		field.String("bmc_mac_address").MaxLen(17).
			Annotations(entgql.OrderField("BMC_MAC_ADDRESS")).
			Comment("MAC address of the machine's BMC, lower case with colons; unique at the site."),
		field.Bytes("bmc_credentials").Optional().
			Annotations(hidden()).
			Comment("User name and password of the BMC, encrypted; null where none were given."),
		field.String("chassis_serial_number").Default("").
			Comment("Serial number on the chassis; empty where unknown."),
		field.Strings("fallback_dpu_serial_numbers").Default([]string{}).
			Comment("Serial numbers of the machine's DPUs, for where they cannot be read."),
		field.String("name").Default("").MaxRuneLen(fleet.MaxNameLength).
			Comment("Name that the machine gets at first sight; empty for the default."),
		field.String("description").Default("").
			Comment("Free text for people."),
		field.JSON("labels", []fleet.Label{}).Default([]fleet.Label{}).
			Annotations(entgql.Type("[Label!]")).
			Comment("The operator's own keys and values."),
		field.String("sku_id").Optional().Nillable().
			Comment("Id of the SKU of that name at the site; null where there is none."),
		field.String("sku_name").Optional().Nillable().MaxRuneLen(fleet.MaxSkuNameLength).
			Comment("Name of the SKU that the machine is to have; null where it is to be matched. The SKU need not exist."),
		field.JSON("host_nics", []fleet.HostNic{}).Default([]fleet.HostNic{}).
			Annotations(entgql.Type("[HostNic!]")).
			Comment("Network ports that the machine will have."),
		field.String("rack_name").Optional().Nillable().MaxRuneLen(fleet.MaxNameLength).
			Comment("Name of the rack that the machine will stand in; null where unknown."),
		field.Bool("default_pause_ingestion_and_poweron").Optional().Nillable().
			Comment("Whether ingestion is to wait, and the machine to stay off, until a person lets it; null for the default."),
		field.Bool("dpf_enabled").Optional().Nillable().
			Comment("Whether its DPUs are managed by DPF; null for the default."),
		field.String("bmc_ip_address").Optional().Nillable().MaxLen(45).
			Comment("IP address of the BMC; null where it is not fixed."),
		field.Bool("bmc_retain_credentials").Optional().Nillable().
			Comment("Whether the BMC keeps the credentials given here; null for the default."),
		field.Enum("dpu_mode").GoType(fleet.DpuMode("")).Optional().Nillable().
			Annotations(entgql.Type("DpuMode")).
			Comment("How its DPUs are to be used; null for the default."),
		field.JSON("host_lifecycle_profile", &fleet.HostLifecycleProfile{}).Optional().
			Annotations(entgql.Type("HostLifecycleProfile")).
			Comment("How the host is treated through its life; null for the default."),
		field.String("machine_id").Optional().Nillable().
			Comment("Id of the machine that was seen; null before."),
		field.Int("revision").Default(1).
			Comment("Number of the present edit; pass it as expectedRevision to refuse a lost update."),
		field.Time("updated_at").Default(time.Now).
			Annotations(entgql.OrderField("UPDATED_AT")).
			Comment("When it was last edited."),
	}
}

// Edges of the ExpectedMachine.
func (ExpectedMachine) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("site", Site.Type).Ref("expected_machines").Field("site_id").Unique().Required().Immutable().
			Comment("The site that the machine is expected at."),
		edge.From("sku", Sku.Type).Ref("expected_machines").Field("sku_id").Unique().
			Annotations(entsql.OnDelete(entsql.SetNull)).
			Comment("The SKU of that name at the site; null where there is none."),
		edge.From("machine", Machine.Type).Ref("expected_machine").Field("machine_id").Unique().
			Annotations(entsql.OnDelete(entsql.SetNull)).
			Comment("The machine that was seen; null before."),
	}
}

// Indexes of the ExpectedMachine.
func (ExpectedMachine) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("site_id", "bmc_mac_address").Unique().StorageKey("expected_machines_site_id_bmc_mac_address_key"),
		index.Fields("site_id", "sku_name").StorageKey("expected_machines_site_id_sku_name_lookup"),
		index.Fields("site_id", "created_at", "id").StorageKey("expected_machines_site_id_created_at_order"),
		index.Fields("sku_id").StorageKey("expected_machines_sku_id_filter"),
		index.Fields("bmc_mac_address", "id").StorageKey("expected_machines_bmc_mac_address_id_order"),
		index.Fields("created_at", "id").StorageKey("expected_machines_created_at_id_order"),
		index.Fields("updated_at", "id").StorageKey("expected_machines_updated_at_id_order"),
		index.Fields("chassis_serial_number").StorageKey("expected_machines_chassis_serial_number_filter"),
	}
}

// Annotations of the ExpectedMachine.
func (ExpectedMachine) Annotations() []schema.Annotation {
	return []schema.Annotation{
		connection(), entgql.QueryField().Description("Machines that are expected at the sites that the caller may see."),
		annotation.Resolved("hasBmcCredentials", "bmc_credentials"),
	}
}
