package script

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/script/budget"
)

// The fields of the table redis, and what its functions return or raise.
func TestRedisLibrary(t *testing.T) {
	const tooFew, level = "ERR redis.log() requires two arguments or more.", "ERR Invalid debug level."
	const one, flags = "ERR redis.set_repl() requires one argument.",
		"ERR Invalid replication flags. Please use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE."
	const version, versions = "ERR RESP version must be 2 or 3.", "ERR redis.setresp() requires one argument."
	e := NewEngine()
	for call, want := range map[string]string{
		"replicate_commands()":      "true true",
		"breakpoint()":              "true false",
		"debug('x')":                "true",
		"set_repl(0)":               "true",
		"set_repl(3)":               "true",
		"set_repl(-1)":              "false " + flags,
		"set_repl(4)":               "false " + flags,
		"set_repl('1')":             "false " + flags,
		"set_repl(nil)":             "false " + flags,
		"set_repl()":                "false " + one,
		"set_repl(1, 2)":            "false " + one,
		"log()":                     "false " + tooFew,
		"log(1)":                    "false " + tooFew,
		"log('x', 'y')":             "false ERR First argument must be a number (log level).",
		"log(-1, 'x')":              "false " + level,
		"log(4, 'x')":               "false " + level,
		"log(0, 'x')":               "true",
		"log(3, 'x', {})":           "true",
		"setresp()":                 "false " + versions,
		"setresp(2, 3)":             "false " + versions,
		"setresp(1)":                "false " + version,
		"setresp(4)":                "false " + version,
		"setresp('x')":              "false " + version,
		"setresp(2)":                "true",
		"setresp('3')":              "true",
		"sha1hex()":                 "false ERR wrong number of arguments",
		"sha1hex('a', 'b')":         "false ERR wrong number of arguments",
		"sha1hex('')":               "true da39a3ee5e6b4b0d3255bfef95601890afd80709",
		"sha1hex({})":               "false user_script:1: bad argument #1 to sha1hex (string expected, got table)",
		"error_reply('a')":          "true {err=ERR a}",
		"error_reply('-a b\\r\\n')": "true {err=a b}",
		"error_reply('--a b')":      "true {err=-a b}",
		"error_reply('a b')":        "true {err=a b}",
		"error_reply(5)":            "true {err=ERR wrong number or type of arguments}",
		"error_reply('a', 'b')":     "true {err=ERR wrong number or type of arguments}",
		"status_reply('a b')":       "true {ok=a b}",
		"status_reply()":            "true {err=ERR wrong number or type of arguments}",
		"pcall()":                   "true {err=ERR Please specify at least one argument for this redis lib call}",
		"pcall('a', {})":            "true {err=ERR Lua redis lib command arguments must be strings or integers}",
		"call()":                    "false ERR Please specify at least one argument for this redis lib call",
		"call('a', 'b')":            "true b",
		"call('a', 1.5)":            "true 1.5",
	} {
		script := `local function show(v) if type(v) ~= 'table' then return tostring(v) end local k, x = next(v) return '{' .. k .. '=' .. x .. '}' end
		local r = {pcall(function() return redis.` + call + ` end)} for i = 1, #r do r[i] = show(r[i]) end return table.concat(r, ' ')`
		want = strings.ReplaceAll(want, "user_script:1:", "user_script:2:")
		if got := eval(e, &fakeHost{}, false, script); got != fmt.Sprintf("$%d\r\n%s\r\n", len(want), want) {
			t.Errorf("redis.%s: %q, want %q", call, got, want)
		}
	}
}

// redis.log writes texts and numbers, with a blank between two.
func TestLogOfManyArguments(t *testing.T) {
	host := &fakeHost{}
	eval(NewEngine(), host, false, "redis.log('2', 'a', 'b') redis.log(1.9, 0.5) redis.log(0, nil, 'x', true, 'y')")
	if got := fmt.Sprintf("%q", host.log); got != `["2 a b" "1 0.5" "0  x y"]` {
		t.Error(got)
	}
}

