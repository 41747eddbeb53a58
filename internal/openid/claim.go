package openid

import (
	"strconv"
)

// lookup finds a claim by its name, or by its path within objects.
func lookup(values map[string]any, name string) any {
	if value, ok := values[name]; ok {
		return value
	}
	// The longest first: names that are URLs have dots of their own.
	for i := len(name) - 1; i > 0; i-- {
		if name[i] != '.' {
			continue
		}
		if inner, ok := values[name[:i]].(map[string]any); ok {
			return lookup(inner, name[i+1:])
		}
	}
	return nil
}

// texts are the texts that a claim consists of; of anything else than a text, a truth
// value or a list of them there are none.
func texts(claim any) []string {
	switch claim := claim.(type) {
	case string:
		return []string{claim}
	case bool:
		return []string{strconv.FormatBool(claim)}
	case []any:
		out := make([]string, 0, len(claim))
		for _, element := range claim {
			if text, ok := element.(string); ok {
				out = append(out, text)
			}
		}
		return out
	default:
		return nil
	}
}
