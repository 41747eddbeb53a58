-- +goose Up
SET LOCAL lock_timeout = '10s';
-- create "jobs" table
CREATE TABLE "jobs" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL, "kind" character varying NOT NULL, "state" character varying NOT NULL DEFAULT 'PENDING', "actor" character varying NOT NULL, "started_at" timestamptz NULL, "finished_at" timestamptz NULL, "failure" jsonb NULL, "operation" character varying NULL, "sku_name" character varying NULL, "force" boolean NOT NULL DEFAULT false, "total" bigint NOT NULL DEFAULT 0, "succeeded" bigint NOT NULL DEFAULT 0, "failed" bigint NOT NULL DEFAULT 0, "skipped" bigint NOT NULL DEFAULT 0, "sku_id" character varying NULL, "site_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "jobs_sites_jobs" FOREIGN KEY ("site_id") REFERENCES "sites" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, CONSTRAINT "jobs_skus_sku" FOREIGN KEY ("sku_id") REFERENCES "skus" ("id") ON UPDATE NO ACTION ON DELETE SET NULL);
-- create index "jobs_created_at_id_order" to table: "jobs"
CREATE INDEX "jobs_created_at_id_order" ON "jobs" ("created_at", "id");
-- create index "jobs_kind_open" to table: "jobs"
CREATE INDEX "jobs_kind_open" ON "jobs" ("kind") WHERE (finished_at IS NULL);
-- create index "jobs_site_id_created_at_order" to table: "jobs"
CREATE INDEX "jobs_site_id_created_at_order" ON "jobs" ("site_id", "created_at", "id");
-- create index "jobs_site_id_state_filter" to table: "jobs"
CREATE INDEX "jobs_site_id_state_filter" ON "jobs" ("site_id", "state");
-- create index "jobs_sku_id_filter" to table: "jobs"
CREATE INDEX "jobs_sku_id_filter" ON "jobs" ("sku_id");
-- create "bulk_items" table
CREATE TABLE "bulk_items" ("id" character varying NOT NULL, "site_id" character varying NOT NULL, "machine_name" character varying NOT NULL, "outcome" character varying NOT NULL DEFAULT 'PENDING', "code" character varying NULL, "reason" character varying NULL, "message" character varying NOT NULL DEFAULT '', "finished_at" timestamptz NULL, "machine_id" character varying NULL, "job_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "bulk_items_jobs_items" FOREIGN KEY ("job_id") REFERENCES "jobs" ("id") ON UPDATE NO ACTION ON DELETE CASCADE, CONSTRAINT "bulk_items_machines_machine" FOREIGN KEY ("machine_id") REFERENCES "machines" ("id") ON UPDATE NO ACTION ON DELETE SET NULL);
-- create index "bulk_items_job_id_id_order" to table: "bulk_items"
CREATE INDEX "bulk_items_job_id_id_order" ON "bulk_items" ("job_id", "id");
-- create index "bulk_items_job_id_id_pending" to table: "bulk_items"
CREATE INDEX "bulk_items_job_id_id_pending" ON "bulk_items" ("job_id", "id") WHERE ((outcome)::text = 'PENDING'::text);
-- create index "bulk_items_job_id_outcome_filter" to table: "bulk_items"
CREATE INDEX "bulk_items_job_id_outcome_filter" ON "bulk_items" ("job_id", "outcome");
-- create index "bulk_items_machine_id_filter" to table: "bulk_items"
CREATE INDEX "bulk_items_machine_id_filter" ON "bulk_items" ("machine_id");
