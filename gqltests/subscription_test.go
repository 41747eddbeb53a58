package gqltests_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"fleetgraph/server"
	"fleetgraph/server/graphqlws"
)

// followMachine is what tests follow machines with.
const followMachine = `subscription($id: ID!, $after: Cursor) { machine(id: $id, after: $after) {
	__typename
	... on MachineSnapshot { cursor machine { name state } }
	... on MachineChange { cursor transition { sequence cause toState } machine { name state } }
	... on MachineEnd { cursor transition { sequence cause } }
} }`

// machineEvent is an event of it.
type machineEvent struct {
	Machine struct {
		Typename   string `json:"__typename"`
		Cursor     string
		Machine    *machine
		Transition *change
	}
}

type change struct {
	Sequence               int
	Cause, ToState         string
	SubjectID, SubjectType string
}

func TestAMachineIsFollowedFromASnapshotToItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	siteID := b.createSite(t, "lab")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", inventory(t, "composed/xe9680_8gpu.json"))
	s := b.connect(t, b.admin)
	s.subscribe(t, "1", followMachine, variables{"id": m.ID})

	var e machineEvent
	s.data(t, "1", &e)
	require.Equal(t, "MachineSnapshot", e.Machine.Typename)
	require.Equal(t, "BOM_VALIDATING", e.Machine.Machine.State)

	b.createSku(t, siteID, m.ID, "sku-1")
	for {
		e = machineEvent{}
		s.data(t, "1", &e)
		require.Equal(t, "MachineChange", e.Machine.Typename)
		if e.Machine.Transition.Cause == "SKU_MATCH_FOUND" {
			break
		}
	}
	cursor := e.Machine.Cursor
	b.must(t, `mutation($input: DeleteMachineInput!) { deleteMachine(input: $input) { deletedMachineId } }`,
		variables{"input": variables{"machineId": m.ID}}, nil)
	for e.Machine.Typename != "MachineEnd" {
		e = machineEvent{}
		s.data(t, "1", &e)
	}
	done := s.next(t)
	require.Equal(t, "complete", done.Type)

	s.subscribe(t, "2", followMachine, variables{"id": m.ID, "after": cursor})
	for e.Machine.Typename = ""; e.Machine.Typename != "MachineEnd"; {
		e = machineEvent{}
		s.data(t, "2", &e)
	}
	require.Equal(t, "complete", s.next(t).Type)
	s.subscribe(t, "3", followMachine, variables{"id": m.ID, "after": e.Machine.Cursor})
	require.Equal(t, message{Type: "complete", ID: "3"}, s.next(t))
	s.subscribe(t, "4", followMachine, variables{"id": m.ID})
	require.Equal(t, "MACHINE_NOT_FOUND", s.refused(t, "4").Extensions.Reason)
}

// TestWhoCatchesUpIsShownWhatIsThereByThen replays an event that was rendered for a live
// follower, of a machine that has another name since.
func TestWhoCatchesUpIsShownWhatIsThereByThen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	siteID := b.createSite(t, "lab")
	document := inventory(t, "composed/xe9680_8gpu.json")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", document)
	s := b.connect(t, b.admin)
	s.subscribe(t, "1", followMachine, variables{"id": m.ID})
	var e machineEvent
	s.data(t, "1", &e)
	cursor := e.Machine.Cursor
	until := func(id, cause string) (name string) {
		t.Helper()
		for {
			var e machineEvent
			s.data(t, id, &e)
			if e.Machine.Transition != nil && e.Machine.Transition.Cause == cause {
				return e.Machine.Machine.Name
			}
		}
	}
	b.raise(t, m.ID)
	require.Equal(t, "node-1", until("1", "HEALTH_ALERT_RAISED"))
	b.report(t, siteID, "02:00:00:00:00:01", "node-2", document)
	require.Equal(t, "node-2", until("1", "RENAMED"))
	s.send(t, variables{"type": "complete", "id": "1"})
	for range 2 { // who comes second shares with the first
		s.subscribe(t, "2", followMachine, variables{"id": m.ID, "after": cursor})
		require.Equal(t, "node-2", until("2", "HEALTH_ALERT_RAISED"))
		require.Equal(t, "node-2", until("2", "RENAMED"))
		s.send(t, variables{"type": "complete", "id": "2"})
	}
}

