package resolvers

import (
	"context"

	"fleetgraph/ent"
	"fleetgraph/ent/healthalert"
	"fleetgraph/ent/machine"
	"fleetgraph/ent/site"
	"fleetgraph/ent/sku"
	"fleetgraph/ent/token"
	"fleetgraph/fleet"
	"fleetgraph/graph"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/bom"
)

func (r *Resolver) site(ctx context.Context, id string) (*ent.Site, error) {
	query, err := r.Client.Site.Query().Where(site.ID(id)).CollectOne(ctx, "site")
	if err != nil {
		return nil, err
	}
	row, err := query.Only(ctx)
	return row, gone(err, id)
}

func (r *Resolver) sku(ctx context.Context, id string) (*ent.Sku, error) {
	query, err := r.Client.Sku.Query().Where(sku.ID(id)).CollectOne(ctx, "sku")
	if err != nil {
		return nil, err
	}
	row, err := query.Only(ctx)
	return row, gone(err, id)
}

// skus loads the SKUs below a field, in the order of their ids' list.
func (r *Resolver) skus(ctx context.Context, ids []string, field string) ([]*ent.Sku, error) {
	query, err := r.Client.Sku.Query().Where(sku.IDIn(ids...)).CollectPath(ctx, field)
	if err != nil {
		return nil, err
	}
	rows, err := query.All(ctx)
	return inOrder(ids, rows, func(s *ent.Sku) string { return s.ID }, err)
}

func (r *Resolver) machine(ctx context.Context, id string) (*ent.Machine, error) {
	query, err := r.Client.Machine.Query().Where(machine.ID(id)).CollectOne(ctx, "machine")
	if err != nil {
		return nil, err
	}
	row, err := query.Only(ctx)
	return row, gone(err, id)
}

func (r *Resolver) healthAlert(ctx context.Context, id string) (*ent.HealthAlert, error) {
	query, err := r.Client.HealthAlert.Query().Where(healthalert.ID(id)).CollectOne(ctx, "healthAlert")
	if err != nil {
		return nil, err
	}
	row, err := query.Only(ctx)
	return row, gone(err, id)
}

func (r *Resolver) token(ctx context.Context, id string) (*ent.Token, error) {
	query, err := r.Client.Token.Query().Where(token.ID(id)).CollectOne(ctx, "token")
	if err != nil {
		return nil, err
	}
	row, err := query.Only(ctx)
	return row, gone(err, id)
}

// inOrder sorts rows into the order of ids: NOT_FOUND for one that is gone.
func inOrder[T any](ids []string, rows []*T, idOf func(*T) string, err error) ([]*T, error) {
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*T, len(rows))
	for _, row := range rows {
		byID[idOf(row)] = row
	}
	out := make([]*T, len(ids))
	for i, id := range ids {
		row, ok := byID[id]
		if !ok {
			return nil, fleet.Missing("", "RESULT_GONE", "%s has been deleted since", id)
		}
		out[i] = row
	}
	return out, nil
}

// gone turns the absence of a mutation's result into an error for people: it was
// deleted since, which a repeat of an old call may meet.
func gone(err error, id string) error {
	if ent.IsNotFound(err) {
		return fleet.Missing("", "RESULT_GONE", "%s has been deleted since", id)
	}
	return err
}

// orNull makes a look-up nullable: absent and hidden are null, and so is what no
// row can hold.
func orNull[T any](row *T, err error) (*T, error) {
	if ent.IsNotFound(err) || pgdb.Unstorable(err) {
		return nil, nil //nolint:nilnil // the graph's null
	}
	return row, err
}

// affected loads the machines below a field that a change concerns.
func (r *Resolver) affected(ctx context.Context, a bom.Affected, field string) (*graph.SkuMatchChange, error) {
	query, err := r.Client.Machine.Query().Where(machine.IDIn(a.First...)).CollectPath(ctx, field, "machines")
	if err != nil {
		return nil, err
	}
	rows, err := query.All(ctx)
	rows, err = inOrder(a.First, rows, func(m *ent.Machine) string { return m.ID }, err)
	return &graph.SkuMatchChange{Count: a.Count, Machines: rows}, err
}
