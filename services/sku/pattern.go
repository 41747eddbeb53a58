package sku

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
)

// pattern is one compiled PCI pattern; fault is set for one that is refused, and
// such a pattern matches nothing. It is safe for concurrent use.
type pattern struct {
	text  string
	fault error
	// wildcard is set for a pattern of plain characters and dots, which is what
	// generated SKUs hold. It is then matched without the engine, which is
	// compiled only for a location outside ASCII.
	wildcard bool
	size     int // instructions of the program
	engine   func() *regexp.Regexp
}

// wildcardMeta are the characters that make a pattern more than plain characters
// and dots.
const wildcardMeta = `\+*?()|[]{}^$`

// compilePattern checks and compiles a pattern. What is too long, is read
// differently in the dialect the files were written for, does not compile, or
// needs too large a program gets a fault.
func compilePattern(text string, limits Limits) *pattern {
	p := &pattern{text: text, wildcard: isWildcard(text), size: len(text) + 2}
	p.engine = sync.OnceValue(func() *regexp.Regexp { re, _ := regexp.Compile(text); return re })
	if len(text) > limits.PatternLength {
		p.fault = fmt.Errorf("%d bytes long, at most %d are accepted", len(text), limits.PatternLength)
		return p
	}
	if p.wildcard {
		return p
	}
	if p.fault = dialectFault(text); p.fault != nil {
		return p
	}
	if p.size, p.fault = programSize(text); p.fault != nil {
		return p
	}
	if p.size > limits.PatternProgram {
		p.fault = fmt.Errorf("it compiles to %d instructions, at most %d are accepted", p.size, limits.PatternProgram)
	}
	return p
}

// programSize returns the number of instructions that a pattern compiles to. A
// search takes time proportional to it and to the length of the location.
func programSize(text string) (int, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

func isWildcard(text string) bool {
	return !strings.ContainsAny(text, wildcardMeta) && plainASCII(text)
}

func plainASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 || text[i] == '\n' {
			return false
		}
	}
	return true
}

// match tells whether the pattern matches anywhere in a drive's location. A drive
// of unknown location matches no pattern.
func (p *pattern) match(d *drive) bool {
	switch {
	case p.fault != nil || d.location == "":
		return false
	case p.wildcard && d.plain:
		return matchWildcard(p.text, d.location)
	}
	return p.engine().MatchString(d.location)
}

// matchWildcard searches text for wildcard, in which a dot stands for any
// character.
func matchWildcard(wildcard, text string) bool {
	for start := 0; start+len(wildcard) <= len(text); start++ {
		i := 0
		for i < len(wildcard) && (wildcard[i] == text[start+i] || wildcard[i] == '.') {
			i++
		}
		if i == len(wildcard) {
			return true
		}
	}
	return false
}

// patternCache keeps compiled patterns by their text. It holds at most two
// generations of half its capacity: when the younger one is full, the older one
// is dropped and what is still in use is compiled again. Safe for concurrent use.
type patternCache struct {
	limits Limits

	mu           sync.Mutex
	young, older map[string]*pattern
}

// cachedPatterns is the capacity of a cache. With the limits on a pattern it
// bounds the memory of a cache.
const cachedPatterns = 32_768

func newPatternCache(limits Limits) *patternCache {
	return &patternCache{limits: limits, young: map[string]*pattern{}}
}

func (c *patternCache) compile(text string) *pattern {
	if len(text) > c.limits.PatternLength {
		return compilePattern(text, c.limits)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.young[text]; ok {
		return p
	}
	p, ok := c.older[text]
	if !ok {
		p = compilePattern(text, c.limits)
	}
	if len(c.young) >= cachedPatterns/2 {
		c.older, c.young = c.young, make(map[string]*pattern, cachedPatterns/2)
	}
	c.young[text] = p
	return p
}
