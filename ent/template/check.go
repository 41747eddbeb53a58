package template

import (
	"errors"
	"fmt"

	"entgo.io/contrib/entgql"
	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"

	"fleetgraph/ent/annotation"
)

// checks is the extension that fails generation for entities that the templates or
// the database would serve wrongly.
type checks struct{ entc.DefaultExtension }

// Hooks of the extension.
func (checks) Hooks() []gen.Hook {
	return []gen.Hook{func(next gen.Generator) gen.Generator {
		return gen.GenerateFunc(func(g *gen.Graph) error {
			if err := Check(g); err != nil {
				return err
			}
			return next.Generate(g)
		})
	}}
}

// Check returns every fault of the entities: an order that could lose rows or has no
// index, an edge that cannot be paged, an id without a type.
func Check(g *gen.Graph) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	prefixes := map[string]string{}
	for _, t := range g.Nodes {
		ant, err := gqlAnnotation(t.Annotations)
		if err != nil {
			return err
		}
		if ant.Skip.Is(entgql.SkipType) {
			continue
		}
		if ant.MultiOrder {
			fault("%s: ordering by several fields is not supported", t.Name)
		}
		if !t.HasOneFieldID() || !t.ID.IsString() || t.ID.HasGoType() {
			fault("%s: the id must be a plain string", t.Name)
		}
		switch prefix, err := idPrefix(t); {
		case err != nil:
			return err
		case prefix == "":
			fault("%s: annotation.IDPrefix is missing, so that node(id) cannot find it", t.Name)
		case prefixes[prefix] != "":
			fault("%s: the id prefix %q is that of %s", t.Name, prefix, prefixes[prefix])
		default:
			prefixes[prefix] = t.Name
		}
		for _, f := range t.Fields {
			ant, err := gqlAnnotation(f.Annotations)
			if err != nil {
				return err
			}
			if ant.OrderField == "" {
				continue
			}
			if f.Optional || f.Nillable {
				fault("%s.%s: an order field must not be null, or pages lose rows", t.Name, f.Name)
			}
			if _, err := orderKind(f); err != nil {
				fault("%s: %w", t.Name, err)
			}
			if !isIndexed(t, f.StorageKey()) {
				fault("%s.%s: an order field needs an index that starts with it", t.Name, f.Name)
			}
		}
		for _, e := range t.Edges {
			if err := checkEdge(t, e, fault); err != nil {
				return err
			}
		}
		if _, err := needs(t); err != nil {
			faults = append(faults, err)
		}
		if err := checkVariants(t, fault); err != nil {
			return err
		}
	}
	return errors.Join(faults...)
}

func checkEdge(t *gen.Type, e *gen.Edge, fault func(string, ...any)) error {
	ant, err := gqlAnnotation(e.Annotations)
	if err != nil {
		return err
	}
	if ant.OrderField != "" {
		fault("%s.%s: ordering by an edge is not supported", t.Name, e.Name)
	}
	_, counted, err := annotation.Decode[annotation.Count](e.Annotations)
	if err != nil {
		return err
	}
	if (ant.RelayConnection || counted) && !e.O2M() {
		fault("%s.%s: only an edge from one to many can be a connection or be counted", t.Name, e.Name)
	}
	if e.O2M() && !isIndexed(e.Type, e.Rel.Column()) {
		fault("%s.%s: its foreign key needs an index of %s that starts with %s", t.Name, e.Name, e.Type.Name, e.Rel.Column())
	}
	return nil
}

// isIndexed reports whether an index of t starts with the column.
func isIndexed(t *gen.Type, column string) bool {
	for _, index := range t.Indexes {
		if len(index.Columns) > 0 && index.Columns[0] == column {
			return true
		}
	}
	return false
}
