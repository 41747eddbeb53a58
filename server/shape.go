package server

import "github.com/vektah/gqlparser/v2/ast"

// maxComparisons bounds the pairs of fields and of fragments that validation compares
// to find those that cannot be merged: 200 times the same field in one place, or 20
// fragments of the same 5 fields.
const maxComparisons = 20_000

// alwaysComparable is how many nodes never make more pairs than that.
const alwaysComparable = 200

// shape is the size of a selection, with fragments written out wherever they are used.
// Numbers stop growing at saturated.
type shape struct {
	nodes      int // selections, directives, variables, and values of arguments
	aliases    int
	directives int
	roots      int // fields that are not within another
	depth      int // fields within each other
	valueDepth int // lists and objects within each other
}

// beside adds a selection that stands beside this one.
func (s *shape) beside(other shape) {
	s.nodes = add(s.nodes, other.nodes)
	s.aliases = add(s.aliases, other.aliases)
	s.directives = add(s.directives, other.directives)
	s.roots = add(s.roots, other.roots)
	s.depth = max(s.depth, other.depth)
	s.valueDepth = max(s.valueDepth, other.valueDepth)
}

// measurer measures a document that has been parsed and no more: names may lead
// nowhere. A fragment is measured once, so that the time is linear in the text,
// whatever the fragments would be when written out.
type measurer struct {
	fragments   map[string]*ast.FragmentDefinition // the first of each name, as validation takes it
	measured    map[*ast.FragmentDefinition]shape
	within      map[*ast.FragmentDefinition]bool
	cycle       *ast.FragmentSpread // of a fragment within itself; nil for none
	introspects bool
}

func newMeasurer(document *ast.QueryDocument) *measurer {
	m := &measurer{
		fragments: make(map[string]*ast.FragmentDefinition, len(document.Fragments)),
		measured:  make(map[*ast.FragmentDefinition]shape, len(document.Fragments)),
		within:    map[*ast.FragmentDefinition]bool{},
	}
	for _, fragment := range document.Fragments {
		if m.fragments[fragment.Name] == nil {
			m.fragments[fragment.Name] = fragment
		}
	}
	return m
}

func (m *measurer) operation(operation *ast.OperationDefinition) shape {
	s := m.selections(operation.SelectionSet)
	s.variables(operation.VariableDefinitions)
	s.withDirectives(operation.Directives)
	return s
}

func (m *measurer) fragment(fragment *ast.FragmentDefinition) shape {
	if s, ok := m.measured[fragment]; ok {
		return s
	}
	m.within[fragment] = true
	s := m.selections(fragment.SelectionSet)
	s.variables(fragment.VariableDefinition)
	s.withDirectives(fragment.Directives)
	delete(m.within, fragment)
	m.measured[fragment] = s
	return s
}

func (m *measurer) selections(set ast.SelectionSet) shape {
	var s shape
	for _, selection := range set {
		s.beside(m.selection(selection))
	}
	return s
}

func (m *measurer) selection(selection ast.Selection) shape {
	var s shape
	switch selection := selection.(type) {
	case *ast.Field:
		m.introspects = m.introspects || selection.Name == "__schema" || selection.Name == "__type"
		s = m.selections(selection.SelectionSet)
		s.roots, s.depth = 1, s.depth+1
		if selection.Alias != selection.Name {
			s.aliases = add(s.aliases, 1)
		}
		s.withArguments(selection.Arguments)
		s.withDirectives(selection.Directives)
	case *ast.InlineFragment:
		s = m.selections(selection.SelectionSet)
		s.withDirectives(selection.Directives)
	case *ast.FragmentSpread:
		switch fragment := m.fragments[selection.Name]; {
		case fragment == nil:
		case m.within[fragment]:
			m.cycle = selection
		default:
			s = m.fragment(fragment)
		}
		s.withDirectives(selection.Directives)
	}
	s.nodes = add(s.nodes, 1)
	return s
}

func (s *shape) withDirectives(directives ast.DirectiveList) {
	for _, directive := range directives {
		s.nodes, s.directives = add(s.nodes, 1), add(s.directives, 1)
		s.withArguments(directive.Arguments)
	}
}

func (s *shape) withArguments(arguments ast.ArgumentList) {
	for _, argument := range arguments {
		s.withValue(argument.Value, 1)
	}
}

func (s *shape) variables(definitions ast.VariableDefinitionList) {
	for _, definition := range definitions {
		s.nodes = add(s.nodes, 1)
		s.withValue(definition.DefaultValue, 1)
		s.withDirectives(definition.Directives)
	}
}

func (s *shape) withValue(value *ast.Value, depth int) {
	if value == nil {
		return
	}
	s.nodes = add(s.nodes, 1)
	if value.Kind == ast.ListValue || value.Kind == ast.ObjectValue {
		s.valueDepth = max(s.valueDepth, depth)
	}
	for _, child := range value.Children {
		s.withValue(child.Value, depth+1)
	}
}

// comparisons counts the pairs that validation compares within the selection sets of
// a definition: fields of one response name, with their arguments, and fragments. It
// writes the definition out, so it is for what is known to be small.
func (m *measurer) comparisons(sets ...ast.SelectionSet) int {
	merged := merging{m: m, fields: map[string]*sameName{}}
	for _, set := range sets {
		merged.collect(set)
	}
	count := merged.spreads * merged.spreads / 2
	for _, same := range merged.fields {
		if same.fields > 1 {
			count += same.weight * same.weight / 2
		}
		if len(same.sets) > 0 {
			count += m.comparisons(same.sets...)
		}
	}
	return count
}

// merging is what stands in one place of the answer.
type merging struct {
	m       *measurer
	spreads int
	fields  map[string]*sameName
}

// sameName is the fields of one response name in one place.
type sameName struct {
	fields, weight int
	sets           []ast.SelectionSet
}

func (g *merging) collect(set ast.SelectionSet) {
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			same := g.fields[selection.Alias]
			if same == nil {
				same = &sameName{}
				g.fields[selection.Alias] = same
			}
			same.fields++
			same.weight += 1 + len(selection.Arguments)
			if len(selection.SelectionSet) > 0 {
				same.sets = append(same.sets, selection.SelectionSet)
			}
		case *ast.InlineFragment:
			g.collect(selection.SelectionSet)
		case *ast.FragmentSpread:
			g.spreads++
			if fragment := g.m.fragments[selection.Name]; fragment != nil {
				g.collect(fragment.SelectionSet)
			}
		}
	}
}
