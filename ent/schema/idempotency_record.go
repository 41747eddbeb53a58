package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"fleetgraph/fleet"
)

// IdempotencyRecord remembers the result of a committed mutation by its caller's
// key, so that a repeat after a lost answer returns it again.
type IdempotencyRecord struct{ ent.Schema }

// Mixin of the IdempotencyRecord.
func (IdempotencyRecord) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{prefix: fleet.PrefixIdempotency}, created{}}
}

// Fields of the IdempotencyRecord.
func (IdempotencyRecord) Fields() []ent.Field {
	return []ent.Field{
		field.String("caller").Immutable().Comment("Id of the token that called."),
		field.String("mutation").Immutable().Comment("Name of the mutation."),
		field.String("key").Immutable().Comment("The caller's key."),
		field.Bytes("input_hash").Immutable().Comment("SHA-256 of the input's canonical form, sealed where the input may hold a secret."),
		field.Strings("result").Optional().Comment("Ids of what the mutation returned; null until it committed."),
	}
}

// Indexes of the IdempotencyRecord.
func (IdempotencyRecord) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("caller", "mutation", "key").Unique().StorageKey("idempotency_records_caller_mutation_key_key"),
		index.Fields("created_at").StorageKey("idempotency_records_created_at_retention"),
	}
}

// Annotations of the IdempotencyRecord.
func (IdempotencyRecord) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }
