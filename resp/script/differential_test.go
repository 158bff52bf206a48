package script

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"celld/resp/script/sandbox"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// The outcome of a chunk of these tests is a text: what it returned, or the kind of its failure.
const tracing = `local trace = {}
local function tostring(v) if type(v) == 'table' or type(v) == 'function' then return type(v) end return _G.tostring(v) end
local function f(...) trace[#trace + 1] = 'f' for i = 1, select('#', ...) do trace[#trace + 1] = tostring((select(i, ...))) end return ... end
local function g(x) trace[#trace + 1] = 'g' .. tostring(x) return x, x, x end
local meta = {__concat = function(a, b) trace[#trace + 1] = '..' return 'm' end,
  __newindex = function(t, k, v) trace[#trace + 1] = 'new' .. tostring(k) .. tostring(v) rawset(t, k, v) end}
local m = setmetatable({}, meta)
local t, u, a, b, i, j, k = {1, 2, 3}, {}, 'x', 7, 1, 2, 'key'
local function show(v, depth)
  if type(v) ~= 'table' then return type(v) == 'function' and 'function' or tostring(v) end
  if depth > 4 then return '...' end
  local parts, names = {}, {}
  for key in pairs(v) do names[#names + 1] = key end
  table.sort(names, function(x, y) return type(x) .. tostring(x) < type(y) .. tostring(y) end)
  for _, key in ipairs(names) do parts[#parts + 1] = tostring(key) .. '=' .. show(v[key], depth + 1) end
  return '{' .. table.concat(parts, ',') .. '}'
end
local function run(...)
%s
end
local r = {pcall(run, 11, 12, 13)}
if not r[1] then r[2] = 'error' end
return table.concat(trace, ' ') .. show(r, 0) .. show(t, 0) .. show(u, 0) .. show(m, 0) .. show({a, b, i, j, k}, 0)`

// chunks writes programs of what the rewriter changes.
type chunks struct{ *rand.Rand }

func (c chunks) pick(from ...string) string { return from[c.IntN(len(from))] }

func (c chunks) expr(depth int) string {
	if depth == 0 {
		return c.pick("a", "b", "i", "j", "k", "1", "2", "'s'", "nil", "true", "t", "m", "t[1]", "...")
	}
	x := func() string { return c.expr(depth - 1) }
	switch c.IntN(11) {
	case 0, 1:
		return x() + " .. " + x() + c.pick("", " .. "+x())
	case 2:
		return "(" + x() + ")"
	case 3:
		return "f(" + x() + c.pick("", ", "+x(), ", g("+x()+")") + ")"
	case 4:
		return "g(" + x() + ")"
	case 5, 6:
		return c.table(depth)
	case 7:
		return c.pick("t", "u", "m") + "[" + x() + "]"
	case 8:
		return x() + c.pick(" == ", " and ", " or ") + x()
	case 9:
		return "(function(...) return " + x() + c.pick("", ", "+x(), ", ...") + " end)(" + x() + ")"
	}
	return "#" + c.pick("t", "'abc'", "{"+x()+"}")
}

