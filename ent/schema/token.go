package schema

import (
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"fleetgraph/ent/annotation"
	"fleetgraph/fleet"
)

// Token is an issued bearer token. Only a hash of its secret is stored.
type Token struct{ ent.Schema }

// Mixin of the Token.
func (Token) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{prefix: fleet.PrefixToken}, created{}}
}

// Fields of the Token.
func (Token) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").Immutable().NotEmpty().MaxRuneLen(fleet.MaxNameLength).
			Annotations(entgql.OrderField("NAME")).
			Comment("Name of the token; histories show it as the actor."),
		field.Enum("role").GoType(fleet.Role("")).Immutable().
			Annotations(entgql.Type("Role")).
			Comment("What the bearer may do."),
		field.Bytes("secret_hash").Immutable().Sensitive().Unique().
			Annotations(hidden()).
			Comment("SHA-256 of the secret, which is itself 256 random bits."),
		field.Strings("site_ids").Optional().Immutable().
			Annotations(hidden()).
			Comment("Ids of the sites that the token is bound to; null for all sites."),
		field.String("machine_id").Optional().Nillable().Immutable().
			Comment("Id of the machine that an agent's token is bound to."),
		field.String("bmc_mac_address").Optional().Nillable().Immutable().
			Comment("BMC MAC address that an agent's token is bound to, where it was issued before its machine existed."),
		field.Time("expires_at").Optional().Nillable().Immutable().
			Comment("When the token ends; null for never."),
		field.Time("revoked_at").Optional().Nillable().
			Comment("When the token was revoked; null while it was not."),
		field.String("issued_by").Immutable().
			Comment("Name of the token that issued this one, or the part of the system."),
		field.Time("last_used_at").Optional().Nillable().
			Comment("When the token was last presented, to the minute; null for never."),
		field.Time("updated_at").Default(time.Now).
			Annotations(hidden()).
			Comment("When the row last changed."),
	}
}

// Indexes of the Token.
func (Token) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("name", "id").StorageKey("tokens_name_id_order"),
		index.Fields("created_at", "id").StorageKey("tokens_created_at_id_order"),
	}
}

// Annotations of the Token.
func (Token) Annotations() []schema.Annotation {
	return []schema.Annotation{
		connection(), entgql.QueryField().Description("Issued tokens, without their secrets. For admins."),
		annotation.Resolved("allSites", "site_ids"),
		annotation.Resolved("siteIds", "site_ids"),
	}
}
