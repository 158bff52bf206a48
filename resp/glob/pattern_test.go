package glob

import (
	"bytes"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func globMatch(pattern, s []byte) bool     { g, ok := Compile(pattern, false); return ok && g.Match(s) }
func globMatchFold(pattern, s []byte) bool { g, ok := Compile(pattern, true); return ok && g.Match(s) }

// globModel is the model: it first tries a star with the shortest run, and after a mismatch gives the last star one byte more. Earlier
// stars never need another try: what follows them has matched as early as possible, and the last star can take the rest.
func globModel(pattern, s []byte, fold bool) bool {
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
		if rest, ok := matchByte(pattern, s[0], fold); ok {
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

// Each row is what KEYS of redis-server 7.0.15 says, except those marked.
func TestGlobMatch(t *testing.T) {
	for _, c := range []struct {
		pattern string
		match   []string
		differ  []string
	}{
		{"", []string{""}, []string{"a"}},
		{"user:1", []string{"user:1"}, []string{"user:", "user:12", "User:1", ""}},

		{"*", []string{"", "a", "a/b", "\x00\n\xff"}, nil},
		{"**", []string{"", "a"}, nil}, // Redis: not the empty key
		{"a*", []string{"a", "ab", "a/b"}, []string{"", "ba"}},
		{"*a", []string{"a", "ba", "aa"}, []string{"", "ab"}},
		{"a*b", []string{"ab", "axb", "abab"}, []string{"a", "aba"}},
		{"a**b**", []string{"ab", "axbx"}, []string{"ba"}},
		{"*a*b*", []string{"ab", "xaxbx", "bab"}, []string{"ba", "a"}},
		{"*ab*ab", []string{"abab", "ababab", "xabxab"}, []string{"ab", "aab", "ababa"}},

		{"?", []string{"a", "*", "\xff", "\x00"}, []string{"", "ab"}},
		{"a?c", []string{"abc", "a?c"}, []string{"ac", "abbc"}},
		{"*?", []string{"a", "ab"}, []string{""}},
		{"?*?", []string{"ab", "abc"}, []string{"", "a"}},

		{"[abc]", []string{"a", "b", "c"}, []string{"", "d", "ab", "[", "]"}},
		{"h[ae]llo", []string{"hallo", "hello"}, []string{"hillo", "hllo"}},
		{"[^a]", []string{"b", "^", "\x00"}, []string{"a", "", "bb"}},
		{"[a^]", []string{"a", "^"}, []string{"b"}},
		{"[!a]", []string{"!", "a"}, []string{"b"}},
		{"[a-c]", []string{"a", "b", "c"}, []string{"d", "-", "`"}},
		{"[c-a]", []string{"a", "b", "c"}, []string{"d", "-"}},
		{"[^a-c]", []string{"d", "-"}, []string{"a", "b", "c"}},
		{"[0-9a-f]", []string{"0", "9", "a", "f"}, []string{"g", "-", "F"}},
		{"[-a]", []string{"-", "a"}, []string{"b"}},
		{"[a-]", []string{"a", "]", "_"}, []string{"-", "b", "a]"}}, // the range a-], and no end
		{"[a-]]", []string{"a", "]", "_"}, []string{"-", "a]"}},
		{"[*?]", []string{"*", "?"}, []string{"a"}},
		{"[\x80-\xff]", []string{"\x80", "\xe9", "\xff"}, []string{"a", "\x7f"}},
		{"[a-\xff]", []string{"a", "b", "\xe9", "\xff"}, []string{"A"}}, // Redis on x86: A and not b

		{"[", nil, []string{"", "[", "a"}},
		{"[]", nil, []string{"", "[", "]", "[]"}},
		{"[]a]", nil, []string{"]", "a", "a]"}}, // an empty class, which nothing matches
		{"[^]", []string{"a", "]", "^"}, []string{"", "ab"}},
		{"[^", []string{"a", "^"}, []string{"", "ab"}},
		{"[^]a]", []string{"xa]", "]a]"}, []string{"a", "x"}},
		{"[ab", []string{"a", "b"}, []string{"[ab", "c", "ab"}},
		{"[^ab", []string{"c"}, []string{"a", "b"}},
		{"[a-", []string{"a", "-"}, []string{"b"}},
		{"*[ab", []string{"xa", "b"}, []string{"xc"}},

		{`\a`, []string{"a"}, []string{`\a`}},
		{`\*`, []string{"*"}, []string{"a", `\*`, "**"}},
		{`\?\[\]`, []string{"?[]"}, []string{"a[]"}},
		{`\\`, []string{`\`}, []string{`\\`}},
		{`\`, []string{`\`}, []string{"", "a"}},
		{`a\`, []string{`a\`}, []string{"a"}},
		{`[\]]`, []string{"]"}, []string{`\`, `\]`}},
		{`[\a-c]`, []string{"a", "-", "c"}, []string{"b", `\`}},
		{`[a-\]]`, []string{"a]", "]]", "_]", `\]`}, []string{"a", "]"}}, // the range \-a, then a ]
		{`[\^a]`, []string{"^", "a"}, []string{"b", `\`}},
		{`[\`, []string{`\`}, []string{"", "["}},
		{`[a\`, []string{"a", `\`}, []string{"b"}},
		{`*\*`, []string{"*", "a*"}, []string{"a"}},
	} {
		for _, s := range c.match {
			if !globMatch([]byte(c.pattern), []byte(s)) {
				t.Errorf("%q does not match %q", c.pattern, s)
			}
		}
		for _, s := range c.differ {
			if globMatch([]byte(c.pattern), []byte(s)) {
				t.Errorf("%q matches %q", c.pattern, s)
			}
		}
	}
}

// Each row is what CONFIG GET of redis-server 7.0.15 would say.
func TestGlobMatchFold(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"MAX*", "maxmemory", true},
		{"max*", "MAXMEMORY", true},
		{"MIN*", "maxmemory", false},
		{"m[A]x", "max", true},
		{"m[^A]x", "max", false},
		{"m[A-C]x", "max", true},
		{"m[a-c]x", "mAx", true},
		{`\Max`, "max", true},
		{`m[\A]x`, "max", false},
		{"m[Z-a]x", "max", false}, // z-a once folded
		{"m[@-b]x", "max", true},
		{"[\xc9]", "\xe9", false}, // É and é of Latin-1: ASCII only
	} {
		if got := globMatchFold([]byte(c.pattern), []byte(c.s)); got != c.want {
			t.Errorf("%q, %q: %v", c.pattern, c.s, got)
		}
	}
	if globMatch([]byte("MAX*"), []byte("maxmemory")) {
		t.Error("globMatch folds case")
	}
}

// A pattern with one meaning in both languages must give one answer in both.
func TestGlobMatchIsTheRegexp(t *testing.T) {
	words := map[string]string{
		"*": ".*", "?": ".", "a": "a", "b": "b", `\*`: `\*`, `\a`: "a", "[ab]": "[ab]", "[^a]": "[^a]", "[c-a]": "[a-c]", `[\]a]`: `[\]a]`,
	}
	rapid.Check(t, func(t *rapid.T) {
		var glob, re strings.Builder
		for _, w := range rapid.SliceOfN(rapid.SampledFrom([]string{"*", "?", "a", "b", `\*`, `\a`, "[ab]", "[^a]", "[c-a]", `[\]a]`}), 0,
			12).Draw(t, "words") {
			glob.WriteString(w)
			re.WriteString(words[w])
		}
		s := rapid.StringOfN(rapid.RuneFrom([]rune("abc*]")), 0, 12, -1).Draw(t, "s")
		want := regexp.MustCompile(`(?s)\A` + re.String() + `\z`).MatchString(s)
		if got := globMatch([]byte(glob.String()), []byte(s)); got != want {
			t.Fatalf("%q, %q: %v, and %s says %v", glob.String(), s, got, re.String(), want)
		}
	})
}

// Any pattern matches what the model says, with parts as long as a set's words and longer.
func TestGlobMatchIsTheModel(t *testing.T) {
	words := []string{"*", "**", "?", "a", "b", "A", `\*`, `\a`, `\`, "[ab]", "[^a]", "[c-a]", `[\]a]`, "[", "[^", "]", "[]", "-", "aaaa",
		"abab", "????????", strings.Repeat("ab", 30), strings.Repeat("?", 63)}
	rapid.Check(t, func(t *rapid.T) {
		pattern := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 12).Draw(t, "pattern"), ""))
		s := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "A", "*", "]", "-", "aaaa", "abab",
			strings.Repeat("ab", 40)}), 0, 12).Draw(t, "s"), ""))
		if got, want := globMatch(pattern, s), globModel(pattern, s, false); got != want {
			t.Fatalf("%q, %q: %v", pattern, s, got)
		}
		if got, want := globMatchFold(pattern, s), globModel(pattern, s, true); got != want {
			t.Fatalf("%q, %q, in any case: %v", pattern, s, got)
		}
	})
}

// Each of these would take minutes, or longer than the universe, where a star is tried with every rest of the string.
func TestGlobMatchIsLinear(t *testing.T) {
	s := []byte(strings.Repeat("a", 64<<10))
	for range 100 {
		for _, pattern := range []string{
			strings.Repeat("a*", 30_000) + "b",
			strings.Repeat("*a", 30_000) + "b",
			strings.Repeat("*?", 500) + "b",
			strings.Repeat("*[ab]", 200) + "b",
			"*" + strings.Repeat("a", 32_000) + "b*",
			"*" + strings.Repeat("a", 32_000) + "b",
			"*" + strings.Repeat("?", 32) + "b*",
			"*" + strings.Repeat("?", 1000) + "b*",
			strings.Repeat("*"+strings.Repeat("a", 100)+"b", 500),
			"*[" + strings.Repeat("b-c", 300) + "]",
			strings.Repeat("*", 60_000) + "b",
		} {
			if globMatch([]byte(pattern), s) {
				t.Errorf("%.20q… matches", pattern)
			}
		}
		if !globMatch([]byte(strings.Repeat("a*", 10_000)), s) {
			t.Error("a star for each byte does not match")
		}
	}
}

// A pattern with wildcards other than stars is bounded.
func TestLongPatterns(t *testing.T) {
	for pattern, want := range map[string]bool{
		strings.Repeat("a*", 32_000):         true,
		strings.Repeat("?", MaxWild):         true,
		strings.Repeat("?", MaxWild+1):       false,
		"[" + strings.Repeat("a", MaxWild):   false,
		`\[` + strings.Repeat(`\?`, MaxWild): true,
	} {
		if _, ok := Compile([]byte(pattern), false); ok != want {
			t.Errorf("%.10q…: %v", pattern, ok)
		}
	}
}

// The memory of a pattern does not grow with the number of its stars: CONFIG GET takes 1000 patterns, and a user has 10,000 of them.
func TestPatternsAreSmall(t *testing.T) {
	for _, pattern := range []string{strings.Repeat("*a?", 341), strings.Repeat("*[a]", 256), "*" + strings.Repeat("?", 1023)} {
		const n = 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			Compile([]byte(pattern), false)
		}
		runtime.ReadMemStats(&after)
		if bytes := (after.TotalAlloc - before.TotalAlloc) / n; bytes > 128<<10 {
			t.Errorf("%.8q…: %d bytes", pattern, bytes)
		}
	}
}

func TestGlobMatchAllocatesNothing(t *testing.T) {
	pattern, s := []byte("user:[0-9]*:*a*b?"), []byte("user:1234:aaaaaaaaaaabc")
	g, _ := Compile(pattern, false)
	if !g.Match(s) {
		t.Fatal("no match")
	}
	if n := testing.AllocsPerRun(100, func() { g.Match(s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzGlobMatch(f *testing.F) {
	f.Add([]byte("a*[^b-c]?"), []byte("axbd"))
	f.Add([]byte("[a-"), []byte("-"))
	f.Add([]byte(`[\`), []byte(`\`))
	f.Add([]byte(`**\`), []byte{0, 0xff})
	f.Fuzz(func(t *testing.T, pattern, s []byte) {
		if len(pattern) > MaxWild/2 {
			return
		}
		if globMatch(pattern, s) != globModel(pattern, s, false) || globMatchFold(pattern, s) != globModel(pattern, s, true) {
			t.Errorf("%q, %q: not what the model says", pattern, s)
		}
		if globMatch(pattern, s) && !globMatch(append([]byte("*"), pattern...), append([]byte("x"), s...)) {
			t.Errorf("%q matches %q, and with a star before it not x%q", pattern, s, s)
		}
		var literal []byte
		for _, c := range s {
			literal = append(literal, '\\', c)
		}
		if !globMatch(literal, s) || !globMatchFold(literal, s) {
			t.Errorf("%q does not match itself as %q", s, literal)
		}
		if globMatch(literal, append(s[:len(s):len(s)], 'x')) {
			t.Errorf("%q matches more than itself", literal)
		}
	})
}

func BenchmarkGlobMatch(b *testing.B) {
	pattern, s := []byte("user:*:requests"), []byte("user:1234567:requests")
	b.ReportAllocs()
	matched := false
	g, _ := Compile(pattern, false)
	for b.Loop() {
		matched = g.Match(s)
	}
	if !matched {
		b.Fatal("no match")
	}
}

// Parts with wildcards may need several words of bits, and begin and end within any of them.
func TestManyElements(t *testing.T) {
	for _, n := range []int{1, 31, 62, 63, 64, 65, 66, 127, 128, 129, 200} {
		question, x := strings.Repeat("?", n), strings.Repeat("x", n)
		for _, test := range []struct {
			pattern, s string
			want       bool
		}{
			{"*a" + question + "*", "ba" + x + "b", true}, {"*a" + question + "*", "ba" + x[1:], false},
			{"*a" + question + "b*", "ca" + x + "b", true}, {"*a" + question + "b*", "ca" + x + "xb", false},
			{"*" + question + "*[ab]c*", x + "xxac", true}, {"*" + question + "*[ab]c*", x + "xxcac", true},
			{"*" + question + "*[ab]c*", x + "xxdc", false}, {"*" + question + "*[ab]c*", x[1:] + "ac", false},
			{"*" + question + "*[ab]c*?d*", x + "bcbd", true}, {"*" + question + "*[ab]c*?d*", x + "bcd", false},
			{"*" + question + "*" + question + "c*", x + x + "c", true}, {"*" + question + "*" + question + "c*", x + x[1:] + "c", false},
			{"*[a]" + question + "*[b]" + question + "*", "a" + x + "b" + x, true}, {"*[a]" + question + "*[b]" + question + "*",
				"a" + x[1:] + "b" + x, false}, {"*[a]" + question + "*[b]" + question + "*", "a" + x + "b" + x[1:], false},
		} {
			if got := globMatch([]byte(test.pattern), []byte(test.s)); got != test.want {
				t.Errorf("%d: %.20q %.20q: %v", n, test.pattern, test.s, got)
			}
		}
	}
}

// A match takes the bytes of the key, as often as the set of a pattern has words.
func TestSteps(t *testing.T) {
	for pattern, want := range map[string]int{
		"abc": 7, "*a*": 7, "*?*": 7, "*" + strings.Repeat("?", 64) + "*": 7, "*" + strings.Repeat("?", 65) + "*": 14,
		"*" + strings.Repeat("?", 60) + "*?????*": 14,
	} {
		if g, _ := Compile([]byte(pattern), false); g.Steps(7) != want {
			t.Errorf("%.9q: %d steps, want %d", pattern, g.Steps(7), want)
		}
	}
	if n := (*Pattern)(nil).Steps(7); n != 7 {
		t.Errorf("no pattern: %d steps", n)
	}
}

// A class that the pattern's end cuts off reads to the end.
func TestCutOffClasses(t *testing.T) {
	for _, test := range []struct {
		pattern, s string
		want       bool
	}{
		{`[`, "a", false}, {`[^`, "a", true}, {`[a`, "a", true}, {`[a-`, "-", true}, {`[a-`, "a", true}, {`[a-`, "b", false},
		{`[a-c`, "b", true}, {`[\`, `\`, true}, {`[\]`, "]", true}, {`[\]`, `\`, false}, {`[\a`, "a", true}, {`[]`, "a", false},
		{`[^]`, "a", true}, {`[^a-c]x`, "dx", true}, {`[^a-c]x`, "bx", false}, {`[c-a]`, "b", true}, {`[a-]]`, "b", false},
		{`[a-]]`, "]", true}, {`[a-]]`, "^", true}, {`[\-a]`, "-", true},
	} {
		if got := globMatch([]byte(test.pattern), []byte(test.s)); got != test.want {
			t.Errorf("%s %s: %v", test.pattern, test.s, got)
		}
	}
}
