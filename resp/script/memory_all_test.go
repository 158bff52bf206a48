//go:build all

package script

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/resp/script/budget"
	"celld/resp/wire"
)

// A script takes no more than its bound, and what single instructions and garbage add: by whatever it asks for memory, and
// whether it catches errors or not.
func TestMemory(t *testing.T) {
	const bound = 4 * budget.MaxMemory // what is not bounded takes gigabytes here
	for i, script := range []string{
		"local t = {} for i = 1, 1e9 do t[i] = i end",
		"local t = {} for i = 1, 1e9 do t[#t + 1] = {} end",
		"local t = {} for i = 1, 1e9 do t['k' .. i] = i end",
		"local t = {} for i = 1, 1e9 do t[i] = function() return t end end",
		"local t = {} for i = 1, 1e9 do t[i] = 'a' .. i end",
		"local s = 'x' while true do s = s .. s end",
		"local s = 'x' for i = 1, 1e9 do s = s .. 'xxxxxxxxxxxxxxxx' .. i .. s end",
		"local t = {} while true do t[#t + 1] = string.rep('x', 1e6) .. #t end",
		"return string.rep('x', 1e9)",
		"return ('x'):rep(1e300)",
		"return string.rep(string.rep('x', 1e6), 1e6)",
		"local t = {} t[60000000] = 1 return #t",
		"local t = {} local i = 60000000 t[i] = 1 return #t",
		"local i, a, b = 60000000, {}, {} a[i], b[i] = 1, 1",
		"local i = 60000000 return #{[i] = 1}",
		"return #{[60000000] = 1}",
		"return #{1, 2, [6e7] = 1}",
		"local t = {} rawset(t, 60000000, 1)",
		"local t = {} table.insert(t, 60000000, 1)",
		"local t = {} for i = 1, 1e6 do t[i * 60] = i end",
		"local t, big = {}, {} for i = 1, 1e5 do big[i] = i end while true do t[#t + 1] = {unpack(big)} end",
		"local t, big = {}, {} for i = 1, 1e5 do big[i] = i end local function f(...) while true do t[#t + 1] = {...} end end f(unpack(big))",
		"local t, s = {}, string.rep('x', 1e5) while true do t[#t + 1] = {s:byte(1, -1)} end",
		"local t, s = {}, string.rep('x', 1e5) while true do t[#t + 1] = {1, 2, (s:byte(1, -1)), s:byte(1, -1)} end",
		"local t, s = {}, string.rep('x', 1e6) while true do t[#t + 1] = s:upper() end",
		"local t, s = {}, string.rep('X', 1e6) while true do t[#t + 1] = s:lower() end",
		"local t, s = {}, string.rep('X', 1e6) while true do t[#t + 1] = s:reverse() end",
		"local t, s = {}, string.rep('X', 1e6) while true do t[#t + 1] = s:gsub('', '') end",
		"local s = string.rep('X', 1e6) return s:gsub('X', s)",
		"local s = string.rep('X', 1e6) return s:gsub('.', '%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0')",
		"local s = string.rep('X', 1e6) return s:gsub('.*', string.rep('%0', 1e6))",
		"local s = string.rep('X', 1e6) return s:gsub('.', {X = s})",
		"local s = string.rep('X', 1e6) return s:gsub('.', function() return s end)",
		"local s, t = string.rep('\\0', 1e6), {} for i = 1, 150 do t[i] = s end return string.format(string.rep('%q', 150), unpack(t))",
		"local s, t = string.rep('x', 1e6), {} for i = 1, 150 do t[i] = s end return string.format(string.rep('%s', 150), unpack(t))",
		"local s, t = string.rep('x', 1e6), {} for i = 1, 1000 do t[i] = s end return table.concat(t)",
		"local t = {} for i = 1, 1e4 do t[i] = '' end return table.concat(t, string.rep('x', 1e6))",
		"return string.format('%99999999d', 1) .. string.format('%.99999999f', 1)",
		"local t = {} while true do t[#t + 1] = loadstring('return ' .. string.rep('{1,2,3},', 100) .. #t) end",
		"local t, s = {}, string.rep('t[1]=1;', 1e3) while true do t[#t + 1] = loadstring('local t = {} ' .. s .. 'return ' .. #t) end",
		"local n = 0 load(function() n = n + 1 return string.rep('x', 1e6) end)",
		"local t = {} while true do t[#t + 1] = redis.call('BIG') end",
		"local t = {} while true do t[#t + 1] = redis.pcall('MANY') end",
		"local t = {} while true do t[#t + 1] = redis.call('ECHO', string.rep('x', 1e5) .. #t) end",
		"local t = {} t[1] = t return t",
		"local t = {} for i = 1, 20 do t = {t, t, t, t, t, t, t, t} end return t",
		"local s, t = string.rep('x', 1e6), {} for i = 1, 1000 do t[i] = s end return t",
		"local s, t = string.rep('x', 1e6), {} for i = 1, 1000 do t[i] = s end return {map = t}",
		"local t = {} for i = 1, 1e9 do t[i] = redis.error_reply('a b' .. i) end",
		"local function f(...) return f(1, ...) end f()",
		"local function f() return 1 + f() end f()",
		"local f f = function(a) return (string.gsub('x', 'x', f)) end f()",
		"local t = setmetatable({}, {__index = function(t, k) return t[k .. k] end}) return t.xx",
	} {
		for form, most := range map[string]int{"%s": 20_000, "while true do pcall(function() %s end) end": 500} {
			if most == 500 && i%4 > 0 { // it does not depend on the kind
				continue
			}
			script := fmt.Sprintf(form, script)
			host := &fakeHost{most: most}
			big, many := "$1000000\r\n"+strings.Repeat("x", 1_000_000)+"\r\n", "*100000\r\n"+strings.Repeat(":1\r\n", 100_000)
			host.answer = func(args []string) string {
				switch args[0] {
				case "BIG":
					return big
				case "MANY":
					return many
				}
				return string(wire.AppendString(nil, args[1]))
			}
			e, got := NewEngine(), ""
			start := time.Now()
			peak := peakHeap(func() { got = eval(e, host, false, script) })
			t.Logf("%3d MB, %6v, %5d ticks: %.70q: %.60q", peak>>20, time.Since(start).Round(time.Millisecond), host.ticks, script, got)
			if peak > bound {
				t.Errorf("%s: %d MB", script, peak>>20)
			}
			if len(got) > budget.MaxMemory+1000 {
				t.Errorf("%s: a reply of %d bytes", script, len(got))
			}
			if got := eval(e, &fakeHost{}, false, "return 1"); got != ":1\r\n" {
				t.Errorf("then: %q", got)
			}
		}
	}
}
