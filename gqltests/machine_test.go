package gqltests_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

// reported reports an inventory, whatever else the input says.
func (b *bundle) reported(t *testing.T, input variables) (m machine, created bool) {
	t.Helper()
	var out struct {
		ReportInventory struct {
			Created bool
			Machine machine
		}
	}
	b.must(t, reportInventory, variables{"input": input}, &out)
	return out.ReportInventory.Machine, out.ReportInventory.Created
}

// bare is an inventory with this serial number.
func bare(serial string) json.RawMessage {
	return json.RawMessage(`{"machine_type": "x86_64", "dmi_data": {"sys_vendor": "V", "product_name": "M", "product_serial": "` + serial + `"}}`)
}

func TestABmcIsOneMachineInWhateverNotation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	first, created := b.reported(t, variables{"siteId": site, "bmcMacAddress": "C4:5A:B1:C8:38:0D", "inventory": bare("1")})
	require.True(t, created)
	require.Equal(t, "machine-c45ab1c8380d", first.Name)
	for _, notation := range []string{"c4:5a:b1:c8:38:0d", "C4-5A-B1-C8-38-0D", "c45a.b1c8.380d", "C45AB1C8380D"} {
		again, created := b.reported(t, variables{"siteId": site, "bmcMacAddress": notation, "inventory": bare("1")})
		require.False(t, created, notation)
		require.Equal(t, first, again)
		a := b.do(t, b.admin, `query($mac: String) { machine(site: "dc1", bmcMacAddress: $mac) { id bmcMacAddress } }`, variables{"mac": notation})
		require.JSONEq(t, `{"data": {"machine": {"id": "`+first.ID+`", "bmcMacAddress": "c4:5a:b1:c8:38:0d"}}}`, string(a.raw))
	}

	// Another site's BMC of this address is another machine.
	other, created := b.reported(t, variables{"siteId": b.createSite(t, "dc2"), "bmcMacAddress": "c4:5a:b1:c8:38:0d", "inventory": bare("1")})
	require.True(t, created)
	require.NotEqual(t, first.ID, other.ID)
	require.Equal(t, first.Name, other.Name)
}

func TestASerialNumberFindsOneMachineOrNamesTheCandidates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site, elsewhere := b.createSite(t, "dc1"), b.createSite(t, "dc2")
	names := []any{}
	for i := range 22 {
		name := fmt.Sprintf("node-%02d", i)
		b.report(t, site, fmt.Sprintf("02:00:00:00:00:%02x", 0x40-i), name, bare("To be filled"))
		if i < 20 {
			names = append(names, name)
		}
	}
	b.report(t, site, "02:00:00:00:01:01", "pair-b", bare("pair"))
	b.report(t, site, "02:00:00:00:01:02", "pair-a", bare(" pair "))
	single := b.report(t, site, "02:00:00:00:01:03", "single", bare("single"))
	b.report(t, elsewhere, "02:00:00:00:01:03", "single", bare("single"))

	const document = `query($serial: String) { machine(site: "dc1", serialNumber: $serial) { id name } }`
	fault := b.refused(t, b.admin, document, variables{"serial": "pair"})
	require.Equal(t, []string{"INVALID_ARGUMENT", "SERIAL_AMBIGUOUS", "serialNumber"}, []string{fault.Extensions.Code, fault.Extensions.Reason, fault.Extensions.Field})
	require.Equal(t, `2 machines report the serial number "pair": pair-a, pair-b`, fault.Message)
	require.Equal(t, map[string]any{"count": 2.0, "first": []any{"pair-a", "pair-b"}}, fault.Extensions.Details)
	fault = b.refused(t, b.admin, document, variables{"serial": "To be filled"})
	require.Equal(t, map[string]any{"count": 22.0, "first": names}, fault.Extensions.Details)
	require.True(t, strings.HasSuffix(fault.Message, "node-19, …"), fault.Message)
	a := b.do(t, b.admin, document, variables{"serial": "single"})
	require.JSONEq(t, `{"data": {"machine": {"id": "`+single.ID+`", "name": "single"}}}`, string(a.raw))
	a = b.do(t, b.admin, document, variables{"serial": "none"})
	require.JSONEq(t, `{"data": {"machine": null}}`, string(a.raw))
}

