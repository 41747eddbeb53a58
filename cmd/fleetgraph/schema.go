package main

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"

	"fleetgraph/graph"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the GraphQL schema",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			schema := publicSchema(graph.NewExecutableSchema(graph.Config{}).Schema())
			var text bytes.Buffer
			formatter.NewFormatter(&text, formatter.WithIndent("  ")).FormatSchema(schema)
			_, err := cmd.OutOrStdout().Write(tidy(text.Bytes()))
			return err
		},
	}
}

// tidy puts descriptions of one line on one line, and an empty line between types.
func tidy(text []byte) []byte {
	const mark = `"""`
	lines := strings.Split(string(text), "\n")
	out := make([]string, 0, len(lines))
	for i := 0; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) != mark {
			out = append(out, lines[i])
			continue
		}
		end := i + 1
		for strings.TrimSpace(lines[end]) != mark {
			end++
		}
		indent := strings.TrimSuffix(lines[i], mark)
		if body := strings.TrimSpace(lines[i+1]); end == i+2 && !strings.Contains(body, `"`) {
			out = append(out, indent+mark+body+mark)
		} else {
			out = append(out, lines[i:end+1]...)
		}
		i = end
	}
	return regexp.MustCompile(`(?m)^(\}|(?:scalar|union|directive) .*)\n(.)`).ReplaceAll([]byte(strings.Join(out, "\n")), []byte("$1\n\n$2"))
}

// generatorDirectives steer gqlgen; introspection does not show where they are used,
// and clients have no use for them.
func generatorDirectives() []string {
	return []string{"goModel", "goField", "goTag", "goEnum", "goExtraField"}
}

// publicSchema is a copy of a schema without the generator's directives.
func publicSchema(schema *ast.Schema) *ast.Schema {
	public := *schema
	public.Directives = maps.Clone(schema.Directives)
	for _, name := range generatorDirectives() {
		delete(public.Directives, name)
	}
	public.Types = make(map[string]*ast.Definition, len(schema.Types))
	for name, definition := range schema.Types {
		copied := *definition
		copied.Directives = publicDirectives(definition.Directives)
		copied.Fields = make(ast.FieldList, len(definition.Fields))
		for i, field := range definition.Fields {
			f := *field
			f.Directives = publicDirectives(field.Directives)
			copied.Fields[i] = &f
		}
		public.Types[name] = &copied
	}
	public.Query = public.Types[schema.Query.Name]
	public.Mutation = public.Types[schema.Mutation.Name]
	if schema.Subscription != nil {
		public.Subscription = public.Types[schema.Subscription.Name]
	}
	return &public
}

func publicDirectives(list ast.DirectiveList) ast.DirectiveList {
	return slices.DeleteFunc(slices.Clone(list), func(d *ast.Directive) bool {
		return slices.Contains(generatorDirectives(), d.Name)
	})
}