// table writes elements and keys in any order. Some keys are an element's place. It writes none where gopher-lua's own tables are wrong:
// behind 50 elements, and many values as a key's (parentheses make them one).
func (c chunks) table(depth int) string {
	var fields []string
	for n := range c.IntN(6) {
		switch form := c.pick("", "", "[k .. %d] = %s", "[i + 1%d] = %s", "x%d = %s", "[%d99] = %s", "[%d] = %s", "[#t - %d] = %s"); form {
		case "":
			fields = append(fields, c.expr(depth-1))
		default:
			fields = append(fields, fmt.Sprintf(form, n, "("+c.expr(depth-1)+")"))
		}
	}
	if c.IntN(3) == 0 {
		fields = append(fields, c.pick("...", "g(i)"))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (c chunks) target() string {
	return c.pick("a", "b", "i", "t[i]", "t[j]", "t[1]", "t.x", "u[k]", "m[k]", "m.y", "t[f("+c.expr(0)+")]", "u[a .. b]", "t[#t + 1]",
		"f(u)[k]", "t['z']")
}

func (c chunks) stmt() string {
	var targets, values []string
	for range 1 + c.IntN(3) {
		targets = append(targets, c.target())
	}
	for range 1 + c.IntN(3) {
		values = append(values, c.expr(c.IntN(3)))
	}
	switch c.IntN(5) {
	case 0:
		return "local v = " + values[0] + " u.v = v"
	case 1:
		return "for n = 1, 2 do t[n], u[n] = " + values[0] + " end"
	}
	return strings.Join(targets, ", ") + " = " + strings.Join(values, ", ")
}

// byItself runs a chunk as gopher-lua does by itself.
func byItself(t testing.TB, L *lua.LState, text string) string {
	chunk, err := parse.Parse(strings.NewReader(text), "x")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	proto, err := lua.Compile(chunk, "x")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	L.SetTop(0)
	L.Push(L.NewFunctionFromProto(proto))
	if err := L.PCall(0, 1, nil); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return L.Get(-1).String()
}

// Cases that the program above leaves out.
func TestRewriter(t *testing.T) {
	e := NewEngine()
	for script, want := range map[string]string{
		"local function f() return 1, 2, 3 end local k = 'k' return #{f(), [k] = 1}":     ":1\r\n",
		"local function f() return 1, 2, 3 end local k = 'k' return #{[k] = 1, f()}":     ":3\r\n",
		"local function f() return 1, 2, 3 end local k = 'k' return #{[k] = f(), (f())}": ":1\r\n",
		"return #{...}": ":0\r\n",
		"local function f(...) return {1, x = ...} end return f(5)":     "*1\r\n:1\r\n",
		"local function f(...) return {1, [99] = ...} end return f(5)":  "*1\r\n:1\r\n",
		"local function f() return 1, 2 end return {1, x = f()}":        "*1\r\n:1\r\n",
		"local t, k = {}, 1 t[k], t[k] = 'a', 'b' return t[1]":          "$1\r\na\r\n", // as in Lua, the last is set first
		"local t, i, j = {1, 2}, 1, 2 t[i], t[j] = t[j], t[i] return t": "*2\r\n:2\r\n:1\r\n",
		"local i, t = 1, {} i, t[i] = i + 1, 20 return {i, t[1]}":       "*2\r\n:2\r\n:20\r\n",
		"local t = {" + func() (s string) {
			for i := range 300 {
				s += fmt.Sprintf("[%d]=%d,", 1000+i, i)
			}
			return s
		}() + "} return t[1299]": ":299\r\n",
		"return {[-1] = 1, [0] = 2, [1.5] = 3, [1] = 4}":                                      "*1\r\n:4\r\n",
		"local k = 1 return {'a', [k] = 'b'}":                                                 "*1\r\n$1\r\na\r\n",
		"local k = 1 return {[k] = 'b', 'a'}":                                                 "*1\r\n$1\r\na\r\n",
		"local k = 1 return {[k] = 'b', unpack({'a', 'c'})}":                                  "*2\r\n$1\r\na\r\n$1\r\nc\r\n",
		"local k = 2 return {[k] = 'b', 'a', nil}":                                            "*1\r\n$1\r\na\r\n",
		"local k = 1 return ({" + strings.Repeat("0,", 49) + "[k] = 1, 0})[1]":                ":0\r\n",
		"local k = 1 return ({" + strings.Repeat("0,", 50) + "[k] = 1, 0})[1]":                ":1\r\n",
		"return #{" + strings.Repeat("0,", 50) + "x = tostring(5)}":                           ":50\r\n",
		"return #{" + strings.Repeat("0,", 100) + "x = tostring(5), y = 1, 0}":                ":101\r\n",
		"return #{" + strings.Repeat("0,", 50) + "unpack({1, 2, 3})}":                         ":53\r\n",
		"local k = 'k' return #{[k] = 1, " + strings.Repeat("0,", 150) + "unpack({1, 2, 3})}": ":153\r\n",
		"local s = '' local function f(x) s = s .. x return x end local t = {f('1'), [f('2')] = f('3'), f('4'), [f('5')] = f('6'), f('7')} return s .. #t": "$8\r\n12345673\r\n",
		"local k = 'k' return #{[k] = 1, unpack({}, 1, 60000)}": ":0\r\n",
	} {
		if got := eval(e, &fakeHost{}, false, script); got != want {
			t.Errorf("%.100s: %q, want %q", script, got, want)
		}
	}
}

// The line is where a function has too many local variables, also in the main one.
func TestTooManyLocals(t *testing.T) {
	e := NewEngine()
	for form, lines := range map[string]int{
		"%s":                                            201,
		"do local a, b = 1, 2 end %s":                   201,
		"local a, b\n\n%s":                              201,
		"for i = 1, 2 do\n%s end":                       201,
		"for k, v in pairs({}) do\n%s end":              200,
		"local function f(a, b)\n%s end":                200,
		"function redis.f(a, b)\n%s end":                200,
		"local a local f = function()\n%s end return f": 202,
	} {
		text := fmt.Sprintf(form, strings.Repeat("local x = 1\n", 250))
		got, want := eval(e, &fakeHost{}, false, text), fmt.Sprintf("user_script:%d: too many local variables\r\n", lines)
		if !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", form, got, want)
		}
	}
}

// patternScript shows all that functions make of a pattern.
const patternScript = `local s, p, r = %q, %q, %q
local function all(...) local t = {} for i = 1, select('#', ...) do t[i] = tostring((select(i, ...))) end return table.concat(t, '|') end
local function try(f, ...) local t = {pcall(f, ...)} if not t[1] then return 'error' end return all(unpack(t)) end
return all(try(string.find, s, p), try(string.find, s, p, 2), try(string.find, s, p, -1), try(string.match, s, p), try(string.gsub, s, p, r), try(string.gsub, s, p, r, 1),
  try(function() local t = {} for a, b in string.gmatch(s, p) do t[#t + 1] = tostring(a) .. tostring(b) if #t > 50 then break end end return table.concat(t, ',') end))`

func luaQuote(text string) string { return string(sandbox.AppendQuoted(nil, text)) }

func patternOf(r *rand.Rand) (subject, pattern, by string) {
	items := []string{"a", "b", ".", "%a", "%d", "%s", "%w", "%A", "[ab]", "[^a]", "[a-c]", "[%d_]", "%.", "(a)", "(.)", "()", "(a*)",
		"%b()", "%f[%a]", "%1", "$", "^", "[]]", "[^]]", "[a-]", "%%"}
	suffixes := []string{"", "", "", "*", "+", "-", "?"}
	for range r.IntN(6) {
		subject += []string{"a", "b", "c", "1", "_", " ", "(", ")", ".", "ab", "aa", "]", "-"}[r.IntN(13)]
	}
	if r.IntN(6) == 0 {
		pattern = "^"
	}
	for range 1 + r.IntN(4) {
		item := items[r.IntN(len(items))]
		if !strings.HasSuffix(item, ")") || item == "%b()" {
			item += suffixes[r.IntN(len(suffixes))]
		}
		pattern += item
	}
	by = []string{"", "x", "%0", "%1", "<%0>", "%%"}[r.IntN(6)]
	return subject, pattern, by
}

// FuzzPattern checks that matching ends, whatever it is given, as quickly as it is told to.
func FuzzPattern(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		subject, pattern, by := patternOf(r)
		f.Add(subject, pattern, by)
	}
	e := NewEngine()
	f.Fuzz(func(t *testing.T, subject, pattern, by string) {
		if len(subject)+len(pattern)+len(by) > 1000 {
			return
		}
		text := fmt.Sprintf(strings.ReplaceAll(patternScript, "%q", "%s"), luaQuote(subject), luaQuote(pattern), luaQuote(by))
		host := &fakeHost{most: 2000}
		if got := eval(e, host, false, text); got[0] != '$' && !strings.Contains(got, errFakeEnd.Error()) {
			t.Errorf("%q, %q, %q: %q", subject, pattern, by, got)
		}
		e.Flush()
	})
}

