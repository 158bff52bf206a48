package pattern

import (
	"fmt"
	"strings"
	"testing"
)

// try returns the captures of the first match from an offset on, "no" where there is none, or what is wrong with the pattern.
func try(src, pat string, from int, tick func()) (got string) {
	defer func() {
		if cause := recover(); cause != nil {
			got = fmt.Sprint(cause)
		}
	}()
	m := &Matcher{Src: src, Pat: pat, Tick: tick, Fail: func(text string) { panic(text) }}
	start, end, found := m.Find(from)
	if !found {
		return "no"
	}
	got = fmt.Sprint(start, "-", end)
	for i := range m.Captures() {
		text, position := m.Capture(i, start, end)
		got += fmt.Sprintf(" %s%d", text, position)
	}
	return got
}

// The matches that lua5.1 finds.
func TestFind(t *testing.T) {
	for _, test := range []struct{ src, pat, want string }{
		{"hello world", "o w", "4-7"}, {"hello", "^l", "no"}, {"hello", "l+", "2-4"}, {"hello", "l-o", "2-5"}, {"hello", "xl?e?", "no"},
		{"hello", "hx?e", "0-2"}, {"key=5", "(%w+)=(%d+)", "0-5 key0 50"}, {"abc", "()b()", "1-2 2 3"}, {"", "", "0-0"},
		{"abc", "$", "3-3"}, {"a$", "$", "2-2"}, {"a$c", "$c", "1-3"}, {"f(a(b)c)d", "%b()", "1-8"},
		{"THE (quick) fox", "%f[%a]%a+%f[%A]", "0-3"}, {"x==x", "(.)==%1", "0-4 x0"}, {"x==y", "(.)==%1", "no"},
		{"a-z", "[a%-z]+", "0-3"}, {"b]", "[]]", "1-2"}, {"ab1", "[^%d]+", "0-2"}, {"a\x00b", "%z", "1-2"}, {"Ab_9 ", "%u%l%p%d%s", "0-5"},
		{"\x7f", "%c", "0-1"}, {"g0", "%x", "1-2"}, {"aZ", "%L", "1-2"}, {"aa", "a-$", "0-2"}, {"((x))", "%((%(x%))%)", "0-5 (x)0"},
		{"a", "%", "malformed pattern (ends with '%')"}, {"a", "[a", "malformed pattern (missing ']')"}, {"a", "(a", "unfinished capture"},
		{"a", "a)", "invalid pattern capture"}, {"a", "%1", "invalid capture index"}, {"a", "%b", "unbalanced pattern"},
		{"a", "%f", "missing '[' after '%f' in pattern"}, {"a", strings.Repeat("(a?)", 33), "too many captures"},
		{strings.Repeat("a", 300), strings.Repeat("a?", 300), "pattern too complex"},
		{"aaa", ".*a", "0-3"}, {"aaa", ".*b", "no"}, {"aaa", ".+b", "no"}, {"aaa", ".?a", "0-2"}, {"aaab", ".?b", "2-4"},
		{"a", ".?a", "0-1"}, {"aaa", "b*", "0-0"}, {"aba", "ab*a", "0-3"}, {"aaa", "b+", "no"}, {"aaa", "ab+a", "no"},
		{"aba", "ab+a", "0-3"}, {"", "b*", "0-0"}, {"aaa", "bb*", "no"}, {"a$a", ".$", "2-3"}, {"a$a", ".%$", "0-2"}, {"a$a", ".$.", "0-3"},
		{"a$a", "$$", "no"}, {"a$b", "a$", "no"}, {"a$a", "$", "3-3"}, {"$", "^$", "no"}, {"", "^$", "0-0"},
		{"aaab", "a-", "0-0"}, {"aaa", "^.-$", "0-3"}, {"aabaaabaaabaaaba", "b.*b", "2-15"}, {"aabaaabaaabaaaba", "b.-b", "2-7"},
		{"alo xo", ".o$", "4-6"}, {"aa", "x-b", "no"}, {" \n isto assim", "%S%S*", "3-7"}, {" \n isto assim", "%S*$", "8-13"},
		{"um ? extra", "[^%sa-z]", "3-4"}, {"  abl", "x?b?l?", "0-0"}, {"aa", "^aa?a?a", "0-2"}, {"]]]ab", "[^]]", "3-4"},
		{"0alo alo", "%x*", "0-2"}, {"alo alx 123 b\x00o b\x00o", "(..*) %1", "12-19 b\x00o0"},
		{"axz123= 4= 4 34", "(.+)=(.*)=%2 %1", "5-14 30  40"}, {"=======", "^(=*)=%1$", "0-7 ===0"}, {"==========", "^([=]*)=%1$", "no"},
		{"abc", "(a)(b)(c)%3", "no"}, {"abcbc", "(a)(bc)%2", "0-5 a0 bc0"}, {"alo", "()l()", "1-2 2 3"},
		{"clo alo", "(a*(.)%w(%s*))", "0-2 cl0 c0 0"}, {"ab", "(a*)(b*)(c*)", "0-2 a0 b0 0"}, {"ab", "(a)x?()b", "0-2 a0 2"},
		{"aXb", "(%a-)(%u)", "0-2 a0 X0"}, {"aab", "(a)(b)", "1-3 a0 b0"}, {"aab", "(a)$", "no"}, {"abab", "^(a)(b)(c?)", "0-2 a0 b0 0"},
		{"[a]", "[[]", "0-1"}, {"a%", "[%%]", "1-2"}, {"-", "[a-]", "0-1"}, {"-", "[-a]", "0-1"}, {"b", "[a-c]", "0-1"},
		{"a", "[a-c]", "0-1"}, {"c", "[a-c]", "0-1"}, {"d", "[a-c]", "no"}, {"`", "[a-c]", "no"}, {"z", "[xyz]", "0-1"},
		{"x", "[xyz]", "0-1"}, {"w", "[xyz]", "no"}, {"5", "[%a%d]", "0-1"}, {"-", "[%a-z]", "0-1"}, {"^", "[x^]", "0-1"},
		{"^", "[^^]", "no"}, {"d", "[^a-c]", "0-1"}, {"b", "[^a-c]", "no"}, {"1", "[^%d]", "no"}, {"e", "[a-cd-f]", "0-1"},
		{"%", "[a%]", "malformed pattern (missing ']')"}, {"a", "%f[a]", "0-0"}, {"a", "%f[^%z]", "0-0"}, {"a", "%f[^%l]", "1-1"},
		{"aba", "%f[a%z]", "2-2"}, {"aba", "%f[%z]", "3-3"}, {"aba", "%f[%l%z]", "no"}, {"aba", "%f[^%l%z]", "no"},
		{"xa", "%f[a]", "1-1"}, {"aa", "%f[x]", "no"}, {" alo aalo allo", "%f[%S].-%f[%s].-%f[%S]", "1-5"},
		{" alo aalo", "%f[%S](.-%f[%s].-%f[%S])", "1-5 alo 0"}, {"(()", "%b()", "1-3"}, {"(()", "^%b()", "no"}, {"x", "%bxx", "no"},
		{"xx", "%bxx", "0-2"}, {"xaxx", "%bxx", "0-3"}, {"a(b)c", "a%b()c", "0-5"}, {"(b)", "%b()$", "0-3"}, {"", "%b()", "no"},
		{"a", "[", "malformed pattern (missing ']')"}, {"a", "[]", "malformed pattern (missing ']')"},
		{"a", "[^", "malformed pattern (missing ']')"}, {"a", "[^]", "malformed pattern (missing ']')"},
		{"a", "[a%", "malformed pattern (missing ']')"}, {"a", "[%", "malformed pattern (missing ']')"}, {"a", "%bx", "unbalanced pattern"},
		{"a", "%fa", "missing '[' after '%f' in pattern"}, {"a", "%0", "invalid capture index"}, {"aa", "(a)%2", "invalid capture index"},
		{"aa", "(a%1)", "invalid capture index"}, {"a", "a%", "malformed pattern (ends with '%')"},
		{"a1", "()a%1", "no"}, {"aa", "((a)%2)", "0-2 aa0 a0"}, {"ab", ")", "invalid pattern capture"},
		{"ab", "(a))", "invalid pattern capture"}, {"b", "(a", "no"}, {"", strings.Repeat("()", 32), "0-0" + strings.Repeat(" 1", 32)},
		{"", strings.Repeat("()", 33), "too many captures"}, {"ab", strings.Repeat("(x?", 20), "unfinished capture"},
		{strings.Repeat("a", 300), strings.Repeat("a?", 199), "0-199"},
		{strings.Repeat("a", 300), strings.Repeat("a?", 200), "pattern too complex"}, {strings.Repeat("a", 300), strings.Repeat("a", 300),
			"0-300"}, {strings.Repeat("x", 300) + "y", strings.Repeat("y?", 300) + "y", "300-301"},
	} {
		if got := try(test.src, test.pat, 0, func() {}); got != test.want {
			t.Errorf("%.20q %q: %s, want %s", test.src, test.pat, got, test.want)
		}
	}
	for _, test := range []struct {
		src, pat string
		from     int
		want     string
	}{
		{"abab", "ab", 1, "2-4"}, {"abab", "^ab", 1, "no"}, {"abab", "^ab", 2, "2-4"}, {"ab", "", 2, "2-2"}, {"ab", "%f[b]", 1, "1-1"},
		{"ab", "()", 1, "1-1 2"},
	} {
		if got := try(test.src, test.pat, test.from, func() {}); got != test.want {
			t.Errorf("%q %q from %d: %s, want %s", test.src, test.pat, test.from, got, test.want)
		}
	}
}

