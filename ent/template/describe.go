package template

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"entgo.io/ent/entc/gen"
	"github.com/vektah/gqlparser/v2/ast"

	"fleetgraph/ent/relay"
)

// describer gives every type, field, argument and value in the generated SDL a
// description: the entity's own words where it has them, else words by its kind.
type describer struct{ docs docs }

// describe is the schema hook. It fails if something is left without a description.
func (d describer) describe(g *gen.Graph, s *ast.Schema) error {
	d.common(s)
	for _, t := range g.Nodes {
		name, err := gqlType(t)
		if err != nil {
			return err
		}
		if s.Types[name] == nil {
			continue
		}
		if err := d.entity(s, t, name); err != nil {
			return err
		}
		d.connection(s, name)
		if err := d.order(s, t, name); err != nil {
			return err
		}
		if err := d.where(s, t, name); err != nil {
			return err
		}
	}
	for _, def := range s.Types {
		for _, f := range def.Fields {
			if strings.HasSuffix(f.Type.Name(), "Connection") {
				d.arguments(f)
			}
		}
		if def.Kind == ast.Enum {
			d.enum(def)
		}
	}
	return complete(s)
}

// common describes what belongs to no entity.
func (describer) common(s *ast.Schema) {
	for _, directive := range s.Directives {
		directive.Description = "For the generator of the server's code; without meaning to clients."
		for _, arg := range directive.Arguments {
			arg.Description = "For the generator of the server's code."
		}
	}
	set(s.Types["Cursor"], "Opaque position in a connection. It holds for the connection and the order that it was given out in, and outlives the object that it points at.", nil)
	set(s.Types["Node"], "An object with a global id.", map[string]string{
		"id": "Opaque global id; its prefix tells the type.",
	})
	set(s.Types["PageInfo"], "Where a page lies in its connection.", map[string]string{
		"hasNextPage":     "Whether items follow the page.",
		"hasPreviousPage": "Whether items precede the page.",
		"startCursor":     "Position of the page's first item; null for an empty page. Pass it as before to read the page before this one.",
		"endCursor":       "Position of the page's last item; null for an empty page. Pass it as after to read the page after this one.",
	})
	set(s.Types["OrderDirection"], "Direction of an order.", nil)
	for _, v := range s.Types["OrderDirection"].EnumValues {
		switch v.Name {
		case "ASC":
			v.Description = "From the smallest, earliest or alphabetically first."
		case "DESC":
			v.Description = "From the largest, latest or alphabetically last."
		}
	}
	query := s.Types["Query"]
	set(query, "Everything that can be read.", map[string]string{
		"node":  "The object with this id; null where there is none or the caller may not see it.",
		"nodes": fmt.Sprintf("The objects with these ids, in their order; null for each that does not exist or the caller may not see. At most %d.", relay.MaxPageSize),
	})
	for field, arg := range map[string][2]string{"node": {"id", "Global id of the object."}, "nodes": {"ids", "Global ids of the objects."}} {
		if f := query.Fields.ForName(field); f != nil {
			f.Arguments.ForName(arg[0]).Description = arg[1]
		}
	}
}

// set describes a definition and those of its fields that are named.
func set(def *ast.Definition, text string, fields map[string]string) {
	if def == nil {
		return
	}
	def.Description = text
	for _, f := range def.Fields {
		if text, ok := fields[f.Name]; ok {
			f.Description = text
		}
	}
}

func (d describer) entity(s *ast.Schema, t *gen.Type, name string) error {
	def := s.Types[name]
	if def.Description = d.docs.types[t.Name]; def.Description == "" {
		return fmt.Errorf("%s has no comment", t.Name)
	}
	for _, e := range t.Edges {
		ant, err := gqlAnnotation(e.Annotations)
		if err != nil {
			return err
		}
		names := ant.Mapping
		if len(names) == 0 {
			names = []string{camel(e.Name)}
		}
		for _, field := range names {
			if f := def.Fields.ForName(field); f != nil && e.Comment() != "" {
				f.Description = sentence(e.Comment())
			}
		}
	}
	return nil
}

