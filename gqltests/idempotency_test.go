package gqltests_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

const createSite = `mutation($input: CreateSiteInput!) { createSite(input: $input) { site { id name } } }`

// otherwise is an input of a mutation that means something else.
func otherwise(h *hall, m mutation) variables {
	switch m.name {
	case "verifyMachineSku":
		return merged(m.input, variables{"machineId": h.here.waiting.ID})
	case "assignSku":
		return merged(m.input, variables{"skuId": h.here.sku})
	case "unassignSku", "bulkAssignSku", "bulkUnassignSku":
		return merged(m.input, variables{"force": true})
	case "cancelJob":
		return merged(m.input, variables{"jobId": h.there.job})
	case "verifyTest", "enableTest", "disableTest":
		return merged(m.input, variables{"validationTestId": h.there.enabled})
	case "claimWork", "releaseMachine", "deleteMachine":
		return merged(m.input, variables{"machineId": h.here.ready.ID})
	case "finishWork":
		return merged(m.input, variables{"error": "otherwise"})
	case "allocateMachine":
		return merged(m.input, variables{"allocationName": "otherwise"})
	case "raiseHealthAlert":
		return merged(m.input, variables{"message": "otherwise"})
	case "clearHealthAlert":
		return merged(m.input, variables{"healthAlertId": h.there.alert})
	case "revokeToken":
		return merged(m.input, variables{"tokenId": h.there.token})
	case "deleteSku":
		return merged(m.input, variables{"skuId": h.there.deletable})
	case "createSkus":
		return merged(m.input, variables{"acceptOlderVersions": true})
	case "createExpectedMachine", "updateExpectedMachine", "createExpectedMachines", "updateExpectedMachines", "replaceAllExpectedMachines":
		return merged(m.input, variables{"allowUnknownSku": m.input["allowUnknownSku"] != true})
	case "deleteExpectedMachine":
		return merged(m.input, variables{"expectedMachineId": h.there.surplus})
	case "createSite", "createSku", "reportInventory", "issueToken":
		return merged(m.input, variables{"name": "otherwise"})
	default:
		return merged(m.input, variables{"description": "otherwise"})
	}
}

// refusedInput is an input of a mutation that its service refuses.
func refusedInput(m mutation) variables {
	if m.name == "createSite" {
		return merged(m.input, variables{"name": "here"})
	}
	r := m.references[0]
	return merged(m.input, r.set(fleet.NewID(r.prefix)))
}

//nolint:tparallel // the subtests share a database, whose content they compare
func TestARepeatWithTheSameKeyReturnsTheFirstResult(t *testing.T) {
	t.Parallel()
	h := newFullHall(t)
	second := h.issueToken(t, variables{"name": "second-admin", "role": "ADMIN"})
	h.mustAs(t, second, `{ viewer { name } }`, nil, nil)
	content := h.fingerprint(t)
	for _, m := range mutations(t, h) {
		t.Run(m.name, func(t *testing.T) {
			keyed := func(input variables) variables {
				return variables{"input": merged(input, variables{"idempotencyKey": "the key"})} // of each mutation
			}
			h.settle(t)
			before := content()
			h.refused(t, m.caller(h), m.document(), keyed(refusedInput(m)))
			require.Equal(t, before, content(), "a failed call left its key")

			first := h.do(t, m.caller(h), m.document(), keyed(m.input))
			require.Empty(t, first.Errors, "%s", first.raw)
			h.settle(t)
			after := content()
			require.NotEqual(t, before, after)
			repeat := h.do(t, m.caller(h), m.document(), keyed(m.input))
			require.Equal(t, string(first.raw), string(repeat.raw))
			require.Equal(t, after, content(), "a repeat left a trace")

			reused := h.refused(t, m.caller(h), m.document(), keyed(otherwise(h, m)))
			require.Equal(t, []string{"ALREADY_EXISTS", "IDEMPOTENCY_KEY_REUSED", "idempotencyKey"},
				[]string{reused.Extensions.Code, reused.Extensions.Reason, reused.Extensions.Field})
			require.Equal(t, after, content())

			for _, error := range h.do(t, second, m.document(), keyed(otherwise(h, m))).Errors {
				require.NotEqual(t, "IDEMPOTENCY_KEY_REUSED", error.Extensions.Reason, "a key is its caller's own")
			}
		})
		if t.Failed() {
			return
		}
	}
}

