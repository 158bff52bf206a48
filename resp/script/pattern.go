package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// This is a matcher of Lua's patterns (https://www.lua.org/manual/5.1/manual.html#5.4.1). gopher-lua's recurses for each byte of a
// subject: a few megabytes overflow Go's stack and end the process. It also cannot be interrupted. This one recurses only for
// items of the pattern, and ticks.

const (
	maxCaptures    = 32
	maxMatchDeep   = 200
	stepBytes      = 16 // bytes that take as long as a step
	positionMarker = -1 // the length of a capture that is a position
	openMarker     = -2 // of one that has not ended
)

type capture struct{ start, length int }

type matcher struct {
	e        *Engine
	L        *lua.LState
	src, pat string
	captures [maxCaptures]capture
	level    int
	depth    int
	steps    int
}

// step counts the work, so that a pattern that takes for ever ends with its script. A step over many bytes counts as several.
func (m *matcher) step(bytes int) {
	if m.steps += 1 + bytes/stepBytes; m.steps < 16*tickEvery {
		return
	}
	if m.steps = 0; m.e.tick() != nil {
		m.L.RaiseError("ended")
	}
}

func (m *matcher) fail(text string) { m.L.RaiseError("%s", text) }

// itemEnd returns where the single-character item at p ends.
func (m *matcher) itemEnd(p int) int {
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pat) {
			m.fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pat) || m.pat[p] != ']'; first = false {
			if p >= len(m.pat) {
				m.fail("malformed pattern (missing ']')")
			}
			if m.pat[p] == '%' {
				p++
			}
			p++
		}
		return p + 1
	}
	return p
}

// fits says whether the byte at s is what the item from p to end stands for.
func (m *matcher) fits(s, p, end int) bool {
	if s >= len(m.src) {
		return false
	}
	c := m.src[s]
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pat[p+1])
	case '[':
		return inSet(c, m.pat[p+1:end-1])
	}
	return m.pat[p] == c
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

func inClass(c, class byte) bool {
	lower := class | 0x20
	var in bool
	letter := 'a' <= c|0x20 && c|0x20 <= 'z'
	digit := '0' <= c && c <= '9'
	switch lower {
	case 'a':
		in = letter
	case 'c':
		in = c < ' ' || c == 0x7f
	case 'd':
		in = digit
	case 'l':
		in = 'a' <= c && c <= 'z'
	case 'p':
		in = ' ' < c && c < 0x7f && !letter && !digit
	case 's':
		in = c == ' ' || '\t' <= c && c <= '\r'
	case 'u':
		in = 'A' <= c && c <= 'Z'
	case 'w':
		in = letter || digit
	case 'x':
		in = digit || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if class != lower {
		return !in
	}
	return in
}

// match returns where the pattern from p on ends when it is matched at s, or -1.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxMatchDeep {
		m.fail("pattern too complex")
	}
	defer func() { m.depth-- }()
	for {
		m.step(0)
		if p == len(m.pat) {
			return s
		}
		switch m.pat[p] {
		case '(':
			if strings.HasPrefix(m.pat[p+1:], ")") {
				return m.begin(s, p+2, positionMarker)
			}
			return m.begin(s, p+1, openMarker)
		case ')':
			return m.end(s, p+1)
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 < len(m.pat) {
				switch next := m.pat[p+1]; {
				case next == 'b':
					if s = m.balanced(s, p+2); s < 0 {
						return -1
					}
					p += 4
					continue
				case next == 'f':
					p += 2
					if p >= len(m.pat) || m.pat[p] != '[' {
						m.fail("missing '[' after '%f' in pattern")
					}
					end := m.itemEnd(p)
					set := m.pat[p+1 : end-1]
					m.step(2 * len(set))
					var before, after byte
					if s > 0 {
						before = m.src[s-1]
					}
					if s < len(m.src) {
						after = m.src[s]
					}
					if inSet(before, set) || !inSet(after, set) {
						return -1
					}
					p = end
					continue
				case '0' <= next && next <= '9':
					if s = m.again(s, int(next-'1')); s < 0 {
						return -1
					}
					p += 2
					continue
				}
			}
		}
		end := m.itemEnd(p)
		m.step(end - p)
		var suffix byte
		if end < len(m.pat) {
			suffix = m.pat[end]
		}
		switch suffix {
		case '?':
			if m.fits(s, p, end) {
				if found := m.match(s+1, end+1); found >= 0 {
					return found
				}
			}
			p = end + 1
		case '+', '*':
			n := 0
			for m.fits(s+n, p, end) {
				m.step(end - p)
				n++
			}
			least := 0
			if suffix == '+' {
				least = 1
			}
			for ; n >= least; n-- {
				if found := m.match(s+n, end+1); found >= 0 {
					return found
				}
			}
			return -1
		case '-':
			for {
				if found := m.match(s, end+1); found >= 0 {
					return found
				}
				if m.step(end - p); !m.fits(s, p, end) {
					return -1
				}
				s++
			}
		default:
			if !m.fits(s, p, end) {
				return -1
			}
			s, p = s+1, end
		}
	}
}

func (m *matcher) begin(s, p, length int) int {
	if m.level == maxCaptures {
		m.fail("too many captures")
	}
	m.captures[m.level] = capture{s, length}
	m.level++
	found := m.match(s, p)
	if found < 0 {
		m.level--
	}
	return found
}

func (m *matcher) end(s, p int) int {
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
	m.fail("invalid pattern capture")
	return -1
}

// balanced matches %bxy at s, and returns where it ends.
func (m *matcher) balanced(s, p int) int {
	if p+1 >= len(m.pat) {
		m.fail("unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.src); i++ {
		m.step(0)
		switch m.src[i] {
		case m.pat[p+1]:
			if depth--; depth == 0 {
				return i + 1
			}
		case m.pat[p]:
			depth++
		}
	}
	return -1
}

// again matches the text of an earlier capture (%1).
func (m *matcher) again(s, i int) int {
	if i < 0 || i >= m.level || m.captures[i].length == openMarker {
		m.fail("invalid capture index")
	}
	c := m.captures[i]
	m.step(max(0, c.length))
	if c.length < 0 || !strings.HasPrefix(m.src[s:], m.src[c.start:c.start+c.length]) {
		return -1
	}
	return s + c.length
}

// find looks for the first match from s on.
func (m *matcher) find(s int) (start, end int, found bool) {
	anchored := strings.HasPrefix(m.pat, "^")
	p := 0
	if anchored {
		p = 1
	}
	for ; s <= len(m.src); s++ {
		m.level = 0
		if end := m.match(s, p); end >= 0 {
			return s, end, true
		}
		if anchored {
			break
		}
	}
	return 0, 0, false
}

// capture returns the i-th capture of a match, which is all of it where there is none.
func (m *matcher) capture(i, start, end int) lua.LValue {
	if i >= m.level {
		if i > 0 {
			m.fail("invalid capture index")
		}
		return lua.LString(m.src[start:end])
	}
	c := m.captures[i]
	switch c.length {
	case positionMarker:
		return lua.LNumber(c.start + 1)
	case openMarker:
		m.fail("unfinished capture")
	}
	return lua.LString(m.src[c.start : c.start+c.length])
}

// push pushes all captures, or all of the match where there are none.
func (m *matcher) push(start, end int) int {
	n := max(1, m.level)
	for i := range n {
		m.L.Push(m.capture(i, start, end))
	}
	return n
}