// Each class has the bytes that C's isalpha and its like have in the C locale.
func TestClasses(t *testing.T) {
	between := func(c byte, ranges string) bool {
		for i := 0; i < len(ranges); i += 2 {
			if c >= ranges[i] && c <= ranges[i+1] {
				return true
			}
		}
		return false
	}
	for class, is := range map[string]func(c byte) bool{
		"a": func(c byte) bool { return between(c, "azAZ") },
		"c": func(c byte) bool { return c < ' ' || c == 0x7f },
		"d": func(c byte) bool { return between(c, "09") },
		"l": func(c byte) bool { return between(c, "az") },
		"p": func(c byte) bool { return c > ' ' && c < 0x7f && !between(c, "azAZ09") },
		"s": func(c byte) bool { return strings.IndexByte(" \t\n\v\f\r", c) >= 0 },
		"u": func(c byte) bool { return between(c, "AZ") },
		"w": func(c byte) bool { return between(c, "azAZ09") },
		"x": func(c byte) bool { return between(c, "09afAF") },
		"z": func(c byte) bool { return c == 0 },
		"y": func(c byte) bool { return c == 'y' }, // no class: it stands for itself
	} {
		for i := range 256 {
			c := byte(i)
			want := map[bool]string{true: "0-1", false: "no"}
			for _, pat := range []string{"%" + class, "[%" + class + "]"} {
				if got := try(string([]byte{c}), pat, 0, nil); got != want[is(c)] {
					t.Errorf("%s of byte %d: %s", pat, c, got)
				}
			}
			if class == "y" {
				continue
			}
			if got := try(string([]byte{c}), "%"+strings.ToUpper(class), 0, nil); got != want[!is(c)] {
				t.Errorf("%%%s of byte %d: %s", strings.ToUpper(class), c, got)
			}
		}
	}
}

