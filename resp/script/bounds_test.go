package script

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"celld/resp/script/budget"
	"celld/resp/script/sandbox"
	"celld/resp/script/source"
)

// Little scripts stay within the bound, whatever others hold: garbage does not count as a script's.
func TestMemoryOfManyRuns(t *testing.T) {
	e := NewEngine()
	ballast := make([]byte, 64<<20)
	for i := range 200 {
		got := eval(e, &fakeHost{}, false, "local t = {} for i = 1, 1000 do t[i] = string.rep('x', 1000) .. i end return #t")
		if got != ":1000\r\n" {
			t.Fatal(i, got)
		}
	}
	runtime.KeepAlive(ballast)
}

// Stack and nesting are bounded: too deep a call is an error that a script can catch.
func TestDepth(t *testing.T) {
	e := NewEngine()
	const deep = 100_000
	for _, test := range []struct{ script, want string }{
		{"local function f() return 1 + f() end f()", "stack overflow"},
		{"local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return f(150)", ":150\r\n"},
		{"local function f(n) if n == 0 then return 0 end return f(n - 1) end return f(100000)", ":0\r\n"},
		{"local function f() pcall(f) end f() return 1", ":1\r\n"},
		{"local function f() xpcall(f, f) end f() return 1", ":1\r\n"},
		{"local function f() table.sort({1, 2}, f) end f()", "stack overflow"},
		{"local function f() string.gsub('x', 'x', f) end f()", "stack overflow"},
		{"local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end return t.x", "stack overflow"},
		{"local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x", ""},
		{"local t = setmetatable({}, {__concat = function(a, b) return a .. b end}) return t .. t", "stack overflow"},
		{"local t = setmetatable({}, {__call = function(t) return (t()) end}) return (t())", "stack overflow"},
		{"local t = {} for i = 1, 3e5 do t[i] = i end return #{unpack(t)}", "overflow"},
		{"local function f(...) return select('#', ...) end return f(unpack({}, 1, 1e9))", "overflow"},
		{"return string.byte(string.rep('x', 1e6), 1, -1)", "overflow"},
		{"return #string.char(unpack({}, 1, 1e9))", "overflow"},
		{"local t = {} for i = 1, 2000 do t = {t} end return t", ""},
		{"return string.find(string.rep('a', 1000), string.rep('(a', 31) .. string.rep(')', 31))", ""},
		{"return string.find('a', string.rep('(', 33))", "too many captures"},
		{"return string.find(string.rep('a', 1000), string.rep('a?', 1000))", "pattern too complex"},
	} {
		got := eval(e, &fakeHost{most: 20_000}, false, test.script)
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %.200q", test.script, got)
		}
	}
	for name, script := range map[string]string{
		"parentheses": "return " + strings.Repeat("(", deep) + "1" + strings.Repeat(")", deep),
		"tables":      "return " + strings.Repeat("{", deep) + strings.Repeat("}", deep),
		"functions":   strings.Repeat("return function() ", 13_000) + strings.Repeat("end ", 5000),
		"blocks":      strings.Repeat("do ", 30_000) + strings.Repeat("end ", 30_000),
		"not":         "return " + strings.Repeat("not ", 60_000) + "1",
		"minus":       "return " + strings.Repeat("- ", deep) + "1",
		"length":      "return " + strings.Repeat("#", deep) + "1",
		"sums":        "return 1" + strings.Repeat("+1", deep),
		"powers":      "return 1" + strings.Repeat("^1", deep),
		"concats":     "return 1" + strings.Repeat("..1", 80_000),
		"and":         "return 1" + strings.Repeat(" and 1", 40_000),
		"or":          "return a" + strings.Repeat(" or a", 40_000),
		"compare":     "return 1" + strings.Repeat("<1", deep),
		"calls":       "return f" + strings.Repeat("()", deep),
		"fields":      "return f" + strings.Repeat(".a", deep),
		"indexes":     "return f" + strings.Repeat("[1]", 80_000),
		"methods":     "return f" + strings.Repeat(":a()", 60_000),
		"strings":     "return f" + strings.Repeat("''", deep),
		"elseif":      "if a then " + strings.Repeat("elseif a then ", 15_000) + "end",
		"if":          strings.Repeat("if a then ", 15_000) + strings.Repeat("end ", 15_000),
		"for":         strings.Repeat("for i=1,1 do ", 12_000) + strings.Repeat("end ", 12_000),
		"locals":      strings.Repeat("local a ", 30_000),
		"names":       "local a" + strings.Repeat(",a", deep),
		"arguments":   "return f(1" + strings.Repeat(",1", deep) + ")",
		"targets":     "local t = {} t[t]" + strings.Repeat(",t[t]", 40_000) + " = 1",
		"values":      "return 1" + strings.Repeat(",1", deep),
		"elements":    "return {1" + strings.Repeat(",1", deep) + "}",
		"keys":        "return {" + strings.Repeat("[k]=1,", 40_000) + "}",
		"constants": "return {" + func() string {
			var b strings.Builder
			for i := range 5_000 {
				fmt.Fprintf(&b, "%d.5,", i)
			}
			return b.String()
		}() + "}",
		"labels":   strings.Repeat("goto a ", 30_000),
		"comments": strings.Repeat("--[[]]", 40_000),
		"brackets": "return [" + strings.Repeat("=", deep) + "[",
		"number":   "return " + strings.Repeat("9", deep),
		"name":     "return " + strings.Repeat("a", deep),
	} {
		start := time.Now()
		var got string
		peak := peakHeap(func() { got = eval(e, &fakeHost{most: 1000}, false, script) })
		t.Logf("%s: %v, %d MB: %.100q", name, time.Since(start).Round(time.Millisecond), peak>>20, got)
		if got := eval(e, &fakeHost{}, false, "return 1"); got != ":1\r\n" {
			t.Errorf("then: %q", got)
		}
	}
}

