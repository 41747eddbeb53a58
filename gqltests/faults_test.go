package gqltests_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

// mutation is what the faults of one mutation are derived from: an input that it
// accepts, who may call it, and what of the input can be wrong beyond its types.
type mutation struct {
	name, payload string
	role          string // the smallest that may call it
	as            string // secret of the agent that calls it, where only an agent may
	input         variables
	forceable     bool // force needs an admin
	faults        []invalid
	references    []reference
}

// invalid is a change that makes the input INVALID_ARGUMENT. A change to nil is
// null; every key of the change is set.
type invalid struct {
	name   string
	change variables
	reason string
	field  string
}

// reference is an id within the input.
type reference struct {
	field   string
	prefix  string
	reason  string // of NOT_FOUND
	foreign string // an id of the other site
	set     func(id string) variables
	base    variables // instead of the mutation's input
}

// enum is a value of an enum, which a literal writes without quotes.
type enum string

func (m mutation) document() string {
	return "mutation($input: " + m.inputType() + "!) { " + m.name + "(input: $input) { " + m.payload + " } }"
}

func (m mutation) inputType() string { return strings.ToUpper(m.name[:1]) + m.name[1:] + "Input" }

func (m mutation) literal(input any) string {
	return "mutation { " + m.name + "(input: " + literal(input) + ") { " + m.payload + " } }"
}

const (
	validation = "GRAPHQL_VALIDATION_FAILED"
	tooLong    = 4097
)

// tokenForm is a token of a GraphQL document.
var tokenForm = regexp.MustCompile(`[A-Za-z_]\w*|"(?:[^"\\]|\\.)*"|[-\d.]+|[{}\[\]():!$]`)

// single is the setter of an id that stands in a field of its own.
func single(field string) func(string) variables {
	return func(id string) variables { return variables{field: id} }
}