// followSite is what tests follow sites with.
const followSite = `subscription($site: String!, $after: Cursor, $kinds: [SubjectType!]) {
	siteEvents(site: $site, after: $after, kinds: $kinds) { cursor transition { sequence cause toState subjectID: subjectId subjectType } } }`

type siteEvent struct {
	SiteEvents struct {
		Cursor     string
		Transition *change
	}
}

// open starts to follow a site from now on and returns the first cursor.
func (s *socket) open(t *testing.T, id string, vars variables) string {
	t.Helper()
	s.subscribe(t, id, followSite, vars)
	var e siteEvent
	s.data(t, id, &e)
	require.Nil(t, e.SiteEvents.Transition)
	require.NotEmpty(t, e.SiteEvents.Cursor)
	return e.SiteEvents.Cursor
}

//nolint:tparallel // one after the other: they share a machine
func TestASiteIsFollowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	siteID, otherID := b.createSite(t, "lab"), b.createSite(t, "other")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", inventory(t, "composed/xe9680_8gpu.json"))
	admin, viewer := b.connect(t, b.admin), b.connect(t, b.issueToken(t, variables{"name": "viewer", "role": "VIEWER", "siteIds": []string{siteID}}))
	admin.open(t, "all", variables{"site": "lab"})
	cursor := viewer.open(t, "all", variables{"site": "lab"})
	viewer.open(t, "skus", variables{"site": "lab", "kinds": []string{"SKU"}})
	other := b.connect(t, b.admin)
	other.open(t, "all", variables{"site": "other"})

	b.issueToken(t, variables{"name": "secret", "role": "VIEWER", "siteIds": []string{siteID}})
	var e siteEvent
	admin.data(t, "all", &e)
	require.Equal(t, "TOKEN", e.SiteEvents.Transition.SubjectType)
	b.raise(t, m.ID)
	viewer.data(t, "all", &e)
	require.Equal(t, &change{4, "HEALTH_ALERT_RAISED", "", m.ID, "MACHINE"}, e.SiteEvents.Transition, "tokens are for admins")
	b.createSku(t, otherID, b.report(t, otherID, "02:00:00:00:00:02", "node-2", inventory(t, "composed/r760_9nvme.json")).ID, "other-sku")
	b.createSku(t, siteID, m.ID, "sku-1")
	for seen := map[string]bool{}; !seen["skus"] || !seen["all"]; {
		message := viewer.next(t)
		var answer struct{ Data siteEvent }
		require.NoError(t, json.Unmarshal(message.Payload, &answer))
		require.NotContains(t, string(message.Payload), "other-sku")
		seen[message.ID] = seen[message.ID] || answer.Data.SiteEvents.Transition.SubjectType == "SKU"
		if message.ID == "skus" {
			require.Equal(t, "SKU", answer.Data.SiteEvents.Transition.SubjectType)
		}
	}

	t.Run("from a cursor on", func(t *testing.T) {
		s := b.connect(t, b.admin)
		s.subscribe(t, "1", followSite, variables{"site": "lab", "after": cursor, "kinds": []string{"MACHINE", "SKU"}})
		s.data(t, "1", &e)
		require.Equal(t, "HEALTH_ALERT_RAISED", e.SiteEvents.Transition.Cause)
	})
	t.Run("what is refused", func(t *testing.T) {
		viewer := b.connect(t, b.issueToken(t, variables{"name": "other", "role": "VIEWER", "siteIds": []string{otherID}}))
		agent := b.connect(t, b.issueToken(t, variables{"name": "agent", "role": "AGENT", "machineId": m.ID}))
		for name, c := range map[string]struct {
			as           *socket
			document     string
			vars         variables
			code, reason string
			field        string
		}{
			"another site":                    {viewer, followSite, variables{"site": "lab"}, "NOT_FOUND", "SITE_NOT_FOUND", "site"},
			"no site":                         {viewer, followSite, variables{"site": "none"}, "NOT_FOUND", "SITE_NOT_FOUND", "site"},
			"a machine of another site":       {viewer, followMachine, variables{"id": m.ID}, "NOT_FOUND", "MACHINE_NOT_FOUND", "id"},
			"the same, from a cursor on":      {viewer, followMachine, variables{"id": m.ID, "after": cursor}, "NOT_FOUND", "MACHINE_NOT_FOUND", "id"},
			"what is no machine":              {viewer, followMachine, variables{"id": siteID}, "INVALID_ARGUMENT", "ID_INVALID", "id"},
			"a site, by an agent":             {agent, followSite, variables{"site": "lab"}, "PERMISSION_DENIED", "ROLE_TOO_SMALL", ""},
			"the cursor of another site":      {viewer, followSite, variables{"site": "other", "after": cursor}, "INVALID_ARGUMENT", "CURSOR_FOREIGN", "after"},
			"what is no cursor":               {viewer, followSite, variables{"site": "other", "after": "x"}, "INVALID_ARGUMENT", "CURSOR_INVALID", "after"},
			"no kinds":                        {viewer, followSite, variables{"site": "other", "kinds": []string{}}, "INVALID_ARGUMENT", "LIST_EMPTY", "kinds"},
			"two at once":                     {viewer, `subscription { a: siteEvents(site: "other") { cursor } b: siteEvents(site: "other") { cursor } }`, nil, "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED", ""},
			"what is left out":                {viewer, `subscription { siteEvents(site: "other") @skip(if: true) { cursor } }`, nil, "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED", ""},
			"introspection":                   {viewer, `subscription { __typename }`, nil, "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED", ""},
			"what is no operation of a graph": {viewer, `subscription { nothing }`, nil, "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED", ""},
		} {
			c.as.subscribe(t, name, c.document, c.vars)
			got := c.as.refused(t, name)
			require.Equal(t, []string{c.code, c.reason, c.field}, []string{got.Extensions.Code, got.Extensions.Reason, got.Extensions.Field}, name)
			require.NotContains(t, got.Message, "node-1", name)
			require.NotContains(t, got.Message, "at:", "%s: the name of a topic", name)
		}
		agent.subscribe(t, "own", followMachine, variables{"id": m.ID})
		var own machineEvent
		agent.data(t, "own", &own)
		require.Equal(t, "node-1", own.Machine.Machine.Name)
	})
	t.Run("over a request that has one answer", func(t *testing.T) {
		require.Equal(t, "TRANSPORT_UNSUPPORTED", b.refused(t, b.admin, followSite, variables{"site": "lab"}).Extensions.Reason)
	})
	t.Run("queries and mutations over a socket", func(t *testing.T) {
		s := b.connect(t, b.admin)
		s.subscribe(t, "1", raiseAlert, variables{"input": variables{
			"machineId": m.ID, "alertId": "Disk", "source": "test", "message": "full", "classifications": []string{},
		}})
		var out struct {
			RaiseHealthAlert struct{ HealthAlert struct{ ID string } }
		}
		s.data(t, "1", &out)
		require.Equal(t, message{Type: "complete", ID: "1"}, s.next(t))
		s.subscribe(t, "1", `query($id: ID!) { node(id: $id) { id } }`, variables{"id": out.RaiseHealthAlert.HealthAlert.ID})
		s.data(t, "1", &struct{}{})
	})
}