func TestAMachineIsLookedUpByExactlyOneKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.createSite(t, "dc1")
	for _, site := range []string{"dc1", "nowhere"} {
		for arguments, want := range map[string][]string{
			``:                                     {"KEY_INVALID", "name"},
			`, name: null`:                         {"KEY_INVALID", "name"},
			`, name: "a", serialNumber: "b"`:       {"KEY_INVALID", "name"},
			`, serialNumber: ""`:                   {"KEY_INVALID", "serialNumber"},
			`, bmcMacAddress: "x"`:                 {"MAC_INVALID", "bmcMacAddress"},
			`, bmcMacAddress: "00:00:00:00:00:00"`: {"MAC_INVALID", "bmcMacAddress"},
		} {
			fault := b.refused(t, b.admin, `{ machine(site: "`+site+`"`+arguments+`) { id } }`, nil)
			require.Equal(t, "INVALID_ARGUMENT", fault.Extensions.Code)
			require.Equal(t, want, []string{fault.Extensions.Reason, fault.Extensions.Field}, site+arguments)
		}
	}
	// What no name can be finds nothing.
	for _, name := range []string{"", "\x00", "a\x00b", strings.Repeat("x", 100_000)} {
		a := b.do(t, b.admin, `query($n: String!) { site(name: $n) { id } sku(site: $n, name: $n) { id } a: sku(site: "dc1", name: $n) { id }
			machine(site: $n, name: $n) { id } b: machine(site: "dc1", name: $n) { id } }`, variables{"n": name})
		require.JSONEq(t, `{"data": {"site": null, "sku": null, "a": null, "machine": null, "b": null}}`, string(a.raw), name)
	}
	for _, id := range []string{"", "\x00", "machine_\x00", strings.Repeat("x", 100_000)} {
		a := b.do(t, b.admin, `query($id: ID!) { node(id: $id) { id } nodes(ids: [$id]) { id } }`, variables{"id": id})
		require.JSONEq(t, `{"data": {"node": null, "nodes": [null]}}`, string(a.raw), id)
	}
	a := b.do(t, b.admin, `{ machine(site: "dc1", serialNumber: "a\u0000") { id } }`, nil)
	require.JSONEq(t, `{"data": {"machine": null}}`, string(a.raw))
}

func TestAReportMayNameAMachineAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	report := func(mac string, name any) variables {
		return variables{"siteId": site, "bmcMacAddress": mac, "name": name, "inventory": bare("1")}
	}
	first, _ := b.reported(t, report(readyMac, "one"))
	for _, c := range []struct {
		name any
		want string
	}{{"uno", "uno"}, {nil, "uno"}, {"one", "one"}} {
		m, created := b.reported(t, report(readyMac, c.name))
		require.False(t, created)
		require.Equal(t, []string{first.ID, c.want}, []string{m.ID, m.Name})
	}
	b.reported(t, report(waitingMac, "two"))
	content := b.fingerprint(t)
	before := content()
	for _, mac := range []string{waitingMac, "02:00:00:00:00:33"} { // by a known machine, and by a new one
		fault := b.refusedFor(t, reportInventory, report(mac, "one"), "ALREADY_EXISTS", "MACHINE_NAME_TAKEN")
		require.Equal(t, []string{"name", `another machine of the site is named "one"`}, []string{fault.Extensions.Field, fault.Message})
		require.Equal(t, before, content())
	}
	// Two machines may swap nothing: each keeps its own name.
	b.reported(t, report(waitingMac, "two"))

	// A name made from an address is kept for the machine of that address.
	fault := b.refusedFor(t, reportInventory, report(waitingMac, "machine-020000000044"), "INVALID_ARGUMENT", "NAME_INVALID")
	require.Equal(t, `"machine-020000000044" is the default name of another machine`, fault.Message)
	b.reported(t, report("02:00:00:00:00:44", nil))
	// At another site it is free.
	b.reported(t, merged(report("02:00:00:00:00:44", "one"), variables{"siteId": b.createSite(t, "dc2")}))
}

