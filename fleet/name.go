package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameLength bounds the name of a site, a machine or a token, in characters.
const MaxNameLength = 128

// MaxSkuNameLength bounds the name of a SKU, in characters.
const MaxSkuNameLength = 256

// MaxTextLength bounds a description, in characters.
const MaxTextLength = 4096

// CheckName returns an INVALID_ARGUMENT error for field unless name has 1 to
// MaxNameLength characters, none of them a control character and no white space
// at either end.
func CheckName(field, name string) error { return CheckNamed(field, name, MaxNameLength) }

// CheckSkuName is CheckName for a SKU's name, up to MaxSkuNameLength.
func CheckSkuName(field, name string) error {
	if name == "" {
		return Invalid(field, "NAME_INVALID", "SKU ID must not be empty")
	}
	return CheckNamed(field, name, MaxSkuNameLength)
}

// CheckNamed is CheckName with another limit, in characters.
func CheckNamed(field, name string, limit int) error {
	switch {
	case name == "":
		return Invalid(field, "NAME_INVALID", "%s must not be empty", field)
	case utf8.RuneCountInString(name) > limit:
		return Invalid(field, "NAME_INVALID", "%s has at most %d characters", field, limit)
	case strings.TrimSpace(name) != name:
		return Invalid(field, "NAME_INVALID", "%s must not begin or end with white space", field)
	}
	if _, ok := IDPrefix(name); ok {
		return Invalid(field, "NAME_INVALID", "%s must not have the form of an id", field)
	}
	// Format characters show nothing: two names would look alike.
	return checkCharacters(field, name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) })
}

// CheckText returns an INVALID_ARGUMENT error for field unless text has at most
// MaxTextLength characters and no control characters but tabs and line ends.
func CheckText(field, text string) error {
	if utf8.RuneCountInString(text) > MaxTextLength {
		return Invalid(field, "TEXT_INVALID", "%s has at most %d characters", field, MaxTextLength)
	}
	return checkCharacters(field, text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
	})
}

func checkCharacters(field, text string, refused func(rune) bool) error {
	if !utf8.ValidString(text) {
		return Invalid(field, "TEXT_INVALID", "%s is not valid UTF-8", field)
	}
	if i := strings.IndexFunc(text, refused); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return Invalid(field, "TEXT_INVALID", "%s must not contain the character %U", field, r)
	}
	return nil
}

// Quoted is input for a message: between quotation marks and cut where it is long.
// Control characters are escaped; the rest stands as it was given, so that a regular
// expression keeps the backslashes it has.
func Quoted(s string) string {
	const shown = 100
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		if i >= shown {
			b.WriteRune('…')
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			escaped := strconv.QuoteRune(r)
			b.WriteString(escaped[1 : len(escaped)-1])
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// List writes the first of count names for people, with an ellipsis where there are
// more.
func List(first []string, count int) string {
	list := strings.Join(first, ", ")
	if count > len(first) {
		list += ", …"
	}
	return list
}

// ParseMac reads a 48-bit MAC address in any usual notation (colons, hyphens,
// dots, or none; either case) and returns it in lower case with colons.
func ParseMac(field, s string) (string, error) {
	digits := strings.ToLower(strings.NewReplacer(":", "", "-", "", ".", "").Replace(s))
	ok := len(digits) == 12 && len(s) <= 17
	for _, c := range digits {
		ok = ok && strings.ContainsRune("0123456789abcdef", c)
	}
	if !ok {
		return "", Invalid(field, "MAC_INVALID", "%s is not a MAC address such as c4:5a:b1:c8:38:0d", Quoted(s))
	}
	if group := strings.ContainsRune("13579bdf", rune(digits[1])); group || digits == "000000000000" {
		return "", Invalid(field, "MAC_INVALID", "%q is no machine's address", s)
	}
	return fmt.Sprintf("%s:%s:%s:%s:%s:%s", digits[:2], digits[2:4], digits[4:6], digits[6:8], digits[8:10], digits[10:]), nil
}
