// Package jsonsize tells how large JSON is when read, so that what is too large can be
// refused before reading it costs many times its bytes.
package jsonsize

import "bytes"

// Size is how large a JSON value is.
type Size struct {
	Depth  int // lists and objects within each other
	Values int // about how many values; a member of an object counts as one, its name not
	Text   int // bytes of the longest string that is itself a member of the outermost value
}

// beyond tells whether any part is larger than in limit.
func (s Size) beyond(limit Size) bool {
	return s.Depth > limit.Depth || s.Values > limit.Values || s.Text > limit.Text
}

// OfText returns the size of a JSON text, or of its beginning when that is already
// beyond limit. The text need not be JSON. It allocates nothing.
func OfText(text []byte, limit Size) Size {
	size, open := Size{Values: 1}, 0
	for i := 0; i < len(text) && !size.beyond(limit); i++ {
		switch text[i] {
		case '"':
			end, length := stringEnd(text, i+1)
			if i = end; open == 1 {
				size.Text = max(size.Text, length)
			}
		case '{', '[':
			open++
			size.Values++ // its first element, or else nothing: an empty one costs as much
			size.Depth = max(size.Depth, open)
		case '}', ']':
			open--
		case ',':
			size.Values++
		}
	}
	return size
}

// stringEnd returns where the string that begins at start has its closing quote, and
// how many bytes it has at least once its escapes are read.
func stringEnd(text []byte, start int) (end, length int) {
	quote := -1
	for i := start; ; {
		if quote < i { // else the quote found before still lies ahead
			if quote = bytes.IndexByte(text[i:], '"'); quote < 0 {
				return len(text), length + len(text) - i
			}
			quote += i
		}
		escape := bytes.IndexByte(text[i:quote], '\\')
		if escape < 0 {
			return quote, length + quote - i
		}
		escaped := i + escape + 1 // may be the quote
		length += escape + 1
		i = escaped + 1
		if text[escaped] == 'u' {
			i = min(escaped+5, len(text))
		}
	}
}

// Of returns depth and number of the values of what has been read from JSON.
func Of(value any) Size {
	size := Size{Values: 1}
	below := func(child any) {
		s := Of(child)
		size.Depth, size.Values = max(size.Depth, s.Depth), size.Values+s.Values
	}
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			below(child)
		}
		size.Depth++
	case []any:
		for _, child := range value {
			below(child)
		}
		size.Depth++
	}
	return size
}
