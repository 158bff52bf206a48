package sandbox

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"celld/resp/script/value"

	lua "github.com/yuin/gopher-lua"
)

// gopher-lua makes a stack trace of each error that is caught, even if nobody reads it. The trace has a line for every tail call of
// the functions that run: a script that makes 50 million in a second needs gigabytes and a minute for its error. Only an error that
// has a trace already is left as it is. So every error of a script gets this one.
const noTrace = "-"

// protect does what L.PCall does, and makes no trace. PCall replaces L.Panic, which raises errors, so the function is called by a
// guard that puts x.throw in its place. The first call raises an error where the stack has no room for the guard, as the PCall
// would make a trace of that.
func (x *Sandbox) protect(L *lua.LState, nargs, nret int) error {
	L.Push(x.nothing)
	L.Call(0, 0)
	L.Insert(x.guard, L.GetTop()-nargs)
	return L.PCall(nargs+1, nret, nil)
}

// throw raises the error at the top of the stack. Texts of errors are copied a few times.
func (x *Sandbox) throw(L *lua.LState) {
	object := L.Get(-1)
	if text, ok := object.(lua.LString); ok {
		x.budget.Note(len(text))
		x.budget.Spend(4 * len(text))
		x.budget.Allows(4 * len(text))
	}
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: object, StackTrace: noTrace})
}

// luaGuard calls its first argument with the others. A panic of gopher-lua becomes an error, too. It does panic where a tail call
// fails for lack of stack, as in `local function f(...) return f(1, ...) end f()`. The interpreter may be broken by then, so a new
// one takes its place after the script.
func (x *Sandbox) luaGuard(L *lua.LState) int {
	L.Panic = x.thrower
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case *lua.ApiError:
			panic(cause)
		default:
			x.Worn = true
			panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LString(fmt.Sprintf("stack overflow (%v)", cause)), StackTrace: noTrace})
		}
	}()
	L.Call(L.GetTop()-1, lua.MultRet)
	return L.GetTop()
}

// luaPCall is pcall. As in Redis, the error of a command becomes its text.
func (x *Sandbox) luaPCall(L *lua.LState) int {
	L.CheckAny(1)
	err := x.protect(L, L.GetTop()-1, lua.MultRet)
	if err == nil {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	object := thrown(err)
	if t, ok := object.(*lua.LTable); ok && t.RawGetString("err").Type() == lua.LTString {
		object = t.RawGetString("err")
	}
	return value.Push(L, lua.LFalse, object)
}

// luaXPCall is xpcall. The handler runs once the stack is unwound, so it has room after a stack overflow.
func (x *Sandbox) luaXPCall(L *lua.LState) int {
	L.CheckAny(2)
	handler := L.Get(2)
	L.SetTop(1)
	err := x.protect(L, 0, lua.MultRet)
	if err == nil {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	L.Push(lua.LFalse)
	L.Push(handler)
	L.Push(thrown(err))
	if x.protect(L, 1, 1) != nil {
		L.Push(lua.LString("error in error handling"))
	}
	return 2
}

func thrown(err error) lua.LValue {
	var api *lua.ApiError
	if errors.As(err, &api) && api.Object != nil {
		return api.Object
	}
	return lua.LNil
}

// place is where the function runs that is so many levels above error: "user_script:3: ". A Go function, and one that a tail call
// has replaced, has no place.
func (x *Sandbox) place(L *lua.LState, level int) string {
	for at := 1; ; at++ {
		frame, ok := L.GetStack(at)
		if !ok {
			return ""
		}
		switch fn, _ := L.GetInfo("fSl", frame, nil); fn {
		case x.bottom: // also in place of functions that tail calls have replaced
			return ""
		case x.guard:
			continue
		}
		if level--; level > 0 {
			continue
		}
		if frame.CurrentLine < 1 {
			return ""
		}
		return fmt.Sprintf("%s:%d: ", frame.Source, frame.CurrentLine)
	}
}

// lineOf returns the line that runs level functions above the caller of a Go function.
func lineOf(L *lua.LState, level int) int {
	_, place, _ := strings.Cut(L.Where(level+1), ":")
	n, _ := strconv.Atoi(strings.TrimSuffix(place, ":"))
	return n
}