func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	siteID := b.createSite(t, "lab")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", inventory(t, "composed/xe9680_8gpu.json"))

	t.Run("at its time, and goes on with a new one", func(t *testing.T) {
		t.Parallel()
		issued := time.Now()
		s := b.connect(t, b.issueToken(t, variables{"name": "short", "role": "VIEWER", "expiresIn": "5s"}))
		cursor := s.open(t, "1", variables{"site": "lab", "kinds": []string{"MACHINE"}})
		code, _ := s.closed(t)
		require.Equal(t, 4401, code)
		require.WithinRange(t, time.Now(), issued.Add(5*time.Second), issued.Add(15*time.Second))
		b.raise(t, m.ID)
		s = b.connect(t, b.issueToken(t, variables{"name": "new", "role": "VIEWER"}))
		s.subscribe(t, "1", followSite, variables{"site": "lab", "kinds": []string{"MACHINE"}, "after": cursor})
		var e siteEvent
		s.data(t, "1", &e)
		require.Equal(t, "HEALTH_ALERT_RAISED", e.SiteEvents.Transition.Cause)
	})
	t.Run("at its time, as server-sent events", func(t *testing.T) {
		t.Parallel()
		other := b.report(t, b.createSite(t, "other"), "02:00:00:00:00:02", "node-2", inventory(t, "composed/xe9680_8gpu.json"))
		issued := time.Now()
		follow := variables{"site": "other", "kinds": []string{"MACHINE"}}
		events := b.stream(t, b.issueToken(t, variables{"name": "short", "role": "VIEWER", "expiresIn": "2s"}), followSite, follow)
		var first struct{ Data siteEvent }
		require.NoError(t, json.Unmarshal([]byte(events.next(t).data), &first))
		require.Nil(t, events.next(t), "without a complete")
		require.WithinRange(t, time.Now(), issued.Add(2*time.Second), issued.Add(12*time.Second))
		follow["after"] = first.Data.SiteEvents.Cursor
		events = b.stream(t, b.issueToken(t, variables{"name": "new", "role": "VIEWER"}), followSite, follow)
		b.raise(t, other.ID)
		require.Contains(t, events.next(t).data, "HEALTH_ALERT_RAISED", "and goes on with a new one")
	})
	t.Run("when it is revoked", func(t *testing.T) {
		t.Parallel()
		var out struct {
			IssueToken struct {
				Secret string
				Token  struct{ ID string }
			}
		}
		b.must(t, `mutation($input: IssueTokenInput!) { issueToken(input: $input) { secret token { id } } }`,
			variables{"input": variables{"name": "revoked", "role": "VIEWER"}}, &out)
		s := b.connect(t, out.IssueToken.Secret)
		s.open(t, "1", variables{"site": "lab"})
		events := b.stream(t, out.IssueToken.Secret, followSite, variables{"site": "lab"})
		require.Equal(t, "next", events.next(t).name)
		b.must(t, `mutation($input: RevokeTokenInput!) { revokeToken(input: $input) { token { id } } }`,
			variables{"input": variables{"tokenId": out.IssueToken.Token.ID}}, nil)
		code, reason := s.closed(t)
		require.Equal(t, 4403, code)
		require.Contains(t, reason, "revoked")
		require.Nil(t, events.next(t), "without a complete")
	})
	t.Run("which it must have", func(t *testing.T) {
		t.Parallel()
		for name, payload := range map[string]any{
			"none": nil, "an empty one": variables{}, "a wrong one": variables{"authorization": "Bearer fgt_wrong"},
			"one of another form": variables{"authorization": "fgt_wrong"}, "no text": variables{"authorization": 7},
		} {
			s := b.dial(t, nil)
			s.send(t, variables{"type": "connection_init", "payload": payload})
			code, reason := s.closed(t)
			require.Equal(t, 4403, code, name)
			require.Contains(t, reason, "token", name)
		}
		_, response, err := websocket.DefaultDialer.DialContext(t.Context(), strings.Replace(b.url, "http", "ws", 1)+"/graphql",
			http.Header{"Authorization": {"Bearer fgt_wrong"}})
		require.Error(t, err)
		require.Equal(t, http.StatusUnauthorized, response.StatusCode)
		require.NoError(t, response.Body.Close())
	})
	t.Run("which the handshake may bring", func(t *testing.T) {
		t.Parallel()
		s := b.dial(t, http.Header{"Authorization": {"Bearer " + b.admin}})
		s.send(t, variables{"type": "connection_init"})
		require.Equal(t, "connection_ack", s.next(t).Type)
		s.open(t, "1", variables{"site": "lab"})
	})
}

