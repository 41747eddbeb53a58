// Package jsonsize tells how large JSON is when read, so that what is too large can be
// refused before reading it costs many times its bytes.
package jsonsize

// OfText returns how deep lists and objects lie within each other in a JSON text, and
// about how many values it has: a member of an object counts as one, its name not. The
// text need not be JSON.
func OfText(text []byte) (depth, values int) {
	open := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			open++
			values++ // its first element, or else nothing: an empty one costs as much
			depth = max(depth, open)
		case '}', ']':
			open--
		case ',':
			values++
		}
	}
	return depth, values + 1
}

// Of returns the same of a value that has been read from JSON.
func Of(value any) (depth, values int) {
	values = 1
	below := func(child any) {
		d, v := Of(child)
		depth, values = max(depth, d), values+v
	}
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			below(child)
		}
		depth++
	case []any:
		for _, child := range value {
			below(child)
		}
		depth++
	}
	return depth, values
}
