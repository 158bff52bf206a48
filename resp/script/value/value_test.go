package value

import (
	"fmt"
	"math"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// Texts that C's strtod reads, and others.
func TestReadNumber(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "7": 7, "-7": -7, "+7": 7, "010": 10, "1e2": 100, "1E-1": 0.1, ".5": 0.5, "3.": 3, " \t\n\v\f\r7 \t\n\v\f\r": 7,
		"1e999": math.Inf(1), "-1e999": math.Inf(-1), "0x1F": 31, "0X1f": 31, "-0x10": -16, "+0x10": 16, "0x1.8": 1.5, "0x1p4": 16,
		"0x1P4": 16, "inf": math.Inf(1), "-Infinity": math.Inf(-1), strings.Repeat("0", MaxNumber-1) + "7": 7,
	} {
		if got, ok := ReadNumber(text); !ok || got != want {
			t.Errorf("%.20q: %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", " ", "x", "1x", "1 2", "1_0", "0x", "0x1_0", "--1", "1e", "0xg", "\xa01", strings.Repeat("0", MaxNumber) + "7",
	} {
		if got, ok := ReadNumber(text); ok || got != 0 {
			t.Errorf("%.20q reads as %v", text, got)
		}
	}
	if n, ok := ReadNumber("nan"); !ok || n == n {
		t.Errorf("nan: %v %v", n, ok)
	}
}

// The texts that C's printf writes for %.14g and %.17g.
func TestAppendNumber(t *testing.T) {
	for _, test := range []struct {
		n        float64
		s14, s17 string
	}{
		{0, "0", "0"}, {math.Copysign(0, -1), "-0", "-0"}, {1, "1", "1"}, {-1, "-1", "-1"}, {0.1, "0.1", "0.10000000000000001"},
		{0.5, "0.5", "0.5"}, {-2.5, "-2.5", "-2.5"}, {99999999999999, "99999999999999", "99999999999999"},
		{-99999999999999, "-99999999999999", "-99999999999999"}, {1e14, "1e+14", "100000000000000"},
		{-1e14, "-1e+14", "-100000000000000"}, {1e15, "1e+15", "1000000000000000"}, {1e100, "1e+100", "1e+100"},
		{1e-5, "1e-05", "1.0000000000000001e-05"}, {1e300, "1e+300", "1.0000000000000001e+300"}, {math.Inf(1), "inf", "inf"},
		{math.Inf(-1), "-inf", "-inf"}, {math.NaN(), "nan", "nan"}, {math.Copysign(math.NaN(), -1), "-nan", "-nan"},
	} {
		if got := string(AppendNumber([]byte(">"), test.n, 14)); got != ">"+test.s14 {
			t.Errorf("%%.14g of %v: %s, want %s", test.n, got, test.s14)
		}
		if got := string(AppendNumber(nil, test.n, 17)); got != test.s17 {
			t.Errorf("%%.17g of %v: %s, want %s", test.n, got, test.s17)
		}
		if got := String(lua.LNumber(test.n)); got != test.s14 {
			t.Errorf("tostring of %v: %s, want %s", test.n, got, test.s14)
		}
	}
}

// A number out of range becomes what x86's instructions make of it.
func TestIntegers(t *testing.T) {
	const least = math.MinInt64
	for _, test := range []struct {
		n        float64
		signed   int64
		unsigned uint64
	}{
		{0, 0, 0}, {3.99, 3, 3}, {-3.99, -3, 1<<64 - 3}, {1 << 53, 1 << 53, 1 << 53}, {1 << 62, 1 << 62, 1 << 62},
		{-1 << 62, -1 << 62, 3 << 62}, {1 << 63, least, 1 << 63}, {-1 << 63, least, 1 << 63}, {-1 << 64, least, 1 << 63},
		{3 << 62, least, 3 << 62}, {1 << 64, least, 0}, {1e300, least, 0}, {-1e300, least, 1 << 63},
		{math.Inf(1), least, 0}, {math.Inf(-1), least, 1 << 63}, {math.NaN(), least, 1 << 63}, {1<<63 + 4096, least, 1<<63 + 4096},
	} {
		if got := ToInt(test.n); got != test.signed {
			t.Errorf("ToInt(%v) = %d, want %d", test.n, got, test.signed)
		}
		if got := ToUint(test.n); got != test.unsigned {
			t.Errorf("ToUint(%v) = %d, want %d", test.n, got, test.unsigned)
		}
	}
}

func TestTexts(t *testing.T) {
	L := lua.NewState()
	defer L.Close()
	for _, test := range []struct {
		v      lua.LValue
		text   string
		isText bool
		number string
	}{
		{lua.LString("a"), "a", true, "0 false"}, {lua.LString("0x10"), "0x10", true, "16 true"},
		{lua.LNumber(1.5), "1.5", true, "1.5 true"}, {lua.LTrue, "true", false, "0 false"}, {lua.LNil, "nil", false, "0 false"},
		{lua.LString(""), "", true, "0 false"},
	} {
		if got := String(test.v); got != test.text {
			t.Errorf("%v: %q", test.v, got)
		}
		if got := fmt.Sprint(Number(test.v)); got != test.number {
			t.Errorf("the number of %v: %s", test.v, got)
		}
		if IsText(test.v) != test.isText {
			t.Errorf("%v: IsText says %v", test.v, IsText(test.v))
		}
		if test.isText {
			if got := string(AppendText([]byte(">"), test.v)); got != ">"+test.text {
				t.Errorf("%v is appended as %q", test.v, got)
			}
		}
	}
	if IsText(L.NewTable()) {
		t.Error("a table is a text")
	}
	if got := TrimSpace("\t\n\v\f\r a b \u00a0 "); got != "a b \u00a0" {
		t.Errorf("trimmed: %q", got)
	}
	if got := Table(L, "ok", lua.LTrue); got.RawGetString("ok") != lua.LTrue || got.Len() != 0 {
		t.Errorf("the table has ok=%v", got.RawGetString("ok"))
	}
}

// Arguments of functions: each call's results are joined, or the text of its error follows.
func TestArguments(t *testing.T) {
	L := lua.NewState()
	defer L.Close()
	for name, function := range map[string]lua.LGFunction{
		"num":     func(L *lua.LState) int { return Push(L, lua.LNumber(CheckNumber(L, 1))) },
		"int":     func(L *lua.LState) int { return Push(L, lua.LNumber(CheckInt(L, 1))) },
		"opt":     func(L *lua.LState) int { return Push(L, lua.LNumber(OptInt(L, 1, 42))) },
		"place":   func(L *lua.LState) int { return Push(L, lua.LNumber(OptPlace(L, 1, 10, -2))) },
		"text":    func(L *lua.LState) int { return Push(L, lua.LString(CheckText(L, 1))) },
		"opttext": func(L *lua.LState) int { return Push(L, lua.LString(OptText(L, 1, "otherwise"))) },
		"several": func(L *lua.LState) int { return Push(L, lua.LTrue, lua.LNil, lua.LString("x")) },
		"call": func(L *lua.LState) int {
			before := L.GetTop()
			v := Call(L, L.Get(1), L.Get(2), L.Get(3))
			return Push(L, v, lua.LNumber(L.GetTop()-before))
		},
	} {
		L.SetGlobal(name, L.NewFunction(function))
	}
	for _, test := range []struct{ call, want string }{
		{"num(1.5)", "1.5"}, {"num('010')", "10"}, {"num('x')", "number expected, got string"}, {"num()", "number expected, got nil"},
		{"num({})", "number expected, got table"}, {"int(1.9)", "1"}, {"int(-1.9)", "-1"}, {"int('2')", "2"}, {"int(4294967297)", "1"},
		{"int(2147483648)", "-2147483648"}, {"int(1e300)", "0"}, {"int()", "number expected, got nil"},
		{"opt()", "42"}, {"opt(nil)", "42"}, {"opt(7)", "7"}, {"opt('7')", "7"}, {"opt('x')", "number expected, got string"},
		{"opt(false)", "number expected, got boolean"}, {"place()", "9"}, {"place(nil)", "9"}, {"place(1)", "1"}, {"place(0)", "0"},
		{"place(-1)", "10"}, {"place(-10)", "1"}, {"place(-11)", "0"}, {"place(-100)", "0"}, {"place(100)", "100"},
		{"place('x')", "number expected, got string"}, {"text('a')", "a"}, {"text(1e15)", "1e+15"}, {"text()", "string expected, got nil"},
		{"text(true)", "string expected, got boolean"}, {"opttext()", "otherwise"}, {"opttext(nil)", "otherwise"}, {"opttext('a')", "a"},
		{"opttext(0.1)", "0.1"}, {"opttext({})", "string expected, got table"}, {"select('#', several())", "3"},
		{"(select(3, several()))", "x"}, {"several()", "true"}, {"call(function(a, b) return a .. b, 'more' end, 1, 2)", "12"},
		{"select(2, call(function(a, b) return a, b end, 1, 2))", "0"}, {"call(function() end)", "nil"},
		{"call(function(...) return select('#', ...) end)", "2"},
	} {
		err := L.DoString("local ok, v = pcall(function() return (" + test.call + ") end) result = tostring(v)")
		if got := L.GetGlobal("result").String(); err != nil || got != test.want && !strings.Contains(got, "("+test.want+")") {
			t.Errorf("%s: %s, want %s, %v", test.call, got, test.want, err)
		}
	}
}