func TestAKeyIsItsCallersOwn(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	second := h.issueToken(t, variables{"name": "second-admin", "role": "ADMIN"})
	create := func(caller, name string) (id string) {
		var out struct {
			CreateSite struct{ Site struct{ ID string } }
		}
		h.mustAs(t, caller, createSite, variables{"input": variables{"name": name, "idempotencyKey": "k"}}, &out)
		return out.CreateSite.Site.ID
	}
	one, two := create(h.admin, "one"), create(second, "two")
	require.NotEqual(t, one, two)
	require.Equal(t, one, create(h.admin, "one"))
	require.Equal(t, two, create(second, "two"))

	// A caller bound to sites, and an agent, have keys like any other.
	report := variables{"input": variables{"siteId": h.here.id, "bmcMacAddress": readyMac, "inventory": json.RawMessage(`{}`), "idempotencyKey": "k"}}
	const document = `mutation($input: ReportInventoryInput!) { reportInventory(input: $input) { created machine { id state } } }`
	for _, caller := range []string{h.agent, h.siteOperator, h.siteAdmin} {
		first := h.do(t, caller, document, report)
		require.Empty(t, first.Errors, "%s", first.raw)
		length := len(h.history(t, h.here.ready.ID))
		require.Equal(t, string(first.raw), string(h.do(t, caller, document, report).raw))
		require.Len(t, h.history(t, h.here.ready.ID), length)
	}
}

func TestARepeatedIssueDoesNotTellTheSecretAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const document = `mutation($input: IssueTokenInput!) { issueToken(input: $input) { token { id } secret } }`
	input := variables{"input": variables{"name": "t", "role": "VIEWER", "idempotencyKey": "k"}}
	var first, second struct {
		IssueToken struct {
			Token  struct{ ID string }
			Secret *string
		}
	}
	b.must(t, document, input, &first)
	b.must(t, document, input, &second)
	require.NotNil(t, first.IssueToken.Secret)
	require.Nil(t, second.IssueToken.Secret)
	require.Equal(t, first.IssueToken.Token, second.IssueToken.Token)
	b.mustAs(t, *first.IssueToken.Secret, `{ viewer { name } }`, nil, nil)
	require.Equal(t, []string{"TOKEN_ISSUED"}, causes(b.history(t, first.IssueToken.Token.ID)))
}

func TestAKeyIsForgottenAfterADay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	input := func(name string) variables { return variables{"input": variables{"name": name, "idempotencyKey": "k"}} }
	b.must(t, createSite, input("one"), nil)
	age := func(by string) {
		_, err := b.sql(t).Exec(t.Context(), "UPDATE idempotency_records SET created_at = created_at - $1::text::interval", by)
		require.NoError(t, err)
	}
	age("23 hours 50 minutes")
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", b.refused(t, b.admin, createSite, input("two")).Extensions.Reason)
	age("20 minutes")
	b.must(t, createSite, input("two"), nil)
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", b.refused(t, b.admin, createSite, input("one")).Extensions.Reason)
}

func TestARepeatAfterTheResultWasDeletedSaysSo(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	input := variables{"input": variables{"siteId": h.here.id, "name": "n", "components": ofChassis(h.generate(t, h.here.waiting.ID), "X"), "idempotencyKey": "k"}}
	var out struct {
		CreateSku struct{ Sku struct{ ID string } }
	}
	h.must(t, createSku, input, &out)
	h.must(t, `mutation($input: DeleteSkuInput!) { deleteSku(input: $input) { deletedSkuId } }`, variables{"input": variables{"skuId": out.CreateSku.Sku.ID}}, nil)
	fault := h.refused(t, h.admin, createSku, input)
	require.Equal(t, []string{"NOT_FOUND", "RESULT_GONE"}, []string{fault.Extensions.Code, fault.Extensions.Reason})
}

// atOnce calls fn n times at the same time and waits for all.
func atOnce(n int, fn func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	all.Wait()
}

//nolint:tparallel // the subtests share a database, whose content they compare
func TestCallsAtOnceWithOneKeyRunOnce(t *testing.T) {
	t.Parallel()
	once, many := newFullHall(t), newFullHall(t)
	rows := func(content func() string) string {
		lines := []string{}
		for line := range strings.Lines(content()) {
			words := strings.Fields(line)
			lines = append(lines, words[0]+" "+words[1])
		}
		return strings.Join(lines, "\n")
	}
	ofOnce, ofMany := once.fingerprint(t), many.fingerprint(t)
	single := mutations(t, once)
	for i, m := range mutations(t, many) {
		t.Run(m.name, func(t *testing.T) {
			keyed := func(m mutation) variables {
				return variables{"input": merged(m.input, variables{"idempotencyKey": "k"})}
			}
			once.mustAs(t, single[i].caller(once), single[i].document(), keyed(single[i]), nil)
			answers := make([]answer, 8)
			atOnce(len(answers), func(n int) { answers[n] = many.do(t, m.caller(many), m.document(), keyed(m)) })
			for _, a := range answers {
				require.Empty(t, a.Errors, "%s", a.raw)
				require.Equal(t, string(answers[0].raw), string(a.raw))
			}
			once.settle(t)
			many.settle(t)
			require.Equal(t, rows(ofOnce), rows(ofMany))
		})
	}
}
