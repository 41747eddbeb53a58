package gqltests_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/internal/seal"
	"fleetgraph/server"
)

const (
	expectedFields = ` { id bmcMacAddress hasBmcCredentials chassisSerialNumber fallbackDpuSerialNumbers name description labels { key value }
		skuName sku { name } hostNics { macAddress nicType fixedIp fixedMask fixedGateway primary } rackName defaultPauseIngestionAndPoweron
		dpfEnabled bmcIpAddress bmcRetainCredentials dpuMode hostLifecycleProfile { disableLockdown } machine { name } revision site { name } }`
	createExpected      = `mutation($input: CreateExpectedMachineInput!) { createExpectedMachine(input: $input) { expectedMachine` + expectedFields + ` } }`
	updateExpected      = `mutation($input: UpdateExpectedMachineInput!) { updateExpectedMachine(input: $input) { expectedMachine` + expectedFields + ` } }`
	deleteExpected      = `mutation($input: DeleteExpectedMachineInput!) { deleteExpectedMachine(input: $input) { deletedExpectedMachineId } }`
	createExpectedBatch = `mutation($input: CreateExpectedMachinesInput!) { createExpectedMachines(input: $input) { expectedMachines` + expectedFields + ` } }`
	updateExpectedBatch = `mutation($input: UpdateExpectedMachinesInput!) { updateExpectedMachines(input: $input) { expectedMachines` + expectedFields + ` } }`
	replaceAllExpected  = `mutation($input: ReplaceAllExpectedMachinesInput!) { replaceAllExpectedMachines(input: $input) { deletedCount createdCount } }`
	expectedMachine     = `query($site: String!, $mac: String!) { expectedMachine(site: $site, bmcMacAddress: $mac)` + expectedFields + ` }`
)

// expected is what tests look at of an expected machine.
type expected struct {
	ID, BmcMacAddress, ChassisSerialNumber, Name, Description string
	HasBmcCredentials                                         bool
	Revision                                                  int
	SkuName, RackName, BmcIPAddress, DpuMode                  *string
	DpfEnabled                                                *bool
	FallbackDpuSerialNumbers                                  []string
	Labels                                                    []fleet.Label
	Sku, Machine                                              *struct{ Name string }
}

// racks are two sites with a SKU of their own each, and an admin of the first.
type racks struct {
	*bundle
	here, there     string
	sku, foreignSku string
	siteAdmin       string
}

func newRacks(t *testing.T) *racks {
	t.Helper()
	r := &racks{bundle: setup(t)}
	r.here, r.there = r.createSite(t, "here"), r.createSite(t, "there")
	components := variables{"chassis": variables{"vendor": "v", "model": "m", "architecture": "x86_64"}}
	r.sku, r.foreignSku = r.newSku(t, r.here, "dell.r750.gpu.1", components), r.newSku(t, r.there, "dell.r750.gpu.2", components)
	r.siteAdmin = r.issueToken(t, variables{"name": "site-admin", "role": "ADMIN", "siteIds": []string{r.here}})
	r.mustAs(t, r.siteAdmin, `{ viewer { name } }`, nil, nil)
	return r
}

