// Package pattern matches Lua's patterns (https://www.lua.org/manual/5.1/manual.html#5.4.1):
//
//	m := &pattern.Matcher{Src: "key=5", Pat: "(%w+)=(%d+)", Tick: tick, Fail: fail}
//	start, end, found := m.Find(0)
//	key, _ := m.Capture(0, start, end)
//
// gopher-lua's matcher recurses for each byte of a subject: a few megabytes overflow Go's stack and end the process. It also cannot be
// interrupted. This one recurses only for items of the pattern, and ticks.
package pattern

import "strings"

const (
	maxCaptures    = 32
	maxMatchDeep   = 200
	stepBytes      = 16 // bytes that take as long as a step
	positionMarker = -1 // the length of a capture that is a position
	openMarker     = -2 // of one that has not ended
)

type capture struct{ start, length int }

// Matcher looks for a pattern in a text.
type Matcher struct {
	Src, Pat string
	Tick     func()            // called every 4,096 steps, about 0.1 ms; it ends the matching by a panic
	Fail     func(text string) // is told what is wrong with the pattern, and ends the matching by a panic

	captures [maxCaptures]capture
	level    int
	depth    int
	steps    int
}

const tickEvery = 1 << 12

// step counts the work, so that a pattern that takes for ever ends with its script. A step over many bytes counts as several.
func (m *Matcher) step(bytes int) {
	if m.steps += 1 + bytes/stepBytes; m.steps >= tickEvery {
		m.steps = 0
		m.Tick()
	}
}

// itemEnd returns where the single-character item at p ends.
func (m *Matcher) itemEnd(p int) int {
	c := m.Pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.Pat) {
			m.Fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(m.Pat) && m.Pat[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.Pat) || m.Pat[p] != ']'; first = false {
			if p >= len(m.Pat) {
				m.Fail("malformed pattern (missing ']')")
			}
			if m.Pat[p] == '%' {
				p++
			}
			p++
		}
		return p + 1
	}
	return p
}

// fits says whether the byte at s is what the item from p to end stands for.
func (m *Matcher) fits(s, p, end int) bool {
	if s >= len(m.Src) {
		return false
	}
	c := m.Src[s]
	switch m.Pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.Pat[p+1])
	case '[':
		return inSet(c, m.Pat[p+1:end-1])
	}
	return m.Pat[p] == c
}

// inSet says whether a set, without its brackets, has c.
func inSet(c byte, set string) bool {
	negated := strings.HasPrefix(set, "^")
	if negated {
		set = set[1:]
	}
	for len(set) > 0 {
		switch {
		case set[0] == '%' && len(set) > 1:
			if inClass(c, set[1]) {
				return !negated
			}
			set = set[2:]
		case len(set) > 2 && set[1] == '-':
			if set[0] <= c && c <= set[2] {
				return !negated
			}
			set = set[3:]
		default:
			if set[0] == c {
				return !negated
			}
			set = set[1:]
		}
	}
	return negated
}

// classes lists the ranges of bytes in each class. The class %a is at index 'a'.
var classes = [256]string{
	'a': "azAZ", 'c': "\x00\x1f\x7f\x7f", 'd': "09", 'l': "az", 'p': "!/:@[`{~", 's': "\t\r  ", 'u': "AZ", 'w': "azAZ09", 'x': "09afAF",
	'z': "\x00\x00",
}

// inClass reports whether c is in a class. A class in upper case is the complement. Any other byte stands for itself.
func inClass(c, class byte) bool {
	ranges := classes[class|0x20]
	if ranges == "" {
		return class == c
	}
	for ; ranges != ""; ranges = ranges[2:] {
		if ranges[0] <= c && c <= ranges[1] {
			return class >= 'a'
		}
	}
	return class < 'a'
}

// Match returns where the pattern from p on ends when it is matched at s, or -1. Captures are those of this match.
func (m *Matcher) Match(s, p int) int {
	m.level = 0
	return m.match(s, p)
}

// match is Match within a capture.
func (m *Matcher) match(s, p int) int {
	if m.depth++; m.depth > maxMatchDeep {
		m.Fail("pattern too complex")
	}
	defer func() { m.depth-- }()
	for s >= 0 && p < len(m.Pat) {
		m.step(0)
		if c := m.Pat[p]; c == '(' || c == ')' || c == '$' || c == '%' {
			if at, next, special := m.special(s, p); special {
				s, p = at, next
				continue
			}
		}
		end := m.itemEnd(p)
		m.step(end - p)
		switch {
		case end < len(m.Pat) && suffixes[m.Pat[end]]:
			s, p = m.repeated(s, p, end)
		case m.fits(s, p, end):
			s, p = s+1, end
		default:
			return -1
		}
	}
	return s
}

var suffixes = [256]bool{'?': true, '+': true, '*': true, '-': true}

// repeated matches the item from p to end, which has a suffix, and returns where its match and it end, or the match of the whole rest. The
// match ends at -1 where there is none.
func (m *Matcher) repeated(s, p, end int) (at, next int) {
	switch m.Pat[end] {
	case '+':
		return m.longest(s, p, end, 1), len(m.Pat)
	case '*':
		return m.longest(s, p, end, 0), len(m.Pat)
	case '-':
		return m.shortest(s, p, end), len(m.Pat)
	}
	if m.fits(s, p, end) {
		if found := m.match(s+1, end+1); found >= 0 {
			return found, len(m.Pat)
		}
	}
	return s, end + 1
}

