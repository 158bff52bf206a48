package resp

import "bytes"

// globMatch reports whether all of s matches pattern, by the rules of KEYS and SCAN MATCH (stringmatchlen in Redis 7.0,
// src/util.c): * is any run of bytes, ? any one byte, [abc] one of them, [^abc] one that is not, [a-c] one in a range
// whichever end is written first, \x the byte x itself, anything else itself. Nothing is malformed: a [ without its ]
// is a class of all that follows it, a \ at the end is itself.
//
// It differs in two things. A range compares bytes as unsigned, as in a Redis built for ARM: on x86 [a-\xff] has no b.
// And ** matches the empty key, as * does.
//
// No library serves: path.Match has [!a] and stops at a slash, tidwall/match has no classes, shell globs add {a,b}.
// Keys and patterns are both a stranger's, so time is at most O(len(pattern) × len(s)) and nothing is allocated, where
// Redis recurses once a star (in exponential time on a*a*a*b before 7.0.9).
func globMatch(pattern, s []byte) bool { return glob(pattern, s, false) }

// globMatchFold is globMatch with ASCII letters of either case equal, as CONFIG GET matches names. As in Redis an
// escaped letter inside a class keeps its case.
func globMatchFold(pattern, s []byte) bool { return glob(pattern, s, true) }

// glob tries a star with the shortest run first, and on a mismatch gives the last star one byte more. Earlier stars
// never need another try: whatever follows them has matched as early as it can, and the last star can take the rest.
func glob(pattern, s []byte, fold bool) bool {
	starred := false
	var afterStar, retry []byte // what follows the last star, and the part of s where it was last tried
	for len(s) > 0 {
		if len(pattern) > 0 && pattern[0] == '*' {
			pattern = bytes.TrimLeft(pattern, "*")
			if len(pattern) == 0 {
				return true
			}
			starred, afterStar, retry = true, pattern, s
			continue
		}
		if rest, ok := globByte(pattern, s[0], fold); ok {
			pattern, s = rest, s[1:]
			continue
		}
		if !starred {
			return false
		}
		retry = retry[1:]
		pattern, s = afterStar, retry
	}
	return len(bytes.TrimLeft(pattern, "*")) == 0
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

// globClass is globByte for a class, whose [ is already taken from class. It reads to the ] in any case, so that a \]
// or an x-] on the way is not taken for the end.
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