// bmc is the MAC address of BMC n.
func bmc(n int) string {
	return fmt.Sprintf("02:00:00:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff)
}

// insertMachine stores a machine that nobody has reported.
func (b *bundle) insertMachine(t *testing.T, siteID, mac, name string) string {
	t.Helper()
	id := fleet.NewID(fleet.PrefixMachine)
	_, err := b.sql(t).Exec(t.Context(), `INSERT INTO machines (id, created_at, name, bmc_mac_address, kind, state, state_changed_at, updated_at, site_id)
		VALUES ($1, now(), $2, $3, 'HOST', 'READY', now(), now(), $4)`, id, name, mac, siteID)
	require.NoError(t, err)
	return id
}

func (r *racks) create(t *testing.T, item variables) expected {
	t.Helper()
	var out struct {
		CreateExpectedMachine struct{ ExpectedMachine expected }
	}
	r.must(t, createExpected, variables{"input": variables{"siteId": r.here, "expectedMachine": item}}, &out)
	return out.CreateExpectedMachine.ExpectedMachine
}

func (r *racks) edit(t *testing.T, id string, patch variables) expected {
	t.Helper()
	var out struct {
		UpdateExpectedMachine struct{ ExpectedMachine expected }
	}
	r.must(t, updateExpected, variables{"input": variables{"expectedMachineId": id, "patch": patch}}, &out)
	return out.UpdateExpectedMachine.ExpectedMachine
}

// fault is what a refused call tells: code, reason, field and message.
func told(f fault) []string {
	return []string{f.Extensions.Code, f.Extensions.Reason, f.Extensions.Field, f.Message}
}

// itemErrors are the faults of a batch's items: index, code, reason, field, message.
func itemErrors(t *testing.T, f fault, field string) []string {
	t.Helper()
	require.Equal(t, []string{"INVALID_ARGUMENT", "BATCH_INVALID", field, "Failed to validate Expected Machine update data"}, told(f))
	list, ok := f.Extensions.Details["itemErrors"].([]any)
	require.True(t, ok)
	out := []string{}
	for _, item := range list {
		e, ok := item.(map[string]any)
		require.True(t, ok)
		out = append(out, fmt.Sprintf("%v %v %v %v %v", e["index"], e["code"], e["reason"], e["field"], e["message"]))
	}
	return out
}

const (
	secretUser     = "the-user-of-the-bmc"
	secretPassword = "the-password-of-the-bmc"
)

// everything is an item with every field.
func everything(mac string) variables {
	return variables{
		"bmcMacAddress": mac, "bmcUsername": secretUser, "bmcPassword": secretPassword, "chassisSerialNumber": "SERIAL-1",
		"fallbackDpuSerialNumbers": []any{"MT2333XZ0VJQ", "MT2333XZ0VJR"}, "name": "node-1", "description": "first",
		"labels": []any{variables{"key": "row", "value": "A"}, variables{"key": "spare"}}, "skuName": "dell.r750.gpu.1",
		"hostNics": []any{variables{
			"macAddress": "0C42A1000001", "nicType": "onboard", "fixedIp": "10.0.0.2", "fixedMask": "255.255.255.0",
			"fixedGateway": "10.0.0.1", "primary": true,
		}, variables{"macAddress": "0c:42:a1:00:00:02"}},
		"rackName": "R1", "defaultPauseIngestionAndPoweron": true, "dpfEnabled": false, "bmcIpAddress": "2001:DB8::0:1",
		"bmcRetainCredentials": true, "dpuMode": "NIC_MODE", "hostLifecycleProfile": variables{"disableLockdown": true},
	}
}

func TestAnExpectedMachineIsKeptAsGiven(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	machine := r.insertMachine(t, r.here, bmc(1), "seen")
	a := r.do(t, r.admin, createExpected, variables{"input": variables{"siteId": r.here, "expectedMachine": everything("02-00-00-00-00-01")}})
	require.Empty(t, a.Errors, "%s", a.raw)
	golden(t, "expected/created", a.raw)

	var out struct{ ExpectedMachine expected }
	r.must(t, expectedMachine, variables{"site": "here", "mac": "020000000001"}, &out)
	e := out.ExpectedMachine
	require.Equal(t, "seen", e.Machine.Name)
	require.Equal(t, "dell.r750.gpu.1", e.Sku.Name)
	for _, absent := range []variables{{"site": "there", "mac": bmc(1)}, {"site": "here", "mac": bmc(2)}, {"site": "nowhere", "mac": bmc(1)}} {
		require.JSONEq(t, `null`, string(r.do(t, r.admin, expectedMachine, absent).Data["expectedMachine"]))
	}
	require.Equal(t, "MAC_INVALID", r.refused(t, r.admin, expectedMachine, variables{"site": "here", "mac": "x"}).Extensions.Reason)

	// Everything is cleared by null, but the MAC address and the SKU.
	clearing := variables{}
	for name := range everything("") {
		clearing[name] = nil
	}
	delete(clearing, "bmcMacAddress")
	a = r.do(t, r.admin, updateExpected, variables{"input": variables{"expectedMachineId": e.ID, "patch": clearing}})
	require.Empty(t, a.Errors, "%s", a.raw)
	golden(t, "expected/cleared", a.raw)
	fault := r.refused(t, r.admin, updateExpected, variables{"input": variables{"expectedMachineId": e.ID, "patch": variables{"bmcMacAddress": nil}}})
	require.Equal(t, []string{"NULL_NOT_ALLOWED", "bmcMacAddress"}, []string{fault.Extensions.Reason, fault.Extensions.Field})

	// The machine was touched by none of this.
	require.Equal(t, 1, r.count(t, "SELECT count(*) FROM machines WHERE id = $1 AND sku_name IS NULL AND sku_id IS NULL AND name = 'seen'", machine))

	r.must(t, deleteExpected, variables{"input": variables{"expectedMachineId": e.ID}}, nil)
	history := r.history(t, e.ID)
	require.Equal(t, []string{"EXPECTED_MACHINE_CREATED", "EXPECTED_MACHINE_UPDATED", "EXPECTED_MACHINE_DELETED"}, causes(history))
	data, err := json.Marshal(history)
	require.NoError(t, err)
	golden(t, "expected/history", data)
	require.Equal(t, 1, r.count(t, "SELECT count(*) FROM machines WHERE id = $1", machine))
}

func TestAnEditKeepsWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	r.insertMachine(t, r.here, bmc(2), "second")
	made := r.create(t, everything(bmc(1)))
	require.Nil(t, made.Machine)
	after := r.edit(t, made.ID, variables{"description": "new"})
	want := made
	want.Description, want.Revision = "new", 2
	require.Equal(t, want, after)
	require.Equal(t, after, r.edit(t, made.ID, variables{"description": "new"}), "nothing changes")
	require.Equal(t, after, r.edit(t, made.ID, variables{}))
	require.Equal(t, after, r.edit(t, made.ID, variables{"skuName": nil}), "an edit cannot remove the SKU")
	require.Len(t, r.history(t, made.ID), 2)

	moved := r.edit(t, made.ID, variables{"bmcMacAddress": bmc(2)})
	require.Equal(t, "second", moved.Machine.Name)
	require.Nil(t, r.edit(t, made.ID, variables{"bmcMacAddress": bmc(3)}).Machine)

	require.True(t, r.edit(t, made.ID, variables{"bmcUsername": secretUser, "bmcPassword": "other"}).HasBmcCredentials)
	require.True(t, r.edit(t, made.ID, variables{"name": "n"}).HasBmcCredentials)
	require.False(t, r.edit(t, made.ID, variables{"bmcUsername": nil, "bmcPassword": nil}).HasBmcCredentials)
	revision := r.edit(t, made.ID, variables{"bmcUsername": nil, "bmcPassword": nil}).Revision
	require.Equal(t, 7, revision, "there were none to forget")
	changed := []any{}
	for _, e := range r.history(t, made.ID) {
		changed = append(changed, e.Details["credentialsChanged"])
	}
	require.Equal(t, []any{true, false, false, false, true, false, true}, changed)

	stale := variables{"expectedMachineId": made.ID, "patch": variables{"name": "x"}, "expectedRevision": 6}
	fault := r.refusedFor(t, updateExpected, stale, "ABORTED", "REVISION_CONFLICT")
	require.Equal(t, map[string]any{"expected": 6.0, "present": 7.0}, fault.Extensions.Details)
	r.must(t, updateExpected, variables{"input": merged(stale, variables{"expectedRevision": 7})}, nil)
}

