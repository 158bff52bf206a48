package sandbox

import (
	"math"
	"slices"

	"celld/resp/script/budget"
	"celld/resp/script/source"
	"celld/resp/script/value"

	lua "github.com/yuin/gopher-lua"
)

// mayChange returns the first argument, a table, unless it is read-only: then it raises an error.
func (x *Sandbox) mayChange(L *lua.LState) *lua.LTable {
	t := L.CheckTable(1)
	if x.sealed[t] != nil {
		x.Raise(L, "ERR "+readonlyTable)
	}
	return t
}

// luaRawGet looks into a sealed table, so that scripts can ask whether a global exists.
func (x *Sandbox) luaRawGet(L *lua.LState) int {
	t := L.CheckTable(1)
	if inner := x.sealed[t]; inner != nil {
		t = inner
	}
	return value.Push(L, t.RawGet(L.CheckAny(2)))
}

// luaSet is t[key] = value. gopher-lua would follow __newindex to a table that mayHold has not looked at.
func (x *Sandbox) luaSet(L *lua.LState) int {
	target, key, v := L.Get(1), L.Get(2), L.Get(3)
	for range lua.MaxTableGetLoop {
		t, isTable := target.(*lua.LTable)
		next := lua.LValue(lua.LNil)
		if !isTable || t.Metatable != lua.LNil && t.RawGet(key) == lua.LNil {
			next = L.GetMetaField(target, "__newindex")
		}
		switch {
		case next.Type() == lua.LTFunction:
			value.Call(L, next, target, key, v)
			return 0
		case next != lua.LNil:
			target = next
			continue
		case !isTable:
			L.RaiseError("attempt to index a non-table object(%v) with key '%s'", target.Type(), key)
		}
		x.put(L, t, key, v)
		return 0
	}
	L.RaiseError("too many recursions in settable")
	return 0
}

// put is t[key] = value without metamethods. gopher-lua looks for the last element of a table from the end of its list, at each #t
// and more. So put leaves no nils there.
func (x *Sandbox) put(L *lua.LState, t *lua.LTable, key, value lua.LValue) {
	x.mayHold(L, t, key, value)
	n, isNumber := key.(lua.LNumber)
	if value != lua.LNil || !isNumber || n < 1 || n != lua.LNumber(int(n)) || int(n) >= lua.MaxArrayIndex {
		t.RawSet(key, value)
		return
	}
	switch last := t.Len(); {
	case int(n) < last:
		t.RawSet(key, value)
	case int(n) == last:
		x.dropLast(t, last)
	}
}

// dropLast removes the last element of a table, and the nils before it. An instruction with a small constant index may have left
// up to source.SmallIndex nils behind it, which is few enough.
func (x *Sandbox) dropLast(t *lua.LTable, last int) {
	t.RawSetInt(last, lua.LNil)
	nils := last - t.Len()
	x.budget.Spend(16 * nils)
	for range nils {
		t.Remove(-1)
	}
}

// luaNext is next, and what pairs returns. It may go over any number of nils.
func (x *Sandbox) luaNext(L *lua.LState) int {
	t := L.CheckTable(1)
	key, v := t.Next(L.Get(2))
	if at, ok := key.(lua.LNumber); ok {
		before, _ := L.Get(2).(lua.LNumber)
		x.budget.Spend(16 * int(max(0, at-before)))
	}
	if key == lua.LNil {
		return value.Push(L, lua.LNil)
	}
	return value.Push(L, key, v)
}

func (x *Sandbox) luaPairs(L *lua.LState) int {
	t := L.CheckTable(1)
	return value.Push(L, x.Globals.RawGetString("next"), t, lua.LNil)
}

func (x *Sandbox) luaUnpack(L *lua.LState) int {
	t := L.CheckTable(1)
	first, last := value.OptInt(L, 2, 1), value.OptInt(L, 3, t.Len())
	x.budget.Spend(16 * max(0, last-first))
	for i := first; i <= last; i++ {
		L.Push(t.RawGetInt(i))
	}
	return max(0, last-first+1)
}

func (x *Sandbox) luaRawSet(L *lua.LState) int {
	t := x.mayChange(L)
	x.put(L, t, L.Get(2), L.CheckAny(3))
	L.SetTop(1)
	return 1
}