// mutations is the table: every mutation of the schema, in an order in which all
// inputs succeed one after the other.
func mutations(t *testing.T, h *hall) []mutation {
	t.Helper()
	site := reference{field: "siteId", prefix: fleet.PrefixSite, reason: "SITE_NOT_FOUND", foreign: h.there.id, set: single("siteId")}
	sku := reference{field: "skuId", prefix: fleet.PrefixSku, reason: "SKU_NOT_FOUND", foreign: h.there.spare, set: single("skuId")}
	ready := reference{field: "machineId", prefix: fleet.PrefixMachine, reason: "MACHINE_NOT_FOUND", foreign: h.there.ready.ID, set: single("machineId")}
	waiting := reference{field: "machineId", prefix: fleet.PrefixMachine, reason: "MACHINE_NOT_FOUND", foreign: h.there.waiting.ID, set: single("machineId")}
	components := h.generate(t, h.here.waiting.ID)
	name := namesRefused("name", fleet.MaxNameLength)
	description := textRefused("description")
	skuName := namesRefused("name", fleet.MaxSkuNameLength)
	deviceType := namesRefused("deviceType", fleet.MaxSkuNameLength)
	version := []invalid{
		{"a schema version of the past", variables{"schemaVersion": 4}, "SCHEMA_VERSION_UNSUPPORTED", "schemaVersion"},
		{"a schema version of the future", variables{"schemaVersion": 6}, "SCHEMA_VERSION_UNSUPPORTED", "schemaVersion"},
		{"a negative schema version", variables{"schemaVersion": -1}, "SCHEMA_VERSION_UNSUPPORTED", "schemaVersion"},
	}
	batch := func(item variables) variables {
		return variables{"skus": []variables{{"name": "b1", "components": ofChassis(components, "B1")}, merged(variables{"name": "b2", "components": ofChassis(components, "B2")}, item)}}
	}
	inBatch := func(faults []invalid) []invalid {
		out := make([]invalid, len(faults))
		for i, f := range faults {
			out[i] = invalid{f.name, batch(f.change), f.reason, "skus.1." + f.field}
		}
		return out
	}
	of := func(faults ...[]invalid) []invalid { return slices.Concat(faults...) }
	agent := variables{"name": "t", "role": enum("AGENT")}
	report := h.inventoryInput(t)
	return []mutation{
		{
			name: "createSite", payload: "site { id }", role: "ADMIN", input: variables{"name": "third", "description": "d"},
			faults: of(name, description),
		},
		{
			name: "updateSite", payload: "site { id }", role: "ADMIN",
			input:      variables{"siteId": h.here.id, "name": "here", "description": "new", "expectedRevision": 2},
			faults:     of(name, description, []invalid{{"name null", variables{"name": nil}, "NULL_NOT_ALLOWED", "name"}}, configurationsRefused()),
			references: []reference{site},
		},
		{
			name: "createSku", payload: "sku { id }", role: "ADMIN",
			input:      variables{"siteId": h.here.id, "name": "n", "description": "d", "deviceType": "t", "schemaVersion": 5, "components": ofChassis(components, "C")},
			faults:     of(skuName, description, deviceType, version, componentsRefused(components)),
			references: []reference{site},
		},
		{
			name: "createSkus", payload: "skus { id }", role: "ADMIN",
			input: merged(variables{"siteId": h.here.id, "acceptOlderVersions": false}, batch(nil)),
			faults: of(inBatch(of(skuName, description, deviceType, version, componentsRefused(components))), []invalid{
				{"no SKU", variables{"skus": []any{}}, "BATCH_SIZE", "skus"},
				{"too many SKUs", variables{"skus": slices.Repeat([]any{variables{"name": "s", "components": variables{"chassis": variables{"vendor": "v", "model": "m", "architecture": "a"}}}}, 501)}, "BATCH_SIZE", "skus"},
				{"a name twice", batch(variables{"name": "b1"}), "DUPLICATE", "skus.1.name"},
				{"a version that never was", merged(batch(variables{"schemaVersion": -1}), variables{"acceptOlderVersions": true}), "SCHEMA_VERSION_UNSUPPORTED", "skus.1.schemaVersion"},
			}),
			references: []reference{site},
		},
		{
			name: "replaceSku", payload: "sku { id }", role: "ADMIN",
			input:      variables{"skuId": h.here.spare, "components": ofChassis(components, "R"), "description": "d", "deviceType": "t", "schemaVersion": 5, "expectedRevision": 1},
			faults:     of(description, deviceType, version, componentsRefused(components)),
			references: []reference{sku},
		},
		{
			name: "updateSkuMetadata", payload: "sku { id }", role: "ADMIN",
			input:      variables{"skuId": h.here.spare, "description": "e", "deviceType": "u", "expectedRevision": 2},
			faults:     of(description, deviceType),
			references: []reference{sku},
		},
		{
			name: "verifyMachineSku", payload: "machine { id }", role: "OPERATOR",
			input: variables{"machineId": h.here.ready.ID}, references: []reference{ready},
		},
		{
			name: "unassignSku", payload: "machine { id }", role: "OPERATOR", forceable: true,
			input: variables{"machineId": h.here.fresh, "force": false}, references: []reference{ready},
		},
		{
			name: "assignSku", payload: "machine { id }", role: "OPERATOR", forceable: true,
			input: variables{"machineId": h.here.waiting.ID, "skuId": h.here.spare, "force": false}, references: []reference{waiting, sku},
		},
		{
			name: "reportInventory", payload: "machine { id }", role: "OPERATOR", input: report,
			faults: of(name, namesRefused("name", fleet.MaxNameLength), macsRefused(), []invalid{
				{"inventory a string", variables{"inventory": "x"}, "INVENTORY_INVALID", "inventory"},
				{"inventory a list", variables{"inventory": []any{}}, "INVENTORY_INVALID", "inventory"},
				{"inventory a number", variables{"inventory": 1}, "INVENTORY_INVALID", "inventory"},
				{"a list that is an object", variables{"inventory": variables{"gpus": variables{}}}, "INVENTORY_INVALID", "inventory.gpus"},
				{"a text that is a number", variables{"inventory": variables{"machine_type": 1}}, "INVENTORY_INVALID", "inventory.machine_type"},
				{"a negative count", variables{"inventory": variables{"cpu_info": []any{variables{"sockets": -1}}}}, "INVENTORY_INVALID", "inventory.cpu_info.0.sockets"},
				{"an absurd size", variables{"inventory": variables{"nvme_devices": []any{variables{"size_mb": 1 << 53}}}}, "INVENTORY_INVALID", "inventory.nvme_devices.0.size_mb"},
				{"a fraction", variables{"inventory": variables{"memory_devices": []any{variables{"size_mb": 1.5}}}}, "INVENTORY_INVALID", "inventory.memory_devices.size_mb"},
				{"an absurdly long list", variables{"inventory": variables{"gpus": slices.Repeat([]any{variables{}}, 4097)}}, "INVENTORY_TOO_LARGE", "inventory.gpus"},
				{"a serial number of a page", variables{"inventory": variables{"dmi_data": variables{"product_serial": distinct(10_000)}}}, "INVENTORY_INVALID", "inventory.dmi_data.product_serial"},
				{"a GUID empty", ports(variables{"guid": "", "lid": 1}), "GUID_INVALID", "fabricPorts.0.guid"},
				{"a GUID of a page", ports(variables{"guid": strings.Repeat("a", 65), "lid": 1}), "GUID_INVALID", "fabricPorts.0.guid"},
				{"a GUID with NUL", ports(variables{"guid": "a\x00b", "lid": 1}), "GUID_INVALID", "fabricPorts.0.guid"},
				{"a GUID twice", ports(variables{"guid": "a", "lid": 1}, variables{"guid": "a", "lid": 2}), "DUPLICATE", "fabricPorts.1.guid"},
				{"a LID too small", ports(variables{"guid": "a", "lid": -1}), "LID_INVALID", "fabricPorts.0.lid"},
				{"a LID too large", ports(variables{"guid": "a", "lid": 65536}), "LID_INVALID", "fabricPorts.0.lid"},
				{"a LID missing", ports(variables{"guid": "a"}), validation, "fabricPorts.0.lid"},
				{"a port null", variables{"fabricPorts": []any{nil}}, validation, "fabricPorts.0"},
			}),
			references: []reference{site},
		},
		{
			name: "issueToken", payload: "token { id }", role: "ADMIN",
			input: variables{"name": "t", "role": enum("VIEWER"), "siteIds": []any{h.here.id}, "expiresIn": "1h"},
			faults: of(name, macsRefusedIn(agent, h.here.id), []invalid{
				{"no site", variables{"siteIds": []any{}}, "LIST_EMPTY", "siteIds"},
				{"a site twice", variables{"siteIds": []any{h.here.id, h.here.id}}, "DUPLICATE", "siteIds.1"},
				{"a site null", variables{"siteIds": []any{nil}}, validation, "siteIds.0"},
				{"a name of a part of the server", variables{"name": "system:advance"}, "NAME_RESERVED", "name"},
				{"the same in other letters", variables{"name": "System:Advance"}, "NAME_RESERVED", "name"},
				{"no time at all", variables{"expiresIn": "0s"}, "DURATION_INVALID", "expiresIn"},
				{"more than ten years", variables{"expiresIn": "3651d"}, "DURATION_INVALID", "expiresIn"},
				{"a duration with a sign", variables{"expiresIn": "-1h"}, "VALUE_INVALID", "expiresIn"},
				{"a duration of a page", variables{"expiresIn": strings.Repeat("1x", 10_000)}, "VALUE_INVALID", "expiresIn"},
				{"a duration without a unit", variables{"expiresIn": "10"}, "VALUE_INVALID", "expiresIn"},
				{"a machine for a viewer", variables{"machineId": h.here.ready.ID}, "NOT_AN_AGENT", "machineId"},
				{"an empty machine for a viewer", variables{"machineId": ""}, "NOT_AN_AGENT", "machineId"},
				{"one site for a viewer", variables{"siteId": h.here.id}, "NOT_AN_AGENT", "siteId"},
				{"a BMC for a viewer", variables{"bmcMacAddress": readyMac}, "NOT_AN_AGENT", "bmcMacAddress"},
				{"sites for an agent", variables{"role": enum("AGENT"), "machineId": h.here.ready.ID}, "AGENT_BINDING", "siteIds"},
				{"an agent of nothing", merged(agent, variables{"siteIds": nil}), "AGENT_BINDING", "machineId"},
				{"an agent of two things", merged(agent, variables{"siteIds": nil, "machineId": h.here.ready.ID, "siteId": h.here.id, "bmcMacAddress": readyMac}), "AGENT_BINDING", "machineId"},
				{"an agent without its BMC", merged(agent, variables{"siteIds": nil, "siteId": h.here.id}), "AGENT_BINDING", "bmcMacAddress"},
				{"an agent without its site", merged(agent, variables{"siteIds": nil, "bmcMacAddress": readyMac}), "AGENT_BINDING", "siteId"},
			}),
			references: []reference{
				{field: "siteIds.0", prefix: fleet.PrefixSite, reason: "SITE_NOT_FOUND", foreign: h.there.id, set: func(id string) variables { return variables{"siteIds": []any{id}} }},
				{field: "siteId", prefix: fleet.PrefixSite, reason: "SITE_NOT_FOUND", foreign: h.there.id, set: single("siteId"), base: merged(agent, variables{"bmcMacAddress": readyMac})},
				{field: "machineId", prefix: fleet.PrefixMachine, reason: "MACHINE_NOT_FOUND", foreign: h.there.ready.ID, set: single("machineId"), base: agent},
			},
		},
		{
			name: "revokeToken", payload: "token { id }", role: "ADMIN", input: variables{"tokenId": h.here.token},
			references: []reference{{field: "tokenId", prefix: fleet.PrefixToken, reason: "TOKEN_NOT_FOUND", foreign: h.there.token, set: single("tokenId")}},
		},
		{
			name: "allocateMachine", payload: "machine { id }", role: "OPERATOR",
			input:  variables{"machineId": h.here.free, "allocationName": "tenant"},
			faults: namesRefused("allocationName", fleet.MaxNameLength), references: []reference{ready},
		},
		{
			name: "releaseMachine", payload: "machine { id }", role: "OPERATOR",
			input: variables{"machineId": h.here.taken}, references: []reference{ready},
		},
		{
			name: "deleteMachine", payload: "deletedMachineId", role: "ADMIN",
			input: variables{"machineId": h.here.gone}, references: []reference{ready},
		},
		{
			name: "raiseHealthAlert", payload: "healthAlert { id }", role: "OPERATOR",
			input: variables{"machineId": h.here.waiting.ID, "alertId": "Fan", "source": "monitor", "target": "fan 1", "message": "slow", "tenantMessage": "m", "classifications": []any{"PREVENT_ALLOCATIONS"}},
			faults: of(namesRefused("alertId", fleet.MaxNameLength), namesRefused("source", fleet.MaxNameLength), textRefused("message"), textRefused("tenantMessage"), []invalid{
				{"a source of the system", variables{"source": "sku-validation"}, "SOURCE_RESERVED", "source"},
				{"no message", variables{"message": " "}, "TEXT_INVALID", "message"},
				{"target too long", variables{"target": strings.Repeat("t", 257)}, "NAME_INVALID", "target"},
				{"a classification in lower case", variables{"classifications": []any{"PreventAllocations"}}, "CLASSIFICATION_INVALID", "classifications"},
				{"a classification twice", variables{"classifications": []any{"A", "A"}}, "CLASSIFICATION_INVALID", "classifications"},
				{"too many classifications", variables{"classifications": slices.Repeat([]any{"A"}, 17)}, "LIST_TOO_LONG", "classifications"},
			}),
			references: []reference{waiting},
		},
		{
			name: "clearHealthAlert", payload: "machine { id }", role: "OPERATOR", input: variables{"healthAlertId": h.here.alert},
			references: []reference{{field: "healthAlertId", prefix: fleet.PrefixHealthAlert, reason: "ALERT_NOT_FOUND", foreign: h.there.alert, set: single("healthAlertId")}},
		},
		{
			name: "claimWork", payload: "work { id }", role: "AGENT", as: h.here.worker, input: variables{"machineId": h.here.working}, references: []reference{ready},
		},
		{
			name: "finishWork", payload: "work { id outcome }", role: "AGENT", as: h.here.worker,
			input: variables{"workId": h.here.work, "outcome": enum("FAILED"), "error": "e"},
			faults: []invalid{
				{"an error with NUL", variables{"error": "a\x00b"}, "TEXT_INVALID", "error"},
				{"an error of a book", variables{"error": strings.Repeat("e", 4097)}, "TEXT_TOO_LONG", "error"},
				{"an error of what succeeded", variables{"outcome": enum("SUCCEEDED")}, "ERROR_NOT_ALLOWED", "error"},
			},
			references: []reference{{field: "workId", prefix: fleet.PrefixWork, reason: "WORK_NOT_FOUND", foreign: h.there.work, set: single("workId")}},
		},
		{
			name: "bulkAssignSku", payload: "job { id }", role: "OPERATOR", forceable: true,
			input:      variables{"siteId": h.here.id, "skuId": h.here.spare, "where": variables{"name": "nobody"}, "all": false, "force": false, "dryRun": false},
			faults:     bulkRefused(),
			references: []reference{site, sku},
		},
		{
			name: "bulkUnassignSku", payload: "job { id }", role: "OPERATOR", forceable: true,
			input:      variables{"siteId": h.here.id, "skuId": h.here.spare, "where": variables{}, "all": true, "force": false, "dryRun": false},
			faults:     bulkRefused(),
			references: []reference{site, sku},
		},
		{
			name: "cancelJob", payload: "job { id }", role: "OPERATOR", input: variables{"jobId": h.here.job},
			references: []reference{{field: "jobId", prefix: fleet.PrefixJob, reason: "JOB_NOT_FOUND", foreign: h.there.job, set: single("jobId")}},
		},
		{
			name: "verifyTest", payload: "test { id }", role: "ADMIN", input: variables{"validationTestId": h.here.unverified},
			references: []reference{{field: "validationTestId", prefix: fleet.PrefixValidationTest, reason: "TEST_NOT_FOUND", foreign: h.there.unverified, set: single("validationTestId")}},
		},
		{
			name: "enableTest", payload: "test { id }", role: "ADMIN", input: variables{"validationTestId": h.here.disabled},
			references: []reference{{field: "validationTestId", prefix: fleet.PrefixValidationTest, reason: "TEST_NOT_FOUND", foreign: h.there.disabled, set: single("validationTestId")}},
		},
		{
			name: "disableTest", payload: "test { id }", role: "ADMIN", input: variables{"validationTestId": h.here.enabled},
			references: []reference{{field: "validationTestId", prefix: fleet.PrefixValidationTest, reason: "TEST_NOT_FOUND", foreign: h.there.enabled, set: single("validationTestId")}},
		},
		{
			name: "deleteSku", payload: "deletedSkuId", role: "ADMIN", input: variables{"skuId": h.here.deletable}, references: []reference{sku},
		},
		{
			name: "createExpectedMachine", payload: "expectedMachine { id }", role: "ADMIN",
			input: variables{"siteId": h.here.id, "expectedMachine": everythingNamed(1), "allowUnknownSku": true},
			faults: expectedRefused(func(change variables) variables {
				return variables{"expectedMachine": merged(everythingNamed(1), change)}
			}, ""),
			references: []reference{site},
		},
		{
			name: "updateExpectedMachine", payload: "expectedMachine { id }", role: "ADMIN",
			input:      variables{"expectedMachineId": h.here.expected, "patch": variables{"description": "d", "skuName": nil}, "expectedRevision": 1},
			faults:     expectedRefused(func(change variables) variables { return variables{"patch": change} }, ""),
			references: []reference{{field: "expectedMachineId", prefix: fleet.PrefixExpected, reason: "EXPECTED_MACHINE_NOT_FOUND", foreign: h.there.expected, set: single("expectedMachineId")}},
		},
		{
			name: "createExpectedMachines", payload: "expectedMachines { id }", role: "ADMIN",
			input: variables{"siteId": h.here.id, "expectedMachines": []any{everythingNamed(2), everythingNamed(3)}, "allowUnknownSku": true},
			faults: of(expectedRefused(func(change variables) variables {
				return variables{"expectedMachines": []any{everythingNamed(2), merged(everythingNamed(3), change)}}
			}, "expectedMachines"), []invalid{
				{"none", variables{"expectedMachines": []any{}}, "BATCH_SIZE", "expectedMachines"},
				{"too many", variables{"expectedMachines": slices.Repeat([]any{variables{"bmcMacAddress": bmc(2)}}, 101)}, "BATCH_SIZE", "expectedMachines"},
				{"one twice", variables{"expectedMachines": []any{everythingNamed(2), everythingNamed(2)}}, "BATCH_INVALID", "expectedMachines"},
				{"one null", variables{"expectedMachines": []any{everythingNamed(2), nil}}, validation, "expectedMachines.1"},
			}),
			references: []reference{site},
		},
		{
			name: "updateExpectedMachines", payload: "expectedMachines { id }", role: "ADMIN",
			input: variables{"siteId": h.here.id, "updates": []any{
				variables{"expectedMachineId": h.here.expected, "patch": variables{"name": "n1"}, "expectedRevision": 2},
				variables{"expectedMachineId": h.here.surplus, "patch": variables{"name": "n2"}},
			}},
			faults: of(expectedRefused(func(change variables) variables {
				return variables{"updates": []any{variables{"expectedMachineId": h.here.expected, "patch": change}}}
			}, "updates"), []invalid{
				{"none", variables{"updates": []any{}}, "BATCH_SIZE", "updates"},
				{"too many", variables{"updates": slices.Repeat([]any{variables{"expectedMachineId": h.here.expected, "patch": variables{}}}, 101)}, "BATCH_SIZE", "updates"},
				{"one of the other site", variables{"updates": []any{variables{"expectedMachineId": h.there.expected, "patch": variables{}}}}, "BATCH_INVALID", "updates"},
				{"an id that is none", variables{"updates": []any{variables{"expectedMachineId": "x", "patch": variables{}}}}, "BATCH_INVALID", "updates"},
				{"no patch", variables{"updates": []any{variables{"expectedMachineId": h.here.expected, "patch": nil}}}, validation, "updates.0.patch"},
			}),
			references: []reference{site},
		},
		{
			name: "deleteExpectedMachine", payload: "deletedExpectedMachineId", role: "ADMIN", input: variables{"expectedMachineId": h.here.surplus},
			references: []reference{{field: "expectedMachineId", prefix: fleet.PrefixExpected, reason: "EXPECTED_MACHINE_NOT_FOUND", foreign: h.there.expected, set: single("expectedMachineId")}},
		},
		{
			name: "replaceAllExpectedMachines", payload: "createdCount deletedCount", role: "ADMIN",
			input: variables{"siteId": h.here.id, "expectedCount": 4, "expectedMachines": []any{everythingNamed(4)}, "allowUnknownSku": true},
			faults: of(expectedRefused(func(change variables) variables {
				return variables{"expectedMachines": []any{everythingNamed(4), merged(everythingNamed(5), change)}}
			}, "expectedMachines.1."), []invalid{
				{"one twice", variables{"expectedMachines": []any{everythingNamed(4), everythingNamed(4)}}, "DUPLICATE", "expectedMachines.1.bmcMacAddress"},
			}),
			references: []reference{site},
		},
	}
}

