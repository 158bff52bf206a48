package glob

import "bytes"

// Pattern is what a pattern of text says. It never changes, so goroutines may share it.
type Pattern struct {
	fold  bool   // ignores the case of ASCII letters
	first part   // before the first star; the whole pattern if there is none
	star  bool   // there is one
	inner []part // between two stars, none of them empty
	last  part   // behind the last star
	least int    // bytes that a match has at least
	masks masks  // of all parts in inner that are wild
}

// MaxWild bounds a pattern with ? or [, in bytes: to 16 words for the sets, and 32 KB for the masks.
const MaxWild = 1024

// masks say which elements a byte matches: each element has a bit, and each byte so many words of them.
type masks struct {
	words int
	bits  []uint64
}

func (m *masks) of(c byte) []uint64 { return m.bits[int(c)*m.words:][:m.words] }

// part is what stands between two stars. Each of its elements matches one byte.
type part struct {
	text    []byte // as the pattern has it
	width   int    // elements
	literal []byte // if there is neither ? nor [: what it matches, in lower case with fold
	wild    bool
	bit     int // of its first element, in the masks
}

// Compile reads a pattern, which it copies. With fold, the case of ASCII letters does not count. ok is false if the pattern is too long for
// its wildcards.
func Compile(pattern []byte, fold bool) (g *Pattern, ok bool) {
	g, pattern = &Pattern{fold: fold}, bytes.Clone(pattern)
	literals := make([]byte, 0, len(pattern))
	parts := make([]part, 0, 1+bytes.Count(pattern, []byte("*")))
	for rest := pattern; ; {
		p := part{text: rest}
		from := len(literals)
		for len(rest) > 0 && rest[0] != '*' {
			c := rest[0]
			switch {
			case c == '?' || c == '[':
				if len(pattern) > MaxWild {
					return nil, false
				}
				p.wild = true
			case c == '\\' && len(rest) > 1:
				c = rest[1]
			}
			if fold {
				c = lowerASCII(c)
			}
			literals = append(literals, c)
			p.width++
			rest, _ = matchByte(rest, 0, fold)
		}
		p.text = p.text[:len(p.text)-len(rest)]
		if !p.wild {
			p.literal = literals[from:]
		}
		if end := len(rest) == 0; p.width > 0 || len(parts) == 0 || end {
			parts = append(parts, p)
			g.least += p.width
			if end {
				break
			}
		}
		g.star, rest = true, rest[1:]
	}
	g.first = parts[0]
	if g.star {
		g.inner, g.last = parts[1:len(parts)-1], parts[len(parts)-1]
	}
	g.prepare()
	return g, true
}

// prepare makes the masks.
func (g *Pattern) prepare() {
	bits := 0
	for i := range g.inner {
		if p := &g.inner[i]; p.wild {
			p.bit = bits
			bits += p.width
		}
	}
	if bits == 0 {
		return
	}
	g.masks.words = (bits + 63) / 64
	g.masks.bits = make([]uint64, 256*g.masks.words)
	for i := range g.inner {
		p := &g.inner[i]
		if !p.wild {
			continue
		}
		at := p.bit
		for element := p.text; len(element) > 0; at++ {
			rest, _ := matchByte(element, 0, g.fold)
			for c := range 256 {
				if _, ok := matchByte(element, byte(c), g.fold); ok {
					g.masks.of(byte(c))[at/64] |= 1 << (at % 64)
				}
			}
			element = rest
		}
	}
}

// Match reports whether all of s matches.
func (g *Pattern) Match(s []byte) bool {
	if len(s) < g.least || !g.star && len(s) > g.least {
		return false
	}
	lower := s // for what is literal
	if g.fold {
		lower = make([]byte, len(s))
		for i, c := range s {
			lower[i] = lowerASCII(c)
		}
	}
	from, to := g.first.width, len(s)-g.last.width
	if !g.first.leads(s, lower, g.fold) || !g.last.leads(s[to:], lower[to:], g.fold) {
		return false
	}
	for i := range g.inner {
		p := &g.inner[i]
		at := p.search(&g.masks, s[from:to], lower[from:to])
		if at < 0 {
			return false
		}
		from += at + p.width
	}
	return true
}

// Steps is what a match takes for a key of so many bytes, at most some 1 ns each.
func (g *Pattern) Steps(bytes int) int {
	if g == nil {
		return bytes
	}
	return bytes * max(1, g.masks.words)
}

// leads reports whether s begins with a part. It has as many bytes.
func (p *part) leads(s, lower []byte, fold bool) bool {
	if !p.wild {
		return bytes.HasPrefix(lower, p.literal)
	}
	for i, rest := 0, p.text; len(rest) > 0; i++ {
		var ok bool
		if rest, ok = matchByte(rest, s[i], fold); !ok {
			return false
		}
	}
	return true
}

// search returns where a part is first in s, or -1.
//
// With wildcards it keeps a set of bits while it goes through s: bit i says that the bytes up to here match the first i+1 elements.
func (p *part) search(m *masks, s, lower []byte) int {
	if !p.wild {
		return bytes.Index(lower, p.literal)
	}
	low, high := p.bit/64, (p.bit+p.width-1)/64
	first, full := uint64(1)<<(p.bit%64), uint64(1)<<((p.bit+p.width-1)%64)
	var room [MaxWild / 64]uint64
	set := room[:high-low+1]
	for i, c := range s {
		more := first
		of := m.of(c)[low:]
		for w := range set {
			next := set[w] >> 63
			set[w] = (set[w]<<1 | more) & of[w]
			more = next
		}
		if set[high-low]&full != 0 {
			return i + 1 - p.width
		}
	}
	return -1
}

// matchByte matches c with the element that pattern begins with, which is not a star, and returns what follows it.
func matchByte(pattern []byte, c byte, fold bool) (rest []byte, ok bool) {
	if len(pattern) == 0 {
		return nil, false
	}
	switch pattern[0] {
	case '?':
		return pattern[1:], true
	case '[':
		return matchClass(pattern[1:], c, fold)
	case '\\':
		if len(pattern) > 1 {
			pattern = pattern[1:]
		}
	}
	return pattern[1:], equal(pattern[0], c, fold)
}

// matchClass is matchByte for a class. The caller has removed the [. It always reads up to the ], and knows that a \] or an x-] is not
// the end.
func matchClass(class []byte, c byte, fold bool) (rest []byte, ok bool) {
	negated := len(class) > 0 && class[0] == '^'
	if negated {
		class = class[1:]
	}
	for len(class) > 0 && class[0] != ']' {
		switch {
		case class[0] == '\\' && len(class) >= 2:
			ok = ok || class[1] == c
			class = class[2:]
		case len(class) >= 3 && class[1] == '-':
			ok = ok || inRange(class[0], class[2], c, fold)
			class = class[3:]
		default:
			ok = ok || equal(class[0], c, fold)
			class = class[1:]
		}
	}
	if len(class) > 0 {
		class = class[1:] // the ]
	}
	return class, ok != negated
}

func inRange(from, to, c byte, fold bool) bool {
	if from > to {
		from, to = to, from
	}
	if fold { // after the exchange, as in Redis: [Z-a] becomes z-a, and empty
		from, to, c = lowerASCII(from), lowerASCII(to), lowerASCII(c)
	}
	return from <= c && c <= to
}

func equal(a, b byte, fold bool) bool {
	return a == b || fold && lowerASCII(a) == lowerASCII(b)
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
