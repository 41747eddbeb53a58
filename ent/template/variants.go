package template

import (
	"fmt"
	"slices"

	"entgo.io/ent/entc/gen"
	"github.com/vektah/gqlparser/v2/ast"

	"fleetgraph/ent/annotation"
)

// variants are those of an entity; nil where it is an object in the graph.
func variants(t *gen.Type) (*annotation.Variants, error) {
	v, ok, err := annotation.Decode[annotation.Variants](t.Annotations)
	if err != nil || !ok {
		return nil, err
	}
	return &v, nil
}

// objectTypes lists the types that an entity's rows have in the graph.
func objectTypes(t *gen.Type) ([]string, error) {
	v, err := variants(t)
	if err != nil {
		return nil, err
	}
	if v == nil {
		name, err := gqlType(t)
		return []string{name}, err
	}
	names := make([]string, len(v.Types))
	for i, one := range v.Types {
		names[i] = one.Type
	}
	return names, nil
}

// checkVariants reports what the templates cannot make variants of.
func checkVariants(t *gen.Type, fault func(string, ...any)) error {
	v, err := variants(t)
	if err != nil {
		return err
	}
	if v != nil {
		switch f := fieldNamed(t, v.Field); {
		case f == nil:
			fault("%s: its variants are told by the field %q, which does not exist", t.Name, v.Field)
		case !f.IsEnum() || f.Optional:
			fault("%s.%s: variants are told by an enum that is never null", t.Name, f.Name)
		default:
			for _, one := range v.Types {
				if !slices.ContainsFunc(f.Enums, func(e gen.Enum) bool { return e.Value == one.Value }) {
					fault("%s: %s is no value of %s", t.Name, one.Value, f.Name)
				}
			}
		}
	}
	names, err := objectTypes(t)
	if err != nil {
		return err
	}
	limited := func(name string, annotations gen.Annotations) error {
		only, ok, err := annotation.Decode[annotation.Only](annotations)
		if ok && (v == nil || !slices.Contains(names, only.Type)) {
			fault("%s.%s: there is no variant %q", t.Name, name, only.Type)
		}
		return err
	}
	for _, f := range t.Fields {
		if err := limited(f.Name, f.Annotations); err != nil {
			return err
		}
	}
	for _, e := range t.Edges {
		if err := limited(e.Name, e.Annotations); err != nil {
			return err
		}
	}
	return nil
}

// splitVariants is the schema hook that turns an entity with variants into an interface
// and its objects.
func splitVariants(g *gen.Graph, s *ast.Schema) error {
	for _, t := range g.Nodes {
		v, err := variants(t)
		if err != nil {
			return err
		}
		name, err := gqlType(t)
		if err != nil {
			return err
		}
		def := s.Types[name]
		if v == nil || def == nil {
			continue
		}
		limits, err := limitsOf(t)
		if err != nil {
			return err
		}
		for _, one := range v.Types {
			if one.Description == "" || s.Types[one.Type] != nil {
				return fmt.Errorf("%s has no description, or exists already", one.Type)
			}
			object := &ast.Definition{
				Kind: ast.Object, Name: one.Type, Description: sentence(one.Description),
				Interfaces: append(slices.Clone(def.Interfaces), name),
			}
			for _, f := range def.Fields {
				only, limited := limits[f.Name]
				if limited && only.Type != one.Type {
					continue
				}
				if only.Required && !f.Type.NonNull {
					required, kind := *f, *f.Type
					kind.NonNull, required.Type = true, &kind
					f = &required
				}
				object.Fields = append(object.Fields, f)
			}
			s.Types[one.Type] = object
		}
		def.Kind = ast.Interface
		def.Fields = slices.DeleteFunc(slices.Clone(def.Fields), func(f *ast.FieldDefinition) bool {
			_, limited := limits[f.Name]
			return limited
		})
	}
	return nil
}

// limitsOf tells which fields of the graph belong to one variant, by their names.
func limitsOf(t *gen.Type) (map[string]annotation.Only, error) {
	limits := map[string]annotation.Only{}
	for _, f := range t.Fields {
		only, ok, err := annotation.Decode[annotation.Only](f.Annotations)
		if err != nil {
			return nil, err
		}
		names, err := fieldNames(f)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if ok {
				limits[name] = only
			}
		}
	}
	for _, e := range t.Edges {
		only, ok, err := annotation.Decode[annotation.Only](e.Annotations)
		if err != nil {
			return nil, err
		}
		if ok {
			limits[camel(e.Name)] = only
		}
	}
	return limits, nil
}