func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	siteID := b.createSite(t, "lab")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", inventory(t, "composed/xe9680_8gpu.json"))

	query := b.stream(t, b.admin, `{ sites { totalCount } }`, nil)
	require.Equal(t, &sent{"next", `{"data":{"sites":{"totalCount":1}}}`}, query.next(t))
	require.Equal(t, &sent{"complete", ""}, query.next(t))
	require.Nil(t, query.next(t))

	events := b.stream(t, b.admin, followSite, variables{"site": "lab"})
	var e struct{ Data siteEvent }
	require.NoError(t, json.Unmarshal([]byte(events.next(t).data), &e))
	cursor := e.Data.SiteEvents.Cursor
	b.raise(t, m.ID)
	require.NoError(t, json.Unmarshal([]byte(events.next(t).data), &e))
	require.Equal(t, "HEALTH_ALERT_RAISED", e.Data.SiteEvents.Transition.Cause)

	again := b.stream(t, b.admin, followSite, variables{"site": "lab", "after": cursor})
	require.NoError(t, json.Unmarshal([]byte(again.next(t).data), &e))
	require.Equal(t, "HEALTH_ALERT_RAISED", e.Data.SiteEvents.Transition.Cause)

	for name, document := range map[string]string{
		"a document with a fault":   `{ nothing }`,
		"a subscription of nothing": `subscription { siteEvents(site: "none") { cursor } }`,
	} {
		refused := b.stream(t, b.admin, document, nil)
		require.Contains(t, refused.next(t).data, `{"errors":[{"message":`, name)
		require.Equal(t, &sent{"complete", ""}, refused.next(t), name)
	}

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/graphql?"+url.Values{
		"query":     {`mutation($input: RevokeTokenInput!) { revokeToken(input: $input) { token { id } } }`},
		"variables": {`{"input":{"tokenId":"` + siteID + `"}}`},
	}.Encode(), nil)
	require.NoError(t, err)
	require.Contains(t, b.follow(t, request, b.admin).next(t).data, "METHOD_NOT_ALLOWED")
}