func (describer) connection(s *ast.Schema, name string) {
	one, many := words(name), words(plural(name))
	set(s.Types[name+"Connection"], sentence("a page of "+many), map[string]string{
		"edges":      "The items of the page with their positions, in the order asked for.",
		"nodes":      "The items of the page, in the order asked for.",
		"pageInfo":   "Where the page lies in the connection.",
		"totalCount": "Number of items in the whole connection that the filter finds, whatever the page; counted only when it is selected.",
	})
	set(s.Types[name+"Edge"], sentence(article(one)+" in a connection, with its position"), map[string]string{
		"node":   sentence("the " + one),
		"cursor": sentence("position of the " + one + "; pass it as after or before to read what follows or precedes it"),
	})
}

func (describer) order(s *ast.Schema, t *gen.Type, name string) error {
	many := words(plural(name))
	set(s.Types[name+"Order"], sentence("order of "+many+"; what is equal is ordered by id in the same direction"), map[string]string{
		"direction": "Direction of the order.",
		"field":     "What is compared.",
	})
	def := s.Types[name+"OrderField"]
	set(def, sentence("what "+many+" can be ordered by"), nil)
	for _, f := range t.Fields {
		ant, err := gqlAnnotation(f.Annotations)
		if err != nil {
			return err
		}
		if def == nil || ant.OrderField == "" {
			continue
		}
		if v := def.EnumValues.ForName(ant.OrderField); v != nil {
			names, err := fieldNames(f)
			if err != nil {
				return err
			}
			v.Description = sentence("by " + strings.Join(names, ", ") + ": " + uncapitalised(f.Comment()))
		}
	}
	return nil
}

// arguments describes those of a connection.
func (describer) arguments(f *ast.FieldDefinition) {
	item := words(plural(strings.TrimSuffix(f.Type.Name(), "Connection")))
	for _, arg := range f.Arguments {
		switch arg.Name {
		case "after":
			arg.Description = "Only what comes after this position in the order."
		case "before":
			arg.Description = "Only what comes before this position in the order."
		case "first":
			arg.Description = fmt.Sprintf("At most this many from the start, 0 to %d; %d where neither first nor last is given.", relay.MaxPageSize, relay.DefaultPageSize)
		case "last":
			arg.Description = fmt.Sprintf("At most this many from the end, 0 to %d; not together with first.", relay.MaxPageSize)
		case "orderBy":
			arg.Description = sentence("order of the " + item + "; by id, which is by time of creation, where it is absent")
		case "where":
			arg.Description = sentence("only " + item + " that this filter finds")
		}
	}
}

// enum describes an enum of the vocabulary and its values by the Go comments.
func (d describer) enum(def *ast.Definition) {
	if text := d.docs.types[def.Name]; text != "" {
		def.Description = text
	}
	for _, v := range def.EnumValues {
		if text := d.docs.values[def.Name][v.Name]; text != "" {
			v.Description = text
		}
		if v.Description == "" {
			v.Description = sentence(inSentence(strings.Split(strings.ToLower(v.Name), "_")))
		}
	}
}

func (describer) where(s *ast.Schema, t *gen.Type, name string) error {
	def := s.Types[name+"WhereInput"]
	if def == nil {
		return nil
	}
	describe := func(field, text string) {
		if f := def.Fields.ForName(field); f != nil {
			f.Description = sentence(text)
		}
	}
	set(def, sentence(fmt.Sprintf("filter of %s. All conditions given together must hold; one that is absent or null does not filter. Filters nest at most %d deep", words(plural(name)), relay.MaxWhereDepth)), map[string]string{
		"not": "This filter must not find it.",
		"and": "All of these filters must find it; an empty list does not filter.",
		"or":  "At least one of these filters must find it; an empty list does not filter.",
	})
	for _, f := range append([]*gen.Field{t.ID}, t.Fields...) {
		ant, err := gqlAnnotation(f.Annotations)
		if err != nil {
			return err
		}
		label := words(f.StructField())
		if ant.Mapping != nil {
			label = words(ant.Mapping[0])
		}
		for _, op := range f.Ops() {
			describe(whereName(f, op), label+" "+predicate(f, op))
		}
	}
	for _, e := range t.Edges {
		label := words(e.StructField())
		if e.Unique {
			describe(camel("has_"+e.Name), "true: it has "+article(label)+"; false: it has none")
			describe(camel("has_"+e.Name+"_with"), "it has "+article(label)+" that all of these filters find; an empty list does not filter")
			continue
		}
		describe(camel("has_"+e.Name), "true: it has "+label+"; false: it has none")
		describe(camel("has_"+e.Name+"_with"), "it has at least one of its "+label+" that all of these filters find; an empty list does not filter")
	}
	return nil
}

