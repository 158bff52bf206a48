//go:build all

package script

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"celld/resp/script/budget"
	"celld/resp/script/sandbox"

	lua "github.com/yuin/gopher-lua"
)

func TestTime(t *testing.T) {
	for _, script := range []string{
		"while true do end",
		"repeat until false",
		"for i = 1, 1e300 do end",
		"local function f() return f() end f()",
		"while true do pcall(error) end",
		"while true do pcall(function() while true do end end) end",
		"local function f() pcall(f) return f() end f()",
		"while true do xpcall(function() while true do end end, function() while true do end end) end",
		"xpcall(error, function() while true do end end)",
		"while true do loadstring('return 1')() end",
		"setmetatable({}, {__index = function(t, k) return t[k + 1] end})[1] = 1 local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
		"local t = setmetatable({}, {__lt = function() while true do end end}) return t < t",
		"return tostring(setmetatable({}, {__tostring = function() while true do end end}))",
		"table.sort({1,2,3}, function() while true do end end)",
		"local t = {} for i = 1, 1e5 do t[i] = i end while true do table.sort(t, function(a, b) return true end) end",
		"local t = {} for i = 1, 1e5 do t[i] = i end while true do table.sort(t, function(a, b) return pcall(error) end) end",
		"string.gsub('aaa', '', function() while true do end end)",
		"return string.find(string.rep('a', 1e5), string.rep('a?', 100) .. 'b')",
		"return string.find(string.rep('a', 1e5), '.-.-.-.-.-.-.-.-b')",
		"return string.match(string.rep('a', 1e6), '(.-)%1b')",
		"return string.gsub(string.rep('(', 1e6), '%b()', '')",
		"while true do string.find('aaa', 'a*b') end",
		"for s in string.gmatch(string.rep('a', 1e6), '.-.-.-.-b') do end",
		"while true do redis.pcall('X') end",
		"while true do redis.log(1, 'x') end",
		"table.foreach(setmetatable({1}, {}), function() while true do end end)",
		"load(function() while true do end end)",
		"local s = string.rep('x', 4e6) local a, b, t = s .. '1', s .. '2', {} for i = 1, 2e5 do t[i] = i % 2 == 0 and a or b end table.sort(t) while true do end",
		"return string.find(string.rep('b', 1e6), '[' .. string.rep('a', 4e6) .. ']') or string.rep('b', 1e6):find('[' .. string.rep('a', 4e6) .. ']+c')",
		"local s = string.rep('t={};', 600) while true do loadstring(s) end",
		"local s = string.rep('x', 6e6) while true do s:upper() end",
		"local s = string.rep('x', 3e6) while true do s:reverse() end",
		"local s = string.rep('x', 3e6) while true do local t = s .. 'x' end",
		"local s = string.rep('x', 3e6) while true do string.format('%s', s) end",
		"local s = string.rep('x', 3e6) while true do string.format('%q', s) end",
		"local s = string.rep('x', 3e6) while true do redis.sha1hex(s) end",
		"local s = string.rep('x', 3e6) while true do local n = s:find('y', 1, true) end",
		"local t = {} for i = 1, 1e5 do t[i] = 'x' end while true do table.concat(t) end",
		"local t = {} for i = 1, 1e5 do t[i] = 'x' end while true do table.insert(t, 1, 'x') table.remove(t, 1) end",
		"local t = {} for i = 1, 1e4 do t[i] = 'x' end while true do local a = {unpack(t)} end",
	} {
		t.Run("", func(t *testing.T) {
			e, longest := NewEngine(), time.Duration(0)
			start := time.Now()
			last := start
			host := &fakeHost{}
			host.onTick = func() {
				longest, last = max(longest, time.Since(last)), time.Now()
				if last.Sub(start) > runFor {
					host.most = 1
				}
			}
			got := eval(e, host, false, script)
			longest = max(longest, time.Since(last))
			if got[0] != '-' || !strings.Contains(got, errFakeEnd.Error()) && !strings.Contains(got, budget.ErrMemory.Error()) {
				t.Errorf("%s: %.200q", script, got)
			}
			if longest > 20*time.Second {
				t.Errorf("%s: %v without a tick", script, longest)
			}
			t.Logf("%s: %v, %d ticks, longest %v: %.60q", script, time.Since(start).Round(time.Millisecond), host.ticks,
				longest.Round(time.Millisecond), got)
			if got := eval(e, &fakeHost{}, false, "return 1"); got != ":1\r\n" {
				t.Errorf("then: %q", got)
			}
		})
	}
}

// A program does what it does without the rewriter.
func TestRewriterChangesNothing(t *testing.T) {
	e := NewEngine()
	for seed := range uint64(1000) {
		c := chunks{rand.New(rand.NewPCG(seed, 0))}
		var body []string
		for range 1 + c.IntN(4) {
			body = append(body, c.stmt())
		}
		body = append(body, "return "+c.expr(2)+c.pick("", ", "+c.expr(1)))
		text := fmt.Sprintf(tracing, strings.Join(body, "\n"))
		L := lua.NewState(lua.Options{RegistryMaxSize: sandbox.MaxRegistry})
		want := byItself(t, L, text)
		L.Close()
		if got := eval(e, &fakeHost{}, false, text); got != fmt.Sprintf("$%d\r\n%s\r\n", len(want), want) {
			t.Fatalf("seed %d:\n%s\n got %s\nwant %s", seed, strings.Join(body, "\n"), got, want)
		}
	}
}

// gopher-lua breaks on what takes all of its stack by arguments. The next script does not notice.
func TestABrokenInterpreter(t *testing.T) {
	e := NewEngine()
	got := eval(e, &fakeHost{most: 20_000}, false, "local function f(...) return f(1, ...) end f()")
	if !strings.Contains(got, "overflow") {
		t.Errorf("%q", got)
	}
	if got := eval(e, &fakeHost{}, false, "return 1"); got != ":1\r\n" {
		t.Errorf("then: %q", got)
	}
}