func TestADpuIsReadyWithoutASku(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	for i, file := range []string{"upstream/dpu_bf3_info.json", "upstream/dpu_info.json"} {
		dpu := h.report(t, h.here.id, fmt.Sprintf("02:00:00:00:03:%02x", i), fmt.Sprint("dpu-", i), inventory(t, file))
		require.Equal(t, machine{ID: dpu.ID, Name: dpu.Name, State: "READY"}, dpu)
		content := h.fingerprint(t)
		before := content()
		for _, force := range []bool{false, true} {
			fault := h.refusedFor(t, assignSku, variables{"machineId": dpu.ID, "skuId": h.here.spare, "force": force}, "FAILED_PRECONDITION", "MACHINE_IS_DPU")
			require.Equal(t, "a DPU stands outside BOM validation and has no SKU", fault.Message)
		}
		h.refusedFor(t, verifySku, variables{"machineId": dpu.ID}, "FAILED_PRECONDITION", "MACHINE_IS_DPU")
		require.Equal(t, []string{"MACHINE_IS_DPU"}, h.blockers(t, dpu.ID))
		fault := h.refusedFor(t, allocateMachine, variables{"machineId": dpu.ID, "allocationName": "tenant"}, "FAILED_PRECONDITION", "MACHINE_NOT_ALLOCATABLE")
		require.Equal(t, "the machine cannot be allocated: the machine is a DPU: it serves the host that it is in", fault.Message)
		require.Equal(t, before, content())
		require.Equal(t, []string{"DISCOVERED", "DPU_REPORTED"}, causes(h.history(t, dpu.ID)))
		again := h.report(t, h.here.id, fmt.Sprintf("02:00:00:00:03:%02x", i), dpu.Name, inventory(t, file))
		require.Equal(t, dpu, again)
		require.Len(t, h.history(t, dpu.ID), 2, "a report that changes nothing leaves no history")
	}
	var out struct {
		Machines struct{ Edges []struct{ Node machine } }
	}
	h.must(t, `{ machines(where: {kind: DPU}, orderBy: {field: NAME}) { edges { node { name state skuName } } } }`, nil, &out)
	require.Len(t, out.Machines.Edges, 2)
}

func TestAMachineThatTurnsOutToBeADpuLosesItsSku(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.report(t, h.here.id, readyMac, "here-ready", without(t, inventory(t, "composed/r760_9nvme.json"), 3))
	require.Len(t, h.status(t, h.here.ready.ID).HealthAlerts.Edges, 1)
	dpu := h.report(t, h.here.id, readyMac, "here-ready", inventory(t, "upstream/dpu_info.json"))
	require.Equal(t, machine{ID: h.here.ready.ID, Name: "here-ready", State: "READY"}, dpu)
	s := h.status(t, dpu.ID)
	require.Nil(t, s.LastVerification)
	require.Empty(t, s.HealthAlerts.Edges)
	event := last(h.history(t, dpu.ID))
	require.Equal(t, "DPU_REPORTED", event.Cause)
	require.Equal(t, map[string]any{"sku": "dell.r760.storage.1"}, event.Details)
	h.must(t, deleteSku, variables{"input": variables{"skuId": h.here.sku}}, nil)

	// And a host again, it is matched like any other.
	host := h.report(t, h.here.id, readyMac, "here-ready", inventory(t, "composed/r760_9nvme.json"))
	require.Equal(t, "WAITING_FOR_SKU_ASSIGNMENT", host.SubState)
}