// bulkRefused are faults of the filter of a bulk change.
func bulkRefused() []invalid {
	filter := func(where variables) variables { return variables{"where": where, "all": false} }
	nested := variables{"name": "n"}
	for range 8 {
		nested = variables{"not": nested}
	}
	return []invalid{
		{"a filter without a condition", filter(variables{}), "FILTER_EMPTY", "where"},
		{"a filter of null", filter(variables{"name": nil}), "FILTER_EMPTY", "where"},
		{"a filter, and all", variables{"where": variables{"name": "n"}, "all": true}, "FILTER_NOT_EMPTY", "all"},
		{"an empty filter in a list", filter(variables{"or": []any{variables{}}}), "WHERE_EMPTY", "where"},
		{"an empty list of filters", filter(variables{"and": []any{}}), "WHERE_EMPTY", "where"},
		{"an empty beginning, which all names have", filter(variables{"nameHasPrefix": ""}), "WHERE_TEXT_EMPTY", "where"},
		{"the same in filters", filter(variables{"and": []any{variables{"not": variables{"not": variables{"nameContains": ""}}}}}), "WHERE_TEXT_EMPTY", "where"},
		{"a filter too deep", filter(nested), "WHERE_TOO_DEEP", "where"},
		{"a name with NUL", filter(variables{"name": "a\x00b"}), "WHERE_TEXT_INVALID", "where"},
		{"a list too long", filter(variables{"nameIn": slices.Repeat([]any{"n"}, 501)}), "WHERE_LIST_TOO_LONG", "where"},
		{"a state that is none", filter(variables{"stateIn": []any{enum("BROKEN")}}), validation, "where.stateIn.0"},
		{"a field that is none", filter(variables{"colour": "red"}), validation, "where.colour"},
	}
}

