package sku

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"
	"unicode/utf8"

	"fleetgraph/fleet"
)

// pattern is one compiled PCI pattern; fault is set for one that is refused, and
// such a pattern matches nothing. It is safe for concurrent use.
type pattern struct {
	text  string
	fault error
	// plain is the pattern without the engine, which is then compiled only for a
	// location outside ASCII; nil where it takes the engine.
	plain  *plainPattern
	steps  int // see Limits
	engine func() *regexp.Regexp
}

// instructionSteps is what one instruction of the engine counts, in characters of a
// plain pattern, as measured.
const instructionSteps = 16

// compilePattern checks and compiles a pattern. What is too long, is read
// differently in the dialect the files were written for, does not compile, or
// takes too many steps gets a fault.
func compilePattern(text string, limits Limits) *pattern {
	p := &pattern{text: text}
	p.engine = sync.OnceValue(func() *regexp.Regexp { re, _ := regexp.Compile(text); return re })
	if len(text) > limits.PatternLength {
		p.fault = fmt.Errorf("%d bytes long, at most %d are accepted", len(text), limits.PatternLength)
		return p
	}
	if p.fault = dialectFault(text); p.fault != nil {
		return p
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		p.fault = syntaxFault(text, err)
		return p
	}
	if p.plain = newPlainPattern(tree); p.plain != nil {
		p.steps = len(p.plain.text)
		return p
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		p.fault = syntaxFault(text, err)
		return p
	}
	if p.steps = len(program.Inst) * instructionSteps; p.steps > limits.PatternSteps {
		p.fault = fmt.Errorf("it compiles to %d instructions, at most %d are accepted", len(program.Inst), limits.PatternSteps/instructionSteps)
	}
	return p
}

// syntaxFault is a parser's error without the pattern, which the message shows
// already, but with the part of it that is at fault.
func syntaxFault(text string, err error) error {
	var fault *syntax.Error
	switch {
	case !errors.As(err, &fault):
		return err
	case fault.Expr == text:
		return errors.New(fault.Code.String())
	default:
		return fmt.Errorf("%s: %s", fault.Code, fleet.Quoted(fault.Expr))
	}
}

// match tells whether the pattern matches anywhere in a drive's location. A drive
// of unknown location matches no pattern.
func (p *pattern) match(d *drive) bool {
	switch {
	case p.fault != nil || d.location == "":
		return false
	case p.plain != nil && d.ascii:
		return p.plain.match(d.location)
	}
	return p.engine().MatchString(d.location)
}

// plainPattern is a pattern of characters, escaped or not, and dots, with or without
// anchors at its ends: what generated SKUs hold, and what the guide makes of it.
type plainPattern struct {
	text       []byte // anyCharacter stands for a dot
	begin, end bool   // anchored there
}

// anyCharacter is no byte of ASCII.
const anyCharacter = 0xff

// newPlainPattern returns the plain form of a parsed pattern, nil where it has none.
func newPlainPattern(tree *syntax.Regexp) *plainPattern {
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	p := &plainPattern{}
	for i, part := range parts {
		switch {
		case part.Op == syntax.OpLiteral && part.Flags&syntax.FoldCase == 0:
			for _, c := range part.Rune {
				if c >= utf8.RuneSelf {
					return nil
				}
				p.text = append(p.text, byte(c))
			}
		case part.Op == syntax.OpAnyCharNotNL:
			p.text = append(p.text, anyCharacter)
		case part.Op == syntax.OpBeginText && i == 0:
			p.begin = true
		case part.Op == syntax.OpEndText && i == len(parts)-1:
			p.end = true
		default:
			return nil
		}
	}
	return p
}

// match searches a location of ASCII without line ends.
func (p *plainPattern) match(location string) bool {
	first, last := 0, len(location)-len(p.text)
	if p.begin {
		last = min(last, 0)
	}
	if p.end {
		first = len(location) - len(p.text)
	}
	for start := max(first, 0); start <= last; start++ {
		if p.matchAt(location[start:]) {
			return true
		}
	}
	return false
}

func (p *plainPattern) matchAt(location string) bool {
	for i, c := range p.text {
		if c != location[i] && c != anyCharacter {
			return false
		}
	}
	return true
}

// plainASCII tells whether a location has neither line ends, which a dot does not
// stand for, nor characters of several bytes.
func plainASCII(location string) bool {
	for i := range len(location) {
		if location[i] >= utf8.RuneSelf || location[i] == '\n' {
			return false
		}
	}
	return true
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