// special matches what is no item: the bounds of captures, the $ at the end, %b, %f and %1 to %9. It returns where that and its match end,
// or the match of the whole rest. The match ends at -1 where there is none.
func (m *Matcher) special(s, p int) (at, next int, special bool) {
	rest, all := m.Pat[p+1:], len(m.Pat)
	switch c := m.Pat[p]; {
	case c == '(' && rest != "" && rest[0] == ')':
		return m.begin(s, p+2, positionMarker), all, true
	case c == '(':
		return m.begin(s, p+1, openMarker), all, true
	case c == ')':
		return m.end(s, p+1), all, true
	case rest == "":
		if s < len(m.Src) {
			s = -1
		}
		return s, all, c == '$'
	case c == '$':
	case rest[0] == 'b':
		return m.balanced(s, p+2), p + 4, true
	case rest[0] == 'f':
		at, next = m.frontier(s, p+2)
		return at, next, true
	case '0' <= rest[0] && rest[0] <= '9':
		return m.again(s, int(rest[0]-'1')), p + 2, true
	}
	return s, p, false
}

// frontier matches the set of a %f: the byte before s is not in it, and that at s is.
func (m *Matcher) frontier(s, p int) (at, end int) {
	if p >= len(m.Pat) || m.Pat[p] != '[' {
		m.Fail("missing '[' after '%f' in pattern")
	}
	end = m.itemEnd(p)
	set := m.Pat[p+1 : end-1]
	m.step(2 * len(set))
	var before, after byte
	if s > 0 {
		before = m.Src[s-1]
	}
	if s < len(m.Src) {
		after = m.Src[s]
	}
	if inSet(before, set) || !inSet(after, set) {
		return -1, end
	}
	return s, end
}

// longest matches an item as often as it can, and then the rest of the pattern.
func (m *Matcher) longest(s, p, end, least int) int {
	n := 0
	for m.fits(s+n, p, end) {
		m.step(end - p)
		n++
	}
	for ; n >= least; n-- {
		if found := m.match(s+n, end+1); found >= 0 {
			return found
		}
	}
	return -1
}

// shortest matches an item as seldom as the rest of the pattern lets it.
func (m *Matcher) shortest(s, p, end int) int {
	for {
		if found := m.match(s, end+1); found >= 0 {
			return found
		}
		if m.step(end - p); !m.fits(s, p, end) {
			return -1
		}
		s++
	}
}

func (m *Matcher) begin(s, p, length int) int {
	if m.level == maxCaptures {
		m.Fail("too many captures")
	}
	m.captures[m.level] = capture{s, length}
	m.level++
	found := m.match(s, p)
	if found < 0 {
		m.level--
	}
	return found
}

func (m *Matcher) end(s, p int) int {
	for i := m.level - 1; i >= 0; i-- {
		if c := &m.captures[i]; c.length == openMarker {
			c.length = s - c.start
			found := m.match(s, p)
			if found < 0 {
				c.length = openMarker
			}
			return found
		}
	}
	m.Fail("invalid pattern capture")
	return -1
}

// balanced matches %bxy at s, and returns where it ends.
func (m *Matcher) balanced(s, p int) int {
	if p+1 >= len(m.Pat) {
		m.Fail("unbalanced pattern")
	}
	if s >= len(m.Src) || m.Src[s] != m.Pat[p] {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.Src); i++ {
		m.step(0)
		switch m.Src[i] {
		case m.Pat[p+1]:
			if depth--; depth == 0 {
				return i + 1
			}
		case m.Pat[p]:
			depth++
		}
	}
	return -1
}

// again matches the text of an earlier capture (%1).
func (m *Matcher) again(s, i int) int {
	if i < 0 || i >= m.level || m.captures[i].length == openMarker {
		m.Fail("invalid capture index")
	}
	c := m.captures[i]
	m.step(max(0, c.length))
	if c.length < 0 || !strings.HasPrefix(m.Src[s:], m.Src[c.start:c.start+c.length]) {
		return -1
	}
	return s + c.length
}

// Find looks for the first match from s on.
func (m *Matcher) Find(s int) (start, end int, found bool) {
	anchored := strings.HasPrefix(m.Pat, "^")
	p := 0
	if anchored {
		p = 1
	}
	for ; s <= len(m.Src); s++ {
		if end := m.Match(s, p); end >= 0 {
			return s, end, true
		}
		if anchored {
			break
		}
	}
	return 0, 0, false
}

// Captures is how many captures the last match has.
func (m *Matcher) Captures() int { return m.level }

// Capture returns the i-th capture of a match, which is all of it where there is none. A position has no text; it is 1 or more.
func (m *Matcher) Capture(i, start, end int) (text string, position int) {
	if i >= m.level {
		if i > 0 {
			m.Fail("invalid capture index")
		}
		return m.Src[start:end], 0
	}
	c := m.captures[i]
	switch c.length {
	case positionMarker:
		return "", c.start + 1
	case openMarker:
		m.Fail("unfinished capture")
	}
	return m.Src[c.start : c.start+c.length], 0
}