// refusedItems are the faults of one entry that need no database: field, reason,
// message.
func refusedItems() map[string]struct {
	change                 variables
	reason, field, message string
} {
	type c = struct {
		change                 variables
		reason, field, message string
	}
	nic := func(mac string, more variables) variables { return merged(variables{"macAddress": mac}, more) }
	labels := func(labels ...variables) variables { return variables{"labels": labels} }
	long := strings.Repeat("ü", 257)
	return map[string]c{
		"a MAC address that is none":   {variables{"bmcMacAddress": "x"}, "MAC_INVALID", "bmcMacAddress", ""},
		"a serial too short":           {variables{"chassisSerialNumber": "abc"}, "SERIAL_INVALID", "chassisSerialNumber", "chassis serial is not formatted properly abc"},
		"a serial too long":            {variables{"chassisSerialNumber": strings.Repeat("a", 65)}, "SERIAL_INVALID", "chassisSerialNumber", "chassis serial is not formatted properly " + strings.Repeat("a", 65)},
		"a serial empty":               {variables{"chassisSerialNumber": ""}, "SERIAL_INVALID", "chassisSerialNumber", "chassis serial is not formatted properly "},
		"a serial with a blank":        {variables{"chassisSerialNumber": "SER IAL"}, "SERIAL_INVALID", "chassisSerialNumber", "chassis serial is not formatted properly SER IAL"},
		"a serial with a line end":     {variables{"chassisSerialNumber": "SERIAL\n"}, "SERIAL_INVALID", "chassisSerialNumber", `chassis serial is not formatted properly "SERIAL\n"`},
		"a DPU twice":                  {variables{"fallbackDpuSerialNumbers": []any{"a", "b", "a"}}, "DUPLICATE", "fallbackDpuSerialNumbers.2", "duplicate dpu serial number found"},
		"a DPU empty":                  {variables{"fallbackDpuSerialNumbers": []any{""}}, "NAME_INVALID", "fallbackDpuSerialNumbers.0", ""},
		"too many DPUs":                {variables{"fallbackDpuSerialNumbers": numbered(65)}, "LIST_TOO_LONG", "fallbackDpuSerialNumbers", ""},
		"a name empty":                 {variables{"name": ""}, "NAME_INVALID", "name", ""},
		"a name too long":              {variables{"name": long}, "NAME_INVALID", "name", ""},
		"a rack with a blank":          {variables{"rackName": " r"}, "NAME_INVALID", "rackName", ""},
		"a description of a page":      {variables{"description": strings.Repeat("d", tooLong)}, "TEXT_INVALID", "description", ""},
		"a label without a key":        {labels(variables{"key": ""}), "NAME_INVALID", "labels.0.key", ""},
		"a label's key too long":       {labels(variables{"key": strings.Repeat("k", 129)}), "NAME_INVALID", "labels.0.key", ""},
		"a label twice":                {labels(variables{"key": "a"}, variables{"key": "a", "value": "1"}), "DUPLICATE", "labels.1.key", ""},
		"a label's value too long":     {labels(variables{"key": "a", "value": strings.Repeat("v", 1025)}), "TEXT_INVALID", "labels.0.value", ""},
		"too many labels":              {variables{"labels": slices.Repeat([]any{variables{"key": "k"}}, 129)}, "LIST_TOO_LONG", "labels", ""},
		"an empty SKU":                 {variables{"skuName": ""}, "NAME_INVALID", "skuName", "SkuID cannot be empty"},
		"a SKU too long":               {variables{"skuName": long}, "NAME_INVALID", "skuName", ""},
		"a port's MAC address":         {variables{"hostNics": []any{nic("x", nil)}}, "MAC_INVALID", "hostNics.0.macAddress", ""},
		"a port twice":                 {variables{"hostNics": []any{nic(bmc(8), nil), nic("020000000008", nil)}}, "DUPLICATE", "hostNics.1.macAddress", ""},
		"two primary ports":            {variables{"hostNics": []any{nic(bmc(8), variables{"primary": true}), nic(bmc(9), variables{"primary": true})}}, "PRIMARY_REPEATED", "hostNics.1.primary", ""},
		"a port's address":             {variables{"hostNics": []any{nic(bmc(8), variables{"fixedIp": "10.0.0"})}}, "IP_INVALID", "hostNics.0.fixedIp", ""},
		"a port's mask":                {variables{"hostNics": []any{nic(bmc(8), variables{"fixedMask": "255.0.255.0"})}}, "IP_INVALID", "hostNics.0.fixedMask", ""},
		"a port's gateway":             {variables{"hostNics": []any{nic(bmc(8), variables{"fixedGateway": "fe80::1%eth0"})}}, "IP_INVALID", "hostNics.0.fixedGateway", ""},
		"a port's kind empty":          {variables{"hostNics": []any{nic(bmc(8), variables{"nicType": ""})}}, "NAME_INVALID", "hostNics.0.nicType", ""},
		"too many ports":               {variables{"hostNics": slices.Repeat([]any{nic(bmc(8), nil)}, 129)}, "LIST_TOO_LONG", "hostNics", ""},
		"a BMC's address":              {variables{"bmcIpAddress": "300.1.1.1"}, "IP_INVALID", "bmcIpAddress", ""},
		"a BMC's address empty":        {variables{"bmcIpAddress": ""}, "IP_INVALID", "bmcIpAddress", ""},
		"a user without a password":    {variables{"bmcUsername": "root"}, "CREDENTIALS_INCOMPLETE", "bmcPassword", "bmcUsername and bmcPassword go together"},
		"a password without a user":    {variables{"bmcPassword": secretPassword}, "CREDENTIALS_INCOMPLETE", "bmcUsername", "bmcUsername and bmcPassword go together"},
		"an empty password":            {variables{"bmcUsername": "root", "bmcPassword": ""}, "CREDENTIALS_INVALID", "bmcPassword", ""},
		"a password with a line end":   {variables{"bmcUsername": "root", "bmcPassword": secretPassword + "\n"}, "CREDENTIALS_INVALID", "bmcPassword", ""},
		"a user that is far too long":  {variables{"bmcUsername": long, "bmcPassword": secretPassword}, "CREDENTIALS_INVALID", "bmcUsername", ""},
		"a password with what is none": {variables{"bmcUsername": "root", "bmcPassword": "a\x00b"}, "CREDENTIALS_INVALID", "bmcPassword", ""},
	}
}

func numbered(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = fmt.Sprint("n", i)
	}
	return out
}

//nolint:tparallel // the subtests share a database, whose content they compare
func TestFaultsOfAnExpectedMachineAreNamed(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	present := r.create(t, variables{"bmcMacAddress": bmc(1)})
	content := r.fingerprint(t)
	before := content()
	for name, c := range refusedItems() {
		t.Run(name, func(t *testing.T) {
			item := merged(variables{"bmcMacAddress": bmc(7)}, c.change)
			check := func(f fault, field string) {
				t.Helper()
				require.Equal(t, []string{"INVALID_ARGUMENT", c.reason, field}, told(f)[:3], f.Message)
				require.NotContains(t, f.Message, secretPassword)
				if c.message != "" {
					require.Equal(t, c.message, f.Message)
				}
			}
			check(r.refused(t, r.admin, createExpected, variables{"input": variables{"siteId": r.here, "expectedMachine": item}}), c.field)
			check(r.refused(t, r.admin, updateExpected, variables{"input": variables{"expectedMachineId": present.ID, "patch": c.change}}), c.field)
			check(r.refused(t, r.admin, replaceAllExpected, variables{"input": variables{
				"siteId": r.here, "expectedCount": 1, "expectedMachines": []any{variables{"bmcMacAddress": bmc(6)}, item},
			}}), "expectedMachines.1."+c.field)
			items := itemErrors(t, r.refused(t, r.admin, createExpectedBatch, variables{"input": variables{
				"siteId": r.here, "expectedMachines": []any{variables{"bmcMacAddress": bmc(6)}, item},
			}}), "expectedMachines")
			require.Len(t, items, 1)
			require.True(t, strings.HasPrefix(items[0], "1 INVALID_ARGUMENT "+c.reason+" "+c.field+" "+c.message), items)
			items = itemErrors(t, r.refused(t, r.admin, updateExpectedBatch, variables{"input": variables{
				"siteId": r.here, "updates": []any{variables{"expectedMachineId": present.ID, "patch": c.change}},
			}}), "updates")
			require.True(t, strings.HasPrefix(items[0], "0 INVALID_ARGUMENT "+c.reason+" "+c.field+" "+c.message), items)
			require.Equal(t, before, content())
		})
	}
	half := variables{"expectedMachineId": present.ID, "patch": variables{"bmcPassword": nil}}
	require.Equal(t, "CREDENTIALS_INCOMPLETE", r.refused(t, r.admin, updateExpected, variables{"input": half}).Extensions.Reason)
	r.create(t, variables{"bmcMacAddress": bmc(7), "bmcPassword": nil})
}

