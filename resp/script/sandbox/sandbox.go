// Package sandbox is the interpreter of Lua that scripts run in, with the libraries that they see:
//
//	x := sandbox.New(budget, redis)
//	fn, err := x.Function(proto, source.Name)
//	err = x.Run(fn)
package sandbox

import (
	"fmt"
	"math"

	"celld/resp/script/budget"
	"celld/resp/script/source"
	"celld/resp/script/value"

	lua "github.com/yuin/gopher-lua"
)

const (
	maxCalls    = 300
	MaxRegistry = 64 << 10
)

// Sandbox is an interpreter. Its methods are for one goroutine at a time.
type Sandbox struct {
	L       *lua.LState
	Globals *lua.LTable
	Line    int  // of the last error
	Worn    bool // gopher-lua has panicked: the next script needs a new Sandbox

	budget  *budget.Budget
	guard   *lua.LFunction // see protect
	bottom  *lua.LFunction // the guard that runs a script
	nothing *lua.LFunction
	hidden  map[string]*lua.LFunction   // what the rewriter calls, by the names that it writes
	sealed  map[*lua.LTable]*lua.LTable // read-only tables, and the tables that they show

	thrower func(*lua.LState) // throw: to make the method value for each script would allocate
}

// New makes an interpreter whose scripts have that budget. redis makes the table of that name.
func New(b *budget.Budget, redis func(x *Sandbox) *lua.LTable) *Sandbox {
	x := &Sandbox{budget: b, sealed: map[*lua.LTable]*lua.LTable{}, hidden: map[string]*lua.LFunction{}}
	x.L = lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: maxCalls,
		RegistrySize: 1 << 10, RegistryMaxSize: MaxRegistry, RegistryGrowStep: 16 << 10})
	x.openLibraries(redis)
	for name, function := range map[string]lua.LGFunction{
		source.ConcatName: x.luaConcat, source.SetName: x.luaSet, source.FillName: x.luaFill, source.ListName: x.luaList,
		source.NumberName: luaNumber,
	} {
		x.hidden[name] = x.L.NewFunction(function)
	}
	x.thrower = x.throw
	x.guard, x.bottom, x.nothing = x.L.NewFunction(x.luaGuard), x.L.NewFunction(x.luaGuard), x.L.NewFunction(luaNothing)
	x.L.SetContext(b.Context())
	return x
}

// Function makes a function of what source.Compile has returned.
func (x *Sandbox) Function(proto *lua.FunctionProto, name string) (*lua.LFunction, error) {
	if err := source.Link(proto, x.hidden); err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	return x.L.NewFunctionFromProto(proto), nil
}

// Run runs a function, and leaves its value on the stack.
func (x *Sandbox) Run(fn *lua.LFunction) error {
	x.Line = 0
	x.L.Push(x.bottom)
	x.L.Push(fn)
	return x.L.PCall(1, 1, nil)
}

// These functions are gopher-lua's own. This package has its own versions of all others that Redis gives, as gopher-lua's take any
// amount of memory or time, differ from Lua's, or could change what the next script sees.
var (
	baseNames = []string{"ipairs", "rawequal", "type"}
	listNames = []string{"getn", "maxn"}
	mathNames = []string{"abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "deg", "exp", "floor", "fmod", "frexp",
		"ldexp", "log", "log10", "max", "min", "mod", "modf", "pi", "pow", "rad", "sin", "sinh", "sqrt", "tan", "tanh"}
)

const readonlyTable = "Attempt to modify a readonly table"

// openLibraries makes the globals that all scripts share.
func (x *Sandbox) openLibraries(redis func(x *Sandbox) *lua.LTable) {
	L := x.L
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
	x.Globals = pick("", baseNames, map[string]lua.LGFunction{
		"assert": luaAssert, "collectgarbage": luaCollect, "error": x.luaError, "getmetatable": luaGetMetatable, "load": x.luaLoad,
		"loadstring": x.luaLoadString, "next": x.luaNext, "pairs": x.luaPairs, "pcall": x.luaPCall, "xpcall": x.luaXPCall,
		"rawget": x.luaRawGet, "rawset": x.luaRawSet, "setmetatable": x.luaSetMetatable, "select": luaSelect,
		"tonumber": luaToNumber, "tostring": luaToString, "unpack": x.luaUnpack,
	})
	texts := pick("string", nil, map[string]lua.LGFunction{
		"byte": x.luaByte, "char": luaChar, "len": luaLen, "sub": luaSub, "find": x.luaFind, "format": x.luaFormat,
		"gmatch": x.luaGMatch, "gfind": x.luaGMatch, "gsub": x.luaGSub, "lower": x.luaLower, "match": x.luaMatch, "rep": x.luaRep,
		"reverse": x.luaReverse, "upper": x.luaUpper,
	})
	lists := pick("table", listNames, map[string]lua.LGFunction{
		"concat": x.luaJoin, "foreach": x.luaForEach, "foreachi": x.luaForEachI, "insert": x.luaInsert, "remove": x.luaRemove,
		"sort": x.luaSort,
	})
	numbers := pick("math", mathNames, map[string]lua.LGFunction{"random": luaRandom, "randomseed": luaNothing})
	for _, name := range mathNames {
		if function := numbers.RawGetString(name); function.Type() == lua.LTFunction {
			numbers.RawSetString(name, L.NewFunction(readNumbers(function)))
		}
	}
	numbers.RawSetString("huge", lua.LNumber(math.Inf(1)))
	for name, library := range map[string]*lua.LTable{"string": texts, "table": lists, "math": numbers, "redis": redis(x)} {
		x.Globals.RawSetString(name, x.seal(library, nil))
	}
	x.Globals.RawSetString("_VERSION", lua.LString("Lua 5.1"))
	strings := L.NewTable()
	strings.RawSetString("__index", x.Globals.RawGetString("string"))
	strings.RawSetString("__metatable", lua.LFalse)
	for event := range arithmetic {
		strings.RawSetString(event, L.NewFunction(luaArithmetic(event)))
	}
	L.SetMetatable(lua.LString(""), strings)

	env := x.seal(x.Globals, L.NewFunction(x.luaNoGlobal))
	x.Globals.RawSetString("_G", env)
	L.Env = env
}

func luaNothing(*lua.LState) int { return 0 }

// seal returns a read-only view of a table.
func (x *Sandbox) seal(inner *lua.LTable, missing *lua.LFunction) *lua.LTable {
	L := x.L
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
	x.sealed[sealed] = inner
	return sealed
}

func (x *Sandbox) luaNoGlobal(L *lua.LState) int {
	L.RaiseError("Script attempted to access nonexistent global variable '%s'", value.String(L.Get(2)))
	return 0
}
