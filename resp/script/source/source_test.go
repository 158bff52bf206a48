package source

import (
	"fmt"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// run compiles and runs a chunk whose rewritten expressions call functions that note their names and arguments, and do what they are for.
func run(text string) (functions int, result, called string, err error) {
	proto, functions, err := Compile(text, Name, nil)
	if err != nil {
		return 0, "", "", err
	}
	L := lua.NewState()
	defer L.Close()
	var calls []string
	hidden := map[string]*lua.LFunction{}
	for name, do := range map[string]lua.LGFunction{
		ConcatName: func(L *lua.LState) int {
			joined := ""
			for i := 1; i <= L.GetTop(); i++ {
				joined += L.Get(i).String()
			}
			L.Push(lua.LString(joined))
			return 1
		},
		SetName: func(L *lua.LState) int { L.CheckTable(1).RawSet(L.Get(2), L.Get(3)); return 0 },
		FillName: func(L *lua.LState) int {
			t, kinds, at, arg := L.CheckTable(1), L.CheckString(2), L.CheckInt(3), 4
			for ; arg <= L.GetTop(); kinds = kinds[min(1, len(kinds)):] {
				if strings.HasPrefix(kinds, "k") {
					t.RawSet(L.Get(arg), L.Get(arg+1))
					arg += 2
					continue
				}
				at++
				t.RawSetInt(at, L.Get(arg))
				arg++
			}
			L.SetTop(1)
			return 1
		},
		ListName:   func(L *lua.LState) int { return L.GetTop() },
		NumberName: func(L *lua.LState) int { L.SetTop(1); return 1 },
	} {
		hidden[name] = L.NewFunction(func(L *lua.LState) int {
			call := name
			for i := 1; i <= L.GetTop(); i++ {
				if v := L.Get(i); v.Type() == lua.LTTable {
					call += " t"
				} else {
					call += " " + v.String()
				}
			}
			calls = append(calls, call)
			return do(L)
		})
	}
	if err := Link(proto, hidden); err != nil {
		return functions, "", "", err
	}
	L.Push(L.NewFunctionFromProto(proto))
	err = L.PCall(0, 1, nil)
	return functions, L.Get(-1).String(), strings.Join(calls, "; "), err
}

// The parts of a chunk that become calls, and the chunk's result.
func TestRewritten(t *testing.T) {
	ones := strings.TrimSuffix(strings.Repeat("1,", 50), ",")
	for _, test := range []struct{ text, result, called string }{
		{"return 1 + 2", "3", ""},
		{"return 'a' .. 1 .. 'b'", "a1b", "(concat) a 1 b"},
		{"return ('a' .. 1) .. 'b'", "a1b", "(concat) a 1; (concat) a1 b"},
		{"local function f() return 1, 2 end return f() .. f()", "11", "(concat) 1 1"},
		{"return (function(...) return ... .. ... end)(1, 2)", "11", "(concat) 1 1"},
		{"local t = {} t.x = 1 t[1] = 2 t[64] = 3 t[true] = 4 t[false] = 5 t['y'] = 6 return #t", "64", ""},
		{"local t = {} t[65] = 1 return t[65]", "1", "(set) t 65 1"},
		{"local t = {} t[64.5] = 1 return t[64.5]", "1", "(set) t 64.5 1"},
		{"local t, k = {}, 'k' t[k] = 1 return t.k", "1", "(set) t k 1"},
		{"local t = {} t['a' .. 'b'] = 1 return t.ab", "1", "(concat) a b; (set) t ab 1"},
		{"local t = {} t[(1)], t[2] = 1, 2 return t[1] + t[2]", "3", ""},
		{"local i, t = 1, {} i, t[i] = i + 1, 20 return i + t[1]", "22", "(set) t 1 20"},
		{"local t, k = {}, 1 t[k], t[k] = 'a', 'b' return t[1]", "a", "(set) t 1 b; (set) t 1 a"},
		{"local t, k = {}, 1 t[k], t.x, k = 'a', 'b' return t[1] .. t.x", "ab", "(set) t x b; (set) t 1 a; (concat) a b"},
		{"local t, k = {}, 1 t[k], t[k + 1] = (function() return 1, 2 end)() return t[2]", "2", "(set) t 2 2; (set) t 1 1"},
		{"local t, k = {}, 1 t[k] = 1, 2 return t[1]", "1", "(set) t 1 1"},
		{"local a, b = 1, 2 a, b = b, a return a", "2", ""},
		{"for i = 1, 2 do end return 0", "0", ""},
		{"local n = 0 local a = 1 for i = a, 3 do n = n + i end return n", "6", "(number) 1 initial value"},
		{"local n, a = 0, 3 for i = 1, a, a - 2 do n = n + i end return n", "6", "(number) 3 limit; (number) 1 step"},
		{"return #{1, 2, 3}", "3", ""},
		{"return ({x = 1, [2] = 2, ['y'] = 3}).y", "3", ""},
		{"local k = 'k' return ({1, [k] = 2, 3, [k .. k] = 4}).kk", "4", "(concat) k k; (fill) t kek 1 k 2 3 kk 4"},
		{"local k = 'k' return #{1, [k] = 2, 3}", "2", "(fill) t ke 1 k 2 3"},
		{"local k = 'k' return #{1, 2, [k] = 2, (function() return 3, 4 end)()}", "4", "(fill) t ke 2 k 2 3 4"},
		{"return #{1, (function() return 2, 3 end)()}", "3", "(list) 2 3"},
		{"return #{1, ((function() return 2, 3 end)())}", "2", ""},
		{"return #{(function() return 2, 3 end)(), 1}", "2", ""},
		{"return #(function(...) return {...} end)(1, 2)", "2", "(list) 1 2"},
		{"return ({1, x = (function() return 2, 3 end)()})[2]", "nil", ""},
		{"return ({" + ones + ", x = 1}).x", "1", "(fill) t k 50 x 1"},
		{"return #{" + ones + ", 51}", "51", ""},
		{"return #{" + ones + ", (function() return 51, 52 end)()}", "52", "(fill) t e 50 51 52"},
		{"return ({" + ones[2:] + ", x = 1}).x", "1", ""},
		{"return ({x = 1, " + ones + "}).x", "1", ""},
		{"local k = 1 return #{[k] = 1" + strings.Repeat(", 2", 33) + "}", "33",
			"(fill) t k" + strings.Repeat("e", 31) + " 0 1 1" + strings.Repeat(" 2", 31) + "; (fill) t ee 31 2 2"},
		{"local t = {} function t.f(a) return a .. 1 end return t.f(2)", "21", "(concat) 2 1"},
		{"local t = {x = 1} function t:f(a) return self.x .. a end return t:f('a' .. 'b')", "1ab", "(concat) a b; (concat) 1 ab"},
		{"local s = 'a' repeat s = s .. 'b' until s .. 'c' == 'abbc' return s", "abb", "(concat) a b; (concat) ab c; (concat) ab b; (concat) abb c"},
		{"local s = '' while s .. 'x' ~= 'ax' do s = s .. 'a' end return s", "a", "(concat)  x; (concat)  a; (concat) a x"},
		{"if 'a' .. 'b' == 'ab' then return 'c' .. 'd' else return 'e' .. 'f' end", "cd", "(concat) a b; (concat) c d"},
		{"if nil then return 1 elseif 'a' .. 1 then return 'x' .. 1 end", "x1", "(concat) a 1; (concat) x 1"},
		{"if nil then return 1 else return 'x' .. 1 end", "x1", "(concat) x 1"},
		{"do return 'a' .. 'b' end", "ab", "(concat) a b"},
		{"local r for k, v in pairs({a = 'b' .. 1}) do r = k .. v end return r", "ab1", "(concat) b 1; (concat) a b1"},
		{"local r = 0 for k in next, {1, 2} do r = r + k end return r", "3", ""},
		{"return ('x' .. 'y' and 1) or 2", "1", "(concat) x y"},
		{"return nil or 'x' .. 'y'", "xy", "(concat) x y"},
		{"return 'x' .. 'y' == 'x' .. 'y'", "true", "(concat) x y; (concat) x y"},
		{"return '1' .. '2' + 3", "15", "(concat) 1 5"},
		{"return 1 + ('1' .. '2')", "13", "(concat) 1 2"},
		{"return ('1' .. '2') + 1", "13", "(concat) 1 2"},
		{"return -('1' .. '2')", "-12", "(concat) 1 2"},
		{"return not ('1' .. '2')", "false", "(concat) 1 2"},
		{"return #('1' .. '2')", "2", "(concat) 1 2"},
		{"local t = {ab = 1} return t['a' .. 'b']", "1", "(concat) a b"},
		{"return ({x = 'a' .. 'b'}).x", "ab", "(concat) a b"},
		{"return (function() return 'a' .. 'b' end)()", "ab", "(concat) a b"},
		{"return tostring('a' .. 'b')", "ab", "(concat) a b"},
	} {
		if _, result, called, err := run(test.text); result != test.result || called != test.called || err != nil {
			t.Errorf("%.90s: %s\n got %s, %v\nwant %s", test.text, result, called, err, test.called)
		}
	}
}

// The functions of a chunk are counted, those within others, too.
func TestFunctions(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "local function f() end": 1, "function f() return function() end end local g = function() end": 3,
		"return {function() end}, pairs(function() end)": 2,
	} {
		if _, got, err := Compile(text, Name, nil); got != want || err != nil {
			t.Errorf("%s has %d functions, %v; want %d", text, got, err, want)
		}
	}
}

