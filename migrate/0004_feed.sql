-- +goose Up
SET LOCAL lock_timeout = '10s';
-- modify "transitions" table
ALTER TABLE "transitions" ADD COLUMN "position" bigint NULL;
-- create index "transitions_position_key" to table: "transitions"
CREATE UNIQUE INDEX "transitions_position_key" ON "transitions" ("position");
-- create index "transitions_site_id_position_feed" to table: "transitions"
CREATE INDEX "transitions_site_id_position_feed" ON "transitions" ("site_id", "position");
-- create index "transitions_subject_id_sequence_fresh" to table: "transitions"
CREATE INDEX "transitions_subject_id_sequence_fresh" ON "transitions" ("subject_id", "sequence") WHERE ("position" IS NULL);
