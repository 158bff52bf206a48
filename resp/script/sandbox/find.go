package sandbox

import (
	"strings"

	"celld/resp/script/budget"
	"celld/resp/script/pattern"
	"celld/resp/script/value"

	lua "github.com/yuin/gopher-lua"
)

func (x *Sandbox) matcher(L *lua.LState) *pattern.Matcher {
	return &pattern.Matcher{Src: value.CheckText(L, 1), Pat: value.CheckText(L, 2),
		Tick: func() { x.budget.Tick(L) }, Fail: func(text string) { L.RaiseError("%s", text) }}
}

// capture is a capture of a match as Lua has it.
func capture(m *pattern.Matcher, i, start, end int) lua.LValue {
	text, position := m.Capture(i, start, end)
	if position > 0 {
		return lua.LNumber(position)
	}
	return lua.LString(text)
}

// push pushes all captures, or all of the match where there are none.
func push(L *lua.LState, m *pattern.Matcher, start, end int) int {
	n := max(1, m.Captures())
	for i := range n {
		L.Push(capture(m, i, start, end))
	}
	return n
}

// from returns the offset for an optional argument.
func from(L *lua.LState, arg, length int) int {
	return min(max(0, value.OptPlace(L, arg, length, 1)-1), length) // at most that, as in Lua 5.1
}

func (x *Sandbox) luaFind(L *lua.LState) int {
	m := x.matcher(L)
	s := from(L, 3, len(m.Src))
	if L.ToBool(4) || !strings.ContainsAny(m.Pat, "^$*+?.([%-") {
		x.budget.Spend(len(m.Src) + len(m.Pat))
		at := strings.Index(m.Src[s:], m.Pat)
		if at < 0 {
			return value.Push(L, lua.LNil)
		}
		return value.Push(L, lua.LNumber(s+at+1), lua.LNumber(s+at+len(m.Pat)))
	}
	start, end, found := m.Find(s)
	if !found {
		return value.Push(L, lua.LNil)
	}
	n := value.Push(L, lua.LNumber(start+1), lua.LNumber(end))
	if m.Captures() > 0 {
		n += push(L, m, start, end)
	}
	return n
}

func (x *Sandbox) luaMatch(L *lua.LState) int {
	m := x.matcher(L)
	start, end, found := m.Find(from(L, 3, len(m.Src)))
	if !found {
		return value.Push(L, lua.LNil)
	}
	return push(L, m, start, end)
}

func (x *Sandbox) luaGMatch(L *lua.LState) int {
	m, s := x.matcher(L), 0
	return value.Push(L, L.NewFunction(func(L *lua.LState) int {
		if s > len(m.Src) {
			return 0
		}
		if strings.HasPrefix(m.Pat, "^") { // no anchor here, in Lua 5.1
			m.Pat = "%" + m.Pat
		}
		start, end, found := m.Find(s)
		if !found {
			s = len(m.Src) + 1
			return 0
		}
		if s = end; start == end {
			s++
		}
		return push(L, m, start, end)
	}))
}

func (x *Sandbox) luaGSub(L *lua.LState) int {
	m := x.matcher(L)
	by := L.Get(3)
	if !value.IsText(by) && by.Type() != lua.LTTable && by.Type() != lua.LTFunction {
		L.ArgError(3, "string/function/table expected")
	}
	var out []byte
	most, count, s, counted := value.OptInt(L, 4, len(m.Src)+1), 0, 0, 0
	for again := true; again && count < most && s <= len(m.Src); count++ {
		start, end, found := m.Find(s)
		if !found {
			break
		}
		out = x.replace(L, m, append(out, m.Src[s:start]...), by, start, end)
		if s = end; start == end {
			out = append(out, m.Src[s:min(s+1, len(m.Src))]...)
			s++
		}
		counted = x.grown(L, out, counted)
		again = !strings.HasPrefix(m.Pat, "^")
	}
	out = append(out, m.Src[min(s, len(m.Src)):]...)
	x.grown(L, out, counted)
	return value.Push(L, budget.Text(x.budget, out), lua.LNumber(count))
}

// replace appends the replacement of a match.
func (x *Sandbox) replace(L *lua.LState, m *pattern.Matcher, out []byte, by lua.LValue, start, end int) []byte {
	var v lua.LValue
	switch by := by.(type) {
	case *lua.LTable:
		v = L.GetTable(by, capture(m, 0, start, end))
	case *lua.LFunction:
		L.Push(by)
		L.Call(push(L, m, start, end), 1)
		v = L.Get(-1)
		L.Pop(1)
	default:
		return x.expand(L, m, out, string(value.AppendText(nil, by)), start, end)
	}
	switch {
	case !lua.LVAsBool(v):
		return append(out, m.Src[start:end]...)
	case !value.IsText(v):
		m.Fail("invalid replacement value (a " + v.Type().String() + ")")
	}
	return value.AppendText(out, v)
}

// expand appends a replacement with its %0 to %9 filled in.
func (x *Sandbox) expand(L *lua.LState, m *pattern.Matcher, out []byte, by string, start, end int) []byte {
	if most := len(by) * max(1, end-start); most > budget.LookBytes {
		x.budget.Charge(L, most)
	}
	for i := 0; i < len(by); i++ {
		if by[i] != '%' || i+1 == len(by) {
			out = append(out, by[i])
			continue
		}
		switch i++; {
		case by[i] == '0':
			out = append(out, m.Src[start:end]...)
		case '1' <= by[i] && by[i] <= '9':
			out = value.AppendText(out, capture(m, int(by[i]-'1'), start, end))
		default:
			out = append(out, by[i])
		}
	}
	return out
}
