package script

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// These functions are gopher-lua's own. This package has its own versions of all others that Redis gives, as gopher-lua's take any
// amount of memory or time, differ from Lua's, or could change what the next script sees.
var (
	baseNames = []string{"ipairs", "rawequal", "type"}
	listNames = []string{"getn", "maxn"}
	mathNames = []string{"abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "deg", "exp", "floor", "fmod", "frexp",
		"ldexp", "log", "log10", "max", "min", "mod", "modf", "pi", "pow", "rad", "sin", "sinh", "sqrt", "tan", "tanh"}
)

const readonlyTable = "Attempt to modify a readonly table"

// Otherwise each call of a function with ... makes a table arg, which Lua 5.1 kept for older scripts. That doubles the time of a
// short function.
func init() { lua.CompatVarArg = false }

// openLibraries makes the globals that all scripts share.
func (e *Engine) openLibraries() {
	L := e.L
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath} {
		L.Push(L.NewFunction(open))
		L.Call(0, 0)
	}
	theirs := L.Get(lua.GlobalsIndex).(*lua.LTable)
	pick := func(from string, names []string, ours map[string]lua.LGFunction) *lua.LTable {
		source, picked := theirs, L.NewTable()
		if from != "" {
			source = theirs.RawGetString(from).(*lua.LTable)
		}
		for _, name := range names {
			picked.RawSetString(name, source.RawGetString(name))
		}
		for name, function := range ours {
			picked.RawSetString(name, L.NewFunction(function))
		}
		return picked
	}
	e.globals = pick("", baseNames, map[string]lua.LGFunction{
		"assert": luaAssert, "collectgarbage": luaCollect, "error": e.luaError, "getmetatable": luaGetMetatable, "load": e.luaLoad,
		"loadstring": e.luaLoadString, "next": e.luaNext, "pairs": e.luaPairs, "pcall": e.luaPCall, "xpcall": e.luaXPCall,
		"rawget": e.luaRawGet, "rawset": e.luaRawSet, "setmetatable": e.luaSetMetatable, "select": luaSelect,
		"tonumber": luaToNumber, "tostring": luaToString, "unpack": e.luaUnpack,
	})
	texts := pick("string", nil, map[string]lua.LGFunction{
		"byte": e.luaByte, "char": luaChar, "len": luaLen, "sub": luaSub, "find": e.luaFind, "format": e.luaFormat,
		"gmatch": e.luaGMatch, "gfind": e.luaGMatch, "gsub": e.luaGSub, "lower": e.luaLower, "match": e.luaMatch, "rep": e.luaRep,
		"reverse": e.luaReverse, "upper": e.luaUpper,
	})
	lists := pick("table", listNames, map[string]lua.LGFunction{
		"concat": e.luaJoin, "foreach": e.luaForEach, "foreachi": e.luaForEachI, "insert": e.luaInsert, "remove": e.luaRemove, "sort": e.luaSort,
	})
	numbers := pick("math", mathNames, map[string]lua.LGFunction{"random": luaRandom, "randomseed": luaNothing})
	for _, name := range mathNames {
		if function := numbers.RawGetString(name); function.Type() == lua.LTFunction {
			numbers.RawSetString(name, L.NewFunction(readNumbers(function)))
		}
	}
	numbers.RawSetString("huge", lua.LNumber(math.Inf(1)))
	for name, library := range map[string]*lua.LTable{"string": texts, "table": lists, "math": numbers, "redis": e.redisLibrary()} {
		e.globals.RawSetString(name, e.seal(library, nil))
	}
	e.globals.RawSetString("_VERSION", lua.LString("Lua 5.1"))
	strings := L.NewTable()
	strings.RawSetString("__index", e.globals.RawGetString("string"))
	strings.RawSetString("__metatable", lua.LFalse)
	for event := range arithmetic {
		strings.RawSetString(event, L.NewFunction(luaArithmetic(event)))
	}
	L.SetMetatable(lua.LString(""), strings)

	env := e.seal(e.globals, L.NewFunction(e.luaNoGlobal))
	e.globals.RawSetString("_G", env)
	L.Env = env
}

