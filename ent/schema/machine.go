package schema

import (
	"encoding/json"
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"fleetgraph/ent/annotation"
	"fleetgraph/fleet"
)

// Machine is a host or a DPU, known at its site by the MAC address of its BMC.
type Machine struct{ ent.Schema }

// Mixin of the Machine.
func (Machine) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{prefix: fleet.PrefixMachine}, created{}}
}

// Fields of the Machine.
func (Machine) Fields() []ent.Field {
	return []ent.Field{
		field.String("site_id").Immutable().
			Comment("Id of the site that the machine stands at."),
		field.String("name").NotEmpty().MaxRuneLen(fleet.MaxNameLength).
			Annotations(entgql.OrderField("NAME")).
			Comment("Name of the machine, unique at its site."),
		field.String("bmc_mac_address").Immutable().MaxLen(17).
			Comment("MAC address of the machine's BMC, lower case with colons: its identity at the site."),
		field.Enum("kind").GoType(fleet.MachineKind("")).
			Annotations(entgql.Type("MachineKind")).
			Comment("Host or DPU; a DPU stands outside BOM validation."),
		field.String("platform").Default(fleet.DefaultPlatform).
			Comment("Platform key that tests are selected by, from the firmware's system SKU number."),
		field.String("serial_number").Default("").
			Comment("Serial number of the product as reported; not an identity, since vendors repeat them."),
		field.String("vendor").Default("").
			Comment("Vendor of the system as its firmware reports it."),
		field.String("model").Default("").
			Comment("Model of the system as its firmware reports it."),
		field.Enum("state").GoType(fleet.MachineState("")).Default(string(fleet.StateIngesting)).
			Annotations(entgql.Type("MachineState")).
			Comment("State of the machine's main life."),
		field.Enum("sub_state").GoType(fleet.MachineSubState("")).Optional().Nillable().
			Annotations(entgql.Type("MachineSubState")).
			Comment("Refines BOM_VALIDATING and VALIDATING; null in other states."),
		field.Time("state_changed_at").Default(time.Now).
			Annotations(entgql.OrderField("STATE_CHANGED_AT")).
			Comment("When the machine entered its present state and sub-state."),
		field.String("sku_id").Optional().Nillable().
			Comment("Id of the assigned SKU; null without one."),
		field.String("sku_name").Optional().Nillable().
			Comment("Name of the assigned SKU, which may be given before a SKU of that name exists."),
		field.JSON("inventory_document", json.RawMessage{}).Optional().
			SchemaType(map[string]string{dialect.Postgres: "json"}).
			Annotations(entgql.Type("JSON")).
			Comment("The last inventory, as reported."),
		field.String("match_key").Default("").
			Annotations(hidden()).
			Comment("Digest of what every SKU that the inventory matches has in common with it; empty where it is not known."),
		field.JSON("fabric_ports", []fleet.FabricPort{}).Optional().
			Annotations(hidden()).
			Comment("The last fabric observation of the machine's InfiniBand ports; null when there was none."),
		field.Time("inventory_reported_at").Optional().Nillable().
			Comment("When the last inventory arrived."),
		field.Time("last_verified_at").Optional().Nillable().
			Annotations(hidden()).
			Comment("When the machine was last compared with its SKU."),
		field.Bool("last_verification_match").Optional().Nillable().
			Annotations(hidden()).
			Comment("Whether that comparison matched."),
		field.Enum("run_context").GoType(fleet.RunContext("")).Optional().Nillable().
			Annotations(hidden()).
			Comment("Why the machine is in BOM_VALIDATING or VALIDATING; null leads back to READY without a run."),
		field.Time("verify_requested_at").Optional().Nillable().
			Comment("When a verification was asked for that has not begun yet; the machine cannot be allocated meanwhile."),
		field.Time("last_match_attempt_at").Optional().Nillable().
			Comment("When the machine was last held against the site's SKUs in vain."),
		field.Time("last_generate_attempt_at").Optional().Nillable().
			Comment("When its missing SKU was last to be generated from it."),
		field.Time("attend_at").Optional().Nillable().
			Annotations(hidden()).
			Comment("When the machine is to be looked at although nothing happened; null for never."),
		field.Time("updated_at").Default(time.Now).
			Annotations(entgql.OrderField("UPDATED_AT")).
			Comment("When anything of the machine last changed."),
	}
}

// Edges of the Machine.
func (Machine) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("site", Site.Type).Ref("machines").Field("site_id").Unique().Required().Immutable().
			Comment("The site that the machine stands at."),
		edge.From("sku", Sku.Type).Ref("machines").Field("sku_id").Unique().
			Comment("The assigned SKU; null without one."),
		edge.To("health_alerts", HealthAlert.Type).Annotations(connection(), cascade()).
			Comment("Alerts that stand on the machine."),
		edge.To("transitions", Transition.Type).Annotations(connection()).
			Comment("The machine's history."),
		edge.To("expected_machine", ExpectedMachine.Type).Unique().
			Comment("What was expected of the machine; null where nothing was."),
		edge.To("memberships", AllocationMembership.Type).Annotations(connection()).
			Comment("Allocations that the machine is or was in."),
		edge.To("claim", MachineClaim.Type).Unique().Annotations(cascade()).
			Comment("What holds the machine for itself; null where nothing does."),
		edge.To("work_items", WorkItem.Type).Annotations(hidden(), cascade()),
	}
}

// Indexes of the Machine.
func (Machine) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("site_id", "name").Unique().StorageKey("machines_site_id_name_key"),
		index.Fields("site_id", "bmc_mac_address").Unique().StorageKey("machines_site_id_bmc_mac_address_key"),
		index.Fields("site_id", "serial_number").StorageKey("machines_site_id_serial_number_lookup"),
		index.Fields("site_id", "state", "sub_state").StorageKey("machines_site_id_state_filter"),
		index.Fields("site_id", "created_at", "id").StorageKey("machines_site_id_created_at_order"),
		index.Fields("sku_id", "name").StorageKey("machines_sku_id_name_order"),
		index.Fields("sku_name").StorageKey("machines_sku_name_filter"),
		index.Fields("name", "id").StorageKey("machines_name_id_order"),
		index.Fields("created_at", "id").StorageKey("machines_created_at_id_order"),
		index.Fields("updated_at", "id").StorageKey("machines_updated_at_id_order"),
		index.Fields("state_changed_at", "id").StorageKey("machines_state_changed_at_id_order"),
		index.Fields("bmc_mac_address").StorageKey("machines_bmc_mac_address_filter"),
		index.Fields("serial_number").StorageKey("machines_serial_number_filter"),
		index.Fields("attend_at").StorageKey("machines_attend_at_due"),
		index.Fields("site_id", "match_key").StorageKey("machines_site_id_match_key_candidates"),
	}
}

// Annotations of the Machine.
func (Machine) Annotations() []schema.Annotation {
	return []schema.Annotation{
		connection(), entgql.QueryField().Description("Machines of every site that the caller may see."),
		annotation.Resolved("inventory", "inventory_document"),
		annotation.Resolved("lastVerification", "last_verified_at", "last_verification_match"),
		annotation.Resolved("skuComparison", "inventory_document", "fabric_ports").With("sku"),
		annotation.Resolved("allocatable", "kind", "state", "sub_state", "verify_requested_at").With("health_alerts", "claim", "site"),
		annotation.Resolved("allocationBlockers", "kind", "state", "sub_state", "verify_requested_at").With("health_alerts", "claim", "site"),
		annotation.Resolved("work").With("work_items"),
	}
}