func TestFabricPortsAreKeptClearedAndSet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	document := located(t, inventory(t, "upstream/x86_info.json"))
	var hardware struct {
		Interfaces []struct {
			Guid string `json:"guid"`
		} `json:"infiniband_interfaces"`
	}
	require.NoError(t, json.Unmarshal(document, &hardware))
	require.Len(t, hardware.Interfaces, 6)
	active := func(inactive ...int) []any {
		ports := []any{}
		for i, p := range hardware.Interfaces {
			lid := i + 1
			for _, n := range inactive {
				if n == i {
					lid = 0xffff
				}
			}
			ports = append(ports, variables{"guid": p.Guid, "lid": lid})
		}
		return ports
	}
	var m machine
	inactive := func(change variables) int {
		t.Helper()
		m, _ = b.reported(t, merged(variables{"siteId": site, "bmcMacAddress": readyMac, "inventory": document}, change))
		n := 0
		devices, ok := b.generate(t, m.ID)["infinibandDevices"].([]any)
		require.True(t, ok)
		for _, device := range devices {
			d, ok := device.(map[string]any)
			require.True(t, ok)
			list, ok := d["inactiveDevices"].([]any)
			require.True(t, ok)
			n += len(list)
		}
		return n
	}
	require.Equal(t, 6, inactive(nil), "without an observation no port is active")
	require.Equal(t, 0, inactive(variables{"fabricPorts": active()}))
	require.Equal(t, 0, inactive(nil), "absent, the last observation is kept")
	require.Equal(t, 2, inactive(variables{"fabricPorts": active(1, 4)}))
	require.Equal(t, 2, inactive(nil))
	require.Equal(t, 6, inactive(variables{"fabricPorts": nil}), "null: there is none")
	require.Equal(t, 5, inactive(variables{"fabricPorts": active()[:1]}))
	require.Equal(t, 6, inactive(variables{"fabricPorts": []any{}}))

	// The state of the fabric is part of the verdict.
	require.Equal(t, 0, inactive(variables{"fabricPorts": active()}))
	b.createSku(t, site, m.ID, "n")
	require.Equal(t, 0, inactive(nil))
	require.Equal(t, "READY", m.State)
	require.Equal(t, 1, inactive(variables{"fabricPorts": active(0)}))
	require.Equal(t, "SKU_VERIFICATION_FAILED", b.status(t, m.ID).SubState)
	b.called(t, verifySku, variables{"machineId": m.ID})
	require.Equal(t, 0, inactive(variables{"fabricPorts": active()}))
	require.Equal(t, "READY", b.status(t, m.ID).State)
}

func TestAnInventoryIsKeptAsItWasReported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	const document = `query { machine(site: "dc1", bmcMacAddress: "` + readyMac + `") { inventoryDocument inventoryReportedAt serialNumber vendor } }`
	for _, reported := range []json.RawMessage{
		inventory(t, "upstream/x86_info.json"), inventory(t, "upstream/gb200_compute_tray_1_info.json"),
		json.RawMessage(`{}`), json.RawMessage(`{"info": {"machine_type": "x86_64"}, "beside": 1}`),
		json.RawMessage(`{"future": {"figure": 12345678901234567890, "fraction": 1.50, "exponent": 1e400, "text": "<&>\u2028é😀", "list": [null, true, {}]}, "gpus": null}`),
		json.RawMessage(`{"padded": "a\u0000b", "dmi_data": {"sys_vendor": "V\u0000\u0000", "product_serial": "S\u0000"}}`),
		json.RawMessage(`{"lone": "\ud800"}`),
	} {
		b.reported(t, variables{"siteId": site, "bmcMacAddress": readyMac, "inventory": reported})
		a := b.do(t, b.admin, document, nil)
		require.Empty(t, a.Errors, "%s", a.raw)
		var out struct {
			Data struct {
				Machine struct {
					InventoryDocument json.RawMessage
				}
			}
		}
		require.NoError(t, json.Unmarshal(a.raw, &out))
		require.Equal(t, exact(t, reported), exact(t, out.Data.Machine.InventoryDocument))
	}
	a := b.do(t, b.admin, document, nil)
	require.Contains(t, string(a.raw), `"serialNumber":"",`)
}

// exact decodes JSON with the digits of its numbers.
func exact(t *testing.T, data json.RawMessage) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var out any
	require.NoError(t, decoder.Decode(&out))
	return out
}

func TestAnInventoryNestedBeyondReasonIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	content := b.fingerprint(t)
	before := content()
	nested := func(depth int) variables {
		inventory := json.RawMessage(`{"a": ` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)
		return variables{"siteId": site, "bmcMacAddress": readyMac, "inventory": inventory}
	}
	fault := b.refusedFor(t, reportInventory, nested(65), "INVALID_ARGUMENT", "INVENTORY_INVALID")
	require.Equal(t, "inventory", fault.Extensions.Field)
	for _, depth := range []int{100, 5_000, 9_900} { // beyond what any variable may be
		b.refusedFor(t, reportInventory, nested(depth), "RESOURCE_EXHAUSTED", "VALUE_TOO_DEEP")
	}
	large := json.RawMessage(`{"a": "` + strings.Repeat("x", 2<<20) + `"}`)
	b.refusedFor(t, reportInventory, variables{"siteId": site, "bmcMacAddress": readyMac, "inventory": large}, "INVALID_ARGUMENT", "INVENTORY_TOO_LARGE")
	require.Equal(t, before, content())
}

