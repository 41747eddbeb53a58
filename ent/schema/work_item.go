package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"fleetgraph/fleet"
)

// WorkItem is something that a machine's state wants of its host. The agent claims
// it and finishes it.
type WorkItem struct{ ent.Schema }

// Mixin of the WorkItem.
func (WorkItem) Mixin() []ent.Mixin { return []ent.Mixin{identified{prefix: fleet.PrefixWork}} }

// Fields of the WorkItem.
func (WorkItem) Fields() []ent.Field {
	return []ent.Field{
		field.String("site_id").Immutable().Comment("Id of the site."),
		field.String("machine_id").Immutable().Comment("Id of the machine."),
		field.Enum("kind").GoType(fleet.WorkKind("")).Immutable().Comment("What is wanted."),
		field.Time("requested_at").Immutable().Default(time.Now).Comment("Since when it is wanted."),
		field.Time("claimed_at").Optional().Nillable().Comment("When the agent took it; null before."),
		field.Time("finished_at").Optional().Nillable().Comment("When it ended; null before."),
		field.Enum("outcome").GoType(fleet.WorkOutcome("")).Optional().Nillable().Comment("How it ended; null before."),
		field.String("error").Default("").Comment("Why it failed; otherwise empty."),
	}
}

// Edges of the WorkItem.
func (WorkItem) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("machine", Machine.Type).Ref("work_items").Field("machine_id").Unique().Required().Immutable(),
	}
}

// Indexes of the WorkItem.
func (WorkItem) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("machine_id", "kind").Unique().StorageKey("work_items_machine_id_kind_open_key").
			Annotations(entsql.IndexWhere("(finished_at IS NULL)")),
		index.Fields("machine_id", "requested_at").StorageKey("work_items_machine_id_requested_at_order"),
	}
}

// Annotations of the WorkItem.
func (WorkItem) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }
