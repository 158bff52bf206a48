package sandbox

import (
	"math"

	"celld/resp/script/value"

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
		a, okA := value.Number(L.Get(1))
		b, okB := value.Number(L.Get(2))
		if event == "__unm" {
			b, okB = 0, true
		}
		if okA && okB {
			return value.Push(L, lua.LNumber(operate(a, b)))
		}
		for i := 1; i <= 2; i++ {
			if own := L.GetMetaField(L.Get(i), event); L.Get(i).Type() != lua.LTString && own != lua.LNil {
				return value.Push(L, value.Call(L, own, L.Get(1), L.Get(2)))
			}
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
	n, ok := value.Number(L.Get(1))
	if !ok {
		L.RaiseError("'for' %s must be a number", L.CheckString(2))
	}
	return value.Push(L, lua.LNumber(n))
}

// readNumbers converts the strings among a function's arguments to numbers by value.ReadNumber. The function would read them by
// gopher-lua's rules.
func readNumbers(function lua.LValue) lua.LGFunction {
	inner := function.(*lua.LFunction).GFunction
	return func(L *lua.LState) int {
		for i := 1; i <= L.GetTop(); i++ {
			if n, ok := value.Number(L.Get(i)); ok {
				L.Replace(i, lua.LNumber(n))
			}
		}
		return inner(L)
	}
}