// Bounds of a chunk: so much of something compiles, and one more has an error.
func TestBounds(t *testing.T) {
	strung := func(n int, each string) string {
		var text strings.Builder
		for i := range n {
			text.WriteString(strings.ReplaceAll(each, "%", fmt.Sprint(i)))
		}
		return text.String()
	}
	for _, test := range []struct {
		what string
		most int
		text func(n int) string
		want string
	}{
		{"functions", MaxFunctions, func(n int) string { return "\n" + strung(n, "f = function() end ") }, "user_script:2: chunk has too many functions"},
		{"constants", MaxConstants, func(n int) string { return "local t\n" + strung(n-3, "t = '%a' ") + "t = 1 t = x" }, "user_script:2: chunk has too many constants"},
		{"names", MaxConstants, func(n int) string { return strung(n, "a% = nil ") }, "user_script:1: chunk has too many constants"},
		{"elements", MaxFields, func(n int) string { return "local t = {\n" + strings.Repeat("1,", n) + "}" }, "user_script:1: table has too many elements"},
		{"levels", MaxNesting - 1, func(n int) string { return "local t\n= " + strings.Repeat("not ", n-1) + "nil" }, "user_script:2: chunk has too many syntax levels"},
		{"blocks", MaxNesting, func(n int) string { return strings.Repeat("do ", n) + strings.Repeat("end ", n) }, "user_script:1: chunk has too many syntax levels"},
		{"locals", 199, func(n int) string { return "\n" + strung(n, "local a%\n") + "\nreturn 1" }, "user_script:201: "},
		{"locals and parameters", 200, func(n int) string {
			return "local x\nlocal f = function(a, b)\n" + strung(n-2, "local a% ") + "\nend"
		}, "user_script:3: "},
		{"locals in a loop", 195, func(n int) string { return "for i = 1, 2 do\n" + strung(n, "local a% ") + "\nend" }, ""},
	} {
		if _, _, err := Compile(test.text(test.most), Name, nil); err != nil {
			t.Errorf("%d %s: %v", test.most, test.what, err)
		}
		if test.want == "" {
			continue
		}
		proto, _, err := Compile(test.text(test.most+1), Name, nil)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) || proto != nil {
			t.Errorf("%d %s: %v", test.most+1, test.what, err)
		}
	}
}