// sent is a server-sent event.
type sent struct{ name, data string }

// stream is a response of server-sent events.
type stream struct{ lines *bufio.Scanner }

// stream runs an operation as a stream, which ends with the test.
func (b *bundle) stream(t *testing.T, token, document string, vars variables) *stream {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": document, "variables": vars})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/graphql", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	return b.follow(t, request, token)
}

func (b *bundle) follow(t *testing.T, request *http.Request, token string) *stream {
	t.Helper()
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: b.http.Transport}).Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/event-stream; charset=utf-8", response.Header.Get("Content-Type"))
	return &stream{bufio.NewScanner(response.Body)}
}

// next is the next event but comments; nil at the end.
func (s *stream) next(t *testing.T) *sent {
	t.Helper()
	e := &sent{}
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch {
		case name == "event":
			e.name = value
		case name == "data":
			e.data = value
		case name == "" && e.name != "":
			return e
		}
	}
	return nil
}

func TestAStopHandsOutWhatWasAcknowledgedAndEndsAllStreams(t *testing.T) {
	t.Parallel()
	b := setup(t)
	siteID := b.createSite(t, "lab")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", inventory(t, "composed/xe9680_8gpu.json"))
	s := b.connect(t, b.admin)
	s.open(t, "1", variables{"site": "lab"})
	events := b.stream(t, b.admin, followSite, variables{"site": "lab"})
	require.NotNil(t, events.next(t))
	for range 20 {
		b.try(t.Context(), clearAlert, variables{"healthAlertId": b.raise(t, m.ID)}, &struct{}{})
	}
	start := time.Now()
	go b.stop()
	for i := range 40 {
		var e siteEvent
		s.data(t, "1", &e)
		require.NotNil(t, events.next(t), i)
	}
	code, _ := s.closed(t)
	require.Equal(t, 1001, code)
	require.Nil(t, events.next(t), "without a complete: another server goes on")
	require.NoError(t, events.lines.Err())
	b.stop()
	require.Less(t, time.Since(start), 10*time.Second)
}

// followJob is what tests follow jobs with.
const followJob = `subscription($id: ID!, $after: Cursor) { job(id: $id, after: $after) {
	__typename
	... on JobSnapshot { cursor job { state ... on BulkJob { total done } } }
	... on JobChange { cursor transition { sequence cause } job { state ... on BulkJob { done } } }
	... on JobEnd { cursor transition { sequence cause } job { state summary ... on BulkJob { done } } }
} }`

