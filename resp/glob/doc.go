// Package glob matches keys with patterns by the rules of KEYS and SCAN MATCH (stringmatchlen in Redis 7.0, src/util.c).
//
//	pattern, ok := glob.Compile([]byte("user:[0-9]*"), false) // ok is false where it is too long for its wildcards
//	if pattern.Match(key) { … }
//
// * matches any run of bytes, ? any byte, [abc] one of these, [^abc] any other, [a-c] and [c-a] one in the range, \x the byte x, and any
// other byte itself. No pattern is malformed: a [ without its ] is a class of all that follows it, and a \ at the end is itself.
//
// It differs from Redis in three ways. A range compares bytes as unsigned, as in a Redis built for ARM; on x86, [a-\xff] does not
// match b. ** matches the empty key, as * does. And a pattern with ? or [ has at most MaxWild bytes.
//
// No library has these rules: path.Match has [!a] and stops at a slash, tidwall/match has no classes, shell globs add {a,b}.
//
// Clients choose both the keys and the patterns, and both may have 64 KB. So each byte of a key is looked at a bounded number of
// times: what stands between two stars is searched once, from left to right, by bytes.Index, or, with ? or classes, by one step on
// a set of at most MaxWild bits. To try it at each byte anew took 6 s for *aaa…b with 32,000 a on a key of 64,000.
package glob