// mayHold refuses an invalid key, and announces the memory for the gap before a numeric key: 16 bytes an element, and as much
// again while the table grows.
func (x *Sandbox) mayHold(L *lua.LState, t *lua.LTable, key, value lua.LValue) {
	switch key := key.(type) {
	case *lua.LNilType:
		L.RaiseError("table index is nil")
	case lua.LNumber:
		if math.IsNaN(float64(key)) {
			L.RaiseError("table index is NaN")
		}
		gap := float64(key) - float64(t.MaxN())
		if value != lua.LNil && gap > source.SmallIndex && float64(key) < float64(lua.MaxArrayIndex) {
			x.budget.Charge(L, int(gap)*32)
		}
	}
}

// luaJoin is table.concat.
func (x *Sandbox) luaJoin(L *lua.LState) int {
	t, separator := L.CheckTable(1), value.OptText(L, 2, "")
	first, last := value.OptInt(L, 3, 1), value.OptInt(L, 4, t.Len())
	var joined []byte
	for i := first; i <= last; i++ {
		v := t.RawGetInt(i)
		if !value.IsText(v) {
			L.RaiseError("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		was := cap(joined)
		if joined = value.AppendText(joined, v); i < last {
			joined = append(joined, separator...)
		}
		x.grown(L, joined, was)
	}
	return value.Push(L, budget.Text(x.budget, joined))
}

func (x *Sandbox) luaInsert(L *lua.LState) int {
	t := x.mayChange(L)
	last := t.Len()
	switch at := last + 1; L.GetTop() {
	case 3:
		if at = value.CheckInt(L, 2); 0 < at && at <= last {
			x.budget.Spend(16 * (last - at))
			t.Insert(at, L.Get(3))
			return 0
		}
		fallthrough
	case 2:
		x.put(L, t, lua.LNumber(at), L.Get(L.GetTop()))
	default:
		L.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

func (x *Sandbox) luaRemove(L *lua.LState) int {
	t := x.mayChange(L)
	last := t.Len()
	at := value.OptInt(L, 2, last)
	if at < 1 || at > last {
		return 0
	}
	L.Push(t.RawGetInt(at))
	if at == last {
		x.dropLast(t, last)
	} else {
		x.budget.Spend(16 * (last - at))
		t.Remove(at)
	}
	return 1
}

// luaSort sorts the elements before the first nil, as Lua does.
func (x *Sandbox) luaSort(L *lua.LState) int {
	t := x.mayChange(L)
	less := L.OptFunction(2, nil)
	list := make([]lua.LValue, t.Len())
	x.budget.Charge(L, 16*len(list))
	for i := range list {
		list[i] = t.RawGetInt(i + 1)
	}
	before := func(a, b lua.LValue) bool {
		x.budget.Step(L)
		if less == nil {
			if text, ok := a.(lua.LString); ok {
				x.budget.Spend(len(text))
			}
			return L.LessThan(a, b)
		}
		return lua.LVAsBool(value.Call(L, less, a, b))
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
	last := 0
	for i, v := range list {
		if t.RawSetInt(i+1, v); v != lua.LNil {
			last = i + 1
		}
	}
	for range len(list) - last {
		t.Remove(-1)
	}
	return 0
}

func (x *Sandbox) luaForEach(L *lua.LState) int { return x.visit(L, L.CheckTable(1).Next) }

func (x *Sandbox) luaForEachI(L *lua.LState) int {
	t := L.CheckTable(1)
	i, last := 0, t.Len()
	return x.visit(L, func(lua.LValue) (key, v lua.LValue) {
		if i++; i > last {
			return lua.LNil, lua.LNil
		}
		return lua.LNumber(i), t.RawGetInt(i)
	})
}

// visit calls a function with each key and value until it returns something.
func (x *Sandbox) visit(L *lua.LState, next func(key lua.LValue) (lua.LValue, lua.LValue)) int {
	function := L.CheckFunction(2)
	for key, v := next(lua.LNil); key != lua.LNil; key, v = next(key) {
		x.budget.Step(L)
		if result := value.Call(L, function, key, v); result != lua.LNil {
			return value.Push(L, result)
		}
	}
	return 0
}