type jobEvent struct {
	Job struct {
		Typename   string `json:"__typename"`
		Cursor     string
		Transition *change
		Job        bulkJob
	}
}

func TestAJobIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	ids := f.machines(t, "a", 120)
	hold := f.hold(t, ids[10])
	id := f.bulk(t, f.operator, bulkAssign, f.assignment("a")).Job.ID
	s := f.connect(t, f.issueToken(t, variables{"name": "viewer", "role": "VIEWER", "siteIds": []string{f.site}}))
	s.subscribe(t, "1", followJob, variables{"id": id})
	var e jobEvent
	s.data(t, "1", &e)
	require.Equal(t, "JobSnapshot", e.Job.Typename)
	require.Equal(t, 120, e.Job.Job.Total)
	start := e.Job.Cursor
	hold.release(t)
	var causes []string
	for e.Job.Typename != "JobEnd" {
		e = jobEvent{}
		s.data(t, "1", &e)
		causes = append(causes, e.Job.Transition.Cause)
	}
	require.Contains(t, causes, "PROGRESS")
	require.Equal(t, []string{"SUCCEEDED", "SUCCEEDED"}, []string{causes[len(causes)-1], e.Job.Job.State})
	require.Equal(t, 120, e.Job.Job.Done)
	require.Equal(t, message{Type: "complete", ID: "1"}, s.next(t))

	s.subscribe(t, "2", followJob, variables{"id": id, "after": e.Job.Cursor})
	require.Equal(t, message{Type: "complete", ID: "2"}, s.next(t), "behind the end")
	s.subscribe(t, "3", followJob, variables{"id": id})
	s.data(t, "3", &e)
	require.Equal(t, []string{"JobSnapshot", "SUCCEEDED"}, []string{e.Job.Typename, e.Job.Job.State})
	require.Equal(t, message{Type: "complete", ID: "3"}, s.next(t))
	s.subscribe(t, "4", followJob, variables{"id": id, "after": start})
	for i := range causes {
		s.data(t, "4", &e)
		require.Equal(t, causes[i], e.Job.Transition.Cause)
	}
	require.Equal(t, message{Type: "complete", ID: "4"}, s.next(t))

	f.createSite(t, "other")
	var sites struct {
		Site struct{ ID string }
	}
	f.must(t, `{ site(name: "other") { id } }`, nil, &sites)
	other := f.connect(t, f.issueToken(t, variables{"name": "other", "role": "VIEWER", "siteIds": []string{sites.Site.ID}}))
	other.subscribe(t, "1", followJob, variables{"id": id})
	require.Equal(t, "JOB_NOT_FOUND", other.refused(t, "1").Extensions.Reason)
}

// TestFollowersThatComeAndGoLeaveNothing counts goroutines and memory, so it runs
// beside no other test.
//
//nolint:paralleltest // see above
func TestFollowersThatComeAndGoLeaveNothing(t *testing.T) {
	b := setup(t)
	siteID := b.createSite(t, "lab")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", inventory(t, "composed/xe9680_8gpu.json"))
	come := func(sockets int) {
		for range sockets {
			s := b.connect(t, b.admin)
			for i := range 10 {
				id := strconv.Itoa(i)
				if i%2 == 0 {
					s.open(t, id, variables{"site": "lab"})
				} else {
					s.subscribe(t, id, followMachine, variables{"id": m.ID})
					s.data(t, id, &machineEvent{})
				}
				if i%3 == 0 {
					s.send(t, variables{"type": "complete", "id": id})
				}
			}
			require.NoError(t, s.Close())
		}
	}
	// used tells what lives of followers, and how many bytes there are.
	used := func() (followers int, bytes uint64) {
		runtime.GC()
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return followersOf(t), memory.HeapAlloc
	}
	come(10) // what is made once
	_, bytes := used()
	come(100)
	require.Eventually(t, func() bool {
		followers, after := used()
		return followers == 0 && after <= bytes+4<<20
	}, polling, 100*time.Millisecond)
}

