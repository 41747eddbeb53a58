-- +goose Up
SET LOCAL lock_timeout = '10s';
-- create "validation_tests" table
CREATE TABLE "validation_tests" ("id" character varying NOT NULL, "created_at" timestamptz NOT NULL, "kind" character varying NOT NULL, "test_id" character varying NOT NULL, "test_key" character varying NOT NULL, "version" character varying NOT NULL, "version_number" bigint NOT NULL, "name" character varying NOT NULL, "description" character varying NOT NULL DEFAULT '', "contexts" jsonb NOT NULL, "supported_platforms" jsonb NOT NULL, "tags" jsonb NOT NULL, "components" jsonb NOT NULL, "timeout_seconds" bigint NOT NULL, "max_attempts" bigint NOT NULL DEFAULT 1, "enabled" boolean NOT NULL DEFAULT false, "verified" boolean NOT NULL DEFAULT false, "verified_at" timestamptz NULL, "verified_by" character varying NULL, "modified_by" character varying NOT NULL DEFAULT 'System', "modified_at" timestamptz NOT NULL, "read_only" boolean NOT NULL DEFAULT false, "command" character varying NOT NULL DEFAULT '', "args" character varying NOT NULL DEFAULT '', "pre_condition" character varying NULL, "img_name" character varying NULL, "container_arg" character varying NULL, "execute_in_host" boolean NOT NULL DEFAULT false, "external_config_file" character varying NULL, "extra_output_file" character varying NULL, "extra_err_file" character varying NULL, "site_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "validation_tests_sites_validation_tests" FOREIGN KEY ("site_id") REFERENCES "sites" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION);
-- create index "validation_tests_created_at_id_order" to table: "validation_tests"
CREATE INDEX "validation_tests_created_at_id_order" ON "validation_tests" ("created_at", "id");
-- create index "validation_tests_name_id_order" to table: "validation_tests"
CREATE INDEX "validation_tests_name_id_order" ON "validation_tests" ("name", "id");
-- create index "validation_tests_site_id_name_order" to table: "validation_tests"
CREATE INDEX "validation_tests_site_id_name_order" ON "validation_tests" ("site_id", "name", "id");
-- create index "validation_tests_site_id_test_key_version_number_key" to table: "validation_tests"
CREATE UNIQUE INDEX "validation_tests_site_id_test_key_version_number_key" ON "validation_tests" ("site_id", "test_key", "version_number");
-- create index "validation_tests_test_id_filter" to table: "validation_tests"
CREATE INDEX "validation_tests_test_id_filter" ON "validation_tests" ("test_id");
-- create index "validation_tests_version_number_id_order" to table: "validation_tests"
CREATE INDEX "validation_tests_version_number_id_order" ON "validation_tests" ("version_number", "id");
