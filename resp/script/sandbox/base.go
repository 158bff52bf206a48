package sandbox

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"

	"celld/resp/script/source"
	"celld/resp/script/value"

	lua "github.com/yuin/gopher-lua"
)

func luaToString(L *lua.LState) int {
	v := L.CheckAny(1)
	if n, ok := v.(lua.LNumber); ok {
		return value.Push(L, lua.LString(value.String(n)))
	}
	return value.Push(L, L.ToStringMeta(v))
}

// luaToNumber reads numbers as C's strtod and strtoul do.
func luaToNumber(L *lua.LState) int {
	v, base := L.CheckAny(1), value.OptInt(L, 2, 10)
	if base < 2 || base > 36 {
		L.ArgError(2, "base out of range")
	}
	trimmed := ""
	if value.IsText(v) {
		trimmed = value.TrimSpace(value.String(v))
	}
	switch n, ok := value.Number(v); {
	case base == 10 && ok:
		return value.Push(L, lua.LNumber(n))
	case base == 10 || trimmed == "" || len(trimmed) > value.MaxNumber || strings.ContainsRune(trimmed, '_'):
		return value.Push(L, lua.LNil)
	}
	digits := strings.TrimPrefix(strings.TrimPrefix(trimmed, "-"), "+")
	if base == 16 {
		digits = strings.TrimPrefix(strings.ToLower(digits), "0x")
	}
	n, err := strconv.ParseUint(digits, base, 64)
	switch {
	case errors.Is(err, strconv.ErrRange): // n is the largest
	case err != nil:
		return value.Push(L, lua.LNil)
	case trimmed[0] == '-':
		n = -n
	}
	return value.Push(L, lua.LNumber(n))
}

func luaSelect(L *lua.LState) int {
	n := L.GetTop()
	if text, ok := L.Get(1).(lua.LString); ok && strings.HasPrefix(string(text), "#") {
		return value.Push(L, lua.LNumber(n-1))
	}
	at := value.CheckInt(L, 1)
	if at < 0 {
		at += n
	}
	if at < 1 {
		L.ArgError(1, "index out of range")
	}
	return max(0, n-at)
}

func luaAssert(L *lua.LState) int {
	L.CheckAny(1)
	if L.ToBool(1) {
		return L.GetTop()
	}
	L.RaiseError("%s", value.OptText(L, 2, "assertion failed!"))
	return 0
}

// luaError is error(value, level). It keeps the line for the reply, as the value may not contain it.
func (x *Sandbox) luaError(L *lua.LState) int {
	v, level := L.Get(1), value.OptInt(L, 2, 1)
	if value.IsText(v) {
		text := value.String(v)
		if level > 0 {
			text = x.place(L, level) + text
		}
		v = lua.LString(text)
	}
	x.Line = lineOf(L, 0)
	L.Error(v, 0)
	return 0
}

// Raise raises an error as Redis's functions do: as a table.
func (x *Sandbox) Raise(L *lua.LState, text string) { x.RaiseTable(L, ErrorTable(L, text)) }

// RaiseTable raises an error that is a table already, and sets where it came from.
func (x *Sandbox) RaiseTable(L *lua.LState, t *lua.LTable) {
	x.placeIn(t, lineOf(L, 0))
	L.Error(t, 0)
}

// Raised is the error with which a script ends that has raised an object at a line, outside of the interpreter.
func (x *Sandbox) Raised(object lua.LValue, line int) error {
	x.Line = line
	if t, ok := object.(*lua.LTable); ok {
		x.placeIn(t, line)
	}
	return &lua.ApiError{Type: lua.ApiErrorRun, Object: object, StackTrace: noTrace}
}

// placeIn notes in an error where it came from.
func (x *Sandbox) placeIn(t *lua.LTable, line int) {
	x.Line = line
	t.RawSetString("source", lua.LString("@"+source.Name))
	t.RawSetString("line", lua.LNumber(line))
}

// ErrorTable is an error as Redis's functions have it.
func ErrorTable(L *lua.LState, text string) *lua.LTable {
	return value.Table(L, "err", lua.LString(text))
}

// luaCollect does nothing: a script may not start a collection of the whole process.
func luaCollect(L *lua.LState) int { return value.Push(L, lua.LNumber(0)) }

func luaGetMetatable(L *lua.LState) int {
	v := L.CheckAny(1)
	if hidden := L.GetMetaField(v, "__metatable"); hidden != lua.LNil {
		return value.Push(L, hidden)
	}
	return value.Push(L, L.GetMetatable(v))
}

func (x *Sandbox) luaSetMetatable(L *lua.LState) int {
	t := x.mayChange(L)
	L.CheckTypes(2, lua.LTNil, lua.LTTable)
	if L.GetMetaField(t, "__metatable") != lua.LNil {
		L.RaiseError("cannot change a protected metatable")
	}
	L.SetMetatable(t, L.Get(2))
	L.SetTop(1)
	return 1
}

// MaxChunk is the longest text that a script compiles, in bytes. It takes up to 3 ms, in which nothing else happens.
const MaxChunk = 4 << 10

// luaLoadString compiles text. The bounds of scripts apply, and MaxChunk.
func (x *Sandbox) luaLoadString(L *lua.LState) int { return x.load(L, value.CheckText(L, 1)) }

// luaLoad compiles the pieces that a function returns.
func (x *Sandbox) luaLoad(L *lua.LState) int {
	next := L.CheckFunction(1)
	var text []byte
	for {
		piece, ok := value.Call(L, next).(lua.LString)
		if !ok || piece == "" {
			return x.load(L, string(text))
		}
		if text = append(text, piece...); len(text) > MaxChunk {
			L.RaiseError("a chunk has at most %d bytes", MaxChunk)
		}
	}
}

func (x *Sandbox) load(L *lua.LState, text string) int {
	if len(text) > MaxChunk {
		L.RaiseError("a chunk has at most %d bytes", MaxChunk)
	}
	name, _, more := strings.Cut(text, "\n")
	if more {
		name += "..."
	}
	x.budget.Charge(L, 150*len(text))
	name = `[string "` + value.OptText(L, 2, name) + `"]`
	proto, _, err := source.Compile(text, name, nil)
	var fn *lua.LFunction
	if err == nil {
		fn, err = x.Function(proto, name)
	}
	if err != nil {
		return value.Push(L, lua.LNil, lua.LString(err.Error()))
	}
	return value.Push(L, fn)
}

func luaRandom(L *lua.LState) int {
	n := L.GetTop()
	if n == 0 {
		return value.Push(L, lua.LNumber(rand.Float64()))
	}
	if n > 2 {
		L.RaiseError("wrong number of arguments")
	}
	least, most := 1, value.CheckInt(L, n)
	if n == 2 {
		least = value.CheckInt(L, 1)
	}
	if least > most {
		L.ArgError(n, "interval is empty")
	}
	return value.Push(L, lua.LNumber(least+rand.IntN(most-least+1)))
}