// Questions about captures that a match does not have.
func TestCapturesOfOthers(t *testing.T) {
	m := &Matcher{Src: "key=5", Pat: "(%w+)=(%d+)", Tick: func() {}, Fail: func(text string) { panic(text) }}
	m.Find(0)
	if _, _, found := m.Find(1); !found || m.Captures() != 2 {
		t.Errorf("a second search: found %v, with %d captures", found, m.Captures())
	}
	fails := func(i int) (text any) {
		defer func() { text = recover() }()
		m.Capture(i, 0, 1)
		return nil
	}
	if why := fails(2); why != "invalid capture index" {
		t.Errorf("capture 2 of 2: %v", why)
	}
	m.Pat = "y"
	if start, end, _ := m.Find(0); start != 2 || end != 3 {
		t.Errorf("y: %d-%d", start, end)
	}
	if text, _ := m.Capture(0, 2, 3); text != "y" || fails(0) != nil || fails(1) != "invalid capture index" {
		t.Errorf("a match without captures: %q, %v, %v", text, fails(0), fails(1))
	}
}

// The work of a match in ticks: one every 4,096 steps. A step looks at a byte, or at 16 bytes of a set or a capture. The step that ticks
// begins a new count, so that long steps lose a tick or so in 40.
func TestWork(t *testing.T) {
	const n = 1 << 14
	set, as := strings.Repeat("b", 160), strings.Repeat("a", n)
	for _, test := range []struct {
		src, pat string
		want     int
	}{
		{as, "b", 2 * 4}, {as, "[" + set + "]", 47}, {as, "^a*", 4}, {as, "^[a" + set + "]*", 43}, {as, "^a-$", 2 * 4},
		{as, "^[a" + set + "]-$", 47}, {"(" + as, "^%b()", 4}, {as, "%b()", 4}, {as, "%f[" + set + "]", 87}, {as, "^a+$", 4},
		{as[:4096], "^(a*)%1b", 130},
	} {
		ticks := 0
		try(test.src, test.pat, 0, func() { ticks++ })
		if ticks != test.want {
			t.Errorf("%.20q: %d ticks, want %d", test.pat, ticks, test.want)
		}
	}
}

// A pattern that takes for ever ticks, and a tick can end it.
func TestTicks(t *testing.T) {
	ticks := 0
	got := try(strings.Repeat("a", 1<<10), strings.Repeat("a*", 8)+"b", 0, func() {
		if ticks++; ticks == 100 {
			panic("ended")
		}
	})
	if got != "ended" || ticks != 100 {
		t.Errorf("%s after %d ticks", got, ticks)
	}
}