// An engine keeps scripts that compile, and knows why the last others do not.
func TestKnows(t *testing.T) {
	e := NewEngine()
	good, faulty := "return 1", "return ("
	knows := func(want, wantFaulty bool) {
		t.Helper()
		if e.Knows([]byte(good)) != want || e.Has(SHA1([]byte(good))) != want || e.Knows([]byte(faulty)) != wantFaulty ||
			e.Has(SHA1([]byte(faulty))) {
			t.Errorf("knows the script: %v, the faulty one: %v", e.Knows([]byte(good)), e.Knows([]byte(faulty)))
		}
		n, bytes := e.Kept()
		if size := perScript + perByte*len(good); want != (n == 1 && bytes == size) || !want && (n != 0 || bytes != 0) {
			t.Errorf("%d scripts of %d bytes are kept", n, bytes)
		}
	}
	knows(false, false)
	s, err := e.Load([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	knows(true, false)
	_, why := e.Load([]byte(faulty))
	knows(true, true)
	for range 2 { // from the text, and from what is known of it
		if s, err := e.Load([]byte(faulty)); s != nil || err == nil || err.Error() != why.Error() {
			t.Errorf("%v, %v, want %v", s, err, why)
		}
	}
	if again, err := e.Keep(Compile([]byte(good))); again != s || err != nil {
		t.Errorf("kept twice: %v", err)
	}
	knows(true, true)
	for i := range mostFaulty {
		e.Load(fmt.Appendf(nil, "return (%d", i))
	}
	knows(true, false)
	e.Load([]byte(faulty))
	e.Flush()
	knows(false, false)
	for _, sha := range []string{"", "e0", s.SHA + "0"} {
		if _, ok := e.Get(sha); ok {
			t.Errorf("%q is a script", sha)
		}
	}
	e.Load([]byte("return function() return function() end end"))
	if _, bytes := e.Kept(); bytes != perScript+43*perByte+2*perFunction {
		t.Errorf("two functions are %d bytes", bytes)
	}
	var names []string
	for i := range 61 {
		names = append(names, fmt.Sprint("a", i))
	}
	upvalues := "local " + strings.Join(names, ",") + "\nreturn function() return " + strings.Join(names, ",") + " end"
	for range 2 {
		s, err := e.Load([]byte(upvalues))
		want := "ERR Error compiling script (new function): user_script:2: function at line 2 has more than 60 upvalues"
		if s != nil || err == nil || err.Error() != want {
			t.Errorf("61 upvalues: %v", err)
		}
	}
	if !e.Knows([]byte(upvalues)) {
		t.Error("a script with 61 upvalues is compiled again")
	}
}

// An error that a command has answered is passed on, unless the script makes it anew.
func TestPassedOn(t *testing.T) {
	e := NewEngine()
	for script, want := range map[string]bool{
		"return redis.call('X')": true, "return redis.pcall('X')": true, "error(redis.pcall('X'))": true,
		"return {redis.pcall('X')}": false, "return 1": false, "return {err = redis.pcall('X').err}": false,
		"return redis.error_reply('a')": false, "redis.pcall('X') error('y')": false, "return pcall(redis.call, 'X')": false,
		"redis.pcall('X')": false, "return {map = {a = redis.pcall('X')}}": false, "pcall(redis.call, 'X') return redis.pcall('X')": true,
	} {
		for range 2 {
			eval(e, &fakeHost{answer: replyOf("-ERR x\r\n")}, false, script)
			if e.PassedOn() != want {
				t.Errorf("%s: %v", script, e.PassedOn())
			}
		}
	}
	eval(e, &fakeHost{answer: replyOf("-ERR x\r\n"), most: 1}, false, "local e = redis.pcall('X') while true do pcall(error, e) end")
	if e.PassedOn() {
		t.Error("the end of a script is an error of a command")
	}
}

// Errors of other kinds than texts, and their lines.
func TestErrorsThatAreNoTexts(t *testing.T) {
	e := NewEngine()
	for _, test := range []struct {
		script, text string
		line         int
	}{
		{"\nerror({})", "ERR unknown error", 2}, {"\n\nerror({err = 5})", "ERR unknown error", 3},
		{"error({err = 'MY e', line = 7})", "MY e", 7}, {"\nerror({err = 'MY e', line = 'x'})", "MY e", 2},
		{"error({err = 'MY e', line = 0})", "MY e", 0}, {"\nerror()", "ERR nil", 2}, {"\nerror(true)", "ERR true", 2},
		{"\nerror(5, 0)", "ERR 5", 2}, {"\nerror('user_script:9: x', 0)", "ERR user_script:9: x", 9},
		{"\nerror('user_script:x: y', 0)", "ERR user_script:x: y", 2}, {"error('user_script:', 0)", "ERR user_script:", 1},
		{"\nerror('other:9: x', 0)", "ERR other:9: x", 2}, {"error('a\\r\\nb', 0)", "ERR a  b", 1},
	} {
		want := errorReplyOf(test.script, test.text, test.line)
		if test.line == 0 {
			want = "-" + test.text + "\r\n"
		}
		if got := eval(e, &fakeHost{}, false, test.script); got != want {
			t.Errorf("%q:\n got %q\nwant %q", test.script, got, want)
		}
	}
}

// A reply may be as long as the host allows, and as deep as maxReplyDeep.
func TestLimitsOfReplies(t *testing.T) {
	const list = "local t = {} for i = 1, 100 do t[i] = '12345678' end return t" // of 6+100*14 bytes
	tooLong := "-" + budget.ErrMemory.Error() + "\r\n"
	e := NewEngine()
	for limit, fits := range map[int]bool{0: true, 2000: true, 6 + 99*14: true, 6 + 99*14 - 1: false, 700: false, 5: false, 1: false} {
		got := eval(e, &fakeHost{limit: limit}, false, list)
		if fits != strings.HasPrefix(got, "*100\r\n$8\r\n") || !fits && got != tooLong {
			t.Errorf("limit %d: %.30q", limit, got)
		}
	}
	s, _ := e.Load([]byte(list))
	e.Run(s, &fakeHost{limit: 700}, nil, nil)
	if got := string(e.AppendReply([]byte("+before\r\n"), false)); got != "+before\r\n"+tooLong {
		t.Errorf("after another reply: %q", got)
	}
	e.Run(s, &fakeHost{limit: 6 + 99*14}, nil, nil)
	if got := string(e.AppendReply([]byte("+before\r\n"), false)); len(got) != 9+6+100*14 {
		t.Errorf("after another reply: %d bytes", len(got))
	}
	for depth, want := range map[int]string{maxReplyDeep: "*0\r\n", maxReplyDeep + 1: "-ERR reached lua stack limit\r\n"} {
		got := eval(e, &fakeHost{}, false, fmt.Sprintf("local t = {} for i = 1, %d do t = {t} end return t", depth-1))
		if got != strings.Repeat("*1\r\n", min(depth-1, maxReplyDeep))+want {
			t.Errorf("%d deep: %d bytes, … %q", depth, len(got), got[max(0, len(got)-40):])
		}
	}
}

// Many and long arguments of a call arrive, and those of the next, too.
func TestCallsWithMuch(t *testing.T) {
	host := &fakeHost{answer: func(args []string) string { return fmt.Sprintf(":%d\r\n", len(strings.Join(args, ","))) }}
	script := `local t = {} for i = 1, 2000 do t[i] = i end
	return {redis.call('A', unpack(t)), redis.call('B', 'x'), redis.call('C', string.rep('y', 100000)), redis.call('D', 'z', 1), redis.call(unpack(t, 1, 17))}`
	if got := eval(NewEngine(), host, false, script); got != "*5\r\n:8894\r\n:3\r\n:100002\r\n:5\r\n:41\r\n" {
		t.Errorf("%q", got)
	}
	if got := host.calls[1] + " " + host.calls[3]; got != "B x D z 1" {
		t.Errorf("calls %q", got)
	}
}

// A long key or argument makes ticks come sooner.
func TestTicksOfLongArguments(t *testing.T) {
	e := NewEngine()
	const loop = "local n = 0 for i = 1, 10000 do n = n + i end return n"
	ticks := func(key, arg int) int {
		host := &fakeHost{}
		eval(e, host, false, loop, strings.Repeat("k", key), "|", strings.Repeat("a", arg), "b")
		return host.ticks
	}
	short := ticks(1, 1)
	for _, long := range []int{ticks(64<<10, 1), ticks(1, 64<<10)} {
		if long < 4*short-4 || long > 4*short+4 {
			t.Errorf("%d ticks with 64 KB, %d without", long, short)
		}
	}
}

// A script that only just fits compiles.
func TestLongestScript(t *testing.T) {
	e := NewEngine()
	if got := eval(e, &fakeHost{}, false, "return 1"+strings.Repeat(" ", MaxScript-8)); got != ":1\r\n" {
		t.Errorf("%q", got)
	}
	got := eval(e, &fakeHost{}, false, "return 1"+strings.Repeat(" ", MaxScript-7))
	if !strings.HasPrefix(got, "-ERR Error compiling script (new function): user_script:1: the script has more than 65536 bytes") {
		t.Errorf("%q", got)
	}
}
