package resolvers

import (
	"github.com/99designs/gqlgen/graphql"

	"fleetgraph/ent"
	"fleetgraph/fleet"
	"fleetgraph/graph"
)

// patch tells an absent field from a null one.
func patch[T any](o graphql.Omittable[*T]) fleet.Patch[T] {
	value, set := o.ValueOK()
	return fleet.Patch[T]{Set: set, Value: value}
}

// patchList is patch for a list, of which null is one without a value.
func patchList[T any](o graphql.Omittable[[]T]) fleet.Patch[[]T] {
	list, set := o.ValueOK()
	if list == nil {
		return fleet.Patch[[]T]{Set: set}
	}
	return fleet.Patch[[]T]{Set: set, Value: &list}
}

// patchObjects is patchList for a list of objects.
func patchObjects[T any](o graphql.Omittable[[]*T]) fleet.Patch[[]T] {
	list, set := o.ValueOK()
	if list == nil {
		return fleet.Patch[[]T]{Set: set}
	}
	return fleet.Patch[[]T]{Set: set, Value: new(values(list))}
}

// valueOf is the value of an optional field, or zero where it is absent or null.
func valueOf[T any](o graphql.Omittable[*T]) T {
	if v := o.Value(); v != nil {
		return *v
	}
	var zero T
	return zero
}

// given is the name in an optional field, empty where it is absent or null. An
// empty name is refused here, since services take it for an absent one.
func given(field string, o graphql.Omittable[*string]) (string, error) {
	if name := o.Value(); name != nil {
		return *name, fleet.CheckName(field, *name)
	}
	return "", nil
}

// work is the graph's form of a work item.
func work(item *ent.WorkItem) graph.Work {
	form := graph.RefreshInventory{
		ID: item.ID, MachineID: item.MachineID, RequestedAt: item.RequestedAt, ClaimedAt: item.ClaimedAt,
		FinishedAt: item.FinishedAt, Outcome: item.Outcome, Error: item.Error,
	}
	switch item.Kind {
	case fleet.WorkReboot:
		return graph.Reboot(form)
	case fleet.WorkCleanup:
		return graph.Cleanup(form)
	default:
		return form
	}
}

func pointers[T any](values []T) []*T {
	out := make([]*T, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}

func values[T any](pointers []*T) []T {
	if pointers == nil {
		return nil
	}
	out := make([]T, len(pointers))
	for i, p := range pointers {
		out[i] = *p
	}
	return out
}

func derefOr[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}