// everythingNamed is an item with every field, whose SKU need not exist, as a literal
// can have it.
func everythingNamed(n int) variables {
	return merged(everything(bmc(0x100+n)), variables{"dpuMode": enum("NO_DPU")})
}

// expectedRefused are faults of an expected machine within the input that with makes.
// They are at their own field below a path that ends in a dot or is empty; any other
// path is the list of a batch, whose errors are in details.
func expectedRefused(with func(variables) variables, path string) []invalid {
	out := []invalid{}
	for name, c := range refusedItems() {
		reason, field := c.reason, path+c.field
		if path != "" && !strings.HasSuffix(path, ".") {
			reason, field = "BATCH_INVALID", path
		}
		change := c.change
		for one, other := range map[string]string{"bmcUsername": "bmcPassword", "bmcPassword": "bmcUsername"} {
			if _, ok := c.change[other]; ok && c.reason == "CREDENTIALS_INCOMPLETE" {
				change = merged(change, variables{one: nil})
			}
		}
		out = append(out, invalid{name, with(change), reason, field})
	}
	return out
}

// caller is who calls the mutation where all is right.
func (m mutation) caller(h *hall) string {
	if m.as != "" {
		return m.as
	}
	return h.admin
}

// configurationsRefused are faults of a site's configuration.
func configurationsRefused() []invalid {
	bom := func(field string, value any) variables { return variables{"bomValidation": variables{field: value}} }
	machine := func(field string, value any) variables {
		return variables{"machineValidation": variables{field: value}}
	}
	logs := func(logs variables) variables { return machine("attemptLogs", logs) }
	test := func(id string, enable bool) variables { return variables{"id": id, "enable": enable} }
	return []invalid{
		{"an interval of nothing", bom("findMatchInterval", "0s"), "DURATION_INVALID", "bomValidation.findMatchInterval"},
		{"an interval of an instant", bom("autoGenerateMissingSkuInterval", "999ms"), "DURATION_INVALID", "bomValidation.autoGenerateMissingSkuInterval"},
		{"an interval that is none", bom("findMatchInterval", "5 parsecs"), "VALUE_INVALID", "bomValidation.findMatchInterval"},
		{"a key that is none", bom("enable", true), validation, "bomValidation.enable"},
		{"a switch that is a text", bom("enabled", "yes"), validation, "bomValidation.enabled"},
		{"a run interval of nothing", machine("runInterval", "0s"), "DURATION_INVALID", "machineValidation.runInterval"},
		{"a heartbeat of an instant", machine("heartbeatTimeout", "89s"), "DURATION_INVALID", "machineValidation.heartbeatTimeout"},
		{"a test twice", machine("tests", []any{test("a", true), test("A", true)}), "DUPLICATE", "machineValidation.tests.1.id"},
		{"a test on and off", machine("tests", []any{test("a", true), test("a", false)}), "TEST_CONTRADICTORY", "machineValidation.tests.1.id"},
		{"a test without an id", machine("tests", []any{test("", true)}), "NAME_INVALID", "machineValidation.tests.0.id"},
		{"a registry with a path", machine("approvedPluginRegistries", []any{"registry.example.com/team"}), "REGISTRY_INVALID", "machineValidation.approvedPluginRegistries.0"},
		{"a registry with a scheme", machine("approvedPluginRegistries", []any{"https://registry.example.com"}), "REGISTRY_INVALID", "machineValidation.approvedPluginRegistries.0"},
		{"a registry twice", machine("approvedPluginRegistries", []any{"a.example", "A.example"}), "DUPLICATE", "machineValidation.approvedPluginRegistries.1"},
		{"a type of plugin that is none", machine("allowedPluginTypes", []any{"wasm"}), "PLUGIN_TYPE_UNKNOWN", "machineValidation.allowedPluginTypes.0"},
		{"an argument of nothing", machine("containerArgs", []any{""}), "ARGUMENT_INVALID", "machineValidation.containerArgs.0"},
		{"a chunk of nothing", logs(variables{"maxChunkBytes": 0}), "NUMBER_OUT_OF_RANGE", "machineValidation.attemptLogs.maxChunkBytes"},
		{"a chunk too large", logs(variables{"maxChunkBytes": 16385}), "NUMBER_OUT_OF_RANGE", "machineValidation.attemptLogs.maxChunkBytes"},
		{"a log too large", logs(variables{"maxAttemptBytes": 1 << 21}), "NUMBER_OUT_OF_RANGE", "machineValidation.attemptLogs.maxAttemptBytes"},
		{"a chunk that fits no log", logs(variables{"maxChunkBytes": 100, "maxAttemptBytes": 99}), "NUMBER_OUT_OF_RANGE", "machineValidation.attemptLogs.maxChunkBytes"},
	}
}

