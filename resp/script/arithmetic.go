package script

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Arithmetic on strings is done here, by metamethods, which gopher-lua asks first: it reads '010' as 8 and '1_0' as 10 itself,
// so that a padded argument would change a limit without a word.
var arithmetic = map[string]func(a, b float64) float64{
	"__add": func(a, b float64) float64 { return a + b },
	"__sub": func(a, b float64) float64 { return a - b },
	"__mul": func(a, b float64) float64 { return a * b },
	"__div": func(a, b float64) float64 { return a / b },
	"__mod": func(a, b float64) float64 { return a - math.Floor(a/b)*b },
	"__pow": math.Pow,
	"__unm": func(a, _ float64) float64 { return -a },
}

// luaArithmetic is an operator on two values of which one is a string. Where one is neither a number nor a text that can be
// read as one, its own metamethod counts.
func luaArithmetic(event string) lua.LGFunction {
	operate := arithmetic[event]
	return func(L *lua.LState) int {
		a, okA := numberOf(L.Get(1))
		b, okB := numberOf(L.Get(2))
		if event == "__unm" {
			b, okB = 0, true
		}
		if okA && okB {
			L.Push(lua.LNumber(operate(a, b)))
			return 1
		}
		for i := 1; i <= 2; i++ {
			own := L.GetMetaField(L.Get(i), event)
			if L.Get(i).Type() == lua.LTString || own == lua.LNil {
				continue
			}
			L.Push(own)
			L.Push(L.Get(1))
			L.Push(L.Get(2))
			L.Call(2, 1)
			return 1
		}
		wrong := L.Get(2)
		if !okA {
			wrong = L.Get(1)
		}
		L.RaiseError("attempt to perform arithmetic on a %s value", wrong.Type())
		return 0
	}
}

// luaNumber makes a number of a bound of a for, which may be a text: gopher-lua wants numbers. The second argument is its name.
func luaNumber(L *lua.LState) int {
	n, ok := numberOf(L.Get(1))
	if !ok {
		L.RaiseError("'for' %s must be a number", L.CheckString(2))
	}
	L.Push(lua.LNumber(n))
	return 1
}

// checkNumber is an argument that has to be a number, or a text that can be read as one.
func checkNumber(L *lua.LState, arg int) float64 {
	n, ok := numberOf(L.Get(arg))
	if !ok {
		L.TypeError(arg, lua.LTNumber)
	}
	return n
}

// checkInt is an argument that C reads into 32 bits, and optInt one that need not be given.
func checkInt(L *lua.LState, arg int) int { return int(int32(toInt(checkNumber(L, arg)))) }

func optInt(L *lua.LState, arg, otherwise int) int {
	if L.Get(arg) == lua.LNil {
		return otherwise
	}
	return checkInt(L, arg)
}

// optPlace is a place in a text, from its end where it is negative, as an offset that may be too small or too large.
func optPlace(L *lua.LState, arg, length, otherwise int) int {
	at := int64(otherwise)
	if L.Get(arg) != lua.LNil {
		at = toInt(checkNumber(L, arg))
	}
	if at < 0 {
		at = max(0, at+int64(length)+1)
	}
	return int(at)
}

// checkText is an argument that has to be a text, or a number.
func checkText(L *lua.LState, arg int) string {
	if n, ok := L.Get(arg).(lua.LNumber); ok {
		return toString(n)
	}
	return L.CheckString(arg)
}

func optText(L *lua.LState, arg int, otherwise string) string {
	if L.Get(arg) == lua.LNil {
		return otherwise
	}
	return checkText(L, arg)
}

// readNumbers makes numbers of the texts among a function's arguments that can be read as such, which it would read itself, as
// arithmetic on strings would.
func readNumbers(function lua.LValue) lua.LGFunction {
	inner := function.(*lua.LFunction).GFunction
	return func(L *lua.LState) int {
		for i := 1; i <= L.GetTop(); i++ {
			if n, ok := numberOf(L.Get(i)); ok {
				L.Replace(i, lua.LNumber(n))
			}
		}
		return inner(L)
	}
}

func numberOf(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return readNumber(string(v))
	}
	return 0, false
}

// readNumber reads what C's strtod does.
func readNumber(text string) (float64, bool) {
	text = trimSpace(text)
	if text == "" || strings.ContainsRune(text, '_') {
		return 0, false
	}
	hex := strings.TrimLeft(strings.ToLower(text), "+-")
	if digits, ok := strings.CutPrefix(hex, "0x"); ok && !strings.Contains(digits, "p") {
		text += "p0"
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil || math.IsInf(n, 0)
}

// trimSpace cuts off what C's isspace tells.
func trimSpace(text string) string { return strings.Trim(text, " \t\n\v\f\r") }
