package gqltests_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
	"fleetgraph/internal/seal"
	"fleetgraph/internal/telemetry"
	"fleetgraph/server"
)

// journal is a log that a test reads while the server writes.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func (j *journal) logger(t *testing.T) *slog.Logger {
	t.Helper()
	logger, err := telemetry.NewLogger(j, telemetry.FormatJSON, "debug")
	require.NoError(t, err)
	return logger
}

// auditLine is a line of the audit.
type auditLine struct {
	Mutation, Outcome, Reason, Caller, Role, Remote string
	TokenID                                         string `json:"token_id"`
	TraceID                                         string `json:"trace_id"`
	Took                                            *time.Duration
	Input                                           map[string]any
}

// audited are the lines of the audit since the last call.
func (j *journal) audited(t *testing.T) []auditLine {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := []auditLine{}
	for text := range strings.Lines(j.b.String()) {
		var line struct {
			Msg string
			auditLine
		}
		require.NoError(t, json.Unmarshal([]byte(text), &line))
		if line.Msg == "audit" {
			lines = append(lines, line.auditLine)
		}
	}
	j.b.Reset()
	return lines
}

func TestEveryMutationIsAuditedWithItsCallerAndNoSecret(t *testing.T) {
	t.Parallel()
	log := &journal{}
	key, err := seal.NewKey()
	require.NoError(t, err)
	b := setupWith(t, server.Config{EncryptionKey: string(key), Logger: log.logger(t)})
	site := b.createSite(t, "dc1")
	id, secret := b.issue(t, variables{"name": "ops", "role": "ADMIN"})
	issued := log.audited(t)
	require.Equal(t, "issueToken", issued[len(issued)-1].Mutation)
	require.Equal(t, map[string]any{"name": "ops"}, issued[len(issued)-1].Input)

	// only returns the one line of a mutation by ops, after what is the same in all.
	only := func() auditLine {
		t.Helper()
		lines := log.audited(t)
		require.Len(t, lines, 1)
		line := lines[0]
		require.Equal(t, []string{"ops", id, "ADMIN"}, []string{line.Caller, line.TokenID, line.Role})
		require.Regexp(t, `^127\.0\.0\.1:\d+$`, line.Remote)
		require.Len(t, line.TraceID, 32)
		require.NotNil(t, line.Took)
		return line
	}
	const password = "correct-horse-battery"
	register := func(mac string) variables {
		return variables{"input": variables{"siteId": site, "idempotencyKey": "key", "expectedMachine": variables{
			"bmcMacAddress": mac, "name": "node-1", "bmcUsername": "root", "bmcPassword": password, "labels": []any{variables{"key": "k", "value": password}},
		}}}
	}
	b.mustAs(t, secret, createExpected, register("02:00:00:00:00:01"), nil)
	require.Equal(t, auditLine{Mutation: "createExpectedMachine", Outcome: "OK", Input: map[string]any{"siteId": site, "bmcMacAddress": "02:00:00:00:00:01", "name": "node-1"}}, only().what())

	b.refused(t, secret, createExpected, register("02:00:00:00:00:02"))
	require.Equal(t, auditLine{Mutation: "createExpectedMachine", Outcome: "ALREADY_EXISTS", Reason: "IDEMPOTENCY_KEY_REUSED", Input: map[string]any{"siteId": site, "bmcMacAddress": "02:00:00:00:00:02", "name": "node-1"}}, only().what())

	unknown := fleet.NewID(fleet.PrefixMachine)
	b.refused(t, secret, `mutation { allocateMachine(input: {machineId: "`+unknown+`", allocationName: "tenant"}) { machine { id } } }`, nil)
	require.Equal(t, auditLine{Mutation: "allocateMachine", Outcome: "NOT_FOUND", Reason: "MACHINE_NOT_FOUND", Input: map[string]any{"machineId": unknown, "allocationName": "tenant"}}, only().what())

	// What is no id is not shown where one belongs, nor what is no name.
	b.refused(t, secret, revokeToken, variables{"input": variables{"tokenId": secret}})
	require.Equal(t, auditLine{Mutation: "revokeToken", Outcome: "INVALID_ARGUMENT", Reason: "ID_INVALID", Input: map[string]any{"tokenId": "malformed"}}, only().what())
	b.refused(t, secret, `mutation { createSite(input: {name: "a\u001b"}) { site { id } } }`, nil)
	require.Equal(t, auditLine{Mutation: "createSite", Outcome: "INVALID_ARGUMENT", Reason: "TEXT_INVALID"}, only().what())

	// Of what is refused before it runs, the input is not read.
	for _, c := range []struct {
		document string
		vars     variables
	}{
		{createExpected, variables{"input": variables{"siteId": site, "bmcPassword": password}}},
		{createExpected, nil},
		{`mutation { createExpectedMachine(input: {siteId: "` + site + `", nonsense: "` + password + `"}) { expectedMachine { id } } }`, nil},
		{`mutation { ...F } fragment F on Mutation { createExpectedMachine(input: 7) { expectedMachine { id } } ...G } fragment G on Mutation { ...F }`, nil},
	} {
		require.NotEmpty(t, b.do(t, secret, c.document, c.vars).Errors)
		require.Equal(t, auditLine{Mutation: "createExpectedMachine", Outcome: "INVALID_ARGUMENT", Reason: "GRAPHQL_VALIDATION_FAILED"}, only().what(), c.document)
	}

	// Each field of a document has a line and an outcome of its own; what directives
	// leave out is no attempt.
	b.do(t, secret, `mutation($no: Boolean!) {
		first: createSite(input: {name: "dc2"}) { site { id } }
		... on Mutation { again: createSite(input: {name: "dc2"}) { site { id } } }
		never: createSite(input: {name: "dc3"}) @include(if: $no) { site { id } }
		__typename }`, variables{"no": false})
	lines := log.audited(t)
	require.Len(t, lines, 2)
	require.Equal(t, []string{"OK", "ALREADY_EXISTS"}, []string{lines[0].Outcome, lines[1].Outcome})
	require.Equal(t, "SITE_NAME_TAKEN", lines[1].Reason)

	many := make([]variables, 12)
	for i := range many {
		many[i] = variables{"bmcMacAddress": bmc(0x200 + i), "bmcUsername": "root", "bmcPassword": password}
	}
	b.mustAs(t, secret, `mutation($input: CreateExpectedMachinesInput!) { createExpectedMachines(input: $input) { expectedMachines { id } } }`,
		variables{"input": variables{"siteId": site, "expectedMachines": many}}, nil)
	macs, ok := only().Input["bmcMacAddress"].([]any)
	require.True(t, ok)
	require.Len(t, macs, 11)
	require.Equal(t, "and 2 more", macs[10])

	// A viewer's attempt is the viewer's; queries are none.
	_, viewer := b.issue(t, variables{"name": "watcher", "role": "VIEWER", "siteIds": site})
	lines = log.audited(t)
	require.Equal(t, site, lines[0].Input["siteIds"], "one value stands for a list of one")
	b.refused(t, viewer, `mutation { createSite(input: {name: "dc4"}) { site { id } } }`, nil)
	lines = log.audited(t)
	require.Len(t, lines, 1)
	require.Equal(t, []string{"watcher", "VIEWER", "PERMISSION_DENIED", "ROLE_TOO_SMALL"}, []string{lines[0].Caller, lines[0].Role, lines[0].Outcome, lines[0].Reason})
	b.mustAs(t, viewer, `{ viewer { name } }`, nil, nil)
	b.do(t, viewer, `query mutation { nothing }`, nil)
	b.do(t, viewer, `mutation {`, nil)
	require.Empty(t, log.audited(t))
}