func (h *hall) inventoryInput(t *testing.T) variables {
	t.Helper()
	var document map[string]any
	require.NoError(t, json.Unmarshal(inventory(t, "composed/xe9680_8gpu.json"), &document))
	return variables{
		"siteId": h.here.id, "bmcMacAddress": "02:00:00:00:00:77", "name": "new", "inventory": document,
		"fabricPorts": []any{variables{"guid": "g", "lid": 1}},
	}
}

func ports(ports ...any) variables { return variables{"fabricPorts": ports} }

func namesRefused(field string, limit int) []invalid {
	return []invalid{
		{field + " empty", variables{field: ""}, "NAME_INVALID", field},
		{field + " of blanks", variables{field: "  "}, "NAME_INVALID", field},
		{field + " with a blank at its end", variables{field: "a "}, "NAME_INVALID", field},
		{field + " too long", variables{field: strings.Repeat("ü", limit+1)}, "NAME_INVALID", field},
		{field + " with a line end", variables{field: "a\nb"}, "TEXT_INVALID", field},
		{field + " in the form of an id", variables{field: "machine_01m8q8v3nbex89czt2vg8r4tq1"}, "NAME_INVALID", field},
		{field + " with what shows nothing", variables{field: "a\u200bb"}, "TEXT_INVALID", field},
		{field + " with NUL", variables{field: "a\x00b"}, "TEXT_INVALID", field},
		{field + " with an escape", variables{field: "a\x1b[2Jb"}, "TEXT_INVALID", field},
	}
}

func textRefused(field string) []invalid {
	return []invalid{
		{field + " too long", variables{field: strings.Repeat("d", tooLong)}, "TEXT_INVALID", field},
		{field + " with NUL", variables{field: "a\x00b"}, "TEXT_INVALID", field},
		{field + " with an escape", variables{field: "a\x1b[2Jb"}, "TEXT_INVALID", field},
	}
}