// The cache's memory is bounded, not only its source.
func TestMemoryOfTheCache(t *testing.T) {
	e := NewEngine()
	runtime.GC()
	before := budget.HeapBytes()
	for i := range 20 {
		text := fmt.Sprintf("local t = {} t[%d] = 1 ", i)
		text += strings.Repeat("t.a=t;", (MaxScript-len(text))/6)
		if _, err := e.Load([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	held := budget.HeapBytes() - before
	n, bytes := e.Kept()
	t.Logf("%d scripts of %d KB are kept in %d MB", n, bytes>>10, held>>20)
	if held > 64*cachedBytes {
		t.Errorf("%d MB", held>>20)
	}
	runtime.KeepAlive(e)
}

// The parts of a script are bounded, as the compiler takes much memory for some of them.
func TestChunksThatAreTooMuch(t *testing.T) {
	list := func(n int, item func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(item(i))
		}
		return b.String()
	}
	for want, text := range map[string]string{
		"chunk has too many constants":     "return {" + list(source.MaxConstants+1, func(i int) string { return fmt.Sprint(i, ",") }) + "}",
		"chunk has too many functions":     list(source.MaxFunctions+1, func(int) string { return "f(function() end)" }),
		"chunk has too many syntax levels": "return " + strings.Repeat("(", source.MaxNesting) + "-1" + strings.Repeat(")", source.MaxNesting) + strings.Repeat("+1", source.MaxNesting),
		"table has too many elements":      "return {" + strings.Repeat("1,", source.MaxFields+1) + "}",
	} {
		if _, err := NewEngine().Load([]byte(text)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, load := range []string{"loadstring(s)", "load(function() local piece = s s = nil return piece end)"} {
		for more, want := range map[string]string{"": ":1\r\n", ".. ' '": "a chunk has at most 4096 bytes"} {
			script := fmt.Sprintf("local s = 'return 1' .. string.rep(' ', %d) %s return %s()",
				sandbox.MaxChunk-len("return 1"), more, load)
			if got := eval(NewEngine(), &fakeHost{}, false, script); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", script, got, want)
			}
		}
	}
	enough := "return #{" + list(source.MaxConstants, func(i int) string { return fmt.Sprint(i, ",") }) + "}"
	if _, err := NewEngine().Load([]byte(enough)); err != nil {
		t.Error(err)
	}
}

// A script with long texts gets its ticks sooner, as each instruction may look at all of one, wherever it is from.
func TestTicksOfLongTexts(t *testing.T) {
	const long = 1 << 20
	for _, text := range []string{"KEYS[1]", "ARGV[1]", "redis.call('X')", "string.rep('x', 1048576)", "ARGV[2] .. ARGV[2]",
		"table.concat({ARGV[2], ARGV[2]})",
		"string.upper(ARGV[2] .. ARGV[2])", "string.reverse(ARGV[2] .. ARGV[2])", "string.format('%s%s', ARGV[2], ARGV[2])",
		"(string.gsub('xx', 'x', ARGV[2]))"} {
		args := []string{"", "|", "", ""}
		switch {
		case text == "KEYS[1]":
			args[0] = strings.Repeat("x", long)
		case text == "ARGV[1]":
			args[2] = strings.Repeat("x", long)
		case strings.Contains(text, "ARGV[2]"):
			args[3] = strings.Repeat("x", long/2)
		}
		host := &fakeHost{answer: replyOf(fmt.Sprintf("$%d\r\n%s\r\n", long, strings.Repeat("x", long)))}
		got := eval(NewEngine(), host, false, "local s = "+text+" for i = 1, 10000 do end return #s", args...)
		if least := 10_000 * long / budget.TickBytes; got != fmt.Sprintf(":%d\r\n", long) || host.ticks < least {
			t.Errorf("%s: %q after %d ticks, want %d", text, got, host.ticks, least)
		}
	}
	host := &fakeHost{}
	if eval(NewEngine(), host, false, "local s = string.rep('x', 10000) for i = 1, 10000 do end"); host.ticks > 10_000/budget.TickEvery+2 {
		t.Errorf("%d ticks beside a short text", host.ticks)
	}
}

// A script without the interpreter that compares long texts is the interpreter's, as that looks at the time.
func TestLongTextsAreTheInterpreters(t *testing.T) {
	const long, compared = 1 << 20, 200
	script := strings.Repeat("if KEYS[1] == ARGV[1] then return 1 end ", compared)
	host, text := &fakeHost{}, strings.Repeat("x", long)
	got := eval(NewEngine(), host, false, script, text+"a", "|", text+"b")
	if least := compared * long / budget.TickBytes; got != "$-1\r\n" || host.ticks < least {
		t.Errorf("%q after %d ticks, want %d", got, host.ticks, least)
	}
}

// A list that is longer than a script's memory is an error, with or without the interpreter.
func TestRepliesThatAreTooLong(t *testing.T) {
	const n = budget.MaxMemory / 4 / len(":1\r\n")
	host := &fakeHost{answer: replyOf(fmt.Sprintf("*%d\r\n%s", n, strings.Repeat(":1\r\n", n)))}
	for _, script := range []string{"redis.call('X') return 1", "do end redis.call('X') return 1"} {
		if got := eval(NewEngine(), host, false, script); !strings.HasPrefix(got, "-"+budget.ErrMemory.Error()) {
			t.Errorf("%s: %q", script, got)
		}
	}
}
