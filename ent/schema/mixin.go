// Package schema declares the entities. It holds shape only: fields, edges,
// indexes and their GraphQL names. Rules live in services; there are no hooks,
// policies or interceptors here.
package schema

import (
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/mixin"

	"fleetgraph/ent/annotation"
	"fleetgraph/fleet"
)

// identified gives an entity its opaque, typed and time-sortable id.
type identified struct {
	mixin.Schema
	prefix string
}

func (m identified) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").Immutable().MaxLen(64).
			DefaultFunc(func() string { return fleet.NewID(m.prefix) }).
			Comment("Opaque global id; its prefix tells the type and it sorts by creation time."),
	}
}

// Annotations let node(id) find the entity by the prefix of its ids.
func (m identified) Annotations() []schema.Annotation {
	return []schema.Annotation{annotation.IDPrefix(m.prefix)}
}

// created stamps when an entity was made.
type created struct{ mixin.Schema }

func (created) Fields() []ent.Field {
	return []ent.Field{
		field.Time("created_at").Immutable().Default(time.Now).
			Annotations(entgql.OrderField("CREATED_AT")).
			Comment("When it was created, by the server's clock."),
	}
}

// connection is the annotation of every entity that the graph lists.
func connection() schema.Annotation { return entgql.RelayConnection() }

// hidden keeps a field or an edge out of the graph altogether.
func hidden() schema.Annotation { return entgql.Skip(entgql.SkipAll) }

// unfiltered shows a field in its type but not in filters.
func unfiltered() schema.Annotation { return entgql.Skip(entgql.SkipWhereInput) }

// cascade deletes a row with the one that its edge points at.
func cascade() schema.Annotation { return entsql.OnDelete(entsql.Cascade) }
