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

// What lua5.1 finds.
func TestFind(t *testing.T) {
	for _, test := range []struct{ src, pat, want string }{
		{"hello world", "o w", "4-7"}, {"hello", "^l", "no"}, {"hello", "l+", "2-4"}, {"hello", "l-o", "2-5"}, {"hello", "xl?e?", "no"}, {"hello", "hx?e", "0-2"},
		{"key=5", "(%w+)=(%d+)", "0-5 key0 50"}, {"abc", "()b()", "1-2 2 3"}, {"", "", "0-0"}, {"abc", "$", "3-3"}, {"a$", "$", "2-2"}, {"a$c", "$c", "1-3"},
		{"f(a(b)c)d", "%b()", "1-8"}, {"THE (quick) fox", "%f[%a]%a+%f[%A]", "0-3"}, {"x==x", "(.)==%1", "0-4 x0"}, {"x==y", "(.)==%1", "no"},
		{"a-z", "[a%-z]+", "0-3"}, {"b]", "[]]", "1-2"}, {"ab1", "[^%d]+", "0-2"}, {"a\x00b", "%z", "1-2"}, {"Ab_9 ", "%u%l%p%d%s", "0-5"},
		{"\x7f", "%c", "0-1"}, {"g0", "%x", "1-2"}, {"aZ", "%L", "1-2"}, {"aa", "a-$", "0-2"}, {"((x))", "%((%(x%))%)", "0-5 (x)0"},
		{"a", "%", "malformed pattern (ends with '%')"}, {"a", "[a", "malformed pattern (missing ']')"}, {"a", "(a", "unfinished capture"}, {"a", "a)", "invalid pattern capture"},
		{"a", "%1", "invalid capture index"}, {"a", "%b", "unbalanced pattern"}, {"a", "%f", "missing '[' after '%f' in pattern"}, {"a", strings.Repeat("(a?)", 33), "too many captures"},
		{strings.Repeat("a", 300), strings.Repeat("a?", 300), "pattern too complex"},
	} {
		if got := try(test.src, test.pat, 0, func() {}); got != test.want {
			t.Errorf("%.20q %q: %s, want %s", test.src, test.pat, got, test.want)
		}
	}
	if got := try("abab", "ab", 1, func() {}); got != "2-4" {
		t.Errorf("from an offset: %s", got)
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