// FuzzScript checks that no text panics or passes its bounds.
func FuzzScript(f *testing.F) {
	for _, text := range []string{"return 1", "return {KEYS[1], ARGV[1]}", "local t = {} t[#t + 1] = redis.call('GET', KEYS[1]) return t",
		"for i = 1, 10 do x = i end", "return ('x'):rep(9):gsub('.', '%0')",
		"#!lua flags=no-writes\nreturn redis.pcall('X')",
		"local a, b = {}, 1 a[b], b = b .. a, {[b] = ...} while true do pcall(error, a) end", "return function() goto x ::x:: end"} {
		f.Add(text)
	}
	e := NewEngine()
	f.Fuzz(func(t *testing.T, text string) {
		host := &fakeHost{most: 200}
		got := eval(e, host, false, text, "k", "|", "a")
		if got == "" || host.ticks > host.most+1 {
			t.Errorf("%q: %q after %d ticks", text, got, host.ticks)
		}
		got = eval(e, &fakeHost{}, false, "return {#KEYS, string.rep('x', 2), tostring(rawget(_G, 'x'))}")
		if got != "*3\r\n:0\r\n$2\r\nxx\r\n$3\r\nnil\r\n" {
			t.Errorf("after %q: %q", text, got)
		}
		e.Flush()
	})
}
