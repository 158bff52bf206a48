package resp

import "bytes"

// glob is a pattern by the rules of KEYS and SCAN MATCH (stringmatchlen in Redis 7.0, src/util.c). * matches any run of bytes, ?
// any byte, [abc] one of these, [^abc] any other, [a-c] and [c-a] one in the range, \x the byte x, and any other byte itself. No
// pattern is malformed: a [ without its ] is a class of all that follows it, and a \ at the end is itself.
//
// It differs from Redis in three ways. A range compares bytes as unsigned, as in a Redis built for ARM; on x86, [a-\xff] does not
// match b. ** matches the empty key, as * does. And a pattern with ? or [ has at most maxWildPattern bytes.
//
// No library has these rules: path.Match has [!a] and stops at a slash, tidwall/match has no classes, shell globs add {a,b}.
//
// Clients choose both the keys and the patterns, and both may have 64 KB. So each byte of a key is looked at a bounded number of
// times: what stands between two stars is searched once, from left to right, by bytes.Index, or, with ? or classes, by one step on
// a set of at most maxWildPattern bits. To try it at each byte anew took 6 s for *aaa…b with 32,000 a on a key of 64,000.
//
// A glob never changes, so goroutines may share it.
type glob struct {
	fold  bool   // ignores the case of ASCII letters
	first part   // before the first star; the whole pattern if there is none
	star  bool   // there is one
	inner []part // between two stars, none of them empty
	last  part   // behind the last star
	least int    // bytes that a match has at least
	words int    // of the largest set of bits
}

// maxWildPattern bounds a pattern with ? or [, in bytes: to 16 words for the sets, and 1 MB for all masks.
const maxWildPattern = 1024

// part is what stands between two stars. Each of its elements matches one byte.
type part struct {
	text    []byte // as the pattern has it
	width   int    // elements
	literal []byte // if there is neither ? nor [: what it matches, in lower case with fold
	wild    bool
	masks   []uint64 // for search: by byte, words() of bits, one for each element that matches it
}

func (p *part) words() int { return (p.width + 63) / 64 }

// newGlob returns ok false if the pattern is too long for its wildcards.
func newGlob(pattern []byte, fold bool) (g *glob, ok bool) {
	g, pattern = &glob{fold: fold}, bytes.Clone(pattern)
	var parts []part
	wild := false
	for start, at := 0, 0; ; {
		end := at == len(pattern)
		if end || pattern[at] == '*' {
			if p := newPart(pattern[start:at], fold); p.width > 0 || len(parts) == 0 || end {
				parts = append(parts, p)
				g.least += p.width
				wild = wild || p.wild
			}
			if end {
				break
			}
			g.star = true
			at++
			start = at
			continue
		}
		if pattern[at] == '[' && len(pattern) > maxWildPattern {
			return nil, false
		}
		rest, _ := globByte(pattern[at:], 0, fold)
		at = len(pattern) - len(rest)
	}
	if wild && len(pattern) > maxWildPattern {
		return nil, false
	}
	g.first = parts[0]
	if g.star {
		g.inner, g.last = parts[1:len(parts)-1], parts[len(parts)-1]
	}
	for i := range g.inner {
		g.inner[i].prepare(fold)
		g.words = max(g.words, len(g.inner[i].masks)/256)
	}
	return g, true
}

func newPart(text []byte, fold bool) part {
	p := part{text: text}
	for rest := text; len(rest) > 0; p.width++ {
		c := rest[0]
		switch {
		case c == '?' || c == '[':
			p.wild = true
		case c == '\\' && len(rest) > 1:
			c = rest[1]
		}
		if fold {
			c = lowerASCII(c)
		}
		p.literal = append(p.literal, c)
		if p.wild {
			p.literal = nil
		}
		rest, _ = globByte(rest, 0, fold)
	}
	return p
}

// prepare makes the masks for search.
func (p *part) prepare(fold bool) {
	if !p.wild {
		return
	}
	words := p.words()
	p.masks = make([]uint64, 256*words)
	for c := range 256 {
		i := 0
		for rest := p.text; len(rest) > 0; i++ {
			var ok bool
			if rest, ok = globByte(rest, byte(c), fold); ok {
				p.masks[c*words+i/64] |= 1 << (i % 64)
			}
		}
	}
}

// match reports whether all of s matches.
func (g *glob) match(s []byte) bool {
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
		at := p.search(s[from:to], lower[from:to])
		if at < 0 {
			return false
		}
		from += at + p.width
	}
	return true
}

// steps is what a match takes for a key of so many bytes, at most some 1 ns each.
func (g *glob) steps(bytes int) int {
	if g == nil {
		return bytes
	}
	return bytes * max(1, g.words)
}

// leads reports whether s begins with a part. It has as many bytes.
func (p *part) leads(s, lower []byte, fold bool) bool {
	if !p.wild {
		return bytes.HasPrefix(lower, p.literal)
	}
	for i, rest := 0, p.text; len(rest) > 0; i++ {
		var ok bool
		if rest, ok = globByte(rest, s[i], fold); !ok {
			return false
		}
	}
	return true
}

// search returns where a part is first in s, or -1.
//
// With wildcards it keeps a set of bits while it goes through s: bit i says that the bytes up to here match the first i+1 elements.
func (p *part) search(s, lower []byte) int {
	if !p.wild {
		return bytes.Index(lower, p.literal)
	}
	words := p.words()
	full := uint64(1) << ((p.width - 1) % 64)
	var room [maxWildPattern / 64]uint64
	set := room[:words]
	for i, c := range s {
		one := uint64(1)
		masks := p.masks[int(c)*words:][:words]
		for w := range set {
			next := set[w] >> 63
			set[w] = (set[w]<<1 | one) & masks[w]
			one = next
		}
		if set[words-1]&full != 0 {
			return i + 1 - p.width
		}
	}
	return -1
}

// globByte matches c with the element that pattern begins with, which is not a star, and returns what follows it.
func globByte(pattern []byte, c byte, fold bool) (rest []byte, ok bool) {
	if len(pattern) == 0 {
		return nil, false
	}
	switch pattern[0] {
	case '?':
		return pattern[1:], true
	case '[':
		return globClass(pattern[1:], c, fold)
	case '\\':
		if len(pattern) > 1 {
			pattern = pattern[1:]
		}
	}
	return pattern[1:], globEqual(pattern[0], c, fold)
}

// globClass is globByte for a class. The caller has removed the [. It always reads up to the ], and knows that a \] or an x-] is not
// the end.
func globClass(class []byte, c byte, fold bool) (rest []byte, ok bool) {
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
			ok = ok || globInRange(class[0], class[2], c, fold)
			class = class[3:]
		default:
			ok = ok || globEqual(class[0], c, fold)
			class = class[1:]
		}
	}
	if len(class) > 0 {
		class = class[1:] // the ]
	}
	return class, ok != negated
}

func globInRange(from, to, c byte, fold bool) bool {
	if from > to {
		from, to = to, from
	}
	if fold { // after the exchange, as in Redis: [Z-a] becomes z-a, and empty
		from, to, c = lowerASCII(from), lowerASCII(to), lowerASCII(c)
	}
	return from <= c && c <= to
}

func globEqual(a, b byte, fold bool) bool {
	return a == b || fold && lowerASCII(a) == lowerASCII(b)
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
