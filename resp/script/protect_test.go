package script

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"celld/resp/script/budget"
	"celld/resp/script/source"

	lua "github.com/yuin/gopher-lua"
)

// An error costs no more after many tail calls than after ten, whatever raises it and whatever catches it.
func TestErrorsAfterTailCalls(t *testing.T) {
	cost := func(calls int, end string) int {
		host := &fakeHost{}
		host.answer = func(args []string) string {
			if args[0] == "BEGIN" {
				host.most = host.ticks + 5
			}
			return "-ERR no\r\n"
		}
		const calling = "local g local function f(n) if n > 0 then return f(n - 1) end return g() end "
		script := fmt.Sprintf(calling+"g = function() %s end return f(%d)", end, calls)
		e := NewEngine()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		eval(e, host, false, script)
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	const many = 50_000
	plain := cost(many, "") - cost(10, "")
	for _, end := range []string{
		"error('x')", "error('x', 2)", "error({})", "error()", "local t return t.x", "return {} .. 1", "return {} < {}",
		"return nil + 1", "local n n()", "string.rep()",
		"redis.call('X')", "assert(false)", "return x", "x = 1", "return unpack({}, 1, 1e9)",
		"for i = 1, 100 do pcall(error, 'x') end", "for i = 1, 100 do pcall(function() error('x') end) end",
		"for i = 1, 100 do pcall(redis.call, 'X') end",
		"for i = 1, 100 do local n pcall(function() n() end) end", "for i = 1, 100 do xpcall(error, error) end",
		"for i = 1, 100 do local n xpcall(function() n() end, function() n() end) end",
		"return pcall(error)", "return xpcall(error, error)", "table.sort({2, 1}, error)", "string.gsub('x', 'x', error)",
		"table.foreach({1}, error)", "load(error)",
		"return tostring(setmetatable({}, {__tostring = error}))", "return setmetatable({}, {__index = error}).x",
		"setmetatable({}, {__newindex = error}).x = 1",
		"local function deep() return 1 + deep() end deep()", "local function deep() pcall(deep) end deep()",
		"local function deep() xpcall(deep, deep) end deep()",
		"local function wide(...) return wide(1, ...) end wide(unpack({}, 1, 65000))",
		"redis.pcall('BEGIN') while true do end", "redis.pcall('BEGIN') while true do pcall(error) end",
		"redis.pcall('BEGIN') while true do xpcall(error, error) end",
	} {
		if extra := cost(many, end) - cost(10, end) - plain; extra > 256<<10 {
			t.Errorf("%s: %d KB more after %d tail calls", end, extra>>10, many)
		}
	}
}

// A level of error is a calling function. One that a tail call has replaced has no place, nor has one of the library.
func TestPlacesOfErrors(t *testing.T) {
	e := NewEngine()
	for _, test := range []struct{ script, want string }{
		{"return select(2, pcall(error, 'x'))", "x"},
		{"return select(2, pcall(error, 'x', 2))", "user_script:1: x"},
		{"return select(2, pcall(error, 'x', 3))", "x"},
		{"local function g() error('x', 2) end\nlocal function f() g() return 1 end return select(2, pcall(f))", "user_script:2: x"},
		{"local function g() error('x', 3) end local function f() g() return 1 end return select(2, pcall(f))", "x"},
		{"local function g() error('x', 4) end local function f() g() return 1 end\nreturn select(2, pcall(f))", "user_script:2: x"},
		{"local function g() error('x', 2) end local function f() return g() end return select(2, pcall(f))", "x"},
		{"local function g() error('x', 2) end return select(2, pcall(g))", "x"},
		{"local function g() return error('x') end return select(2, pcall(g))", "user_script:1: x"},
		{"return select(2, pcall(error, 'x', 0))", "x"},
		{"return string.match(select(2, pcall(nil)), 'attempt to call')", "attempt to call"},
		{"return string.match(select(2, xpcall(nil, function(m) return m .. '!' end)), 'attempt to call.*!')", "attempt to call a non-function object!"},
		{"return select(2, xpcall(function() error('x', 0) end, function() error('y', 0) end))", "error in error handling"},
		{"return select(2, xpcall(function() error('x', 0) end, nil))", "error in error handling"},
		{"return select(2, xpcall(error, function(m) return type(m) end))", "nil"},
		{"local function f() return 1 + f() end return string.match(select(2, pcall(f)), 'stack overflow')", "stack overflow"},
		{"local function f(...) return f(1, ...) end return string.match(select(2, pcall(f, unpack({}, 1, 60000))), 'overflow')", "overflow"},
		{"local n = 0 local function f() n = n + 1 pcall(f) end f() return tostring(n >= 100)", "true"},
	} {
		if got := eval(e, &fakeHost{}, false, test.script); got != fmt.Sprintf("$%d\r\n%s\r\n", len(test.want), test.want) {
			t.Errorf("%s: %q, want %q", test.script, got, test.want)
		}
	}
	for script, text := range map[string]string{
		"error('x', 2)": "ERR x", "error('x', 9)": "ERR x",
		"local function g() error('x', 2) end return g()":                                                 "ERR x",
		"local function g() return error('x') end return g()":                                             "ERR user_script:1: x",
		"local function f(n) if n == 0 then error('x') end return f(n - 1) end return f(1000)":            "ERR user_script:1: x",
		"local function f(n) if n == 0 then error({err = 'MY x'}) end return f(n - 1) end return f(1000)": "MY x",
		"local function f(n) if n == 0 then error('x', 500) end return f(n - 1) end return f(1000)":       "ERR x",
	} {
		if got, want := eval(e, &fakeHost{}, false, script), errorReplyOf(script, text, 1); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// No global has the functions that the rewriter calls, and a text that is such a name is a text.
func TestHiddenFunctions(t *testing.T) {
	e := NewEngine()
	for _, name := range []string{source.ConcatName, source.SetName, source.FillName, source.ListName, source.NumberName} {
		for _, script := range []string{
			"return tostring(rawget(_G, '%s'))", "local k, t = 'a', {} t[k] = '%s' .. '' return tostring(rawget(_G, t[k]))",
		} {
			if got := eval(e, &fakeHost{}, false, fmt.Sprintf(script, name)); got != "$3\r\nnil\r\n" {
				t.Errorf("%s: %q", fmt.Sprintf(script, name), got)
			}
		}
	}
}

// The list of a table has no nils at its end, as #t looks for the last element from there.
func TestNoNilsAtTheEnd(t *testing.T) {
	e := NewEngine()
	for script, want := range map[string]int{
		"for i = 1, n do t[i] = i end for i = n, 1, -1 do t[i] = nil end":                        0,
		"for i = 1, n do t[i] = i end for i = 1, n do t[i] = nil end":                            0,
		"for i = 1, n do t[i] = i end for i = 1, n do rawset(t, i, nil) end":                     0,
		"for i = 1, n do t[i] = i end for i = 10, n do t[i] = nil end":                           9,
		"for i = 1, n do t[i] = i end for i = 10, n - 1 do t[i] = nil end table.remove(t)":       9,
		"for i = 1, n do t[i] = i end for i = 10, n - 1 do t[i] = nil end table.remove(t, n)":    9,
		"for i = 1, n do t[i] = i end for i = 1, n do table.remove(t, 1) end":                    0,
		"for i = 1, n do t[i] = nil end":                                                         0,
		"for i = 1, n do rawset(t, i, nil) end":                                                  0,
		"for i = 1, n do table.insert(t, i, nil) end":                                            0,
		"for i = 1, n do table.insert(t, 1, nil) end":                                            0,
		"for i = 1, n do table.insert(t, nil) end":                                               0,
		"t[1] = 1 for i = 1, n do table.insert(t, 1, nil) end":                                   1001,
		"setmetatable(t, {}) for i = 1, n do t[i] = nil end":                                     0,
		"setmetatable(t, {__newindex = t}) for i = 1, n do pcall(function() t[i] = nil end) end": 0,
		"local u = setmetatable({}, {__newindex = t}) for i = 1, n do u[i] = nil end":            0,
		"t = {unpack({}, 1, n)}":                                                                 0,
		"t = {1, unpack({}, 1, n)}":                                                              1,
		"t = {[n] = 1, unpack({}, 1, n)} t[n] = nil":                                             0,
		"t[n] = 1 t[n] = nil":                                                                    0,
		"t[n] = 1 table.sort(t, function(a, b) return a == 1 and b ~= 1 end)":                    1,
		"t[1], t[n] = 1, 2": 1000,
		"t[1] = 1 local k = 0/1 t[k] = nil t[-1] = nil t[1.5] = nil t[1e300] = nil t[2^53] = nil": 1,
		"redis.setresp(3) t = redis.call('NULLS')":                                                0,
	} {
		host := &fakeHost{answer: replyOf("*100\r\n" + strings.Repeat("_\r\n", 100))}
		script := "local t, n = {}, 1000 " + script + " return t"
		s, err := e.Load([]byte(script))
		if err != nil {
			t.Fatal(err)
		}
		e.Run(s, host, nil, nil)
		list, ok := e.box.L.Get(-1).(*lua.LTable)
		if !ok {
			t.Fatalf("%s: %v", script, e.failure)
		}
		elements := list.Len()
		list.Insert(1, lua.LTrue)
		if elements != want || list.Remove(-1) == lua.LNil {
			t.Errorf("%s: %d elements, or nils behind them", script, elements)
		}
		e.AppendReply(nil, false)
	}
}

// The texts that a command, the log or a table behind __newindex gets count before they are copied.
func TestMemoryOfArguments(t *testing.T) {
	for _, script := range []string{
		"local s, t = string.rep('x', 4e6), {} for i = 1, 1000 do t[i] = s end redis.call('ECHO', unpack(t))",
		"local s, t = string.rep('x', 4e6), {} for i = 1, 1000 do t[i] = s end redis.pcall('ECHO', unpack(t))",
		"local s, t = string.rep('x', 4e6), {} for i = 1, 1000 do t[i] = s end redis.log(3, unpack(t))",
		"local u, i = {}, 6e7 local t = setmetatable({}, {__newindex = u}) t[i] = 1",
		"local u, i = {}, 6e7 local t = setmetatable({}, {__newindex = setmetatable({}, {__newindex = u})}) t[i] = 1",
		"redis.call('MANY')",
		"string.format(string.rep('%99.99f', 60000), unpack((function() local t = {} for i = 1, 60000 do t[i] = 1e300 end return t end)()))",
	} {
		host := &fakeHost{answer: replyOf("*1000000\r\n" + strings.Repeat("*0\r\n", 1_000_000))}
		var got string
		peak := peakHeap(func() { got = eval(NewEngine(), host, false, script) })
		if !strings.HasPrefix(got, "-"+budget.ErrMemory.Error()) {
			t.Errorf("%s: %.100q", script, got)
		}
		if peak > 4*budget.MaxMemory {
			t.Errorf("%s: %d MB", script, peak>>20)
		}
	}
}

// Where instructions take long, the next ticks come sooner, and later again once they are quick.
func TestPace(t *testing.T) {
	var now, cost int64
	host := &fakeHost{}
	host.nowNS = func() int64 { now += cost; return now }
	quick := func() int {
		host.ticks = 0
		eval(NewEngine(), host, false, "for i = 1, 100000 do end")
		return host.ticks
	}
	normal := quick()
	cost = 10 * 1_000_000
	if slow := quick(); slow < 100*normal {
		t.Errorf("%d ticks, %d of quick instructions", slow, normal)
	}
	host.onTick = func() {
		if host.ticks > 20 {
			cost = 0
		}
	}
	if again := quick(); again < normal+20 || again > 2*normal+50 {
		t.Errorf("%d ticks, %d of quick instructions", again, normal)
	}
}

// Functions of the library that call functions of the library tick, though no instruction runs.
func TestTicksWithoutInstructions(t *testing.T) {
	const filled = "local t = {} for i = 1, 50000 do t[i] = i end "
	without := &fakeHost{}
	eval(NewEngine(), without, false, filled)
	for _, call := range []string{
		"table.sort(t, rawequal)", "table.foreach(t, redis.debug)", "table.foreachi(t, redis.debug)",
		"string.format(string.rep('%d', 50000), unpack(t))",
	} {
		host := &fakeHost{}
		if eval(NewEngine(), host, false, filled+call); host.ticks < without.ticks+50_000/budget.TickEvery {
			t.Errorf("%s: %d ticks, %d without", call, host.ticks, without.ticks)
		}
	}
}

// As in Lua, a function uses at most 60 variables of others: gopher-lua searches all open ones for each.
func TestTooManyUpvalues(t *testing.T) {
	var names []string
	for i := range source.MaxUpvalues + 1 {
		names = append(names, fmt.Sprint("v", i))
	}
	script := func(n int) string {
		list := strings.Join(names[:n], ", ")
		return "local " + list + "\nreturn #{(function() return " + list + " end)()}"
	}
	if got := eval(NewEngine(), &fakeHost{}, false, script(source.MaxUpvalues)); got != ":0\r\n" {
		t.Error(got)
	}
	want := "-ERR Error compiling script (new function): user_script:2: function at line 2 has more than 60 upvalues\r\n"
	if got := eval(NewEngine(), &fakeHost{}, false, script(source.MaxUpvalues+1)); got != want {
		t.Error(got)
	}
}