// TestAThousandThatVanishLeaveNothing has peers that are there no more and never said
// so: without a word, with a session, and with subscriptions. It counts goroutines and
// memory, so it runs beside no other test.
//
//nolint:paralleltest // see above
func TestAThousandThatVanishLeaveNothing(t *testing.T) {
	b := setupWith(t, server.Config{Logger: slog.New(slog.DiscardHandler), Sockets: graphqlws.Limits{
		InitTimeout: time.Second, PingInterval: 500 * time.Millisecond, PongTimeout: 500 * time.Millisecond, WriteTimeout: time.Second,
	}})
	siteID := b.createSite(t, "lab")
	m := b.report(t, siteID, "02:00:00:00:00:01", "node-1", inventory(t, "composed/xe9680_8gpu.json"))
	// Each in a test of its own, whose clients are forgotten with it.
	vanish := func(t *testing.T, strangers, idle, followers int) {
		t.Helper()
		gone := make([]*socket, 0, strangers+idle+followers)
		for range strangers {
			gone = append(gone, b.dial(t, nil))
		}
		for range idle {
			gone = append(gone, b.connect(t, b.admin))
		}
		for range followers {
			s := b.connect(t, b.admin)
			s.open(t, "1", variables{"site": "lab"})
			s.subscribe(t, "2", followMachine, variables{"id": m.ID})
			gone = append(gone, s)
		}
		require.Eventually(t, func() bool { return followersOf(t) == 0 }, time.Minute, 100*time.Millisecond)
		for _, s := range gone { // whose ends here were open all the time
			require.NoError(t, s.Close())
		}
	}
	subscribe := func(t *testing.T, n int) {
		t.Helper()
		s := b.connect(t, b.admin)
		for i := range n {
			id := strconv.Itoa(i)
			s.open(t, id, variables{"site": "lab"})
			s.send(t, variables{"type": "complete", "id": id})
		}
		require.NoError(t, s.Close())
	}
	settled := func() (goroutines int, bytes uint64) {
		runtime.GC()
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return runtime.NumGoroutine(), memory.HeapAlloc
	}
	t.Run("what is made once", func(t *testing.T) {
		subscribe(t, 50)
		vanish(t, 50, 50, 50)
	})
	goroutines, bytes := settled()
	t.Run("a thousand", func(t *testing.T) {
		subscribe(t, 1000)
		vanish(t, 400, 200, 400)
	})
	require.Eventually(t, func() bool {
		left, after := settled()
		return followersOf(t) == 0 && left <= goroutines+20 && after <= bytes+4<<20
	}, polling, 100*time.Millisecond)
}

// followersOf counts what lives of followers in this process.
func followersOf(t *testing.T) (n int) {
	t.Helper()
	var stacks strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&stacks, 1))
	for _, part := range []string{"server/graphqlws.", "server.(*operations)", "notify.(*Follower"} {
		n += strings.Count(stacks.String(), part)
	}
	return n
}

func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	b := setupWith(t, server.Config{Logger: slog.New(slog.DiscardHandler), Sockets: graphqlws.Limits{Connections: 1}})
	b.createSite(t, "dc1")
	open := func() *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/graphql", strings.NewReader(`{"query":"subscription { siteEvents(site: \"dc1\") { cursor } }"}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "text/event-stream")
		request.Header.Set("Authorization", "Bearer "+b.admin)
		response, err := (&http.Client{Transport: b.http.Transport}).Do(request)
		require.NoError(t, err)
		return response
	}
	first := open()
	require.Equal(t, http.StatusOK, first.StatusCode)
	second := open()
	require.Equal(t, http.StatusTooManyRequests, second.StatusCode)
	body, err := io.ReadAll(second.Body)
	require.NoError(t, errors.Join(err, second.Body.Close()))
	require.Contains(t, string(body), "TOO_MANY_STREAMS")
	require.NoError(t, first.Body.Close())
	require.Eventually(t, func() bool {
		next := open()
		_ = next.Body.Close()
		return next.StatusCode == http.StatusOK
	}, polling, tick, "the place of one that left is free")
}