func macsRefused() []invalid {
	out := []invalid{}
	for _, mac := range []string{"", "x", "02:00:00:00:00", "02:00:00:00:00:0g", "02:00:00:00:00:01:02", "00:00:00:00:00:00", "ff-ff-ff-ff-ff-ff", "02:00:00:00:00:01 ", strings.Repeat("a", 10_000)} {
		out = append(out, invalid{fmt.Sprintf("MAC %.30q", mac), variables{"bmcMacAddress": mac}, "MAC_INVALID", "bmcMacAddress"})
	}
	return out
}

// macsRefusedIn is macsRefused for the token of an agent.
func macsRefusedIn(agent variables, siteID string) []invalid {
	out := macsRefused()
	for i := range out {
		out[i].change = merged(merged(agent, variables{"siteIds": nil, "siteId": siteID}), out[i].change)
	}
	return out
}

// componentsRefused are faults of a SKU's components.
func componentsRefused(components map[string]any) []invalid {
	with := func(part string, value any) variables {
		return variables{"components": merged(ofChassis(components, "X"), variables{part: value})}
	}
	storage := func(group variables) variables { return with("storage", []any{merged(variables{"count": 1}, group)}) }
	one := func(base, change variables) []any { return []any{merged(base, change)} }
	cpu, gpu := variables{"model": "m", "threadCount": 2, "count": 1}, variables{"model": "m", "totalMemory": "1 MiB", "count": 1}
	memory := variables{"memoryType": "DDR5", "capacityMb": 1024, "count": 1}
	ports := variables{"vendor": "v", "model": "m", "count": 2}
	return []invalid{
		{"chassis without a model", variables{"components": ofChassis(components, "")}, "MODEL_EMPTY", "components.chassis.model"},
		{"chassis null", with("chassis", nil), validation, "components.chassis"},
		{"CPU without a model", with("cpus", one(cpu, variables{"model": " "})), "MODEL_EMPTY", "components.cpus.0.model"},
		{"CPUs below zero", with("cpus", one(cpu, variables{"count": -1})), "NUMBER_OUT_OF_RANGE", "components.cpus.0.count"},
		{"threads beyond reason", with("cpus", one(cpu, variables{"threadCount": 1<<31 - 1})), "NUMBER_OUT_OF_RANGE", "components.cpus.0.threadCount"},
		{"GPU without a model", with("gpus", one(gpu, variables{"model": ""})), "MODEL_EMPTY", "components.gpus.0.model"},
		{"GPUs beyond 32 bits", with("gpus", one(gpu, variables{"count": 1 << 31})), validation, "components.gpus.0.count"},
		{"GPU memory a number", with("gpus", one(gpu, variables{"totalMemory": 1})), validation, "components.gpus.0.totalMemory"},
		{"text too long", with("gpus", one(gpu, variables{"vendor": strings.Repeat("v", 1025)})), "TEXT_TOO_LONG", "components.gpus.0.vendor"},
		{"text with NUL", with("tpm", variables{"version": "2\x00"}), "TEXT_INVALID", "components.tpm.version"},
		{"memory of 2^53", with("memory", one(memory, variables{"capacityMb": 1 << 53})), "VALUE_INVALID", "components.memory.0.capacityMb"},
		{"memory of 2^53-1", with("memory", one(memory, variables{"capacityMb": 1<<53 - 1})), "NUMBER_OUT_OF_RANGE", "components.memory.0.capacityMb"},
		{"memory of a fraction", with("memory", one(memory, variables{"capacityMb": 1.5})), "VALUE_INVALID", "components.memory.0.capacityMb"},
		{"memory null", with("memory", one(memory, variables{"capacityMb": nil})), validation, "components.memory.0.capacityMb"},
		{"inactive port beyond the count", with("infinibandDevices", one(ports, variables{"inactiveDevices": []any{2}})), "INACTIVE_DEVICE_UNKNOWN", "components.infinibandDevices.0.inactiveDevices.0"},
		{"inactive port twice", with("infinibandDevices", one(ports, variables{"inactiveDevices": []any{1, 1}})), "INACTIVE_DEVICE_REPEATED", "components.infinibandDevices.0.inactiveDevices.1"},
		{"list too long", with("memory", slices.Repeat(one(memory, nil), 4097)), "SKU_TOO_LARGE", "components.memory"},
		{"list null", with("gpus", nil), validation, "components.gpus"},
		{"drive without a bound or a pattern", storage(nil), "STORAGE_UNCONSTRAINED", "components.storage.0"},
		{"smallest above largest", storage(variables{"minSizeMb": 2, "maxSizeMb": 1}), "SIZE_RANGE_INVALID", "components.storage.0.minSizeMb"},
		{"size below zero", storage(variables{"minSizeMb": -1}), "NUMBER_OUT_OF_RANGE", "components.storage.0.minSizeMb"},
		{"size of 2^53", storage(variables{"maxSizeMb": "9007199254740992"}), "VALUE_INVALID", "components.storage.0.maxSizeMb"},
		{"no drive", storage(variables{"count": 0, "minSizeMb": 1}), "STORAGE_COUNT_OUT_OF_RANGE", "components.storage.0.count"},
		{"too many drives", storage(variables{"count": 1025, "minSizeMb": 1}), "STORAGE_COUNT_OUT_OF_RANGE", "components.storage.0.count"},
		{"pattern empty", storage(variables{"pciPatterns": []any{""}}), "PATTERN_EMPTY", "components.storage.0.pciPatterns.0"},
		{"pattern that does not compile", storage(variables{"pciPatterns": []any{"a", "("}}), "PATTERN_INVALID", "components.storage.0.pciPatterns.1"},
		{"pattern of another dialect", storage(variables{"pciPatterns": []any{`[a&&b]`}}), "PATTERN_INVALID", "components.storage.0.pciPatterns.0"},
		{"pattern that costs too much", storage(variables{"pciPatterns": []any{"[a-z]{1000}[0-9]{1000}"}}), "PATTERN_INVALID", "components.storage.0.pciPatterns.0"},
		{"pattern of a page", storage(variables{"pciPatterns": []any{strings.Repeat("a", 1025)}}), "PATTERN_INVALID", "components.storage.0.pciPatterns.0"},
		{"pattern null", storage(variables{"pciPatterns": []any{nil}}), validation, "components.storage.0.pciPatterns.0"},
	}
}