func TestAMacAddressIsExpectedOnceAtASite(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	first, second := r.create(t, variables{"bmcMacAddress": bmc(1)}), r.create(t, variables{"bmcMacAddress": bmc(2)})
	const text = "Duplicate MAC address for expected host BMC interface: 02:00:00:00:00:01"
	want := []string{"ALREADY_EXISTS", "MAC_TAKEN", "bmcMacAddress", text}
	require.Equal(t, want, told(r.refused(t, r.admin, createExpected, variables{"input": variables{"siteId": r.here, "expectedMachine": variables{"bmcMacAddress": "0200.0000.0001"}}})))
	require.Equal(t, want, told(r.refused(t, r.admin, updateExpected, variables{"input": variables{"expectedMachineId": second.ID, "patch": variables{"bmcMacAddress": bmc(1)}}})))
	r.edit(t, first.ID, variables{"bmcMacAddress": bmc(1)})
	r.must(t, createExpected, variables{"input": variables{"siteId": r.there, "expectedMachine": variables{"bmcMacAddress": bmc(1)}}}, nil)

	answers := make([]answer, 8)
	atOnce(len(answers), func(i int) {
		answers[i] = r.do(t, r.admin, createExpected, variables{"input": variables{"siteId": r.here, "expectedMachine": variables{"bmcMacAddress": bmc(9), "name": fmt.Sprint("n", i)}}})
	})
	require.Equal(t, map[string]int{"": 1, "MAC_TAKEN": 7}, outcomes(t, answers))
}

func TestTheSkuOfAnExpectedMachineHasToExist(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	present := r.create(t, variables{"bmcMacAddress": bmc(1), "skuName": "dell.r750.gpu.1"})
	require.Equal(t, "dell.r750.gpu.1", present.Sku.Name)
	require.Nil(t, r.create(t, variables{"bmcMacAddress": bmc(2), "skuName": nil}).SkuName)
	content := r.fingerprint(t)
	before := content()
	const batchText = "the SkuID specified for Expected Machine does not exist in DB: "
	for _, name := range []string{"nowhere", "dell.r750.gpu.2"} { // the second is the other site's
		single := []string{"INVALID_ARGUMENT", "SKU_NOT_FOUND", "skuName", "SKU ID specified in request does not exist"}
		item := variables{"bmcMacAddress": bmc(3), "skuName": name}
		inputs := []variables{
			{"siteId": r.here, "expectedMachine": item},
			{"expectedMachineId": present.ID, "patch": variables{"skuName": name}},
			{"siteId": r.here, "expectedMachines": []any{variables{"bmcMacAddress": bmc(4), "skuName": "dell.r750.gpu.1"}, item}},
			{"siteId": r.here, "updates": []any{variables{"expectedMachineId": present.ID, "patch": variables{"skuName": name}}}},
			{"siteId": r.here, "expectedMachines": []any{variables{"bmcMacAddress": bmc(4)}, item}, "expectedCount": 2},
		}
		require.Equal(t, single, told(r.refused(t, r.admin, createExpected, variables{"input": inputs[0]})))
		require.Equal(t, single, told(r.refused(t, r.admin, updateExpected, variables{"input": inputs[1]})))
		require.Equal(t, []string{"1 INVALID_ARGUMENT SKU_NOT_FOUND skuName " + batchText + name},
			itemErrors(t, r.refused(t, r.admin, createExpectedBatch, variables{"input": inputs[2]}), "expectedMachines"))
		require.Equal(t, []string{"0 INVALID_ARGUMENT SKU_NOT_FOUND skuName " + batchText + name},
			itemErrors(t, r.refused(t, r.admin, updateExpectedBatch, variables{"input": inputs[3]}), "updates"))
		require.Equal(t, []string{"INVALID_ARGUMENT", "SKU_NOT_FOUND", "expectedMachines.1.skuName", "SkuID specified for an Expected Machine does not exist on the Site"},
			told(r.refused(t, r.admin, replaceAllExpected, variables{"input": inputs[4]})))
		require.Equal(t, before, content())
	}

	var out struct {
		CreateExpectedMachine struct{ ExpectedMachine expected }
	}
	r.must(t, createExpected, variables{"input": variables{
		"siteId": r.here, "allowUnknownSku": true, "expectedMachine": variables{"bmcMacAddress": bmc(3), "skuName": "dell.r750.gpu.2"},
	}}, &out)
	unknown := out.CreateExpectedMachine.ExpectedMachine
	require.Equal(t, "dell.r750.gpu.2", *unknown.SkuName)
	require.Nil(t, unknown.Sku)
	require.Equal(t, "dell.r750.gpu.1", r.edit(t, unknown.ID, variables{"skuName": "dell.r750.gpu.1"}).Sku.Name)
	var edited struct {
		UpdateExpectedMachine struct{ ExpectedMachine expected }
	}
	r.must(t, updateExpected, variables{"input": variables{"expectedMachineId": unknown.ID, "allowUnknownSku": true, "patch": variables{"skuName": "to-come"}}}, &edited)
	require.Nil(t, edited.UpdateExpectedMachine.ExpectedMachine.Sku)
	require.Equal(t, "to-come", *edited.UpdateExpectedMachine.ExpectedMachine.SkuName)
}