func TestThePlatformComesFromTheSystemSkuNumber(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	for productSku, platform := range map[string]string{
		``: "default", ` `: "default", `---`: "default", `PowerEdge R750`: "poweredge_r750",
		`SKU=0A6B;ModelName=PowerEdge XE9680`: "sku_0a6b_modelname_poweredge_xe9680", `a:b@c#d!e?f-g`: "a_b_c_d_e_f_g", `Ä1`: "Ä1",
	} {
		document := json.RawMessage(`{"dmi_data": {"product_sku": "` + productSku + `"}}`)
		m := b.report(t, site, readyMac, "node", document)
		var out struct{ Machine struct{ Platform string } }
		b.must(t, `{ machine(site: "dc1", name: "node") { platform } }`, nil, &out)
		require.Equal(t, platform, out.Machine.Platform, productSku)
		require.Equal(t, "WAITING_FOR_SKU_ASSIGNMENT", m.SubState)
	}
}

func TestNamesAreCountedInCharacters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := strings.Repeat("日", fleet.MaxNameLength)
	site := b.createSite(t, long)
	m := b.report(t, site, "02:00:00:00:00:01", long, inventory(t, "composed/r760_9nvme.json"))
	require.Equal(t, long, m.Name)
	longSku := strings.Repeat("日", fleet.MaxSkuNameLength)
	id := b.createSku(t, site, m.ID, longSku)
	b.must(t, updateMetadata, variables{"input": variables{"skuId": id, "deviceType": longSku}}, nil)
	b.issueToken(t, variables{"name": long, "role": "VIEWER"})
}

func TestAMachineReportedWithoutANameGetsOneThatIsKeptForIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	whole := inventory(t, "composed/r760_9nvme.json")
	const report = `mutation($input: ReportInventoryInput!) { reportInventory(input: $input) { machine { name } } }`
	input := variables{"siteId": site, "bmcMacAddress": "02:00:00:00:a0:01", "name": "machine-02000000a002", "inventory": whole}
	fault := b.refusedFor(t, report, input, "INVALID_ARGUMENT", "NAME_INVALID")
	require.Equal(t, "name", fault.Extensions.Field)
	delete(input, "name")
	var out struct{ ReportInventory struct{ Machine machine } }
	b.must(t, report, variables{"input": input}, &out)
	require.Equal(t, "machine-02000000a001", out.ReportInventory.Machine.Name)
}

func TestARenameIsRecordedAndAnAgentsNameCountsAtFirstSightOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	site := b.createSite(t, "dc1")
	whole := inventory(t, "composed/r760_9nvme.json")
	agent := b.issueToken(t, variables{"name": "agent", "role": "AGENT", "siteId": site, "bmcMacAddress": "02:00:00:00:00:01"})
	const report = `mutation($input: ReportInventoryInput!) { reportInventory(input: $input) { machine { name } } }`
	reportAs := func(token, name string) string {
		t.Helper()
		var out struct{ ReportInventory struct{ Machine machine } }
		b.mustAs(t, token, report, variables{"input": variables{"siteId": site, "bmcMacAddress": "02:00:00:00:00:01", "name": name, "inventory": whole}}, &out)
		return out.ReportInventory.Machine.Name
	}
	require.Equal(t, "host-a", reportAs(agent, "host-a"))
	require.Equal(t, "node-1", reportAs(b.admin, "node-1"))
	require.Equal(t, "node-1", reportAs(agent, "host-a"))
	var out struct {
		Transitions struct {
			Nodes []struct {
				Cause   string
				Details map[string]any
			}
		}
	}
	b.must(t, `{ transitions(where: {subjectType: MACHINE, cause: "RENAMED"}) { nodes { cause details } } }`, nil, &out)
	require.Len(t, out.Transitions.Nodes, 1)
	require.Equal(t, map[string]any{"before": "host-a", "after": "node-1"}, out.Transitions.Nodes[0].Details)
}
