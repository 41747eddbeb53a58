// Package template assembles the generator of the entity code: the templates beside
// it, the checks of what they can serve, and the completion of the GraphQL schema.
// It runs when code is generated and is no part of the server.
package template

import (
	"embed"
	"fmt"
	"path"
	"text/template"

	"entgo.io/contrib/entgql"
	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"

	"fleetgraph/ent/annotation"
)

//go:embed *.tmpl
var files embed.FS

// Options says where the module's files are, from the directory that the generator
// runs in.
type Options struct {
	Config string   // gqlgen.yml
	Schema string   // the SDL to write
	Docs   []string // Go packages whose comments describe entities and enums
}

// Extensions returns what entc has to be run with.
func Extensions(o Options) ([]entc.Extension, error) {
	templates, err := ours()
	if err != nil {
		return nil, err
	}
	docs, err := readDocs(o.Docs)
	if err != nil {
		return nil, err
	}
	gql, err := entgql.NewExtension(
		entgql.WithConfigPath(o.Config),
		entgql.WithSchemaGenerator(),
		entgql.WithSchemaPath(o.Schema),
		entgql.WithWhereInputs(true),
		// After the where inputs: this option replaces the list that the other adds to.
		entgql.WithTemplates(templates...),
		entgql.WithSchemaHook(extendSchema, describer{docs: docs}.describe, splitVariants),
	)
	if err != nil {
		return nil, fmt.Errorf("entgql extension: %w", err)
	}
	return []entc.Extension{gql, checks{}}, nil
}

// ours lists the templates: our copies, and upstream's where it serves.
func ours() ([]*gen.Template, error) {
	templates := []*gen.Template{entgql.EnumTemplate}
	for _, name := range []string{"collection", "pagination", "edge", "node", "where_input"} {
		t, err := gen.NewTemplate(name).Funcs(entgql.TemplateFuncs).Funcs(funcs).ParseFS(files, name+".tmpl")
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", name, err)
		}
		templates = append(templates, t)
	}
	return templates, nil
}

// funcs are what the templates ask beside entgql's functions.
var funcs = template.FuncMap{
	"connectionEdges": connectionEdges,
	"countField":      countField,
	"countedEdges":    countedEdges,
	"dir":             path.Dir,
	"fieldNames":      fieldNames,
	"hasWhere":        hasWhere,
	"idPrefix":        idPrefix,
	"neededEdges":     neededEdges,
	"needs":           needs,
	"objectTypes":     objectTypes,
	"orderKind":       orderKind,
	"totalledEdges":   totalledEdges,
	"variants":        variants,
	"whereName":       whereName,
}

func connectionEdges(t *gen.Type) ([]*gen.Edge, error) {
	return edgesWhere(t, func(e *gen.Edge) (bool, error) { return isConnection(e) })
}

// countedEdges lists the edges with a counting field.
func countedEdges(t *gen.Type) ([]*gen.Edge, error) {
	return edgesWhere(t, func(e *gen.Edge) (bool, error) {
		name, err := countField(e)
		return name != "", err
	})
}

// totalledEdges lists the edges whose rows are ever counted by owner.
func totalledEdges(t *gen.Type) ([]*gen.Edge, error) {
	return edgesWhere(t, func(e *gen.Edge) (bool, error) {
		name, err := countField(e)
		if err != nil || name != "" {
			return name != "", err
		}
		return isConnection(e)
	})
}

// edgesWhere lists the edges that the graph shows and that satisfy the condition.
func edgesWhere(t *gen.Type, ok func(*gen.Edge) (bool, error)) ([]*gen.Edge, error) {
	var edges []*gen.Edge
	for _, e := range t.Edges {
		skipped, err := isSkipped(e.Annotations)
		if err != nil {
			return nil, err
		}
		far, err := isSkipped(e.Type.Annotations)
		if err != nil {
			return nil, err
		}
		if skipped || far {
			continue
		}
		matches, err := ok(e)
		if err != nil {
			return nil, err
		}
		if matches {
			edges = append(edges, e)
		}
	}
	return edges, nil
}

func countField(e *gen.Edge) (string, error) {
	count, _, err := annotation.Decode[annotation.Count](e.Annotations)
	return count.Field, err
}

func idPrefix(t *gen.Type) (string, error) {
	id, _, err := annotation.Decode[annotation.ID](t.Annotations)
	return id.Prefix, err
}

// need is an annotation.Need with its names resolved.
type need struct {
	Field   string
	Columns []*gen.Field
	Edges   []*gen.Edge
}

func needs(t *gen.Type) ([]need, error) {
	declared, _, err := annotation.Decode[annotation.Needs](t.Annotations)
	if err != nil {
		return nil, err
	}
	var resolved []need
	for _, d := range declared.Fields {
		n := need{Field: d.Field}
		for _, name := range d.Columns {
			f := fieldNamed(t, name)
			if f == nil {
				return nil, fmt.Errorf("%s.%s needs the column %q, which does not exist", t.Name, d.Field, name)
			}
			n.Columns = append(n.Columns, f)
		}
		for _, name := range d.Edges {
			e := edgeNamed(t, name)
			if e == nil {
				return nil, fmt.Errorf("%s.%s needs the edge %q, which does not exist", t.Name, d.Field, name)
			}
			n.Edges = append(n.Edges, e)
		}
		resolved = append(resolved, n)
	}
	return resolved, nil
}

// neededEdges lists the edges that some field resolved in code needs whole.
func neededEdges(t *gen.Type) ([]*gen.Edge, error) {
	all, err := needs(t)
	if err != nil {
		return nil, err
	}
	var edges []*gen.Edge
	for _, e := range t.Edges {
		for _, n := range all {
			if edgeIn(n.Edges, e) && !edgeIn(edges, e) {
				edges = append(edges, e)
			}
		}
	}
	return edges, nil
}

func fieldNamed(t *gen.Type, name string) *gen.Field {
	for _, f := range t.Fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func edgeNamed(t *gen.Type, name string) *gen.Edge {
	for _, e := range t.Edges {
		if e.Name == name {
			return e
		}
	}
	return nil
}

func edgeIn(edges []*gen.Edge, e *gen.Edge) bool {
	for _, x := range edges {
		if x == e {
			return true
		}
	}
	return false
}

// orderKind is the relay.Kind of an order field's values, without its prefix.
func orderKind(f *gen.Field) (string, error) {
	switch {
	case f.IsTime():
		return "Time", nil
	case f.IsString(), f.IsEnum():
		return "String", nil
	case f.IsInt(), f.IsInt64():
		return "Int", nil
	default:
		return "", fmt.Errorf("%s cannot be an order field: its type %s has no place in cursors", f.Name, f.Type)
	}
}

func hasWhere(t *gen.Type) (bool, error) {
	ant, err := gqlAnnotation(t.Annotations)
	return !ant.Skip.Is(entgql.SkipWhereInput), err
}

func isConnection(e *gen.Edge) (bool, error) {
	ant, err := gqlAnnotation(e.Annotations)
	return ant.RelayConnection, err
}

func isSkipped(annotations gen.Annotations) (bool, error) {
	ant, err := gqlAnnotation(annotations)
	return ant.Skip.Is(entgql.SkipType), err
}

func gqlAnnotation(annotations gen.Annotations) (entgql.Annotation, error) {
	ant, _, err := annotation.Decode[entgql.Annotation](annotations)
	return ant, err
}