func TestTheSiteIsCheckedBeforeTheSku(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	var out struct {
		CreateExpectedMachine struct{ ExpectedMachine expected }
	}
	r.must(t, createExpected, variables{"input": variables{"siteId": r.there, "expectedMachine": variables{"bmcMacAddress": bmc(1)}}}, &out)
	foreign := out.CreateExpectedMachine.ExpectedMachine.ID
	own := r.create(t, variables{"bmcMacAddress": bmc(1)}).ID
	item := variables{"bmcMacAddress": bmc(2), "skuName": "nowhere"}
	for document, input := range map[string]variables{
		createExpected:      {"siteId": r.there, "expectedMachine": item},
		createExpectedBatch: {"siteId": r.there, "expectedMachines": []any{item}},
		updateExpectedBatch: {"siteId": r.there, "updates": []any{variables{"expectedMachineId": foreign, "patch": variables{"skuName": "nowhere"}}}},
		replaceAllExpected:  {"siteId": r.there, "expectedMachines": []any{item}, "expectedCount": 1},
	} {
		require.Equal(t, []string{"NOT_FOUND", "SITE_NOT_FOUND", "siteId", "site not found: " + r.there}, told(r.refused(t, r.siteAdmin, document, variables{"input": input})))
	}
	for document, input := range map[string]variables{
		updateExpected: {"expectedMachineId": foreign, "patch": variables{"skuName": "nowhere"}},
		deleteExpected: {"expectedMachineId": foreign},
	} {
		require.Equal(t, []string{"NOT_FOUND", "EXPECTED_MACHINE_NOT_FOUND", "expectedMachineId", "expected_machine not found: " + foreign}, told(r.refused(t, r.siteAdmin, document, variables{"input": input})))
	}
	// In a batch another site's entry is not there, whoever asks.
	for _, caller := range []string{r.admin, r.siteAdmin} {
		f := r.refused(t, caller, updateExpectedBatch, variables{"input": variables{"siteId": r.here, "updates": []any{
			variables{"expectedMachineId": own, "patch": variables{"skuName": "dell.r750.gpu.1"}},
			variables{"expectedMachineId": foreign, "patch": variables{"skuName": "nowhere"}},
		}}})
		require.Equal(t, []string{"1 NOT_FOUND EXPECTED_MACHINE_NOT_FOUND expectedMachineId expected_machine not found: " + foreign}, itemErrors(t, f, "updates"))
	}
}

func TestExpectedMachinesAreListedForThoseOfTheirSite(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	machine := r.insertMachine(t, r.here, bmc(100), "seen")
	items := make([]any, 100)
	for i := range items {
		items[i] = merged(everything(bmc(i+1)), variables{"name": fmt.Sprint("n", i)})
	}
	r.must(t, createExpectedBatch, variables{"input": variables{"siteId": r.here, "expectedMachines": items}}, nil)
	r.must(t, createExpected, variables{"input": variables{"siteId": r.there, "expectedMachine": variables{"bmcMacAddress": bmc(1)}}}, nil)
	type page struct {
		TotalCount int
		Edges      []struct{ Node expected }
		PageInfo   struct {
			HasNextPage bool
			EndCursor   string
		}
	}
	var out struct{ ExpectedMachines page }
	const document = `query($first: Int, $after: Cursor) { expectedMachines(first: $first, after: $after, orderBy: {field: BMC_MAC_ADDRESS, direction: DESC}) {
		totalCount edges { node` + "%s" + ` } pageInfo { hasNextPage endCursor } } }`
	list := fmt.Sprintf(document, expectedFields)
	r.must(t, list, nil, &out)
	require.Equal(t, 101, out.ExpectedMachines.TotalCount)
	require.Len(t, out.ExpectedMachines.Edges, 50)
	cost := r.statements.during(func() { r.must(t, list, variables{"first": 100}, nil) })
	require.Equal(t, r.statements.during(func() { r.must(t, list, variables{"first": 2}, nil) }), cost, "more rows cost no more statements")

	// Page by page everything comes once.
	seen, after := []string{}, any(nil)
	for {
		out.ExpectedMachines = page{}
		r.mustAs(t, r.siteAdmin, list, variables{"first": 30, "after": after}, &out)
		require.Equal(t, 100, out.ExpectedMachines.TotalCount, "the other site's is hidden")
		for _, edge := range out.ExpectedMachines.Edges {
			seen = append(seen, edge.Node.BmcMacAddress)
		}
		if !out.ExpectedMachines.PageInfo.HasNextPage {
			break
		}
		after = out.ExpectedMachines.PageInfo.EndCursor
	}
	want := []string{}
	for i := 100; i > 0; i-- {
		want = append(want, bmc(i))
	}
	require.Equal(t, want, seen)

	viewer := r.issueToken(t, variables{"name": "v", "role": "VIEWER", "siteIds": []string{r.here}})
	agent := r.issueToken(t, variables{"name": "a", "role": "AGENT", "machineId": machine})
	const around = `query($machine: ID!, $sku: ID!) { site(name: "here") { expectedMachines { totalCount } }
		machine: node(id: $machine) { ... on Machine { expectedMachine { name } } } sku: node(id: $sku) { ... on Sku { expectedMachines { totalCount } } } }`
	a := r.do(t, viewer, around, variables{"machine": machine, "sku": r.sku})
	require.JSONEq(t, `{"data": {"site": {"expectedMachines": {"totalCount": 100}}, "machine": {"expectedMachine": {"name": "n99"}},
		"sku": {"expectedMachines": {"totalCount": 100}}}}`, string(a.raw))
	a = r.do(t, agent, around, variables{"machine": machine, "sku": r.sku})
	require.JSONEq(t, `{"data": {"site": {"expectedMachines": {"totalCount": 0}}, "machine": {"expectedMachine": null},
		"sku": {"expectedMachines": {"totalCount": 0}}}}`, string(a.raw))
	require.JSONEq(t, `null`, string(r.do(t, agent, expectedMachine, variables{"site": "here", "mac": bmc(100)}).Data["expectedMachine"]))
}

