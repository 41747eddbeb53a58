package template

import (
	"encoding/json"
	"strings"
	"testing"

	"entgo.io/contrib/entgql"
	"entgo.io/ent/entc/gen"
	"entgo.io/ent/entc/load"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"

	"fleetgraph/ent/annotation"
)

// annotations gives annotations the form in which the generator carries them.
func annotations(t *testing.T, list ...schema.Annotation) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, a := range list {
		buf, err := json.Marshal(a)
		require.NoError(t, err)
		var carried any
		require.NoError(t, json.Unmarshal(buf, &carried))
		out[a.Name()] = carried
	}
	return out
}

// graph makes a rack of machines that the templates can serve, after change.
func graph(t *testing.T, change func(rack, machine *load.Schema)) *gen.Graph {
	t.Helper()
	text := &field.TypeInfo{Type: field.TypeString}
	rack := &load.Schema{
		Name:        "Rack",
		Annotations: annotations(t, annotation.IDPrefix("rack"), entgql.RelayConnection()),
		Fields:      []*load.Field{{Name: "id", Info: text}},
		Edges:       []*load.Edge{{Name: "machines", Type: "Machine", Annotations: annotations(t, entgql.RelayConnection(), annotation.CountField("machineCount"))}},
	}
	machine := &load.Schema{
		Name:        "Machine",
		Annotations: annotations(t, annotation.IDPrefix("machine"), entgql.RelayConnection(), annotation.Resolved("label", "name").With("rack")),
		Fields: []*load.Field{
			{Name: "id", Info: text},
			{Name: "name", Info: text, Annotations: annotations(t, entgql.OrderField("NAME"))},
			{Name: "rack_id", Info: text},
		},
		Edges:   []*load.Edge{{Name: "rack", Type: "Rack", Field: "rack_id", RefName: "machines", Unique: true, Required: true, Inverse: true}},
		Indexes: []*load.Index{{Fields: []string{"name", "id"}}, {Fields: []string{"rack_id"}}},
	}
	if change != nil {
		change(rack, machine)
	}
	storage, err := gen.NewStorage("sql")
	require.NoError(t, err)
	g, err := gen.NewGraph(&gen.Config{Package: "example.test/ent", Storage: storage, IDType: text}, rack, machine)
	require.NoError(t, err)
	return g
}

func TestEntitiesThatTheTemplatesServePass(t *testing.T) {
	t.Parallel()
	require.NoError(t, Check(graph(t, nil)))
}

func TestEntitiesThatWouldAnswerWronglyFailGeneration(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(rack, machine *load.Schema){
		"Machine.name: an order field must not be null": func(_, m *load.Schema) { m.Fields[1].Optional = true },
		"Machine.name: an order field needs an index":   func(_, m *load.Schema) { m.Indexes = m.Indexes[1:] },
		"Rack.machines: its foreign key needs an index": func(_, m *load.Schema) { m.Indexes = m.Indexes[:1] },
		"name cannot be an order field":                 func(_, m *load.Schema) { m.Fields[1].Info = &field.TypeInfo{Type: field.TypeFloat64} },
		"Rack: annotation.IDPrefix is missing":          func(r, _ *load.Schema) { delete(r.Annotations, annotation.ID{}.Name()) },
		`Machine: the id prefix "rack" is that of Rack`: func(_, m *load.Schema) { m.Annotations[annotation.ID{}.Name()] = map[string]any{"prefix": "rack"} },
		"Machine: ordering by several fields":           func(_, m *load.Schema) { m.Annotations["EntGQL"].(map[string]any)["MultiOrder"] = true },
		"Rack.machines: ordering by an edge": func(r, _ *load.Schema) {
			r.Edges[0].Annotations["EntGQL"].(map[string]any)["OrderField"] = "MACHINES_COUNT"
		},
		`Machine.label needs the column "name"`: func(_, m *load.Schema) {
			m.Fields[1].Name, m.Indexes[0].Fields[0] = "title", "title"
		},
		"Rack.machines: only an edge from one to many": func(r, m *load.Schema) {
			m.Edges[0].Unique, m.Edges[0].Field, m.Edges[0].Required = false, "", false
			m.Annotations[annotation.Needs{}.Name()] = nil
		},
		`Machine: its variants are told by the field "kind", which does not exist`: func(_, m *load.Schema) { kinds(t, m, "A") },
		"Machine.name: variants are told by an enum that is never null": func(_, m *load.Schema) {
			m.Annotations[annotation.Variants{}.Name()] = annotations(t, annotation.VariantsBy("name"))[annotation.Variants{}.Name()]
		},
		"Machine: C is no value of kind": func(_, m *load.Schema) {
			kinds(t, m, "A", "C")
			m.Fields = append(m.Fields, kind())
		},
		`Machine.name: there is no variant "KindC"`: func(_, m *load.Schema) {
			kinds(t, m, "A", "B")
			m.Fields = append(m.Fields, kind())
			m.Fields[1].Annotations = annotations(t, entgql.OrderField("NAME"), annotation.OnlyOf("KindC"))
		},
		`Rack.machines: there is no variant "KindA"`: func(r, _ *load.Schema) {
			r.Edges[0].Annotations = annotations(t, entgql.RelayConnection(), annotation.OnlyOf("KindA"))
		},
	} {
		require.ErrorContains(t, Check(graph(t, change)), want)
	}
}

