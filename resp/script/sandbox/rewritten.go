package sandbox

import (
	"celld/resp/script/budget"
	"celld/resp/script/source"
	"celld/resp/script/value"

	lua "github.com/yuin/gopher-lua"
)

// luaConcat is a .. b .. c, joined from the right.
func (x *Sandbox) luaConcat(L *lua.LState) int {
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
	x.budget.Charge(L, size)
	if plain {
		joined := make([]byte, 0, size)
		for i := 1; i <= n; i++ {
			joined = value.AppendText(joined, L.Get(i))
		}
		return value.Push(L, budget.Text(x.budget, joined))
	}
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		right = x.concatTwo(L, L.Get(i), right)
	}
	return value.Push(L, right)
}

func (x *Sandbox) concatTwo(L *lua.LState, left, right lua.LValue) lua.LValue {
	if value.IsText(left) && value.IsText(right) {
		joined := value.AppendText(value.AppendText(nil, left), right)
		x.budget.Charge(L, len(joined))
		return budget.Text(x.budget, joined)
	}
	join := L.GetMetaField(left, "__concat")
	if join == lua.LNil {
		join = L.GetMetaField(right, "__concat")
	}
	if join == lua.LNil {
		if value.IsText(left) {
			left = right
		}
		L.RaiseError("attempt to concatenate a %s value", left.Type())
	}
	return value.Call(L, join, left, right)
}

// luaFill sets fields of a table. Its second argument describes the values: "k" is a key and a value, "e" an element; all values
// beyond it are elements. The third argument is how many elements the table has.
func (x *Sandbox) luaFill(L *lua.LState) int {
	t, kinds, at, arg := L.CheckTable(1), L.CheckString(2), value.CheckInt(L, 3), 4
	element := func() {
		at++
		if v := L.Get(arg); v != lua.LNil || t.RawGetInt(at) != lua.LNil {
			x.put(L, t, lua.LNumber(at), v)
		}
		arg++
	}
	for i := 0; i < len(kinds) && arg <= L.GetTop(); i++ {
		if kinds[i] == 'e' {
			element()
			continue
		}
		key := L.Get(arg)
		n, ok := key.(lua.LNumber)
		if !ok || n <= lua.LNumber(at-at%source.SetTogether) || n > lua.LNumber(at) || n != lua.LNumber(int(n)) {
			x.put(L, t, key, L.Get(arg+1))
		} else {
			x.mayHold(L, t, key, lua.LNil)
		}
		arg += 2
	}
	x.budget.Charge(L, 32*max(0, L.GetTop()-arg))
	for arg <= L.GetTop() {
		element()
	}
	L.SetTop(1)
	return 1
}

// luaList returns its arguments, the last values in { ... }, without nils at the end. Each takes 16 bytes, and as much again while
// the table grows.
func (x *Sandbox) luaList(L *lua.LState) int {
	n := L.GetTop()
	for n > 0 && L.Get(n) == lua.LNil {
		n--
	}
	x.budget.Charge(L, 32*n)
	L.SetTop(n)
	return n
}
