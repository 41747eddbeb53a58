package relay

import (
	"reflect"
	"strings"

	"fleetgraph/fleet"
)

// The bounds of a filter. Depth counts the outermost filter as 1 and grows with every
// not, and, or, and has…With. Conditions are those of the whole filter, each element of
// a list one: Postgres takes some 100 ms for as many.
const (
	MaxWhereDepth      = 8
	MaxWhereList       = 500
	MaxWhereConditions = 2000
)

// Reasons of a refused filter.
const (
	ReasonWhereTooDeep  = "WHERE_TOO_DEEP"
	ReasonWhereTooLarge = "WHERE_TOO_LARGE"
	ReasonWhereList     = "WHERE_LIST_TOO_LONG"
	ReasonWhereEmpty    = "WHERE_EMPTY"
	ReasonWhereText     = "WHERE_TEXT_INVALID"
	ReasonWhereAll      = "WHERE_TEXT_EMPTY"
)

// ErrEmptyWhere refuses a filter without conditions inside another, where it could
// be meant to find everything or nothing.
func ErrEmptyWhere(inside string) error {
	return fleet.Invalid("where", ReasonWhereEmpty, "a filter in %q, or its list, has no condition", inside)
}

// CheckWhere checks the depth, the size, the lists and the texts of a generated filter,
// given by pointer. A condition that nothing can fail is refused: whoever made it of an
// empty text would find, and change, everything.
func CheckWhere(where any) error { return new(whereCheck).filter(reflect.ValueOf(where), 1) }

// whereCheck counts the conditions of one filter.
type whereCheck struct{ conditions int }

func (c *whereCheck) filter(v reflect.Value, depth int) error {
	if v.IsNil() {
		return nil
	}
	if depth > MaxWhereDepth {
		return fleet.Invalid("where", ReasonWhereTooDeep, "filters are nested more than %d deep", MaxWhereDepth)
	}
	v = v.Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.IsZero() || v.Type().Field(i).Tag.Get("json") == "-" {
			continue
		}
		if f.Kind() == reflect.Slice {
			if f.Len() > MaxWhereList {
				return fleet.Invalid("where", ReasonWhereList, "%s lists %d, at most %d are allowed", gqlName(v.Type().Field(i)), f.Len(), MaxWhereList)
			}
			for j := range f.Len() {
				if err := c.condition(f.Index(j), v.Type().Field(i), depth); err != nil {
					return err
				}
			}
			continue
		}
		if err := c.condition(f, v.Type().Field(i), depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *whereCheck) condition(v reflect.Value, field reflect.StructField, depth int) error {
	if c.conditions++; c.conditions > MaxWhereConditions {
		return fleet.Invalid("where", ReasonWhereTooLarge, "the filter has more than %d conditions", MaxWhereConditions)
	}
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct && strings.HasSuffix(v.Type().Elem().Name(), "WhereInput") {
		return c.filter(v, depth+1)
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.String && !isText(v.String()) {
		return fleet.Invalid("where", ReasonWhereText, "%s is text that cannot be stored, so nothing can equal it", gqlName(field))
	}
	if v.Kind() == reflect.String && v.Len() == 0 && isPart(field.Name) {
		return fleet.Invalid("where", ReasonWhereAll, "%s is empty, and every text has that", gqlName(field))
	}
	return nil
}

// isPart tells whether a condition, by its Go name, is of a part of a text, or of what
// comes not before one.
func isPart(name string) bool {
	for _, operator := range []string{"HasPrefix", "HasSuffix", "Contains", "ContainsFold", "GTE"} {
		if strings.HasSuffix(name, operator) {
			return true
		}
	}
	return false
}

func gqlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
