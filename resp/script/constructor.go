package script

import (
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// setTogether is how many elements ({a, b}) of a table Lua sets at once. Keys among them are set before, so the elements win.
const setTogether = 50

// maxFilled is how many fields one call of fill gets, as a function has 200 registers.
const maxFilled = 32

// table moves the fields from the first computed key on out of a table constructor. A function sets them once the table exists.
// It also moves fields with a key behind 50, 100, … elements: there gopher-lua sets the last 50 elements again, to whatever the
// registers hold by then.
func (r *rewriter) table(x *ast.TableExpr) ast.Expr {
	if len(x.Fields) > maxFields {
		panic(tooMuch("table has too many elements"))
	}
	var kept, later []*ast.Field
	elements := 0 // among those kept
	for i, f := range x.Fields {
		if f.Key != nil {
			f.Key = single(r.expr(f.Key))
		}
		f.Value = r.expr(f.Value)
		last := i == len(x.Fields)-1 && f.Key == nil
		if !last { // a key's value, too, else {1, x = ...} has an element 2 in gopher-lua
			single(f.Value)
		}
		full := elements > 0 && elements%setTogether == 0 && (f.Key != nil || many(f.Value))
		switch {
		case len(later) > 0 || full || f.Key != nil && !plainKey(f.Key):
			later = append(later, f)
			continue
		case last && many(f.Value):
			list := call(f.Value, listName, f.Value)
			list.(*ast.FuncCallExpr).AdjustRet = false
			f.Value = list
		case f.Key == nil:
			elements++
		}
		kept = append(kept, f)
	}
	x.Fields = kept
	filled := ast.Expr(x)
	for some := range slices.Chunk(later, maxFilled) {
		kinds, at := "", &ast.NumberExpr{Value: strconv.Itoa(elements)}
		var values []ast.Expr
		for _, f := range some {
			if f.Key != nil {
				kinds, values = kinds+"k", append(values, f.Key, f.Value)
			} else {
				kinds, values = kinds+"e", append(values, f.Value)
				elements++
			}
		}
		which := &ast.StringExpr{Value: kinds}
		place(at, x)
		place(which, x)
		filled = call(x, fillName, append([]ast.Expr{filled, r.expr(which), r.expr(at)}, values...)...)
	}
	return filled
}

// luaFill sets fields of a table. Its second argument describes the values: "k" is a key and a value, "e" an element; all values
// beyond it are elements. The third argument is how many elements the table has.
func (e *Engine) luaFill(L *lua.LState) int {
	t, kinds, at, arg := L.CheckTable(1), L.CheckString(2), checkInt(L, 3), 4
	element := func() {
		at++
		if v := L.Get(arg); v != lua.LNil || t.RawGetInt(at) != lua.LNil {
			e.put(L, t, lua.LNumber(at), v)
		}
		arg++
	}
	for i := 0; i < len(kinds) && arg <= L.GetTop(); i++ {
		if kinds[i] == 'e' {
			element()
			continue
		}
		key := L.Get(arg)
		if n, ok := key.(lua.LNumber); !ok || n <= lua.LNumber(at-at%setTogether) || n > lua.LNumber(at) || n != lua.LNumber(int(n)) {
			e.put(L, t, key, L.Get(arg+1))
		} else {
			e.mayHold(L, t, key, lua.LNil)
		}
		arg += 2
	}
	e.take(L, 32*max(0, L.GetTop()-arg))
	for arg <= L.GetTop() {
		element()
	}
	L.SetTop(1)
	return 1
}

// luaList returns its arguments, the last values in { ... }, without nils at the end. Each takes 16 bytes, and as much again while
// the table grows.
func (e *Engine) luaList(L *lua.LState) int {
	n := L.GetTop()
	for n > 0 && L.Get(n) == lua.LNil {
		n--
	}
	e.take(L, 32*n)
	L.SetTop(n)
	return n
}