// seal returns a read-only view of a table.
func (e *Engine) seal(inner *lua.LTable, missing *lua.LFunction) *lua.LTable {
	L := e.L
	meta, sealed := L.NewTable(), L.NewTable()
	meta.RawSetString("__index", inner)
	meta.RawSetString("__newindex", L.NewFunction(func(L *lua.LState) int { L.RaiseError(readonlyTable); return 0 }))
	meta.RawSetString("__metatable", lua.LFalse)
	sealed.Metatable = meta
	if missing != nil {
		outside := L.NewTable()
		outside.RawSetString("__index", missing)
		inner.Metatable = outside
	}
	e.sealed[sealed] = inner
	return sealed
}

func (e *Engine) luaNoGlobal(L *lua.LState) int {
	L.RaiseError("Script attempted to access nonexistent global variable '%s'", toString(L.Get(2)))
	return 0
}

// luaConcat is a .. b .. c, joined from the right.
func (e *Engine) luaConcat(L *lua.LState) int {
	n := L.GetTop()
	size, plain := 0, true
	for i := 1; i <= n; i++ {
		switch v := L.Get(i).(type) {
		case lua.LString:
			size += len(v)
		case lua.LNumber:
			size += 24
		default:
			plain = false
		}
	}
	e.take(L, size)
	if plain {
		joined := make([]byte, 0, size)
		for i := 1; i <= n; i++ {
			joined = appendText(joined, L.Get(i))
		}
		L.Push(textOf(e, joined))
		return 1
	}
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		right = e.concatTwo(L, L.Get(i), right)
	}
	L.Push(right)
	return 1
}

func (e *Engine) concatTwo(L *lua.LState, left, right lua.LValue) lua.LValue {
	if isText(left) && isText(right) {
		joined := appendText(appendText(nil, left), right)
		e.take(L, len(joined))
		return textOf(e, joined)
	}
	join := L.GetMetaField(left, "__concat")
	if join == lua.LNil {
		join = L.GetMetaField(right, "__concat")
	}
	if join == lua.LNil {
		if isText(left) {
			left = right
		}
		L.RaiseError("attempt to concatenate a %s value", left.Type())
	}
	L.Push(join)
	L.Push(left)
	L.Push(right)
	L.Call(2, 1)
	result := L.Get(-1)
	L.Pop(1)
	return result
}

func isText(v lua.LValue) bool { return v.Type() == lua.LTString || v.Type() == lua.LTNumber }

func appendText(b []byte, v lua.LValue) []byte {
	if n, ok := v.(lua.LNumber); ok {
		return appendNumber(b, float64(n), 14)
	}
	return append(b, string(v.(lua.LString))...)
}

// appendNumber writes a number as C's %.<digits>g does.
func appendNumber(b []byte, n float64, digits int) []byte {
	switch {
	case math.IsNaN(n) && math.Signbit(n):
		return append(b, "-nan"...)
	case math.IsNaN(n):
		return append(b, "nan"...)
	case math.IsInf(n, 1):
		return append(b, "inf"...)
	case math.IsInf(n, -1):
		return append(b, "-inf"...)
	}
	if whole := int64(n); float64(whole) == n && -1e14 < n && n < 1e14 && (n != 0 || !math.Signbit(n)) {
		return strconv.AppendInt(b, whole, 10)
	}
	return strconv.AppendFloat(b, n, 'g', digits, 64)
}

func toString(v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return string(appendNumber(nil, float64(n), 14))
	}
	return v.String()
}

func luaToString(L *lua.LState) int {
	v := L.CheckAny(1)
	if n, ok := v.(lua.LNumber); ok {
		L.Push(lua.LString(toString(n)))
	} else {
		L.Push(L.ToStringMeta(v))
	}
	return 1
}

// luaToNumber reads numbers as C's strtod and strtoul do.
func luaToNumber(L *lua.LState) int {
	v, base := L.CheckAny(1), optInt(L, 2, 10)
	if base < 2 || base > 36 {
		L.ArgError(2, "base out of range")
	}
	trimmed := ""
	if isText(v) {
		trimmed = trimSpace(toString(v))
	}
	switch n, ok := numberOf(v); {
	case base == 10 && ok:
		L.Push(lua.LNumber(n))
	case base == 10 || trimmed == "" || len(trimmed) > maxNumber || strings.ContainsRune(trimmed, '_'):
		L.Push(lua.LNil)
	default:
		digits := strings.TrimPrefix(strings.TrimPrefix(trimmed, "-"), "+")
		if base == 16 {
			digits = strings.TrimPrefix(strings.ToLower(digits), "0x")
		}
		n, err := strconv.ParseUint(digits, base, 64)
		switch {
		case errors.Is(err, strconv.ErrRange): // n is the largest
		case err != nil:
			L.Push(lua.LNil)
			return 1
		case trimmed[0] == '-':
			n = -n
		}
		L.Push(lua.LNumber(n))
	}
	return 1
}