func TestASkuLookUpThatFailsSaysSo(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	present := r.create(t, variables{"bmcMacAddress": bmc(1)})
	_, err := r.sql(t).Exec(t.Context(), "ALTER TABLE skus RENAME TO away")
	require.NoError(t, err)
	item := variables{"bmcMacAddress": bmc(2), "skuName": "dell.r750.gpu.1"}
	for document, input := range map[string]variables{
		createExpected:      {"siteId": r.here, "expectedMachine": item},
		updateExpected:      {"expectedMachineId": present.ID, "patch": variables{"skuName": "dell.r750.gpu.1"}},
		createExpectedBatch: {"siteId": r.here, "expectedMachines": []any{item}},
		updateExpectedBatch: {"siteId": r.here, "updates": []any{variables{"expectedMachineId": present.ID, "patch": variables{"skuName": "dell.r750.gpu.1"}}}},
		replaceAllExpected:  {"siteId": r.here, "expectedMachines": []any{item}, "expectedCount": 1},
	} {
		a := r.do(t, r.admin, document, variables{"input": input})
		require.Len(t, a.Errors, 1)
		require.Equal(t, []string{"UNAVAILABLE", "SKU_LOOKUP_FAILED", "skuName", "Failed to validate SKU ID in request data due to DB error"}, told(a.Errors[0]))
		require.Empty(t, a.Data)
	}
	require.Equal(t, 1, r.count(t, "SELECT count(*) FROM expected_machines"))
}

func TestABatchIsCreatedAllOrNone(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	r.create(t, variables{"bmcMacAddress": bmc(1)})
	content := r.fingerprint(t)
	before := content()
	f := r.refused(t, r.admin, createExpectedBatch, variables{"input": variables{"siteId": r.here, "expectedMachines": []any{
		variables{"bmcMacAddress": bmc(2)},
		variables{"bmcMacAddress": bmc(3), "name": ""},
		variables{"bmcMacAddress": bmc(2)},
		variables{"bmcMacAddress": bmc(1)},
		variables{"bmcMacAddress": bmc(4), "skuName": "nowhere"},
		variables{"bmcMacAddress": bmc(5), "skuName": "dell.r750.gpu.1"},
	}}})
	const duplicate = "Duplicate MAC address for expected host BMC interface: "
	require.Equal(t, []string{
		"1 INVALID_ARGUMENT NAME_INVALID name name must not be empty",
		"2 INVALID_ARGUMENT DUPLICATE bmcMacAddress " + duplicate + bmc(2),
		"3 ALREADY_EXISTS MAC_TAKEN bmcMacAddress " + duplicate + bmc(1),
		"4 INVALID_ARGUMENT SKU_NOT_FOUND skuName the SkuID specified for Expected Machine does not exist in DB: nowhere",
	}, itemErrors(t, f, "expectedMachines"))
	for _, n := range []int{0, 101} {
		items := make([]any, n)
		for i := range items {
			items[i] = variables{"bmcMacAddress": bmc(i + 10)}
		}
		f := r.refused(t, r.admin, createExpectedBatch, variables{"input": variables{"siteId": r.here, "expectedMachines": items}})
		require.Equal(t, []string{"INVALID_ARGUMENT", "BATCH_SIZE", "expectedMachines"}, told(f)[:3])
	}
	require.Equal(t, before, content())

	items := make([]any, 100)
	for i := range items {
		items[i] = variables{"bmcMacAddress": bmc(200 - i), "skuName": "dell.r750.gpu.1"}
	}
	var out struct {
		CreateExpectedMachines struct{ ExpectedMachines []expected }
	}
	statements := r.statements.during(func() {
		r.must(t, createExpectedBatch, variables{"input": variables{"siteId": r.here, "expectedMachines": items}}, &out)
	})
	require.Less(t, statements, int64(25), "a batch costs no statement an item")
	require.Len(t, out.CreateExpectedMachines.ExpectedMachines, 100)
	for i, e := range out.CreateExpectedMachines.ExpectedMachines {
		require.Equal(t, bmc(200-i), e.BmcMacAddress)
		require.NotNil(t, e.Sku)
	}
	require.Equal(t, []string{"EXPECTED_MACHINE_CREATED"}, causes(r.history(t, out.CreateExpectedMachines.ExpectedMachines[7].ID)))
}

func TestABatchOfEditsIsOfOneKindAllOrNone(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	ids := []string{}
	for i := range 4 {
		ids = append(ids, r.create(t, variables{"bmcMacAddress": bmc(i + 1), "skuName": "dell.r750.gpu.1"}).ID)
	}
	content := r.fingerprint(t)
	before := content()
	update := func(id string, patch variables) variables {
		return variables{"expectedMachineId": id, "patch": patch}
	}
	refused := func(updates ...any) []string {
		t.Helper()
		f := r.refused(t, r.admin, updateExpectedBatch, variables{"input": variables{"siteId": r.here, "updates": updates}})
		require.Equal(t, before, content())
		return itemErrors(t, f, "updates")
	}
	unknown := fleet.NewID(fleet.PrefixExpected)
	const differ = " INVALID_ARGUMENT BATCH_FIELDS_DIFFER patch every item of a batch sets the same fields: this one differs from the first"
	require.Equal(t, []string{"1" + differ, "2" + differ}, refused(
		update(ids[0], variables{"name": "a", "skuName": nil}), update(ids[1], variables{"name": "b"}),
		update(ids[2], variables{"description": "c"}), update(ids[3], variables{"skuName": "dell.r750.gpu.1", "name": nil})))
	require.Equal(t, []string{
		"1 INVALID_ARGUMENT ID_INVALID expectedMachineId \"x\" is not a expected id (form expected_…)",
		"2 INVALID_ARGUMENT DUPLICATE expectedMachineId the batch edits \"" + ids[0] + "\" twice",
		"3 NOT_FOUND EXPECTED_MACHINE_NOT_FOUND expectedMachineId expected_machine not found: " + unknown,
		"4 INVALID_ARGUMENT NAME_INVALID name name must not be empty",
	}, refused(update(ids[0], variables{"name": "a"}), update("x", variables{"name": "b"}), update(ids[0], variables{"name": "c"}),
		update(unknown, variables{"name": "d"}), update(ids[1], variables{"name": ""})))
	require.Equal(t, []string{
		"1 ALREADY_EXISTS MAC_TAKEN bmcMacAddress Duplicate MAC address for expected host BMC interface: " + bmc(4),
		"2 INVALID_ARGUMENT DUPLICATE bmcMacAddress Duplicate MAC address for expected host BMC interface: " + bmc(9),
	}, refused(update(ids[0], variables{"bmcMacAddress": bmc(9)}), update(ids[1], variables{"bmcMacAddress": bmc(4)}), update(ids[2], variables{"bmcMacAddress": bmc(9)})))
	require.Equal(t, []string{"1 ABORTED REVISION_CONFLICT  the object was edited meanwhile: revision 2 was expected, 1 is present"},
		refused(merged(update(ids[0], variables{"name": "a"}), variables{"expectedRevision": 1}), merged(update(ids[1], variables{"name": "b"}), variables{"expectedRevision": 2})))

	var out struct {
		UpdateExpectedMachines struct{ ExpectedMachines []expected }
	}
	r.must(t, updateExpectedBatch, variables{"input": variables{"siteId": r.here, "updates": []any{
		update(ids[2], variables{"name": "c", "skuName": nil}), update(ids[0], variables{"name": "a", "skuName": "dell.r750.gpu.1"}),
	}}}, &out)
	names := []string{}
	for _, e := range out.UpdateExpectedMachines.ExpectedMachines {
		names = append(names, e.Name)
		require.Equal(t, "dell.r750.gpu.1", e.Sku.Name)
	}
	require.Equal(t, []string{"c", "a"}, names)
	for _, n := range []int{0, 101} {
		f := r.refused(t, r.admin, updateExpectedBatch, variables{"input": variables{"siteId": r.here, "updates": slices.Repeat([]any{update(ids[0], variables{})}, n)}})
		require.Equal(t, []string{"INVALID_ARGUMENT", "BATCH_SIZE", "updates"}, told(f)[:3])
	}
}

