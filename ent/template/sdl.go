package template

import (
	"fmt"
	"slices"
	"strings"

	"entgo.io/contrib/entgql"
	"entgo.io/ent/entc/gen"
	"github.com/vektah/gqlparser/v2/ast"

	"fleetgraph/ent/annotation"
)

// extendSchema adds to the SDL what the templates add to the code: counting fields,
// and the nodes of connections; and renames fields.
func extendSchema(g *gen.Graph, s *ast.Schema) error {
	for _, t := range g.Nodes {
		name, err := gqlType(t)
		if err != nil {
			return err
		}
		def := s.Types[name]
		if def == nil {
			continue
		}
		if err := rename(s, t, name); err != nil {
			return err
		}
		edges, err := countedEdges(t)
		if err != nil {
			return err
		}
		for _, e := range edges {
			count, _, err := annotation.Decode[annotation.Count](e.Annotations)
			if err != nil {
				return err
			}
			if def.Fields.ForName(count.Field) != nil {
				return fmt.Errorf("%s.%s is declared twice", name, count.Field)
			}
			at := len(def.Fields)
			if i := slices.IndexFunc(def.Fields, func(f *ast.FieldDefinition) bool { return f.Name == camel(e.Name) }); i >= 0 {
				at = i + 1
			}
			description := count.Description
			if description == "" {
				description = "Number of " + uncapitalised(e.Comment())
			}
			def.Fields = slices.Insert(def.Fields, at, &ast.FieldDefinition{
				Name:        count.Field,
				Description: sentence(description),
				Type:        ast.NonNullNamedType("Int", nil),
			})
		}
		if conn := s.Types[name+"Connection"]; conn != nil {
			conn.Fields = append(conn.Fields, &ast.FieldDefinition{Name: "nodes", Type: ast.NonNullListType(ast.NonNullNamedType(name, nil), nil)})
		}
	}
	return nil
}

// gqlType is the name of an entity in the graph.
func gqlType(t *gen.Type) (string, error) {
	ant, err := gqlAnnotation(t.Annotations)
	if ant.Type != "" {
		return ant.Type, err
	}
	return t.Name, err
}

// fieldNames lists the names of an entity's field in the graph, none where it is not
// shown. They are in plain camel case, siteId, as the hand-written inputs have them;
// entgql would say siteID.
func fieldNames(f *gen.Field) ([]string, error) {
	ant, err := gqlAnnotation(f.Annotations)
	if err != nil || ant.Skip.Is(entgql.SkipType) || f.Sensitive() {
		return nil, err
	}
	if len(ant.Mapping) > 0 {
		return ant.Mapping, nil
	}
	return []string{lowerCamel(f.Name)}, nil
}

// whereName is the name of a condition of a filter.
func whereName(f *gen.Field, op gen.Op) string {
	if op == gen.EQ {
		return lowerCamel(f.Name)
	}
	return lowerCamel(f.Name) + op.Name()
}

// rename gives the fields of an entity and of its filter the names of fieldNames.
func rename(s *ast.Schema, t *gen.Type, name string) error {
	def, where := s.Types[name], s.Types[name+"WhereInput"]
	for _, f := range append([]*gen.Field{t.ID}, t.Fields...) {
		ant, err := gqlAnnotation(f.Annotations)
		if err != nil {
			return err
		}
		if field := def.Fields.ForName(camel(f.Name)); field != nil && len(ant.Mapping) == 0 {
			field.Name = lowerCamel(f.Name)
			if strings.EqualFold(field.Name, f.StructField()) {
				field.Directives = slices.DeleteFunc(field.Directives, func(d *ast.Directive) bool { return d.Name == "goField" })
			}
		}
		if where == nil {
			continue
		}
		for _, op := range f.Ops() {
			old := camel(f.Name + "_" + op.Name())
			if op == gen.EQ {
				old = camel(f.Name)
			}
			if field := where.Fields.ForName(old); field != nil {
				field.Name = whereName(f, op)
			}
		}
	}
	return nil
}

// lowerCamel turns site_id into siteId.
func lowerCamel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

var camel = gen.Funcs["camel"].(func(string) string)