func luaSelect(L *lua.LState) int {
	n := L.GetTop()
	if text, ok := L.Get(1).(lua.LString); ok && strings.HasPrefix(string(text), "#") {
		L.Push(lua.LNumber(n - 1))
		return 1
	}
	at := checkInt(L, 1)
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
	L.RaiseError("%s", optText(L, 2, "assertion failed!"))
	return 0
}

// luaError is error(value, level). It keeps the line for the reply, as the value may not contain it.
func (e *Engine) luaError(L *lua.LState) int {
	v, level := L.Get(1), optInt(L, 2, 1)
	if isText(v) {
		text := toString(v)
		if level > 0 {
			text = e.place(L, level) + text
		}
		v = lua.LString(text)
	}
	e.line = e.lineOf(L, 0)
	L.Error(v, 0)
	return 0
}

// raise raises an error as Redis's functions do: as a table.
func (e *Engine) raise(L *lua.LState, text string) { e.raiseTable(L, errorTable(L, text)) }

func (e *Engine) raiseTable(L *lua.LState, t *lua.LTable) {
	e.line = e.lineOf(L, 0)
	t.RawSetString("source", lua.LString("@"+sourceName))
	t.RawSetString("line", lua.LNumber(e.line))
	L.Error(t, 0)
}

// luaCollect does nothing: a script may not start a collection of the whole process.
func luaCollect(L *lua.LState) int {
	L.Push(lua.LNumber(0))
	return 1
}

func luaGetMetatable(L *lua.LState) int {
	v := L.CheckAny(1)
	if hidden := L.GetMetaField(v, "__metatable"); hidden != lua.LNil {
		L.Push(hidden)
	} else {
		L.Push(L.GetMetatable(v))
	}
	return 1
}

func (e *Engine) luaSetMetatable(L *lua.LState) int {
	t := e.mayChange(L)
	L.CheckTypes(2, lua.LTNil, lua.LTTable)
	if L.GetMetaField(t, "__metatable") != lua.LNil {
		L.RaiseError("cannot change a protected metatable")
	}
	L.SetMetatable(t, L.Get(2))
	L.SetTop(1)
	return 1
}

// luaLoadString compiles text. The bounds of scripts apply, and maxChunk.
func (e *Engine) luaLoadString(L *lua.LState) int {
	return e.load(L, checkText(L, 1))
}

// luaLoad compiles the pieces that a function returns.
func (e *Engine) luaLoad(L *lua.LState) int {
	next := L.CheckFunction(1)
	var text []byte
	for {
		L.Push(next)
		L.Call(0, 1)
		piece, ok := L.Get(-1).(lua.LString)
		L.Pop(1)
		if !ok || piece == "" {
			return e.load(L, string(text))
		}
		if text = append(text, piece...); len(text) > maxChunk {
			L.RaiseError("a chunk has at most %d bytes", maxChunk)
		}
	}
}

func (e *Engine) load(L *lua.LState, text string) int {
	if len(text) > maxChunk {
		L.RaiseError("a chunk has at most %d bytes", maxChunk)
	}
	name, _, more := strings.Cut(text, "\n")
	if more {
		name += "..."
	}
	e.take(L, 150*len(text))
	name = `[string "` + optText(L, 2, name) + `"]`
	proto, _, err := compile(text, name)
	var fn *lua.LFunction
	if err == nil {
		fn, err = e.function(proto, name)
	}
	if err != nil {
		L.Push(lua.LNil)
		L.Push(lua.LString(err.Error()))
		return 2
	}
	L.Push(fn)
	return 1
}

func luaRandom(L *lua.LState) int {
	switch L.GetTop() {
	case 0:
		L.Push(lua.LNumber(rand.Float64()))
	case 1, 2:
		least, most := 1, checkInt(L, L.GetTop())
		if L.GetTop() == 2 {
			least = checkInt(L, 1)
		}
		if least > most {
			L.ArgError(L.GetTop(), "interval is empty")
		}
		L.Push(lua.LNumber(least + rand.IntN(most-least+1)))
	default:
		L.RaiseError("wrong number of arguments")
	}
	return 1
}
