package script

import (
	"math"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// mayChange returns the first argument, a table, unless it is read-only: then it raises an error.
func (e *Engine) mayChange(L *lua.LState) *lua.LTable {
	t := L.CheckTable(1)
	if e.sealed[t] != nil {
		e.raise(L, "ERR "+readonlyTable)
	}
	return t
}

// luaRawGet looks into a sealed table, so that scripts can ask whether a global exists.
func (e *Engine) luaRawGet(L *lua.LState) int {
	t := L.CheckTable(1)
	if inner := e.sealed[t]; inner != nil {
		t = inner
	}
	L.Push(t.RawGet(L.CheckAny(2)))
	return 1
}

// luaSet is t[key] = value.
func (e *Engine) luaSet(L *lua.LState) int {
	t, key := L.Get(1), L.Get(2)
	if table, ok := t.(*lua.LTable); ok {
		e.mayHold(L, table, key)
	}
	L.SetTable(t, key, L.Get(3))
	return 0
}

func luaUnpack(L *lua.LState) int {
	t := L.CheckTable(1)
	first, last := optInt(L, 2, 1), optInt(L, 3, t.Len())
	for i := first; i <= last; i++ {
		L.Push(t.RawGetInt(i))
	}
	return max(0, last-first+1)
}

func (e *Engine) luaRawSet(L *lua.LState) int {
	t := e.mayChange(L)
	e.mayHold(L, t, L.Get(2))
	t.RawSet(L.Get(2), L.CheckAny(3))
	L.SetTop(1)
	return 1
}

// mayHold refuses an invalid key, and announces the memory for the gap before a numeric key: 16 bytes an element, and as much
// again while the table grows.
func (e *Engine) mayHold(L *lua.LState, t *lua.LTable, key lua.LValue) {
	switch key := key.(type) {
	case *lua.LNilType:
		L.RaiseError("table index is nil")
	case lua.LNumber:
		if math.IsNaN(float64(key)) {
			L.RaiseError("table index is NaN")
		}
		if gap := float64(key) - float64(t.MaxN()); gap > smallIndex && float64(key) < float64(lua.MaxArrayIndex) {
			e.take(L, int(gap)*32)
		}
	}
}

// luaJoin is table.concat.
func (e *Engine) luaJoin(L *lua.LState) int {
	t, separator := L.CheckTable(1), optText(L, 2, "")
	first, last := optInt(L, 3, 1), optInt(L, 4, t.Len())
	var joined []byte
	for i := first; i <= last; i++ {
		v := t.RawGetInt(i)
		if !isText(v) {
			L.RaiseError("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		was := cap(joined)
		if joined = appendText(joined, v); i < last {
			joined = append(joined, separator...)
		}
		if cap(joined) > was {
			e.take(L, cap(joined))
		}
	}
	L.Push(textOf(e, joined))
	return 1
}

func (e *Engine) luaInsert(L *lua.LState) int {
	t := e.mayChange(L)
	switch L.GetTop() {
	case 2:
		t.RawSetInt(t.Len()+1, L.Get(2))
	case 3:
		at := checkInt(L, 2)
		e.mayHold(L, t, lua.LNumber(at))
		t.Insert(at, L.Get(3))
	default:
		L.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

func (e *Engine) luaRemove(L *lua.LState) int {
	t := e.mayChange(L)
	n := t.Len()
	at := optInt(L, 2, n)
	if at < 1 || at > n {
		return 0
	}
	L.Push(t.Remove(at))
	return 1
}

// luaSort sorts the elements before the first nil, as Lua does.
func (e *Engine) luaSort(L *lua.LState) int {
	t := e.mayChange(L)
	less := L.OptFunction(2, nil)
	list := make([]lua.LValue, t.Len())
	e.take(L, 16*len(list))
	for i := range list {
		list[i] = t.RawGetInt(i + 1)
	}
	before := func(a, b lua.LValue) bool {
		if less == nil {
			if e.left--; e.left <= 0 && e.tick() != nil {
				L.RaiseError("ended")
			}
			if text, ok := a.(lua.LString); ok {
				e.spend(len(text))
			}
			return L.LessThan(a, b)
		}
		L.Push(less)
		L.Push(a)
		L.Push(b)
		L.Call(2, 1)
		defer L.Pop(1)
		return lua.LVAsBool(L.Get(-1))
	}
	slices.SortFunc(list, func(a, b lua.LValue) int {
		switch {
		case before(a, b):
			return -1
		case before(b, a):
			return 1
		}
		return 0
	})
	for i, v := range list {
		t.RawSetInt(i+1, v)
	}
	return 0
}

func luaForEach(L *lua.LState) int {
	t, visit := L.CheckTable(1), L.CheckFunction(2)
	for key, value := t.Next(lua.LNil); key != lua.LNil; key, value = t.Next(key) {
		if result := visitPair(L, visit, key, value); result != lua.LNil {
			L.Push(result)
			return 1
		}
	}
	return 0
}

func luaForEachI(L *lua.LState) int {
	t, visit := L.CheckTable(1), L.CheckFunction(2)
	for i := range t.Len() {
		if result := visitPair(L, visit, lua.LNumber(i+1), t.RawGetInt(i+1)); result != lua.LNil {
			L.Push(result)
			return 1
		}
	}
	return 0
}

func visitPair(L *lua.LState, visit *lua.LFunction, key, value lua.LValue) lua.LValue {
	L.Push(visit)
	L.Push(key)
	L.Push(value)
	L.Call(2, 1)
	defer L.Pop(1)
	return L.Get(-1)
}
