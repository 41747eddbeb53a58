-- +goose Up
SET LOCAL lock_timeout = '10s';
-- create "idempotency_records" table
CREATE TABLE "idempotency_records" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL, "caller" character varying NOT NULL, "mutation" character varying NOT NULL, "key" character varying NOT NULL, "input_hash" bytea NOT NULL, "result" jsonb NULL, PRIMARY KEY ("id"));
-- create index "idempotency_records_caller_mutation_key_key" to table: "idempotency_records"
CREATE UNIQUE INDEX "idempotency_records_caller_mutation_key_key" ON "idempotency_records" ("caller", "mutation", "key");
-- create index "idempotency_records_created_at_retention" to table: "idempotency_records"
CREATE INDEX "idempotency_records_created_at_retention" ON "idempotency_records" ("created_at");
-- create "sites" table
CREATE TABLE "sites" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL, "name" character varying NOT NULL, "description" character varying NOT NULL DEFAULT '', "revision" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "sites_created_at_id_order" to table: "sites"
CREATE INDEX "sites_created_at_id_order" ON "sites" ("created_at", "id");
-- create index "sites_name_id_order" to table: "sites"
CREATE INDEX "sites_name_id_order" ON "sites" ("name", "id");
-- create index "sites_name_key" to table: "sites"
CREATE UNIQUE INDEX "sites_name_key" ON "sites" ("name");
-- create index "sites_updated_at_id_order" to table: "sites"
CREATE INDEX "sites_updated_at_id_order" ON "sites" ("updated_at", "id");
-- create "tokens" table
CREATE TABLE "tokens" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL, "name" character varying NOT NULL, "role" character varying NOT NULL, "secret_hash" bytea NOT NULL, "site_ids" jsonb NULL, "machine_id" character varying NULL, "bmc_mac_address" character varying NULL, "expires_at" timestamptz NULL, "revoked_at" timestamptz NULL, "issued_by" character varying NOT NULL, "last_used_at" timestamptz NULL, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "tokens_created_at_id_order" to table: "tokens"
CREATE INDEX "tokens_created_at_id_order" ON "tokens" ("created_at", "id");
-- create index "tokens_name_id_order" to table: "tokens"
CREATE INDEX "tokens_name_id_order" ON "tokens" ("name", "id");
-- create index "tokens_secret_hash_key" to table: "tokens"
CREATE UNIQUE INDEX "tokens_secret_hash_key" ON "tokens" ("secret_hash");
-- create "skus" table
CREATE TABLE "skus" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL, "name" character varying NOT NULL, "description" character varying NOT NULL DEFAULT '', "device_type" character varying NULL, "schema_version" bigint NOT NULL, "components" jsonb NOT NULL, "match_key" character varying NOT NULL, "revision" bigint NOT NULL DEFAULT 1, "updated_at" timestamptz NOT NULL, "site_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "skus_sites_skus" FOREIGN KEY ("site_id") REFERENCES "sites" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "skus_created_at_id_order" to table: "skus"
CREATE INDEX "skus_created_at_id_order" ON "skus" ("created_at", "id");
-- create index "skus_device_type_filter" to table: "skus"
CREATE INDEX "skus_device_type_filter" ON "skus" ("device_type");
-- create index "skus_name_id_order" to table: "skus"
CREATE INDEX "skus_name_id_order" ON "skus" ("name", "id");
-- create index "skus_site_id_created_at_order" to table: "skus"
CREATE INDEX "skus_site_id_created_at_order" ON "skus" ("site_id", "created_at", "id");
-- create index "skus_site_id_match_key_candidates" to table: "skus"
CREATE INDEX "skus_site_id_match_key_candidates" ON "skus" ("site_id", "match_key");
-- create index "skus_site_id_name_key" to table: "skus"
CREATE UNIQUE INDEX "skus_site_id_name_key" ON "skus" ("site_id", "name");
-- create index "skus_updated_at_id_order" to table: "skus"
CREATE INDEX "skus_updated_at_id_order" ON "skus" ("updated_at", "id");
-- create "machines" table
CREATE TABLE "machines" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL, "name" character varying NOT NULL, "bmc_mac_address" character varying NOT NULL, "kind" character varying NOT NULL, "platform" character varying NOT NULL DEFAULT 'default', "serial_number" character varying NOT NULL DEFAULT '', "vendor" character varying NOT NULL DEFAULT '', "model" character varying NOT NULL DEFAULT '', "state" character varying NOT NULL DEFAULT 'INGESTING', "sub_state" character varying NULL, "state_changed_at" timestamptz NOT NULL, "sku_name" character varying NULL, "inventory_document" json NULL, "fabric_ports" jsonb NULL, "inventory_reported_at" timestamptz NULL, "last_verified_at" timestamptz NULL, "last_verification_match" boolean NULL, "updated_at" timestamptz NOT NULL, "site_id" character varying NOT NULL, "sku_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "machines_sites_machines" FOREIGN KEY ("site_id") REFERENCES "sites" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, CONSTRAINT "machines_skus_machines" FOREIGN KEY ("sku_id") REFERENCES "skus" ("id") ON UPDATE NO ACTION ON DELETE RESTRICT);
-- create index "machines_bmc_mac_address_filter" to table: "machines"
CREATE INDEX "machines_bmc_mac_address_filter" ON "machines" ("bmc_mac_address");
-- create index "machines_created_at_id_order" to table: "machines"
CREATE INDEX "machines_created_at_id_order" ON "machines" ("created_at", "id");
-- create index "machines_name_id_order" to table: "machines"
CREATE INDEX "machines_name_id_order" ON "machines" ("name", "id");
-- create index "machines_serial_number_filter" to table: "machines"
CREATE INDEX "machines_serial_number_filter" ON "machines" ("serial_number");
-- create index "machines_site_id_bmc_mac_address_key" to table: "machines"
CREATE UNIQUE INDEX "machines_site_id_bmc_mac_address_key" ON "machines" ("site_id", "bmc_mac_address");
-- create index "machines_site_id_created_at_order" to table: "machines"
CREATE INDEX "machines_site_id_created_at_order" ON "machines" ("site_id", "created_at", "id");
-- create index "machines_site_id_name_key" to table: "machines"
CREATE UNIQUE INDEX "machines_site_id_name_key" ON "machines" ("site_id", "name");
-- create index "machines_site_id_serial_number_lookup" to table: "machines"
CREATE INDEX "machines_site_id_serial_number_lookup" ON "machines" ("site_id", "serial_number");
-- create index "machines_site_id_state_filter" to table: "machines"
CREATE INDEX "machines_site_id_state_filter" ON "machines" ("site_id", "state", "sub_state");
-- create index "machines_sku_id_name_order" to table: "machines"
CREATE INDEX "machines_sku_id_name_order" ON "machines" ("sku_id", "name");
-- create index "machines_sku_name_filter" to table: "machines"
CREATE INDEX "machines_sku_name_filter" ON "machines" ("sku_name");
-- create index "machines_state_changed_at_id_order" to table: "machines"
CREATE INDEX "machines_state_changed_at_id_order" ON "machines" ("state_changed_at", "id");
-- create index "machines_updated_at_id_order" to table: "machines"
CREATE INDEX "machines_updated_at_id_order" ON "machines" ("updated_at", "id");
-- create "health_alerts" table
CREATE TABLE "health_alerts" ("id" character varying NOT NULL, "alert_id" character varying NOT NULL, "source" character varying NOT NULL, "target" character varying NOT NULL DEFAULT '', "message" character varying NOT NULL, "tenant_message" character varying NULL, "classifications" jsonb NOT NULL, "in_alert_since" timestamptz NOT NULL, "machine_id" character varying NOT NULL, "site_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "health_alerts_machines_health_alerts" FOREIGN KEY ("machine_id") REFERENCES "machines" ("id") ON UPDATE NO ACTION ON DELETE CASCADE, CONSTRAINT "health_alerts_sites_health_alerts" FOREIGN KEY ("site_id") REFERENCES "sites" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "health_alerts_alert_id_filter" to table: "health_alerts"
CREATE INDEX "health_alerts_alert_id_filter" ON "health_alerts" ("alert_id");
-- create index "health_alerts_in_alert_since_id_order" to table: "health_alerts"
CREATE INDEX "health_alerts_in_alert_since_id_order" ON "health_alerts" ("in_alert_since", "id");
-- create index "health_alerts_machine_id_source_key" to table: "health_alerts"
CREATE UNIQUE INDEX "health_alerts_machine_id_source_key" ON "health_alerts" ("machine_id", "source", "alert_id", "target");
-- create index "health_alerts_site_id_in_alert_since_order" to table: "health_alerts"
CREATE INDEX "health_alerts_site_id_in_alert_since_order" ON "health_alerts" ("site_id", "in_alert_since", "id");
-- create "transitions" table
CREATE TABLE "transitions" ("id" character varying NOT NULL, "subject_type" character varying NOT NULL, "subject_id" character varying NOT NULL, "sequence" bigint NOT NULL, "from_state" character varying NULL, "to_state" character varying NULL, "cause" character varying NOT NULL, "actor" character varying NOT NULL, "message" character varying NOT NULL DEFAULT '', "details" jsonb NULL, "occurred_at" timestamptz NOT NULL, "machine_id" character varying NULL, "site_id" character varying NULL, PRIMARY KEY ("id"), CONSTRAINT "transitions_machines_transitions" FOREIGN KEY ("machine_id") REFERENCES "machines" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, CONSTRAINT "transitions_sites_transitions" FOREIGN KEY ("site_id") REFERENCES "sites" ("id") ON UPDATE NO ACTION ON DELETE SET NULL);
-- create index "transitions_machine_id_occurred_at_order" to table: "transitions"
CREATE INDEX "transitions_machine_id_occurred_at_order" ON "transitions" ("machine_id", "occurred_at", "id");
-- create index "transitions_machine_id_sequence_order" to table: "transitions"
CREATE INDEX "transitions_machine_id_sequence_order" ON "transitions" ("machine_id", "sequence", "id");
-- create index "transitions_occurred_at_id_order" to table: "transitions"
CREATE INDEX "transitions_occurred_at_id_order" ON "transitions" ("occurred_at", "id");
-- create index "transitions_sequence_id_order" to table: "transitions"
CREATE INDEX "transitions_sequence_id_order" ON "transitions" ("sequence", "id");
-- create index "transitions_site_id_occurred_at_order" to table: "transitions"
CREATE INDEX "transitions_site_id_occurred_at_order" ON "transitions" ("site_id", "occurred_at", "id");
-- create index "transitions_subject_id_sequence_key" to table: "transitions"
CREATE UNIQUE INDEX "transitions_subject_id_sequence_key" ON "transitions" ("subject_id", "sequence");
