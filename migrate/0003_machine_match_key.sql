-- +goose Up
SET LOCAL lock_timeout = '10s';
-- modify "machines" table
ALTER TABLE "machines" ADD COLUMN "match_key" character varying NOT NULL DEFAULT '';
-- create index "machines_site_id_match_key_candidates" to table: "machines"
CREATE INDEX "machines_site_id_match_key_candidates" ON "machines" ("site_id", "match_key");
