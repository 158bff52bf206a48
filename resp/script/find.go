package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func (e *Engine) newMatcher(L *lua.LState) *matcher {
	return &matcher{e: e, L: L, src: checkText(L, 1), pat: checkText(L, 2)}
}

// from returns the offset for an optional argument.
func from(L *lua.LState, arg, length int) int {
	return min(max(0, optPlace(L, arg, length, 1)-1), length) // at most that, as in Lua 5.1
}

func (e *Engine) luaFind(L *lua.LState) int {
	m := e.newMatcher(L)
	s := from(L, 3, len(m.src))
	if L.ToBool(4) || !strings.ContainsAny(m.pat, "^$*+?.([%-") {
		e.spend(len(m.src) + len(m.pat))
		at := strings.Index(m.src[s:], m.pat)
		if at < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(s + at + 1))
		L.Push(lua.LNumber(s + at + len(m.pat)))
		return 2
	}
	start, end, found := m.find(s)
	if !found {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(start + 1))
	L.Push(lua.LNumber(end))
	if m.level == 0 {
		return 2
	}
	return 2 + m.push(start, end)
}

func (e *Engine) luaMatch(L *lua.LState) int {
	m := e.newMatcher(L)
	start, end, found := m.find(from(L, 3, len(m.src)))
	if !found {
		L.Push(lua.LNil)
		return 1
	}
	return m.push(start, end)
}

func (e *Engine) luaGMatch(L *lua.LState) int {
	m, s := e.newMatcher(L), 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		if m.L = L; s > len(m.src) {
			return 0
		}
		start, end, found := 0, 0, false
		if strings.HasPrefix(m.pat, "^") { // no anchor here, in Lua 5.1
			m.pat = "%" + m.pat
		}
		if start, end, found = m.find(s); !found {
			s = len(m.src) + 1
			return 0
		}
		if s = end; start == end {
			s++
		}
		return m.push(start, end)
	}))
	return 1
}

func (e *Engine) luaGSub(L *lua.LState) int {
	m := e.newMatcher(L)
	by := L.Get(3)
	if !isText(by) && by.Type() != lua.LTTable && by.Type() != lua.LTFunction {
		L.ArgError(3, "string/function/table expected")
	}
	most, count, s := optInt(L, 4, len(m.src)+1), 0, 0
	anchored := strings.HasPrefix(m.pat, "^")
	p := 0
	if anchored {
		p = 1
	}
	var out []byte
	counted := 0
	for count < most {
		m.level = 0
		end := m.match(s, p)
		if end >= 0 {
			count++
			out = m.replace(out, by, s, end)
		}
		switch {
		case end > s:
			s = end
		case s < len(m.src):
			out = append(out, m.src[s])
			s++
		default:
			s++
		}
		if cap(out) > counted {
			counted = cap(out)
			e.take(L, counted)
		}
		if s > len(m.src) || anchored {
			break
		}
	}
	if s < len(m.src) {
		out = append(out, m.src[s:]...)
	}
	L.Push(textOf(e, out))
	L.Push(lua.LNumber(count))
	return 2
}

// replace appends the replacement of a match.
func (m *matcher) replace(out []byte, by lua.LValue, start, end int) []byte {
	L := m.L
	var v lua.LValue
	switch by := by.(type) {
	case *lua.LTable:
		v = L.GetTable(by, m.capture(0, start, end))
	case *lua.LFunction:
		L.Push(by)
		L.Call(m.push(start, end), 1)
		v = L.Get(-1)
		L.Pop(1)
	default:
		return m.expand(out, string(appendText(nil, by)), start, end)
	}
	switch {
	case !lua.LVAsBool(v):
		return append(out, m.src[start:end]...)
	case !isText(v):
		m.fail("invalid replacement value (a " + v.Type().String() + ")")
	}
	return appendText(out, v)
}

// expand appends a replacement with its %0 to %9 filled in.
func (m *matcher) expand(out []byte, by string, start, end int) []byte {
	if most := len(by) * max(1, end-start); most > lookBytes {
		m.e.take(m.L, most)
	}
	for i := 0; i < len(by); i++ {
		if by[i] != '%' || i+1 == len(by) {
			out = append(out, by[i])
			continue
		}
		switch i++; {
		case by[i] == '0':
			out = append(out, m.src[start:end]...)
		case '1' <= by[i] && by[i] <= '9':
			out = appendText(out, m.capture(int(by[i]-'1'), start, end))
		default:
			out = append(out, by[i])
		}
	}
	return out
}