func TestAllAreReplacedOrNone(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	old := r.create(t, everything(bmc(1)))
	r.create(t, variables{"bmcMacAddress": bmc(2)})
	r.must(t, createExpected, variables{"input": variables{"siteId": r.there, "expectedMachine": variables{"bmcMacAddress": bmc(1)}}}, nil)
	content := r.fingerprint(t)
	before := content()
	input := func(count int, items ...any) variables {
		return variables{"siteId": r.here, "expectedCount": count, "expectedMachines": append([]any{}, items...)}
	}
	good := []any{everything(bmc(1)), variables{"bmcMacAddress": bmc(3)}, variables{"bmcMacAddress": bmc(4)}}
	f := r.refused(t, r.admin, replaceAllExpected, variables{"input": input(3, good...)})
	require.Equal(t, []string{"ABORTED", "COUNT_CONFLICT", "expectedCount"}, told(f)[:3])
	require.Equal(t, map[string]any{"expected": 3.0, "present": 2.0}, f.Extensions.Details)
	f = r.refused(t, r.admin, replaceAllExpected, variables{"input": input(2, append(slices.Clone(good), variables{"bmcMacAddress": bmc(3)})...)})
	require.Equal(t, []string{"INVALID_ARGUMENT", "DUPLICATE", "expectedMachines.3.bmcMacAddress", "Duplicate MAC address for expected host BMC interface: " + bmc(3)}, told(f))
	require.Equal(t, before, content())

	var out struct {
		ReplaceAllExpectedMachines struct{ DeletedCount, CreatedCount int }
	}
	r.must(t, replaceAllExpected, variables{"input": input(2, good...)}, &out)
	require.Equal(t, 2, out.ReplaceAllExpectedMachines.DeletedCount)
	require.Equal(t, 3, out.ReplaceAllExpectedMachines.CreatedCount)
	require.Equal(t, 4, r.count(t, "SELECT count(*) FROM expected_machines"))
	require.Equal(t, []string{"EXPECTED_MACHINE_CREATED", "EXPECTED_MACHINE_DELETED"}, causes(r.history(t, old.ID)))
	event := last(r.history(t, r.here))
	require.Equal(t, "EXPECTED_MACHINES_REPLACED", event.Cause)
	require.Equal(t, map[string]any{"deletedCount": 2.0, "createdCount": 3.0}, event.Details)

	r.must(t, replaceAllExpected, variables{"input": input(3)}, &out)
	require.Equal(t, 1, r.count(t, "SELECT count(*) FROM expected_machines"), "the other site's stays")
	fault := r.refused(t, r.admin, replaceAllExpected, variables{"input": input(0, slices.Repeat([]any{variables{"bmcMacAddress": bmc(1)}}, 10_001)...)})
	require.Equal(t, []string{"INVALID_ARGUMENT", "BATCH_SIZE", "expectedMachines"}, told(fault)[:3])
}

func TestReplacementsAndCreationsAtOnceDoNotMix(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	var answers [16]answer
	atOnce(len(answers), func(i int) {
		if i%2 == 0 {
			items := []any{}
			for n := range 20 {
				items = append(items, variables{"bmcMacAddress": bmc(n + 1), "name": fmt.Sprint("replacement-", i)})
			}
			answers[i] = r.do(t, r.admin, replaceAllExpected, variables{"input": variables{"siteId": r.here, "expectedCount": 0, "expectedMachines": items}})
			return
		}
		answers[i] = r.do(t, r.admin, createExpected, variables{"input": variables{"siteId": r.here, "expectedMachine": variables{"bmcMacAddress": bmc(7)}}})
	})
	replaced, created := []answer{}, []answer{}
	for i, a := range answers {
		if i%2 == 0 {
			replaced = append(replaced, a)
		} else {
			created = append(created, a)
		}
	}
	got, single := outcomes(t, replaced), outcomes(t, created)
	require.Equal(t, 1, got[""]+single[""], "the first to come is the only one: %v %v", got, single)
	require.Equal(t, 8, got[""]+got["COUNT_CONFLICT"])
	require.Equal(t, 8, single[""]+single["MAC_TAKEN"])
	require.Equal(t, 1+19*got[""], r.count(t, "SELECT count(*) FROM expected_machines"))
}

func TestTenThousandAreReplacedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	items := make([]any, 10_000)
	for i := range items {
		items[i] = variables{"bmcMacAddress": bmc(i + 1), "bmcUsername": "root", "bmcPassword": "p", "chassisSerialNumber": fmt.Sprint("SERIAL-", i), "skuName": fmt.Sprint("sku-", i%5000)}
	}
	for _, count := range []int{0, 10_000} {
		var out struct {
			ReplaceAllExpectedMachines struct{ DeletedCount, CreatedCount int }
		}
		statements := r.statements.during(func() {
			r.must(t, replaceAllExpected, variables{"input": variables{"siteId": r.here, "expectedCount": count, "allowUnknownSku": true, "expectedMachines": items}}, &out)
		})
		require.Equal(t, count, out.ReplaceAllExpectedMachines.DeletedCount)
		require.Equal(t, 10_000, out.ReplaceAllExpectedMachines.CreatedCount)
		require.Less(t, statements, int64(60))
	}
}