// kind is a field that tells variants apart.
func kind() *load.Field {
	return &load.Field{Name: "kind", Info: &field.TypeInfo{Type: field.TypeEnum}, Enums: []struct{ N, V string }{{"A", "A"}, {"B", "B"}}}
}

// kinds gives an entity variants by its field kind.
func kinds(t *testing.T, s *load.Schema, values ...string) {
	t.Helper()
	variants := make([]annotation.Variant, len(values))
	for i, value := range values {
		variants[i] = annotation.Variant{Value: value, Type: "Kind" + value, Description: "a kind"}
	}
	v := annotation.VariantsBy("kind", variants...)
	s.Annotations[v.Name()] = annotations(t, v)[v.Name()]
}

func TestAnEntityWithVariantsIsAnInterfaceWithAnObjectForEach(t *testing.T) {
	t.Parallel()
	g := graph(t, func(_, m *load.Schema) {
		kinds(t, m, "A", "B")
		m.Fields = append(m.Fields, kind(), &load.Field{
			Name: "depth", Info: &field.TypeInfo{Type: field.TypeInt}, Optional: true, Annotations: annotations(t, annotation.OnlyOf("KindA").NonNull()),
		})
	})
	require.NoError(t, Check(g))
	named := func(name, of string, required bool) *ast.FieldDefinition {
		return &ast.FieldDefinition{Name: name, Type: &ast.Type{NamedType: of, NonNull: required}}
	}
	s := &ast.Schema{Types: map[string]*ast.Definition{"Machine": {
		Kind: ast.Object, Name: "Machine", Interfaces: []string{"Node"}, Fields: ast.FieldList{named("id", "ID", true), named("depth", "Int", false)},
	}}}
	require.NoError(t, splitVariants(g, s))
	shape := func(name string) string {
		text := string(s.Types[name].Kind) + " " + strings.Join(s.Types[name].Interfaces, "&")
		for _, f := range s.Types[name].Fields {
			text += " " + f.Name + ":" + f.Type.String()
		}
		return text
	}
	require.Equal(t, "INTERFACE Node id:ID!", shape("Machine"))
	require.Equal(t, "OBJECT Node&Machine id:ID! depth:Int!", shape("KindA"))
	require.Equal(t, "OBJECT Node&Machine id:ID!", shape("KindB"))
}

func TestAnnotationsOfOneEntityAdd(t *testing.T) {
	t.Parallel()
	var _ schema.Merger = annotation.Needs{}
	merged := annotation.Resolved("a", "x").With("e").Merge(annotation.Resolved("b", "y", "z"))
	require.Equal(t, annotation.Needs{Fields: []annotation.Need{
		{Field: "a", Columns: []string{"x"}, Edges: []string{"e"}}, {Field: "b", Columns: []string{"y", "z"}},
	}}, merged)
}
