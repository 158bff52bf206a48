package resp

import "bytes"

// globMatch reports whether all of s matches pattern, by the rules of KEYS and SCAN MATCH (stringmatchlen in Redis 7.0,
// src/util.c). * matches any run of bytes, ? any byte, [abc] one of these, [^abc] any other, [a-c] and [c-a] one in the range, \x the
// byte x, and any other byte itself. No pattern is malformed: a [ without its ] is a class of all that follows it, and a \ at the
// end is itself.
//
// It differs from Redis in two ways. A range compares bytes as unsigned, as in a Redis built for ARM; on x86, [a-\xff] does not
// match b. And ** matches the empty key, as * does.
//
// No library has these rules: path.Match has [!a] and stops at a slash, tidwall/match has no classes, shell globs add {a,b}.
// Clients choose both the keys and the patterns. So the time is at most O(len(pattern) × len(s)), and nothing is allocated. Redis
// recurses at each star, and before 7.0.9 needed exponential time for a*a*a*b.
func globMatch(pattern, s []byte) bool { return glob(pattern, s, false) }

// globMatchFold is globMatch, but ignores the case of ASCII letters. CONFIG GET matches names by it. As in Redis, an escaped letter
// inside a class keeps its case.
func globMatchFold(pattern, s []byte) bool { return glob(pattern, s, true) }

// glob first tries a star with the shortest run, and after a mismatch gives the last star one byte more. Earlier stars never need
// another try: what follows them has matched as early as possible, and the last star can take the rest.
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
