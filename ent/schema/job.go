package schema

import (
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

// bulkJob is the type of the jobs of kind BULK in the graph.
const bulkJob = "BulkJob"

// Job is work that a person submitted and that goes on by itself, whatever becomes of
// the process that runs it. Expect new kinds.
type Job struct{ ent.Schema }

// Mixin of the Job.
func (Job) Mixin() []ent.Mixin { return []ent.Mixin{identified{prefix: fleet.PrefixJob}, created{}} }

// Fields of the Job. What only one kind has stands at the end, and is empty in others.
func (Job) Fields() []ent.Field {
	of := annotation.OnlyOf(bulkJob)
	return []ent.Field{
		field.String("site_id").Immutable().
			Comment("Id of the job's site."),
		field.Enum("kind").GoType(fleet.JobKind("")).Immutable().
			Annotations(entgql.Type("JobKind")).
			Comment("Kind of the job."),
		field.Enum("state").GoType(fleet.JobState("")).Default(string(fleet.JobPending)).
			Annotations(entgql.Type("JobState")).
			Comment("How far the job is."),
		field.String("actor").Immutable().
			Comment("Who submitted the job: a token's name. Histories show it for what the job does."),
		field.Time("started_at").Optional().Nillable().
			Comment("When a worker began; null before."),
		field.Time("finished_at").Optional().Nillable().
			Comment("When the job ended; null before."),
		field.JSON("failure", &fleet.JobFailure{}).Optional().
			Annotations(entgql.Type("JobFailure")).
			Comment("Why the job could not go on; null unless it is FAILED."),

		field.Enum("operation").GoType(fleet.BulkOperation("")).Optional().Immutable().
			Annotations(entgql.Type("BulkOperation"), of.NonNull()).
			Comment("What is done to each machine."),
		field.String("sku_id").Optional().Nillable().
			Annotations(of).
			Comment("Id of the SKU concerned; null where any is, or it was deleted since."),
		field.String("sku_name").Optional().Nillable().Immutable().
			Annotations(of).
			Comment("Name of the SKU concerned; null where any is."),
		field.Bool("force").Default(false).Immutable().
			Annotations(of).
			Comment("Whether the machines' present SKUs and states do not matter."),
		field.Int("total").Default(0).Immutable().
			Annotations(of).
			Comment("Number of machines, fixed when the job was submitted."),
		field.Int("succeeded").Default(0).
			Annotations(of).
			Comment("Number of machines that were changed."),
		field.Int("failed").Default(0).
			Annotations(of).
			Comment("Number of machines whose change was refused."),
		field.Int("skipped").Default(0).
			Annotations(of).
			Comment("Number of machines with nothing to change."),
	}
}

// Edges of the Job.
func (Job) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("site", Site.Type).Ref("jobs").Field("site_id").Unique().Required().Immutable().
			Comment("The job's site."),
		edge.To("sku", Sku.Type).Field("sku_id").Unique().
			Annotations(entsql.OnDelete(entsql.SetNull), annotation.OnlyOf(bulkJob)).
			Comment("The SKU concerned; null where any is, or it was deleted since."),
		edge.To("items", BulkItem.Type).Annotations(connection(), cascade(), annotation.OnlyOf(bulkJob)).
			Comment("What becomes of each machine. The order of their ids is that of the machines' names, and that of their turns."),
	}
}

// Indexes of the Job.
func (Job) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("site_id", "created_at", "id").StorageKey("jobs_site_id_created_at_order"),
		index.Fields("created_at", "id").StorageKey("jobs_created_at_id_order"),
		index.Fields("site_id", "state").StorageKey("jobs_site_id_state_filter"),
		index.Fields("sku_id").StorageKey("jobs_sku_id_filter"),
		index.Fields("kind").StorageKey("jobs_kind_open").
			Annotations(entsql.IndexWhere("(finished_at IS NULL)")),
	}
}

// Annotations of the Job.
func (Job) Annotations() []schema.Annotation {
	return []schema.Annotation{
		connection(), entgql.QueryField().Description("Jobs at the sites that the caller may see."),
		annotation.VariantsBy("kind", annotation.Variant{
			Value: string(fleet.JobBulk), Type: bulkJob, Description: "One change of many machines of a site, which were chosen by a filter.",
		}),
		annotation.Resolved("summary", "state", "operation", "sku_name", "total", "succeeded", "failed", "skipped"),
		annotation.Resolved("done", "succeeded", "failed", "skipped"),
	}
}

// BulkItem is one machine of a bulk job, and what became of it.
type BulkItem struct{ ent.Schema }

// Mixin of the BulkItem.
func (BulkItem) Mixin() []ent.Mixin { return []ent.Mixin{identified{prefix: fleet.PrefixBulkItem}} }

// Fields of the BulkItem.
func (BulkItem) Fields() []ent.Field {
	return []ent.Field{
		field.String("site_id").Immutable().
			Annotations(hidden()).
			Comment("Id of the site."),
		field.String("job_id").Immutable().
			Comment("Id of the job."),
		field.String("machine_id").Optional().Nillable().
			Comment("Id of the machine; null when it was deleted since."),
		field.String("machine_name").Immutable().
			Comment("Name of the machine when the job was submitted."),
		field.Enum("outcome").GoType(fleet.BulkOutcome("")).Default(string(fleet.BulkPending)).
			Annotations(entgql.Type("BulkOutcome")).
			Comment("What became of the machine."),
		field.String("code").Optional().Nillable().
			Comment("Class of the refusal, as in an error's extensions; null without one."),
		field.String("reason").Optional().Nillable().
			Comment("Stable word for why the machine was not changed; null where it was, or its turn has not come."),
		field.String("message").Default("").
			Comment("Why the machine was not changed, for a person; otherwise empty."),
		field.Time("finished_at").Optional().Nillable().
			Comment("When the outcome came about; null before."),
	}
}

// Edges of the BulkItem.
func (BulkItem) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("job", Job.Type).Ref("items").Field("job_id").Unique().Required().Immutable().
			Annotations(hidden()),
		edge.To("machine", Machine.Type).Field("machine_id").Unique().
			Annotations(entsql.OnDelete(entsql.SetNull)).
			Comment("The machine; null when it was deleted since."),
	}
}

// Indexes of the BulkItem.
func (BulkItem) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("job_id", "id").StorageKey("bulk_items_job_id_id_order"),
		index.Fields("job_id", "outcome").StorageKey("bulk_items_job_id_outcome_filter"),
		index.Fields("job_id", "id").StorageKey("bulk_items_job_id_id_pending").
			Annotations(entsql.IndexWhere("((outcome)::text = 'PENDING'::text)")),
		index.Fields("machine_id").StorageKey("bulk_items_machine_id_filter"),
	}
}

// Annotations of the BulkItem.
func (BulkItem) Annotations() []schema.Annotation { return []schema.Annotation{connection()} }
