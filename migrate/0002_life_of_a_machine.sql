-- +goose Up
SET LOCAL lock_timeout = '10s';
-- modify "sites" table: sites that exist validated every machine until now, and go on doing so; keys that are absent
-- have their default
ALTER TABLE "sites" ADD COLUMN "bom_validation" jsonb NOT NULL DEFAULT '{"enabled": true}', ADD COLUMN "machine_validation" jsonb NOT NULL DEFAULT '{}';
ALTER TABLE "sites" ALTER COLUMN "bom_validation" DROP DEFAULT, ALTER COLUMN "machine_validation" DROP DEFAULT;
-- create "allocations" table
CREATE TABLE "allocations" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL, "name" character varying NOT NULL, "site_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "allocations_sites_allocations" FOREIGN KEY ("site_id") REFERENCES "sites" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "allocations_created_at_id_order" to table: "allocations"
CREATE INDEX "allocations_created_at_id_order" ON "allocations" ("created_at", "id");
-- create index "allocations_name_id_order" to table: "allocations"
CREATE INDEX "allocations_name_id_order" ON "allocations" ("name", "id");
-- create index "allocations_site_id_name_key" to table: "allocations"
CREATE UNIQUE INDEX "allocations_site_id_name_key" ON "allocations" ("site_id", "name");
-- modify "machines" table
ALTER TABLE "machines" ADD COLUMN "run_context" character varying NULL, ADD COLUMN "verify_requested_at" timestamptz NULL, ADD COLUMN "last_match_attempt_at" timestamptz NULL, ADD COLUMN "last_generate_attempt_at" timestamptz NULL, ADD COLUMN "attend_at" timestamptz NULL;
-- create index "machines_attend_at_due" to table: "machines"
CREATE INDEX "machines_attend_at_due" ON "machines" ("attend_at");
-- create "allocation_memberships" table
CREATE TABLE "allocation_memberships" ("id" character varying NOT NULL, "site_id" character varying NOT NULL, "machine_name" character varying NOT NULL, "allocated_at" timestamptz NOT NULL, "released_at" timestamptz NULL, "allocation_id" character varying NOT NULL, "machine_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "allocation_memberships_allocations_memberships" FOREIGN KEY ("allocation_id") REFERENCES "allocations" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, CONSTRAINT "allocation_memberships_machines_memberships" FOREIGN KEY ("machine_id") REFERENCES "machines" ("id") ON UPDATE NO ACTION ON DELETE SET NULL);
-- create index "allocation_memberships_allocated_at_id_order" to table: "allocation_memberships"
CREATE INDEX "allocation_memberships_allocated_at_id_order" ON "allocation_memberships" ("allocated_at", "id");
-- create index "allocation_memberships_allocation_id_allocated_at_order" to table: "allocation_memberships"
CREATE INDEX "allocation_memberships_allocation_id_allocated_at_order" ON "allocation_memberships" ("allocation_id", "allocated_at", "id");
-- create index "allocation_memberships_machine_id_allocated_at_order" to table: "allocation_memberships"
CREATE INDEX "allocation_memberships_machine_id_allocated_at_order" ON "allocation_memberships" ("machine_id", "allocated_at", "id");
-- create index "allocation_memberships_machine_id_current_key" to table: "allocation_memberships"
CREATE UNIQUE INDEX "allocation_memberships_machine_id_current_key" ON "allocation_memberships" ("machine_id") WHERE (released_at IS NULL);
-- create "expected_machines" table
CREATE TABLE "expected_machines" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL, "bmc_mac_address" character varying NOT NULL, "bmc_credentials" bytea NULL, "chassis_serial_number" character varying NOT NULL DEFAULT '', "fallback_dpu_serial_numbers" jsonb NOT NULL, "name" character varying NOT NULL DEFAULT '', "description" character varying NOT NULL DEFAULT '', "labels" jsonb NOT NULL, "sku_name" character varying NULL, "host_nics" jsonb NOT NULL, "rack_name" character varying NULL, "default_pause_ingestion_and_poweron" boolean NULL, "dpf_enabled" boolean NULL, "bmc_ip_address" character varying NULL, "bmc_retain_credentials" boolean NULL, "dpu_mode" character varying NULL, "host_lifecycle_profile" jsonb NULL, "revision" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL, "machine_id" character varying NULL, "site_id" character varying NOT NULL, "sku_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "expected_machines_machines_expected_machine" FOREIGN KEY ("machine_id") REFERENCES "machines" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, CONSTRAINT "expected_machines_sites_expected_machines" FOREIGN KEY ("site_id") REFERENCES "sites" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, CONSTRAINT "expected_machines_skus_expected_machines" FOREIGN KEY ("sku_id") REFERENCES "skus" ("id") ON UPDATE NO ACTION ON DELETE SET NULL);
-- create index "expected_machines_bmc_mac_address_id_order" to table: "expected_machines"
CREATE INDEX "expected_machines_bmc_mac_address_id_order" ON "expected_machines" ("bmc_mac_address", "id");
-- create index "expected_machines_chassis_serial_number_filter" to table: "expected_machines"
CREATE INDEX "expected_machines_chassis_serial_number_filter" ON "expected_machines" ("chassis_serial_number");
-- create index "expected_machines_created_at_id_order" to table: "expected_machines"
CREATE INDEX "expected_machines_created_at_id_order" ON "expected_machines" ("created_at", "id");
-- create index "expected_machines_machine_id_key" to table: "expected_machines"
CREATE UNIQUE INDEX "expected_machines_machine_id_key" ON "expected_machines" ("machine_id");
-- create index "expected_machines_site_id_bmc_mac_address_key" to table: "expected_machines"
CREATE UNIQUE INDEX "expected_machines_site_id_bmc_mac_address_key" ON "expected_machines" ("site_id", "bmc_mac_address");
-- create index "expected_machines_site_id_created_at_order" to table: "expected_machines"
CREATE INDEX "expected_machines_site_id_created_at_order" ON "expected_machines" ("site_id", "created_at", "id");
-- create index "expected_machines_site_id_sku_name_lookup" to table: "expected_machines"
CREATE INDEX "expected_machines_site_id_sku_name_lookup" ON "expected_machines" ("site_id", "sku_name");
-- create index "expected_machines_sku_id_filter" to table: "expected_machines"
CREATE INDEX "expected_machines_sku_id_filter" ON "expected_machines" ("sku_id");
-- create index "expected_machines_updated_at_id_order" to table: "expected_machines"
CREATE INDEX "expected_machines_updated_at_id_order" ON "expected_machines" ("updated_at", "id");
-- create "machine_claims" table
CREATE TABLE "machine_claims" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL, "site_id" character varying NOT NULL, "kind" character varying NOT NULL, "holder_id" character varying NOT NULL, "machine_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "machine_claims_machines_claim" FOREIGN KEY ("machine_id") REFERENCES "machines" ("id") ON UPDATE NO ACTION ON DELETE CASCADE);
-- create index "machine_claims_created_at_id_order" to table: "machine_claims"
CREATE INDEX "machine_claims_created_at_id_order" ON "machine_claims" ("created_at", "id");
-- create index "machine_claims_holder_id_lookup" to table: "machine_claims"
CREATE INDEX "machine_claims_holder_id_lookup" ON "machine_claims" ("holder_id");
-- create index "machine_claims_machine_id_key" to table: "machine_claims"
CREATE UNIQUE INDEX "machine_claims_machine_id_key" ON "machine_claims" ("machine_id");
-- create "work_items" table
CREATE TABLE "work_items" ("id" character varying NOT NULL, "site_id" character varying NOT NULL, "kind" character varying NOT NULL, "requested_at" timestamptz NOT NULL, "claimed_at" timestamptz NULL, "finished_at" timestamptz NULL, "outcome" character varying NULL, "error" character varying NOT NULL DEFAULT '', "machine_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "work_items_machines_work_items" FOREIGN KEY ("machine_id") REFERENCES "machines" ("id") ON UPDATE NO ACTION ON DELETE CASCADE);
-- create index "work_items_machine_id_kind_open_key" to table: "work_items"
CREATE UNIQUE INDEX "work_items_machine_id_kind_open_key" ON "work_items" ("machine_id", "kind") WHERE (finished_at IS NULL);
-- create index "work_items_machine_id_requested_at_order" to table: "work_items"
CREATE INDEX "work_items_machine_id_requested_at_order" ON "work_items" ("machine_id", "requested_at");
