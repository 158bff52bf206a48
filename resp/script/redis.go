package script

import (
	"errors"

	"celld/resp/script/sandbox"
	"celld/resp/script/value"

	lua "github.com/yuin/gopher-lua"
)

// version is redis.REDIS_VERSION: the version of Redis whose replies celld gives.
const (
	version       = "7.2.4"
	versionNumber = 0x00070204
)

// redisLibrary is the table redis.
func (e *Engine) redisLibrary(x *sandbox.Sandbox) *lua.LTable {
	L := x.L
	t := L.NewTable()
	for name, function := range map[string]lua.LGFunction{
		"call": e.luaCall, "pcall": e.luaTry, "error_reply": e.luaErrorReply, "status_reply": luaStatusReply, "sha1hex": e.luaSHA1,
		"log": e.luaLog, "setresp": e.luaSetResp, "set_repl": e.luaSetRepl, "replicate_commands": luaYes,
		"breakpoint": luaNo, "debug": luaNothing,
	} {
		t.RawSetString(name, L.NewFunction(function))
	}
	for name, n := range map[string]int{
		"LOG_DEBUG": 0, "LOG_VERBOSE": 1, "LOG_NOTICE": 2, "LOG_WARNING": 3, "REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2,
		"REPL_REPLICA": 2, "REPL_ALL": 3, "REDIS_VERSION_NUM": versionNumber,
	} {
		t.RawSetString(name, lua.LNumber(n))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(version))
	return t
}

func luaYes(L *lua.LState) int   { return value.Push(L, lua.LTrue) }
func luaNo(L *lua.LState) int    { return value.Push(L, lua.LFalse) }
func luaNothing(*lua.LState) int { return 0 }

func (e *Engine) luaCall(L *lua.LState) int {
	reply := e.call(L)
	if t, ok := reply.(*lua.LTable); ok && t.RawGetString("err").Type() == lua.LTString {
		e.box.RaiseTable(L, t)
	}
	return value.Push(L, reply)
}

func (e *Engine) luaTry(L *lua.LState) int { return value.Push(L, e.call(L)) }

// textBytes is about how long the strings and numbers are among a function's arguments.
func textBytes(L *lua.LState, first int) (size int) {
	for i := first; i <= L.GetTop(); i++ {
		size += 24
		if text, ok := L.Get(i).(lua.LString); ok {
			size += len(text)
		}
	}
	return size
}

// call runs the command in a function's arguments. It keeps a panic for Run, as gopher-lua would make it an error that the script
// can catch.
func (e *Engine) call(L *lua.LState) lua.LValue {
	n := L.GetTop()
	if n == 0 {
		return sandbox.ErrorTable(L, "ERR Please specify at least one argument for this redis lib call")
	}
	e.budget.Charge(L, textBytes(L, 1))
	e.argText, e.args = e.argText[:0], e.args[:0]
	var ends [16]int
	spans := ends[:0]
	for i := 1; i <= n; i++ {
		switch v := L.Get(i).(type) {
		case lua.LString:
			e.argText = append(e.argText, v...)
		case lua.LNumber:
			e.argText = value.AppendNumber(e.argText, float64(v), 17)
		default:
			return sandbox.ErrorTable(L, "ERR Lua redis lib command arguments must be strings or integers")
		}
		spans = append(spans, len(e.argText))
	}
	start := 0
	for _, end := range spans {
		e.args = append(e.args, e.argText[start:end:end])
		start = end
	}
	raw := e.callHost()
	e.budget.Charge(L, 4*len(raw)) // the worst is a list of :1, of 16 bytes each, and as much while the table grows
	reply, _ := e.value(L, raw)
	return reply
}

// errBroken ends a script where a command has panicked. Nobody sees it, as Run panics.
var errBroken = errors.New("broken")

func (e *Engine) callHost() []byte {
	defer func() {
		if cap(e.argText) > 64<<10 || cap(e.args) > 1<<10 {
			e.argText, e.args = nil, nil
		}
		if cause := recover(); cause != nil {
			e.broken = cause
			e.budget.EndBy(errBroken)
			panic(cause)
		}
	}()
	return e.host.Call(e.args)
}

// countedField is Redis's mark in the table of an error that the command has already counted.
const countedField = "ignore_error_stats_update"

// luaErrorReply makes an error of a text. The first word is the code, with or without a - before it. A single word gets the code
// ERR.
func (e *Engine) luaErrorReply(L *lua.LState) int {
	return reply(L, func(text lua.LString) *lua.LTable {
		e.budget.Charge(L, 2*len(text))
		return sandbox.ErrorTable(L, errorReply(string(text)))
	})
}

func luaStatusReply(L *lua.LState) int {
	return reply(L, func(text lua.LString) *lua.LTable { return value.Table(L, "ok", text) })
}

// reply makes a reply of the only argument, a text.
func reply(L *lua.LState, of func(text lua.LString) *lua.LTable) int {
	text, ok := L.Get(1).(lua.LString)
	if !ok || L.GetTop() != 1 {
		return value.Push(L, sandbox.ErrorTable(L, "ERR wrong number or type of arguments"))
	}
	return value.Push(L, of(text))
}

func (e *Engine) luaSHA1(L *lua.LState) int {
	if L.GetTop() != 1 {
		e.box.Raise(L, "ERR wrong number of arguments")
	}
	text := value.CheckText(L, 1)
	e.budget.Charge(L, 4*len(text)) // hashing takes longer than copying
	return value.Push(L, lua.LString(SHA1([]byte(text))))
}

func (e *Engine) luaLog(L *lua.LState) int {
	level, ok := value.Number(L.Get(1))
	switch {
	case L.GetTop() < 2:
		e.box.Raise(L, "ERR redis.log() requires two arguments or more.")
	case !ok:
		e.box.Raise(L, "ERR First argument must be a number (log level).")
	case level < 0 || level > 3:
		e.box.Raise(L, "ERR Invalid debug level.")
	}
	e.budget.Charge(L, textBytes(L, 2))
	var text []byte
	for i := 2; i <= L.GetTop(); i++ {
		if v := L.Get(i); value.IsText(v) {
			if i > 2 {
				text = append(text, ' ')
			}
			text = value.AppendText(text, v)
		}
	}
	e.host.Log(int(level), string(text))
	return 0
}

func (e *Engine) luaSetResp(L *lua.LState) int {
	number, _ := value.Number(L.Get(1))
	n := value.ToInt(number)
	switch {
	case L.GetTop() != 1:
		e.box.Raise(L, "ERR redis.setresp() requires one argument.")
	case n != 2 && n != 3:
		e.box.Raise(L, "ERR RESP version must be 2 or 3.")
	}
	e.resp3 = n == 3
	e.host.SetProtocol(int(n))
	return 0
}

// luaSetRepl does nothing: there are no replicas, and the files hold states, not commands.
func (e *Engine) luaSetRepl(L *lua.LState) int {
	if n, ok := L.Get(1).(lua.LNumber); L.GetTop() != 1 {
		e.box.Raise(L, "ERR redis.set_repl() requires one argument.")
	} else if !ok || n < 0 || n > 3 {
		e.box.Raise(L, "ERR Invalid replication flags. Please use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0
}