// predicate words a comparison of a field, to follow the field's name.
func predicate(f *gen.Field, op gen.Op) string {
	set := ""
	if f.Optional {
		set = "is not null and "
	}
	thing, greater, less := "value", "is greater than", "is less than"
	switch {
	case f.IsTime():
		thing, greater, less = "time", "is after", "is before"
	case f.IsString():
		thing, greater, less = "text", "sorts after", "sorts before"
	}
	switch op {
	case gen.EQ:
		return "equals this " + thing
	case gen.NEQ:
		return set + "differs from this " + thing
	case gen.In:
		return fmt.Sprintf("is one of these, at most %d; an empty list finds nothing", relay.MaxWhereList)
	case gen.NotIn:
		return fmt.Sprintf("%sis none of these, at most %d", set, relay.MaxWhereList)
	case gen.GT:
		return greater + " this " + thing
	case gen.GTE:
		return greater + " this " + thing + " or equals it"
	case gen.LT:
		return less + " this " + thing
	case gen.LTE:
		return less + " this " + thing + " or equals it"
	case gen.Contains:
		return "contains this text, case sensitive"
	case gen.ContainsFold:
		return "contains this text in any case"
	case gen.HasPrefix:
		return "starts with this text, case sensitive"
	case gen.HasSuffix:
		return "ends with this text, case sensitive"
	case gen.EqualFold:
		return "equals this text in any case"
	case gen.IsNil:
		return "is null when true, is not null when false"
	case gen.NotNil:
		return "is not null when true, is null when false"
	default:
		return ""
	}
}

// complete returns an error that lists what has no description.
func complete(s *ast.Schema) error {
	var missing []error
	check := func(text, format string, args ...any) {
		if text == "" {
			missing = append(missing, fmt.Errorf("no description: "+format, args...))
		}
	}
	for _, def := range s.Types {
		check(def.Description, "%s", def.Name)
		for _, f := range def.Fields {
			check(f.Description, "%s.%s", def.Name, f.Name)
			for _, arg := range f.Arguments {
				check(arg.Description, "%s.%s(%s)", def.Name, f.Name, arg.Name)
			}
		}
		for _, v := range def.EnumValues {
			check(v.Description, "%s.%s", def.Name, v.Name)
		}
	}
	return errors.Join(missing...)
}

var plural = gen.Funcs["plural"].(func(string) string)

// acronyms keep their form within sentences.
var acronyms = map[string]string{"sku": "SKU", "skus": "SKUs", "bom": "BOM", "bmc": "BMC", "mac": "MAC", "dpu": "DPU", "id": "id", "ids": "ids"}

// words splits a Go or GraphQL name into words: BmcMACAddress is "BMC MAC address".
func words(name string) string {
	var parts []string
	var word strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		starts := i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]) && (runes[i+1] != 's' || i+2 != len(runes)))
		if starts {
			parts = append(parts, word.String())
			word.Reset()
		}
		word.WriteRune(unicode.ToLower(r))
	}
	parts = append(parts, word.String())
	return inSentence(parts)
}

// inSentence joins lower-case words, with acronyms in their own form.
func inSentence(parts []string) string {
	for i, p := range parts {
		if a, ok := acronyms[p]; ok {
			parts[i] = a
		}
	}
	return strings.Join(parts, " ")
}

// article puts a or an before a noun.
func article(noun string) string {
	if strings.HasPrefix(noun, "SKU") || strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// uncapitalised lowers the first letter of a sentence, unless it starts an acronym.
func uncapitalised(text string) string {
	runes := []rune(strings.TrimSuffix(text, "."))
	if len(runes) > 1 && !unicode.IsUpper(runes[1]) {
		runes[0] = unicode.ToLower(runes[0])
	}
	return string(runes)
}
