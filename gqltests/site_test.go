package gqltests_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

const updateSite = `mutation($input: UpdateSiteInput!) { updateSite(input: $input) { site { id name description revision } } }`

// site is what tests look at of a site.
type site struct {
	ID, Name, Description string
	Revision              int
}

func TestASiteIsEditedFieldByField(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.createSite(t, "dc1")
	b.createSite(t, "dc2")
	edit := func(change variables) site {
		t.Helper()
		var out struct{ UpdateSite struct{ Site site } }
		b.must(t, updateSite, variables{"input": merged(variables{"siteId": id}, change)}, &out)
		return out.UpdateSite.Site
	}
	require.Equal(t, site{id, "dc1", "north", 3}, edit(variables{"description": "north", "expectedRevision": 2}))
	require.Equal(t, site{id, "hall", "north", 4}, edit(variables{"name": "hall"}))
	require.Equal(t, site{id, "hall", "", 5}, edit(variables{"description": nil, "expectedRevision": 4}))

	content := b.fingerprint(t)
	before := content()
	require.Equal(t, site{id, "hall", "", 5}, edit(nil))
	require.Equal(t, site{id, "hall", "", 5}, edit(variables{"name": "hall", "description": ""}))
	fault := b.refusedFor(t, updateSite, variables{"siteId": id, "name": "dc2"}, "ALREADY_EXISTS", "SITE_NAME_TAKEN")
	require.Equal(t, []string{"name", `a site named "dc2" exists`}, []string{fault.Extensions.Field, fault.Message})
	fault = b.refusedFor(t, updateSite, variables{"siteId": id, "name": "x", "expectedRevision": 3}, "ABORTED", "REVISION_CONFLICT")
	require.Equal(t, map[string]any{"expected": 3.0, "present": 5.0}, fault.Extensions.Details)
	fault = b.refusedFor(t, createSite, variables{"name": "dc2"}, "ALREADY_EXISTS", "SITE_NAME_TAKEN")
	require.Equal(t, "name", fault.Extensions.Field)
	require.Equal(t, before, content())

	events := b.history(t, id)
	require.Equal(t, []string{"SITE_CREATED", "SITE_UPDATED", "SITE_UPDATED", "SITE_UPDATED", "SITE_UPDATED"}, causes(events))
	require.Equal(t, map[string]any{
		"before": map[string]any{"name": "dc1"},
		"after":  map[string]any{"name": "hall"},
	}, events[3].Details, "what has changed, and nothing else")
}

func TestOfSitesOfOneNameAtOnceExactlyOneIsCreated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	answers := make([]answer, 8)
	atOnce(len(answers), func(i int) {
		answers[i] = b.do(t, b.admin, createSite, variables{"input": variables{"name": "dc1", "description": fmt.Sprint("site ", i)}})
	})
	require.Equal(t, map[string]int{"": 1, "SITE_NAME_TAKEN": 7}, outcomes(t, answers))
}

func TestASiteBoundAdminEditsItsSite(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	var out struct{ UpdateSite struct{ Site site } }
	h.mustAs(t, h.siteAdmin, updateSite, variables{"input": variables{"siteId": h.here.id, "description": "d", "idempotencyKey": "k"}}, &out)
	require.Equal(t, site{h.here.id, "here", "d", 3}, out.UpdateSite.Site)
	require.Equal(t, "site-admin", last(h.history(t, h.here.id)).Actor)
	// The name of a site that it does not see is taken all the same.
	fault := h.refused(t, h.siteAdmin, updateSite, variables{"input": variables{"siteId": h.here.id, "name": "there"}})
	require.Equal(t, "SITE_NAME_TAKEN", fault.Extensions.Reason)
}

func TestMessagesAreForPeople(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fault := b.refused(t, b.admin, `mutation { deleteSku(input: {skuId: {}}) { deletedSkuId } }`, nil)
	require.Equal(t, []string{"INVALID_ARGUMENT", "skuId", "an ID is a string, not an object"}, []string{fault.Extensions.Code, fault.Extensions.Field, fault.Message})
	fault = b.refused(t, b.admin, `query A { viewer { name } } query B { viewer { name } }`, nil)
	require.Equal(t, []string{"INVALID_ARGUMENT", "the document has several operations: say which one in operationName"}, []string{fault.Extensions.Code, fault.Message})
}