// distinct is a text that does not compress.
func distinct(length int) string {
	var out strings.Builder
	for state := uint32(1); out.Len() < length; {
		state = state*1664525 + 1013904223
		out.WriteByte('!' + byte(state>>24)%90)
	}
	return strings.NewReplacer(`"`, "q", `\`, "b").Replace(out.String())
}

// literal writes a value as a literal of GraphQL.
func literal(v any) string {
	switch v := v.(type) {
	case enum:
		return string(v)
	case variables:
		return literalObject(v)
	case map[string]any:
		return literalObject(v)
	case []variables:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = literal(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = literal(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		out, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		return string(out)
	}
}

func literalObject(object map[string]any) string {
	parts := make([]string, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		parts = append(parts, name+": "+literal(object[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// input is an input type as introspection tells it.
type inputType struct{ InputFields []inputField }

type inputField struct {
	Name         string
	DefaultValue *string
	Type         typeRef
}

type typeRef struct {
	Kind   string
	Name   string
	OfType *typeRef
}

func (r typeRef) base() typeRef {
	for r.OfType != nil {
		r = *r.OfType
	}
	return r
}

func (r typeRef) isList() bool {
	return r.Kind == "LIST" || r.OfType != nil && r.OfType.isList()
}

func (b *bundle) inputFields(t *testing.T, name string) []inputField {
	t.Helper()
	var out struct {
		Type inputType `json:"__type"`
	}
	b.must(t, `query($name: String!) { __type(name: $name) { inputFields { name defaultValue type { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } }`, variables{"name": name}, &out)
	require.NotEmpty(t, out.Type.InputFields)
	return out.Type.InputFields
}

// wrongValues are values of another type than a field's, with the reason.
func wrongValues(field inputField) map[string]string {
	of := field.Type.base()
	switch {
	case of.Name == "JSON":
		return nil
	case of.Name == "Duration":
		return map[string]string{`7`: "VALUE_INVALID", `{}`: "VALUE_INVALID", `"soon"`: "VALUE_INVALID"}
	case field.Type.isList():
		return map[string]string{`[7.5]`: validation, `[[]]`: validation, `[null]`: validation}
	case of.Name == "Int":
		return map[string]string{`"1"`: validation, `1.5`: validation, `2147483648`: validation, `9007199254740992`: validation, `[]`: validation}
	case of.Name == "Boolean":
		return map[string]string{`"true"`: validation, `1`: validation, `null`: validation}
	case of.Name == "ID":
		return map[string]string{`1.5`: validation, `true`: validation, `[[]]`: validation}
	default:
		return map[string]string{`7`: validation, `true`: validation, `[]`: validation}
	}
}

// fault checks that a call is refused with this code, reason and field, and that
// it changed nothing.
type faultCheck struct {
	*hall
	before  string
	content func() string
}

func (c *faultCheck) expect(t *testing.T, token, document string, vars variables, code, reason, field string) {
	t.Helper()
	a := c.do(t, token, document, vars)
	before := c.before
	c.before = c.content()
	require.Equal(t, before, c.before, "a refused call left a trace\n%.2000s", document)
	require.Len(t, a.Errors, 1, "%s\n%.2000s", a.raw, document)
	got := a.Errors[0]
	require.Equal(t, []string{code, reason, field}, []string{got.Extensions.Code, got.Extensions.Reason, got.Extensions.Field}, "%s\n%.2000s", a.raw, document)
	require.Empty(t, a.Data)
	require.NotEmpty(t, got.Message)
	require.Less(t, len(got.Message), 2_000, "an error repeats no long input")
}

// Its subtests follow one another: each compares all that the database holds before
// and after.
//
//nolint:tparallel // they share a database
func TestEveryMutationRefusesWhatIsWrongAndChangesNothing(t *testing.T) {
	t.Parallel()
	h := newFullHall(t)
	h.warm(t)
	table := mutations(t, h)

	t.Run("every mutation has a row", func(t *testing.T) {
		var schema struct {
			Type struct{ Fields []struct{ Name string } } `json:"__type"`
		}
		h.must(t, `{ __type(name: "Mutation") { fields { name } } }`, nil, &schema)
		names := []string{}
		for _, field := range schema.Type.Fields {
			names = append(names, field.Name)
		}
		rows := []string{}
		for _, m := range table {
			rows = append(rows, m.name)
		}
		require.ElementsMatch(t, names, rows)
	})

	content := h.fingerprint(t)
	c := &faultCheck{hall: h, before: content(), content: content}
	for _, m := range table {
		t.Run(m.name, func(t *testing.T) {
			t.Run("types", func(t *testing.T) { c.types(t, m) })
			t.Run("values", func(t *testing.T) { c.values(t, m) })
			t.Run("ids", func(t *testing.T) { c.ids(t, m) })
			t.Run("keys", func(t *testing.T) { c.keys(t, m) })
			t.Run("callers", func(t *testing.T) { c.callers(t, m) })
		})
	}
	t.Run("what is right is accepted", func(t *testing.T) {
		for _, m := range table {
			before := content()
			h.mustAs(t, m.caller(h), m.document(), variables{"input": m.input}, nil)
			require.NotEqual(t, before, content(), m.name)
		}
	})
}

// warm uses every token once.
func (h *hall) warm(t *testing.T) {
	t.Helper()
	for _, token := range []string{h.siteAdmin, h.siteOperator, h.viewer, h.agent, h.allOperator, h.allViewer, h.here.worker} {
		if token != "" {
			h.mustAs(t, token, `{ viewer { name } }`, nil, nil)
		}
	}
}

// types leaves out, nulls and mistypes every field, as a variable and as a literal.
func (c *faultCheck) types(t *testing.T, m mutation) {
	t.Helper()
	both := func(input variables, reason, field string) {
		t.Helper()
		c.expect(t, m.caller(c.hall), m.document(), variables{"input": input}, "INVALID_ARGUMENT", reason, field)
		c.expect(t, m.caller(c.hall), m.literal(input), nil, "INVALID_ARGUMENT", reason, field)
	}
	noInput := func(document string, vars variables) {
		t.Helper()
		c.expect(t, m.caller(c.hall), document, vars, "INVALID_ARGUMENT", validation, "input")
	}
	noInput(m.document(), nil)
	noInput(m.document(), variables{"input": nil})
	noInput(m.document(), variables{"input": "x"})
	noInput("mutation { "+m.name+" { "+m.payload+" } }", nil)
	noInput(m.literal(nil), nil)
	noInput(m.literal(7), nil)
	both(merged(m.input, variables{"nonsense": 1}), validation, "nonsense")
	for _, field := range c.inputFields(t, m.inputType()) {
		if field.Type.Kind == "NON_NULL" {
			if field.DefaultValue == nil {
				both(lacking(m.input, field.Name), validation, field.Name)
			}
			both(merged(m.input, variables{field.Name: nil}), validation, field.Name)
		}
		for value, reason := range wrongValues(field) {
			name := field.Name
			if field.Type.isList() {
				name += ".0"
			}
			both(merged(m.input, variables{field.Name: verbatim(value)}), reason, name)
		}
	}
}

// verbatim is a value as it is written.
func verbatim(text string) any { return json.RawMessage(text) }

func (c *faultCheck) values(t *testing.T, m mutation) {
	t.Helper()
	for _, f := range m.faults {
		t.Run(f.name, func(t *testing.T) {
			input := merged(m.input, f.change)
			c.expect(t, m.caller(c.hall), m.document(), variables{"input": input}, "INVALID_ARGUMENT", f.reason, f.field)
			literal := m.literal(input)
			if len(tokenForm.FindAllString(literal, -1)) > 10_000 {
				c.expect(t, m.caller(c.hall), literal, nil, "RESOURCE_EXHAUSTED", "DOCUMENT_TOO_LARGE", "")
				return
			}
			c.expect(t, m.caller(c.hall), literal, nil, "INVALID_ARGUMENT", f.reason, f.field)
		})
	}
}

// ids puts every kind of wrong id into every place for one.
func (c *faultCheck) ids(t *testing.T, m mutation) {
	t.Helper()
	for _, r := range m.references {
		base := m.input
		if r.base != nil {
			base = r.base
		}
		with := func(id string) variables { return variables{"input": merged(base, r.set(id))} }
		unknown := fleet.NewID(r.prefix)
		for _, malformed := range []string{"", "x", r.prefix, r.prefix + "_", unknown + "0", strings.ToUpper(unknown), unknown[:len(unknown)-1] + "u", unknown + "\x00", strings.Repeat("x", 100_000)} {
			c.expect(t, m.caller(c.hall), m.document(), with(malformed), "INVALID_ARGUMENT", "ID_INVALID", r.field)
		}
		for _, prefix := range []string{fleet.PrefixSite, fleet.PrefixSku, fleet.PrefixMachine, fleet.PrefixToken, fleet.PrefixTransition} {
			if prefix != r.prefix {
				c.expect(t, m.caller(c.hall), m.document(), with(fleet.NewID(prefix)), "INVALID_ARGUMENT", "ID_INVALID", r.field)
			}
		}
		c.expect(t, m.caller(c.hall), m.document(), with(unknown), "NOT_FOUND", r.reason, r.field)
		c.expect(t, m.caller(c.hall), m.literal(with(unknown)["input"]), nil, "NOT_FOUND", r.reason, r.field)
		callers := []string{c.siteAdmin}
		if m.as != "" {
			callers = []string{m.as}
		}
		if m.role == "OPERATOR" {
			callers = append(callers, c.siteOperator)
		}
		for _, caller := range callers {
			absent := c.do(t, caller, m.document(), with(unknown))
			hidden := c.do(t, caller, m.document(), with(r.foreign))
			c.expect(t, caller, m.document(), with(r.foreign), "NOT_FOUND", r.reason, r.field)
			require.Equal(t, strings.ReplaceAll(string(absent.raw), unknown, "ID"), strings.ReplaceAll(string(hidden.raw), r.foreign, "ID"))
			require.Equal(t, absent.Status, hidden.Status)
		}
	}
}

// keys presents idempotency keys that are none.
func (c *faultCheck) keys(t *testing.T, m mutation) {
	t.Helper()
	for _, key := range []string{strings.Repeat("k", 256), "a\x00b", "a\nb"} {
		input := merged(m.input, variables{"idempotencyKey": key})
		c.expect(t, m.caller(c.hall), m.document(), variables{"input": input}, "INVALID_ARGUMENT", "IDEMPOTENCY_KEY_INVALID", "idempotencyKey")
	}
}

// callers are those who may not.
func (c *faultCheck) callers(t *testing.T, m mutation) {
	t.Helper()
	vars := variables{"input": m.input}
	for token, reason := range map[string]string{"": "TOKEN_MISSING", "fgt_x": "TOKEN_INVALID", c.expired: "TOKEN_EXPIRED", c.revoked: "TOKEN_REVOKED"} {
		require.Equal(t, 401, c.do(t, token, m.document(), vars).Status)
		c.expect(t, token, m.document(), vars, "UNAUTHENTICATED", reason, "")
	}
	small := []string{c.viewer, c.allViewer}
	if m.role == "ADMIN" {
		small = append(small, c.siteOperator, c.allOperator)
	}
	switch {
	case m.as != "":
		small = append(small, c.siteOperator, c.allOperator, c.siteAdmin, c.admin)
	case m.name != "reportInventory":
		small = append(small, c.agent)
	}
	for _, caller := range small {
		c.expect(t, caller, m.document(), vars, "PERMISSION_DENIED", "ROLE_TOO_SMALL", "")
	}
	if m.forceable {
		forced := variables{"input": merged(m.input, variables{"force": true})}
		for _, caller := range []string{c.siteOperator, c.allOperator, c.viewer, c.agent} {
			c.expect(t, caller, m.document(), forced, "PERMISSION_DENIED", "ROLE_TOO_SMALL", "")
		}
	}
	switch m.name {
	case "createSite":
		c.expect(t, c.siteAdmin, m.document(), vars, "PERMISSION_DENIED", "SITES_TOO_WIDE", "")
	case "issueToken":
		all := variables{"input": lacking(m.input, "siteIds")}
		c.expect(t, c.siteAdmin, m.document(), all, "PERMISSION_DENIED", "SITES_TOO_WIDE", "")
	case "reportInventory":
		for _, other := range []variables{{}, {"bmcMacAddress": waitingMac}, {"siteId": c.there.id, "bmcMacAddress": readyMac}, {"siteId": fleet.NewID(fleet.PrefixSite), "bmcMacAddress": readyMac}} {
			c.expect(t, c.agent, m.document(), variables{"input": merged(m.input, other)}, "PERMISSION_DENIED", "NOT_OWN_MACHINE", "")
		}
	}
}
