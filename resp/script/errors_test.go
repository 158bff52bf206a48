package script

import (
	"strings"
	"testing"
	"time"
)

func TestErrors(t *testing.T) {
	e := NewEngine()
	host := &fakeHost{answer: replyOf("-WRONGTYPE of key\r\n")}
	for _, test := range []struct {
		script, text string
		line         int
	}{
		{"error('boom')", "ERR user_script:1: boom", 1},
		{"\n\nerror('boom')", "ERR user_script:3: boom", 3},
		{"local function f()\n error('boom')\nend\nf()", "ERR user_script:2: boom", 2},
		{"error('boom', 0)", "ERR boom", 1},
		{"\nerror({err='MY error'})", "MY error", 2},
		{"\nredis.call('X')", "WRONGTYPE of key", 2},
		{"local function f()\n redis.call('X')\nend\n\nf()", "WRONGTYPE of key", 2},
		{"\nlocal ok, e = pcall(redis.call, 'X')\nerror({err=e})", "WRONGTYPE of key", 3},
		{"local e = redis.pcall('X') error(e)", "WRONGTYPE of key", 1},
		{"\nx = 1", "ERR user_script:2: Attempt to modify a readonly table", 2},
		{"\nreturn x", "ERR user_script:2: Script attempted to access nonexistent global variable 'x'", 2},
		{"redis.call()", "ERR Please specify at least one argument for this redis lib call", 1},
		{"redis.call({})", "ERR Lua redis lib command arguments must be strings or integers", 1},
		{"redis.log(9, 'x')", "ERR Invalid debug level.", 1},
		{"redis.log(1)", "ERR redis.log() requires two arguments or more.", 1},
		{"redis.setresp(4)", "ERR RESP version must be 2 or 3.", 1},
		{"redis.setresp()", "ERR redis.setresp() requires one argument.", 1},
		{"redis.sha1hex()", "ERR wrong number of arguments", 1},
		{"assert(false)", "ERR user_script:1: assertion failed!", 1},
		{"assert(false, 'why')", "ERR user_script:1: why", 1},
	} {
		want := errorReplyOf(test.script, test.text, test.line)
		if test.line == 0 {
			want = "-" + test.text + "\r\n"
		}
		if got := eval(e, host, false, test.script); got != want {
			t.Errorf("%s:\n got %q\nwant %q", test.script, got, want)
		}
	}
	for _, script := range []string{"local t\nt[1] = 2", "local t = {}\nreturn t.a.b", "local s = 'a'\nreturn s .. {}",
		"local n\nreturn n + 1", "local f = {}\nf()", "local t = {}\nt[nil] = 1",
		"local k, t = 1\nt[k] = 2", "local a, b = {}, 1\nreturn a < b", "local k = 'x'\nreturn {[0/0]=1}", "local a\nreturn #a",
		"local t\nfor i=1,{} do end"} {
		got := eval(e, host, false, script)
		if !strings.HasPrefix(got, "-ERR user_script:2: ") || !strings.HasSuffix(got, "on @user_script:2.\r\n") {
			t.Errorf("%q: %q", script, got)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	e := NewEngine()
	for script, place := range map[string]string{
		"return (": ":1: ", "\n\nfoo bar": ":3: ", "x = = 1": ":1: ", "for": ":1: ", "return 'abc": ":1: ", "break": ":1: ",
		"return return": ":1: ", "\n local function() end": ":2: ", "--[[": ":1: ", "\x00": ":1: ", "return \xff": ":1: ",
		"return 1\nreturn 2": ":2: ", "local a <const> = 1": ":1: ",
	} {
		got := eval(e, &fakeHost{}, false, script)
		if !strings.HasPrefix(got, "-ERR Error compiling script (new function): user_script"+place) || strings.Count(got, "\n") != 1 {
			t.Errorf("%q: %q", script, got)
		}
	}
	if n, bytes := e.Kept(); n != 0 || bytes != 0 {
		t.Errorf("%d scripts of %d bytes are kept", n, bytes)
	}
}

func TestProtectedCalls(t *testing.T) {
	e := NewEngine()
	host := &fakeHost{answer: func(args []string) string {
		if args[0] == "BAD" {
			return "-WRONGTYPE of key\r\n"
		}
		return "+OK\r\n"
	}}
	for script, want := range map[string]string{
		"return {pcall(error, 'x', 0)}":                                                        "*2\r\n$-1\r\n$1\r\nx\r\n",
		"return {pcall(redis.call, 'BAD')}":                                                    "*2\r\n$-1\r\n$16\r\nWRONGTYPE of key\r\n",
		"return {pcall(function(...) return ... end, 1, 2)}":                                   "*3\r\n:1\r\n:1\r\n:2\r\n",
		"return redis.pcall('BAD')":                                                            "-WRONGTYPE of key\r\n",
		"return redis.pcall('BAD').err":                                                        "$16\r\nWRONGTYPE of key\r\n",
		"return redis.call('GOOD').ok":                                                         "$2\r\nOK\r\n",
		"local ok, v = pcall(error, {1}) return v":                                             "*1\r\n:1\r\n",
		"local ok, v = pcall(error) return tostring(v)":                                        "$3\r\nnil\r\n",
		"return {xpcall(function() error('x', 0) end, function(m) return m .. '!' end)}":       "*2\r\n$-1\r\n$2\r\nx!\r\n",
		"return {xpcall(function() return 7 end, error)}":                                      "*2\r\n:1\r\n:7\r\n",
		"return loadstring('return 5')()":                                                      ":5\r\n",
		"return loadstring('return ...')(6)":                                                   ":6\r\n",
		"local f, e = loadstring('return (') return {type(f), type(e)}":                        "*2\r\n$3\r\nnil\r\n$6\r\nstring\r\n",
		"return select(2, loadstring('x x', 'name'))":                                          "$40\r\n[string \"name\"]:1: syntax error near 'x'\r\n",
		"local n, t = 0, {'return ', '8'} return load(function() n = n + 1 return t[n] end)()": ":8\r\n",
		"return select(2, pcall(loadstring('\\n\\nerror(\"x\")')))":                            "$33\r\n[string \"\n\n...\"]:3: x\r\n",
	} {
		got := eval(e, host, false, script)
		if strings.Contains(script, "loadstring('\\n") || strings.Contains(script, "x x") {
			if !strings.HasPrefix(got, "$") || !strings.Contains(got, "]:") {
				t.Errorf("%s: %q", script, got)
			}
		} else if got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

func TestPanicInACall(t *testing.T) {
	e := NewEngine()
	for _, script := range []string{"redis.call('X')", "redis.pcall('X')", "pcall(redis.call, 'X') calm = true",
		"pcall(pcall, redis.pcall, 'X')", "xpcall(function() redis.call('X') end, function() while true do end end)",
		"while true do pcall(redis.call, 'X') end", "table.sort({3,2,1}, function() redis.call('X') end)",
		"string.gsub('aaa', 'a', function() pcall(redis.call, 'X') end) while true do end",
		"setmetatable({}, {__index = function() redis.call('X') end}).x()",
		"return tostring(setmetatable({}, {__tostring = function() redis.call('X') end}))",
		"local t = setmetatable({}, {__concat = function() redis.call('X') end}) pcall(function() return t .. t end) return 1",
		"load(function() redis.call('X') end)"} {
		host, calls := &fakeHost{}, 0
		host.answer = func([]string) string { calls++; panic("at the disco") }
		func() {
			defer func() {
				if cause := recover(); cause != "at the disco" {
					t.Errorf("%s: %v came out", script, cause)
				}
			}()
			eval(e, host, false, script)
		}()
		if calls != 1 {
			t.Errorf("%s: %d calls", script, calls)
		}
		if got := eval(e, &fakeHost{}, false, "return redis.call('ECHO', pcall and 'hi')"); got != "$2\r\nhi\r\n" {
			t.Fatalf("%s, then: %q", script, got)
		}
	}
}

// runFor is how long each of the scripts of TestTime may run.
const runFor = 100 * time.Millisecond

// A script that runs for ever, or nearly, ends at a tick, whatever errors it catches. A tick comes soon: within milliseconds,
// which on a busy machine may be seconds.
