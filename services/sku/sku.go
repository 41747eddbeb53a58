package sku

import "fleetgraph/fleet"

// Sku is a hardware description under its name. It is compared, for its whole
// life, by the rules of SchemaVersion.
type Sku struct {
	Name          string
	SchemaVersion int
	Components    fleet.SkuComponents
}

// Supported tells whether version is a schema version that SKUs exist in. An
// older version than the current one can be compared but not created.
func Supported(version int) bool {
	return version >= fleet.OldestSchemaVersion && version <= fleet.CurrentSchemaVersion
}

// CheckVersion refuses a SKU whose version may not be created or replaced: only
// the current version may, unless acceptOlder is set, which imports rows of an
// older installation. The error is INVALID_ARGUMENT.
func CheckVersion(version int, acceptOlder bool) error {
	if version == fleet.CurrentSchemaVersion || acceptOlder && Supported(version) {
		return nil
	}
	return versionError(version)
}

func versionError(version int) error {
	return fleet.Invalid("schemaVersion", "SCHEMA_VERSION_UNSUPPORTED", "SKU version is no longer supported").
		WithDetails(map[string]any{"version": version, "current": fleet.CurrentSchemaVersion})
}
