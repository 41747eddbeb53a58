package resolvers

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/relay"
	entsite "fleetgraph/ent/site"
	"fleetgraph/fleet"
	"fleetgraph/graph"
	"fleetgraph/internal/live"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// followSite opens the stream of a site.
func (r *Resolver) followSite(ctx context.Context, name string, after *relay.Cursor, kinds []fleet.SubjectType) (live.Source, error) {
	caller, err := access.Require(ctx, fleet.RoleViewer)
	if err != nil {
		return nil, err
	}
	if kinds != nil && len(kinds) == 0 {
		return nil, fleet.Invalid("kinds", "LIST_EMPTY", "name at least one kind, or leave kinds out for all")
	}
	id, err := r.Client.Site.Query().Where(entsite.Name(name)).OnlyID(ctx)
	if ent.IsNotFound(err) {
		return nil, fleet.Missing("site", "SITE_NOT_FOUND", "site not found: %s", name)
	}
	if err != nil {
		return nil, err
	}
	h := &history{feed: r.Feed, stream: events.AtSite(id), keep: caller.Follows(kinds)}
	return h, h.start(ctx, after)
}

// siteEvent is the graph's form of an event of a site's stream.
func (r *Resolver) siteEvent(ctx context.Context, e live.Event) (*graph.TransitionEvent, error) {
	t, at := changeOf(e)
	if t != nil {
		return &graph.TransitionEvent{Transition: t, Cursor: events.AtSite(*t.SiteID).CursorOf(t)}, nil
	}
	var err error
	at.number, err = r.Feed.Last(ctx, at.stream)
	return &graph.TransitionEvent{Cursor: at.stream.Cursor(at.number)}, err
}
