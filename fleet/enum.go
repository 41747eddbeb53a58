package fleet

import (
	"fmt"
	"io"
	"slices"
	"strconv"
)

// marshalEnum writes a GraphQL enum value.
func marshalEnum[T ~string](w io.Writer, v T) { _, _ = io.WriteString(w, strconv.Quote(string(v))) }

// unmarshalEnum reads a GraphQL enum value into dst, refusing what is not in
// values.
func unmarshalEnum[T ~string](dst *T, v any, values []string) error {
	s, ok := v.(string)
	if !ok || !slices.Contains(values, s) {
		return fmt.Errorf("%v is not one of %v", v, values)
	}
	*dst = T(s)
	return nil
}
