package sku

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// PCI patterns are written for Rust's regex crate, whose dialect differs from
// Go's in a few constructs that both accept but read differently. dialectFault
// finds the first of them.
//
// Not listed are constructs that Go refuses itself, such as \u{…}, and those that
// differ outside ASCII only, which a sysfs path never leaves.
func dialectFault(pattern string) error {
	s := dialectScanner{pattern: pattern}
	for s.err == nil && s.at < len(pattern) {
		switch rest := pattern[s.at:]; {
		case strings.HasPrefix(rest, `\`):
			s.escape()
		case rest[0] == '[':
			s.class()
		case strings.HasPrefix(rest, "(?"):
			s.flags()
		case rest[0] == '{':
			s.repetition()
		default:
			s.at++
		}
	}
	return s.err
}

type dialectScanner struct {
	pattern string
	at      int
	err     error
}

// refuse records a construct and its position, in characters from 1.
func (s *dialectScanner) refuse(at int, construct, meaning string) {
	if s.err == nil {
		position := utf8.RuneCountInString(s.pattern[:at]) + 1
		s.err = fmt.Errorf("%q at position %d is refused: %s", construct, position, meaning)
	}
}

// escape reads a backslash and what follows it, outside a class.
func (s *dialectScanner) escape() {
	rest := s.pattern[s.at:]
	switch {
	case strings.HasPrefix(rest, `\Q`):
		end := strings.Index(rest, `\E`)
		if end < 0 {
			end = len(rest)
		}
		s.at += end
		return
	case strings.HasPrefix(rest, `\x{`), strings.HasPrefix(rest, `\p{`), strings.HasPrefix(rest, `\P{`):
		s.skip(strings.IndexByte(rest+"}", '}'))
		return
	case strings.HasPrefix(rest, `\<`), strings.HasPrefix(rest, `\>`):
		s.refuse(s.at, rest[:2], "word boundaries are written \\b")
	case strings.HasPrefix(rest, `\b{`), strings.HasPrefix(rest, `\B{`):
		s.refuse(s.at, rest[:3], "half word boundaries are not supported")
	}
	s.skip(2)
}

// class reads a bracketed class: no set operations and no nested classes, but
// POSIX names such as [:digit:].
func (s *dialectScanner) class() {
	s.at++
	if strings.HasPrefix(s.pattern[s.at:], "^") {
		s.at++
	}
	// A closing bracket in the first place is an ordinary character.
	for first := true; s.err == nil && s.at < len(s.pattern); first = false {
		switch rest := s.pattern[s.at:]; {
		case rest[0] == ']' && !first:
			s.at++
			return
		case rest[0] == '\\':
			s.skip(2)
		case strings.HasPrefix(rest, "&&"), strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "~~"):
			s.refuse(s.at, rest[:2], "set operations in a class are not supported; escape the characters to mean themselves")
		case strings.HasPrefix(rest, "[:") && strings.Contains(rest, ":]"):
			s.at += strings.Index(rest, ":]") + len(":]")
		case rest[0] == '[':
			s.refuse(s.at, "[", "nested classes are not supported; escape the bracket to mean itself")
		default:
			s.at++
		}
	}
}

// flags reads the head of a group. Go knows the flags i, m, s and U.
func (s *dialectScanner) flags() {
	start := s.at
	s.at += len("(?")
	for s.at < len(s.pattern) && strings.IndexByte("-imsUxuR", s.pattern[s.at]) >= 0 {
		if flag := s.pattern[s.at : s.at+1]; strings.Contains("xuR", flag) {
			s.refuse(start, "(?"+flag+")", "the flag is not supported")
		}
		s.at++
	}
}

// repetition reads a brace: {n}, {n,} or {n,m}. Any other is plain text to Go.
func (s *dialectScanner) repetition() {
	body, _, closed := strings.Cut(s.pattern[s.at+1:], "}")
	low, high, _ := strings.Cut(body, ",")
	if !closed || low == "" || strings.Trim(low+high, "0123456789") != "" {
		s.refuse(s.at, "{", "it begins no repetition; escape the brace to mean itself")
	}
	s.at++
}

func (s *dialectScanner) skip(n int) { s.at = min(s.at+n, len(s.pattern)) }