// Errors have the chunk's name and the line.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"x = = 1":             "user_script:1: syntax error near '='",
		"\n\nx = = 1":         "user_script:3: syntax error near '='",
		"x =":                 "user_script:1: syntax error near '<eof>'",
		"\nx = {\n":           "user_script:3: syntax error near '<eof>'",
		"\nbreak":             "user_script:2: no loop to break",
		"\n\nlocal x = 'open": "user_script:3: unterminated string near '<eof>'",
	} {
		if _, _, err := Compile(text, Name, nil); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A function may use MaxUpvalues variables of others.
func TestUpvalues(t *testing.T) {
	for n, want := range map[int]string{MaxUpvalues: "", MaxUpvalues + 1: "2: function at line 2 has more than 60 upvalues"} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("a", i))
		}
		list := strings.Join(names, ", ")
		_, _, _, err := run("local " + list + "\nreturn (function() return function() return " + list + " end end)")
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("%d upvalues: %v, want %q", n, got, want)
		}
	}
}

// A script cannot reach what the rewriter calls, and its own globals of other names stay.
func TestLink(t *testing.T) {
	for text, want := range map[string]string{
		"return tostring(_G['(concat)'])":                                                     "nil",
		"function concat() return 'own' end return concat() .. 1":                             "own1",
		"return (function() return 'a' .. 'b' end)() .. (function() return 'c' .. 'd' end)()": "abcd",
		"local a = 'x' .. 'y' local b = a .. 'z' return b .. b":                               "xyzxyz",
	} {
		if _, result, _, err := run(text); result != want || err != nil {
			t.Errorf("%s: %s, %v", text, result, err)
		}
	}
}