func TestARepeatedCallOnExpectedMachinesReturnsTheFirstResult(t *testing.T) {
	t.Parallel()
	r := newRacks(t)
	input := variables{"siteId": r.here, "expectedCount": 0, "expectedMachines": []any{everything(bmc(1))}, "idempotencyKey": "k"}
	first := r.do(t, r.admin, replaceAllExpected, variables{"input": input})
	require.Empty(t, first.Errors, "%s", first.raw)
	require.Equal(t, string(first.raw), string(r.do(t, r.admin, replaceAllExpected, variables{"input": input}).raw))
	other := merged(everything(bmc(1)), variables{"bmcPassword": "another"})
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", r.refused(t, r.admin, replaceAllExpected, variables{"input": merged(input, variables{"expectedMachines": []any{other}})}).Extensions.Reason)

	create := variables{"siteId": r.here, "expectedMachine": everything(bmc(2)), "idempotencyKey": "k"}
	first = r.do(t, r.admin, createExpected, variables{"input": create})
	require.Empty(t, first.Errors, "%s", first.raw)
	require.Equal(t, string(first.raw), string(r.do(t, r.admin, createExpected, variables{"input": create}).raw))
	require.Equal(t, 2, r.count(t, "SELECT count(*) FROM expected_machines"))
}

// logs is a log that several goroutines write.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestCredentialsLeaveTheServerNowhere(t *testing.T) {
	t.Parallel()
	key, err := seal.NewKey()
	require.NoError(t, err)
	log := &logs{}
	b := setupWith(t, server.Config{EncryptionKey: string(key), Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	r := &racks{bundle: b, here: b.createSite(t, "here")}
	item := lacking(everything(bmc(1)), "skuName")
	id := r.create(t, item).ID
	answers := bytes.Buffer{}
	say := func(document string, input variables) {
		answers.Write(r.do(t, r.admin, document, variables{"input": input}).raw)
	}
	say(updateExpected, variables{"expectedMachineId": id, "patch": variables{"bmcUsername": secretUser, "bmcPassword": secretPassword + "-2"}, "idempotencyKey": "k"})
	say(createExpected, variables{"siteId": r.here, "expectedMachine": item})                                                             // taken
	say(createExpected, variables{"siteId": r.here, "expectedMachine": merged(item, variables{"bmcPassword": secretPassword + "\n"})})    // invalid
	say(createExpected, variables{"siteId": r.here, "expectedMachine": merged(item, variables{"bmcPassword": []any{secretPassword, 1}})}) // no text
	say(createExpectedBatch, variables{"siteId": r.here, "expectedMachines": []any{item}})
	say(replaceAllExpected, variables{"siteId": r.here, "expectedCount": 1, "expectedMachines": []any{item}, "idempotencyKey": "k"})
	say(`query { transitions(first: 100) { edges { node { cause message details } } } expectedMachines { edges { node `+expectedFields+` } } }`, nil)
	require.Contains(t, answers.String(), `"hasBmcCredentials":true`)
	require.Contains(t, answers.String(), "EXPECTED_MACHINE_UPDATED")
	require.NotEmpty(t, log.String())

	conn := b.sql(t)
	stored := bytes.Buffer{}
	for _, table := range tables(t, conn) {
		_, err := conn.PgConn().CopyTo(t.Context(), &stored, "COPY "+table+" TO STDOUT (FORMAT binary)")
		require.NoError(t, err)
	}
	require.Contains(t, stored.String(), "SERIAL-1", "the copy is readable")
	for _, place := range []string{answers.String(), log.String(), stored.String()} {
		require.NotContains(t, place, secretUser)
		require.NotContains(t, place, secretPassword)
	}

	// What an idempotency key remembers of its input is no hash of a password that anyone could try.
	var remembered [][]byte
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT array_agg(input_hash) FROM idempotency_records").Scan(&remembered))
	require.Len(t, remembered, 2)
	for _, hash := range remembered {
		require.Greater(t, len(hash), sha256.Size, "sealed")
	}
	again := variables{"siteId": r.here, "expectedCount": 1, "expectedMachines": []any{item}, "idempotencyKey": "k"}
	require.Empty(t, r.do(t, r.admin, replaceAllExpected, variables{"input": again}).Errors, "the repeat of a call")
	other := []any{merged(item, variables{"bmcPassword": secretPassword + "-3"})}
	r.refusedFor(t, replaceAllExpected, merged(again, variables{"expectedMachines": other}), "ALREADY_EXISTS", "IDEMPOTENCY_KEY_REUSED")

	// What is stored opens at its own row only.
	box, err := seal.Open(key)
	require.NoError(t, err)
	var sealed []byte
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT id, bmc_credentials FROM expected_machines").Scan(&id, &sealed))
	text, err := box.Open(sealed, []byte(id+"/bmc_credentials"))
	require.NoError(t, err)
	require.JSONEq(t, `{"username":"`+secretUser+`","password":"`+secretPassword+`"}`, string(text))
	_, err = box.Open(sealed, []byte(fleet.NewID(fleet.PrefixExpected)+"/bmc_credentials"))
	require.ErrorIs(t, err, seal.ErrSealed)
}

func TestWithoutAKeyCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	b := setupWith(t, server.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	r := &racks{bundle: b, here: b.createSite(t, "here")}
	made := r.create(t, variables{"bmcMacAddress": bmc(1)})
	secret := variables{"bmcUsername": "root", "bmcPassword": secretPassword}
	for document, input := range map[string]variables{
		createExpected:      {"siteId": r.here, "expectedMachine": merged(secret, variables{"bmcMacAddress": bmc(2)})},
		updateExpected:      {"expectedMachineId": made.ID, "patch": secret},
		createExpectedBatch: {"siteId": r.here, "expectedMachines": []any{merged(secret, variables{"bmcMacAddress": bmc(2)})}},
		updateExpectedBatch: {"siteId": r.here, "updates": []any{variables{"expectedMachineId": made.ID, "patch": secret}}},
		replaceAllExpected:  {"siteId": r.here, "expectedCount": 1, "expectedMachines": []any{merged(secret, variables{"bmcMacAddress": bmc(2)})}},
	} {
		f := r.refusedFor(t, document, input, "FAILED_PRECONDITION", "ENCRYPTION_KEY_MISSING")
		require.Contains(t, f.Message, "--encryption-key-file")
	}
	require.False(t, r.edit(t, made.ID, variables{"name": "n", "bmcUsername": nil, "bmcPassword": nil}).HasBmcCredentials)
}
