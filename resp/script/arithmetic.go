package script

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Metamethods do the arithmetic on strings; gopher-lua tries them first. It would read '010' as 8 and '1_0' as 10, so that a
// padded argument would silently change a limit.
var arithmetic = map[string]func(a, b float64) float64{
	"__add": func(a, b float64) float64 { return a + b },
	"__sub": func(a, b float64) float64 { return a - b },
	"__mul": func(a, b float64) float64 { return a * b },
	"__div": func(a, b float64) float64 { return a / b },
	"__mod": func(a, b float64) float64 { return a - math.Floor(a/b)*b },
	"__pow": math.Pow,
	"__unm": func(a, _ float64) float64 { return -a },
}

// luaArithmetic is an operator on two values, one of them a string. If one is neither a number nor a string that reads as one,
// its own metamethod is called.
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

// luaNumber makes a number of a for loop's bound, which may be a string: gopher-lua wants numbers. The second argument is the
// bound's name.
func luaNumber(L *lua.LState) int {
	n, ok := numberOf(L.Get(1))
	if !ok {
		L.RaiseError("'for' %s must be a number", L.CheckString(2))
	}
	L.Push(lua.LNumber(n))
	return 1
}

// checkNumber returns an argument that must be a number, or a string that reads as one.
func checkNumber(L *lua.LState, arg int) float64 {
	n, ok := numberOf(L.Get(arg))
	if !ok {
		L.TypeError(arg, lua.LTNumber)
	}
	return n
}

// checkInt returns an argument as C's 32-bit int. In optInt the argument may be missing.
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

// checkText returns an argument that must be a string or a number.
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

// readNumbers converts the strings among a function's arguments to numbers by readNumber. The function would read them by
// gopher-lua's rules.
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

// maxNumber is how long the text of a number may be: reading it takes 6 ns a byte.
const maxNumber = 4 << 10

// readNumber reads a number as C's strtod does.
func readNumber(text string) (float64, bool) {
	text = trimSpace(text)
	if text == "" || len(text) > maxNumber || strings.ContainsRune(text, '_') {
		return 0, false
	}
	hex := strings.TrimLeft(strings.ToLower(text), "+-")
	if digits, ok := strings.CutPrefix(hex, "0x"); ok && !strings.Contains(digits, "p") {
		text += "p0"
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil || math.IsInf(n, 0)
}

// trimSpace cuts off blanks, as C's isspace defines them.
func trimSpace(text string) string { return strings.Trim(text, " \t\n\v\f\r") }
