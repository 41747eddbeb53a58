package main

import (
	"crypto/rand"

	"github.com/Khan/genqlient/graphql"

	"fleetgraph/cmd/fleetctl/client"
)

// pageSize is the number of objects to read at a time: the most that the server
// gives.
const pageSize = 200

// api is the connection to the server, made at first use.
func (a *app) api() (graphql.Client, error) {
	if a.gql != nil {
		return a.gql, nil
	}
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	url, err := endpoint(settings.URL)
	if err != nil {
		return nil, err
	}
	a.gql = newConnection(url, settings.Token, a.flags.timeout)
	return a.gql, nil
}

// newKey is the idempotency key of one mutation. It is drawn where the mutation
// is made, so the transport repeats it with the same key.
func newKey() *string {
	key := rand.Text()
	return &key
}

// pages reads a connection to its end, or until limit objects were read; a limit
// of 0 is none. fetch reads one page of at most n objects, keeps them, and
// returns their number.
func pages(limit int, fetch func(n int, after *string) (int, client.Page, error)) error {
	var after *string
	for read := 0; ; {
		n := pageSize
		if limit > 0 {
			n = min(n, limit-read)
		}
		got, page, err := fetch(n, after)
		if err != nil {
			return err
		}
		read += got
		if !page.HasNextPage || page.EndCursor == nil || limit > 0 && read >= limit {
			return nil
		}
		after = page.EndCursor
	}
}
