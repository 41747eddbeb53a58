package schema

import (
	"encoding/json"
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

// Transition is one recorded change of an object's state: append-only, and kept
// when its object is deleted.
type Transition struct{ ent.Schema }

// Mixin of the Transition.
func (Transition) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{prefix: fleet.PrefixTransition}}
}

// Fields of the Transition.
func (Transition) Fields() []ent.Field {
	return []ent.Field{
		field.String("site_id").Optional().Nillable().Immutable().
			Comment("Id of the object's site; null for what belongs to none."),
		field.Enum("subject_type").GoType(fleet.SubjectType("")).Immutable().
			Annotations(entgql.Type("SubjectType")).
			Comment("Type of the object that changed."),
		field.String("subject_id").Immutable().
			Comment("Id of the object that changed, which may have been deleted since."),
		field.Int("sequence").Immutable().
			Annotations(entgql.OrderField("SEQUENCE")).
			Comment("Number of the change within its object's history, from 1 without gaps."),
		field.String("machine_id").Optional().Nillable().
			Comment("Id of the machine, where a machine changed and still exists."),
		field.String("from_state").Optional().Nillable().Immutable().
			Comment("State before, with its sub-state after a slash; null for what is new or has no states."),
		field.String("to_state").Optional().Nillable().Immutable().
			Comment("State after, with its sub-state after a slash; null for what has no states."),
		field.String("cause").Immutable().
			Comment("Why it changed: a stable upper-case word."),
		field.String("actor").Immutable().
			Comment("Who caused it: a token's name, or the part of the system."),
		field.String("message").Default("").Immutable().
			Comment("What a person should read."),
		field.JSON("details", json.RawMessage{}).Optional().Immutable().
			Annotations(entgql.Type("JSON")).
			Comment("What changed, as data; its form depends on the cause."),
		field.Int64("position").Optional().Nillable().
			Annotations(hidden()).
			Comment("Place in the one order of all changes, in which followers get them; null until it has been given, right after the commit."),
		field.Time("occurred_at").Immutable().Default(time.Now).
			Annotations(entgql.OrderField("OCCURRED_AT")).
			Comment("When it changed."),
	}
}

// Edges of the Transition.
func (Transition) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("site", Site.Type).Ref("transitions").Field("site_id").Unique().Immutable().
			Comment("The object's site."),
		edge.From("machine", Machine.Type).Ref("transitions").Field("machine_id").Unique().
			Annotations(entsql.OnDelete(entsql.SetNull)).
			Comment("The machine that changed, where a machine changed and still exists."),
	}
}

// Indexes of the Transition.
func (Transition) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("subject_id", "sequence").Unique().StorageKey("transitions_subject_id_sequence_key"),
		index.Fields("machine_id", "sequence", "id").StorageKey("transitions_machine_id_sequence_order"),
		index.Fields("sequence", "id").StorageKey("transitions_sequence_id_order"),
		index.Fields("machine_id", "occurred_at", "id").StorageKey("transitions_machine_id_occurred_at_order"),
		index.Fields("site_id", "occurred_at", "id").StorageKey("transitions_site_id_occurred_at_order"),
		index.Fields("occurred_at", "id").StorageKey("transitions_occurred_at_id_order"),
		index.Fields("position").Unique().StorageKey("transitions_position_key"),
		index.Fields("site_id", "position").StorageKey("transitions_site_id_position_feed"),
		index.Fields("subject_id", "sequence").StorageKey("transitions_subject_id_sequence_fresh").
			Annotations(entsql.IndexWhere("(\"position\" IS NULL)")),
	}
}

// Annotations of the Transition.
func (Transition) Annotations() []schema.Annotation {
	return []schema.Annotation{connection(), entgql.QueryField().Description("History of everything at the sites that the caller may see.")}
}
