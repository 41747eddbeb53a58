// Package annotation holds what entities say about themselves beyond what ent and
// entgql know, for the templates in ent/template.
package annotation

import (
	"encoding/json"
	"fmt"

	"entgo.io/ent/schema"
)

// ID says which prefix the ids of an entity have, so that an id tells its type.
type ID struct {
	Prefix string `json:"prefix"`
}

// Name of the annotation.
func (ID) Name() string { return "FleetgraphID" }

// IDPrefix is the annotation of an entity whose ids have the prefix.
func IDPrefix(prefix string) schema.Annotation { return ID{Prefix: prefix} }

// Count gives an edge to many a field that counts it.
type Count struct {
	Field       string `json:"field"`
	Description string `json:"description,omitempty"`
}

// Name of the annotation.
func (Count) Name() string { return "FleetgraphCount" }

// CountField adds the Int field name to the edge's owner: the number of what the edge
// leads to, read for a whole page of owners in one statement.
func CountField(name string) schema.Annotation { return Count{Field: name} }

// Needs declares what fields that are resolved in code read of their object.
type Needs struct {
	Fields []Need `json:"fields"`
}

// Need is what one such field reads.
type Need struct {
	Field   string   `json:"field"`
	Columns []string `json:"columns,omitempty"`
	Edges   []string `json:"edges,omitempty"`
}

// Name of the annotation.
func (Needs) Name() string { return "FleetgraphNeeds" }

// Merge adds the fields of another annotation, as ent does with repeated ones.
func (n Needs) Merge(other schema.Annotation) schema.Annotation {
	if o, ok := other.(Needs); ok {
		n.Fields = append(append([]Need(nil), n.Fields...), o.Fields...)
	}
	return n
}

// Resolved declares that the GraphQL field, which is resolved in code, reads these
// columns (by their ent names) of its object. Without it all columns are read.
func Resolved(field string, columns ...string) Needs {
	return Needs{Fields: []Need{{Field: field, Columns: columns}}}
}

// With adds edges that the field reads; they are loaded whole, so that the
// resolver finds them in the object's Edges.
func (n Needs) With(edges ...string) Needs {
	last := n.Fields[len(n.Fields)-1]
	last.Edges = append(last.Edges, edges...)
	return Needs{Fields: append(append([]Need(nil), n.Fields[:len(n.Fields)-1]...), last)}
}

// Variants makes an entity an interface in the graph: each row is an object of one of
// several types, told by a field of the entity.
type Variants struct {
	Field string    `json:"field"`
	Types []Variant `json:"types"`
}

// Variant is one of the types: that of the rows with this value.
type Variant struct {
	Value       string `json:"value"`
	Type        string `json:"type"`
	Description string `json:"description"`
}

// Name of the annotation.
func (Variants) Name() string { return "FleetgraphVariants" }

// VariantsBy is the annotation of an entity whose field tells the type.
func VariantsBy(field string, types ...Variant) schema.Annotation {
	return Variants{Field: field, Types: types}
}

// Only limits a field or an edge to one variant of its entity.
type Only struct {
	Type string `json:"type"`
	// Required says that the field is null in other variants only.
	Required bool `json:"required,omitempty"`
}

// Name of the annotation.
func (Only) Name() string { return "FleetgraphOnly" }

// OnlyOf is the annotation of a field or an edge that only the variant has.
func OnlyOf(variant string) Only { return Only{Type: variant} }

// NonNull makes the field non-null in its variant.
func (o Only) NonNull() Only {
	o.Required = true
	return o
}

// Decode reads an annotation of the type of dst out of what the generator carries;
// ok is false where it is absent.
func Decode[T schema.Annotation](annotations map[string]any) (dst T, ok bool, err error) {
	raw, ok := annotations[dst.Name()]
	if !ok {
		return dst, false, nil
	}
	buf, err := json.Marshal(raw)
	if err == nil {
		err = json.Unmarshal(buf, &dst)
	}
	if err != nil {
		return dst, false, fmt.Errorf("annotation %s: %w", dst.Name(), err)
	}
	return dst, true, nil
}
