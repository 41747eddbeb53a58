package schema

import (
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"fleetgraph/ent/annotation"
	"fleetgraph/fleet"
)

// catalogTest is the type of the tests of kind CATALOG in the graph.
const catalogTest = "CatalogTest"

// ValidationTest is one version of a test that a site can run on its machines. Expect
// new types.
type ValidationTest struct{ ent.Schema }

// Mixin of the ValidationTest.
func (ValidationTest) Mixin() []ent.Mixin {
	return []ent.Mixin{identified{prefix: fleet.PrefixValidationTest}, created{}}
}

// Fields of the ValidationTest. What only one kind has stands at the end, and is empty
// in others.
func (ValidationTest) Fields() []ent.Field {
	builtIn := annotation.OnlyOf(catalogTest)
	return []ent.Field{
		field.String("site_id").Immutable().
			Comment("Id of the test's site."),
		field.Enum("kind").GoType(fleet.ValidationTestKind("")).Immutable().
			Annotations(entgql.Type("ValidationTestKind")).
			Comment("Kind of the test."),
		field.String("test_id").Immutable().NotEmpty().
			Comment("Id of the test at its site, the same in all its versions. Ids that differ only in case are one."),
		field.String("test_key").Immutable().
			Annotations(hidden()).
			Comment("The id in lower case."),
		field.String("version").Immutable().
			Comment("Version of the test, such as V1-T1731382251768493."),
		field.Int("version_number").Immutable().
			Annotations(entgql.OrderField("VERSION_NUMBER")).
			Comment("Number of the version, by which versions are ordered."),
		field.String("name").Immutable().NotEmpty().
			Annotations(entgql.OrderField("NAME")).
			Comment("Name of the test, for people."),
		field.String("description").Immutable().Default("").
			Comment("What the test is for."),
		field.JSON("contexts", []fleet.RunContext{}).Immutable().
			Annotations(entgql.Type("[RunContext!]")).
			Comment("What kinds of run the test is for."),
		field.Strings("supported_platforms").Immutable().
			Comment("Platforms of the machines that the test is for."),
		field.Strings("tags").Immutable().
			Comment("Words by which a run can be limited to some tests."),
		field.Strings("components").Immutable().
			Comment("What the test exercises, such as GPU; for people."),
		field.Int("timeout_seconds").Immutable().
			Annotations(hidden()).
			Comment("How long one attempt may take."),
		field.Int("max_attempts").Immutable().Default(1).
			Comment("How often the test is tried in one run while it cannot be run."),
		field.Bool("enabled").Default(false).
			Comment("Whether an operator has enabled the test; the site's configuration may say otherwise, see effectiveEnabled."),
		field.Bool("verified").Default(false).
			Comment("Whether an administrator has found the test itself to be right."),
		field.Time("verified_at").Optional().Nillable().
			Comment("When the test was verified here; null before, and for tests that came verified."),
		field.String("verified_by").Optional().Nillable().
			Comment("Who verified it; null where verifiedAt is."),
		field.String("modified_by").Default("System").
			Comment("Who last changed it: a token's name, or System."),
		field.Time("modified_at").Default(time.Now).
			Comment("When it was last changed."),

		field.Bool("read_only").Immutable().Default(false).
			Annotations(builtIn).
			Comment("Whether the definition is the product's own; it can be verified, enabled and disabled all the same."),
		field.String("command").Immutable().Default("").
			Annotations(builtIn).
			Comment("Program or shell fragment."),
		field.String("args").Immutable().Default("").
			Annotations(builtIn).
			Comment("What follows the command, after a blank."),
		field.String("pre_condition").Immutable().Optional().Nillable().
			Annotations(builtIn).
			Comment("Program that decides whether the test applies to the machine; null without one."),
		field.String("img_name").Immutable().Optional().Nillable().
			Annotations(builtIn).
			Comment("Image that the command runs in; null where it runs on the host."),
		field.String("container_arg").Immutable().Optional().Nillable().
			Annotations(builtIn).
			Comment("Arguments of the container; null without any."),
		field.Bool("execute_in_host").Immutable().Default(false).
			Annotations(builtIn).
			Comment("Whether the command, in its container, works on the host's file system."),
		field.String("external_config_file").Immutable().Optional().Nillable().
			Annotations(builtIn).
			Comment("Where an external configuration is written before the test; its base name names it. Null without one."),
		field.String("extra_output_file").Immutable().Optional().Nillable().
			Annotations(builtIn).
			Comment("File that the test writes more output to; null without one."),
		field.String("extra_err_file").Immutable().Optional().Nillable().
			Annotations(builtIn).
			Comment("File that the test writes more errors to; null without one."),
	}
}

// Edges of the ValidationTest.
func (ValidationTest) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("site", Site.Type).Ref("validation_tests").Field("site_id").Unique().Required().Immutable().
			Comment("The test's site."),
	}
}

// Indexes of the ValidationTest.
func (ValidationTest) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("site_id", "test_key", "version_number").Unique().StorageKey("validation_tests_site_id_test_key_version_number_key"),
		index.Fields("site_id", "name", "id").StorageKey("validation_tests_site_id_name_order"),
		index.Fields("name", "id").StorageKey("validation_tests_name_id_order"),
		index.Fields("version_number", "id").StorageKey("validation_tests_version_number_id_order"),
		index.Fields("created_at", "id").StorageKey("validation_tests_created_at_id_order"),
		index.Fields("test_id").StorageKey("validation_tests_test_id_filter"),
	}
}

// Annotations of the ValidationTest.
func (ValidationTest) Annotations() []schema.Annotation {
	return []schema.Annotation{
		connection(), entgql.QueryField().Description("Tests, in all their versions, of the sites that the caller may see."),
		annotation.VariantsBy("kind",
			annotation.Variant{Value: string(fleet.TestCatalog), Type: catalogTest, Description: "A test of the built-in catalog: a command on the host, or in a container of the old kind."},
		),
		annotation.Resolved("timeout", "timeout_seconds"),
		annotation.Resolved("effectiveEnabled", "kind", "test_key", "name", "enabled").With("site"),
	}
}