// what is a line without what differs from call to call.
func (l auditLine) what() auditLine {
	return auditLine{Mutation: l.Mutation, Outcome: l.Outcome, Reason: l.Reason, Input: l.Input}
}

func TestTheLogHoldsNoSecretOfAnInput(t *testing.T) {
	t.Parallel()
	log := &journal{}
	key, err := seal.NewKey()
	require.NoError(t, err)
	b := setupWith(t, server.Config{EncryptionKey: string(key), Logger: log.logger(t)})
	site := b.createSite(t, "dc1")
	const password = "correct-horse-battery"
	for _, secret := range []string{password, b.admin} {
		item := variables{"bmcMacAddress": readyMac, "bmcUsername": "root", "bmcPassword": secret, "name": "a"}
		for _, change := range []variables{{}, {"bmcMacAddress": "x"}, {"bmcUsername": nil}, {"name": secret + "\n"}, {"nonsense": secret}} {
			b.do(t, b.admin, createExpected, variables{"input": variables{"siteId": site, "expectedMachine": merged(item, change)}})
			b.do(t, b.admin, `mutation { createExpectedMachine(input: `+literal(variables{"siteId": site, "expectedMachine": merged(item, change)})+`) { expectedMachine { id } } }`, nil)
		}
		b.do(t, b.admin, createExpected, variables{"input": variables{"siteId": secret, "expectedMachine": item}})
		b.do(t, b.admin, revokeToken, variables{"input": variables{"tokenId": secret}})
		b.do(t, "fgt_"+secret, `{ viewer { name } }`, nil)
	}
	issued := b.issueToken(t, variables{"name": "x", "role": "VIEWER"})
	text := log.String()
	require.Contains(t, text, `"msg":"audit"`)
	for _, secret := range []string{password, b.admin, strings.TrimPrefix(b.admin, "fgt_"), issued} {
		require.NotContains(t, text, secret)
	}
}
