package script

import (
	"strconv"
	"strings"

	"celld/resp/script/budget"
	"celld/resp/script/sandbox"
	"celld/resp/script/value"
	"celld/resp/wire"

	lua "github.com/yuin/gopher-lua"
)

// The conversions are those of https://redis.io/docs/latest/develop/programmability/lua-api/#data-type-conversion.

// tableBytes is what a table with a field or two takes.
const tableBytes = 1 << 10

// value converts the reply at the start of raw to a Lua value, and returns what follows it. The reply is celld's own, so it is
// well-formed.
func (e *Engine) value(L *lua.LState, raw []byte) (v lua.LValue, rest []byte) {
	if raw[0] == ':' {
		return integer(raw)
	}
	reply, rest, _ := wire.ParseReply(raw)
	text := reply.Text
	switch reply.Kind {
	case '*', '+', '-', ',', '=', '%', '~':
		e.budget.Charge(L, tableBytes)
	}
	switch reply.Kind {
	case '+':
		return value.Table(L, "ok", lua.LString(text)), rest
	case '-':
		t := sandbox.ErrorTable(L, errorReply("-"+string(text)))
		t.RawSetString(countedField, lua.LTrue)
		return t, rest
	case '_':
		return lua.LNil, rest
	case '#':
		return lua.LBool(text[0] == 't'), rest
	case ',':
		n, _ := strconv.ParseFloat(string(text), 64)
		return value.Table(L, "double", lua.LNumber(n)), rest
	case '=':
		inner := value.Table(L, "format", lua.LString(text[:3]))
		inner.RawSetString("string", budget.Text(&e.budget, text[4:]))
		return value.Table(L, "verbatim_string", inner), rest
	}
	switch {
	case reply.Null:
		return lua.LFalse, rest
	case reply.Kind == '$':
		return budget.Text(&e.budget, text), rest
	}
	return e.compound(L, reply, rest)
}

// small are the numbers from -1 to 98, of which most replies of limits consist. To make them anew takes CL.THROTTLE 80 ns longer.
var small = func() (list [100]lua.LValue) {
	for i := range list {
		list[i] = lua.LNumber(i - 1)
	}
	return list
}()

// integer is value for an integer. It reads the digits itself: by way of wire.ParseReply that reply takes 85 ns longer.
func integer(raw []byte) (v lua.LValue, rest []byte) {
	n, sign, at := int64(0), int64(1), 1
	if raw[at] == '-' {
		sign, at = -1, 2
	}
	for ; raw[at] != '\r'; at++ {
		n = 10*n + sign*int64(raw[at]-'0')
	}
	if rest = raw[at+2:]; -1 <= n && n < int64(len(small))-1 {
		return small[n+1], rest
	}
	return lua.LNumber(n), rest
}

// compound converts an array, a set or a map, whose items rest begins with.
func (e *Engine) compound(L *lua.LState, reply wire.Reply, rest []byte) (v lua.LValue, _ []byte) {
	items := reply.N
	if reply.Kind != '*' {
		items = 0 // of a list
	}
	t := L.CreateTable(items, 0)
	for i := 0; i < reply.N; i++ {
		var item lua.LValue
		item, rest = e.value(L, rest)
		switch {
		case reply.Kind == '~':
			t.RawSet(item, lua.LTrue)
		case reply.Kind == '%':
			key := item
			item, rest = e.value(L, rest)
			t.RawSet(key, item)
			i++
		case item != lua.LNil:
			t.RawSetInt(i+1, item)
		}
	}
	switch reply.Kind {
	case '~':
		return value.Table(L, "set", t), rest
	case '%':
		return value.Table(L, "map", t), rest
	}
	return t, rest
}

// errorReply returns the text of an error for a script's table: with a code, without the leading -.
func errorReply(text string) string {
	text = strings.TrimRight(strings.TrimPrefix(text, "-"), "\r\n")
	if !strings.Contains(text, " ") {
		text = "ERR " + text
	}
	return text
}

// replyWriter writes what a script returns.
type replyWriter struct {
	e     *Engine
	resp3 bool // the client's
	start int  // of the reply, in the output
	full  bool // the reply is too long
}

func (w *replyWriter) append(out []byte, v lua.LValue, depth int) []byte {
	if w.full = w.full || len(out)-w.start > budget.MaxMemory || w.e.host.OverOutput(len(out)-w.start); w.full {
		return out
	}
	switch v := v.(type) {
	case lua.LString:
		return wire.AppendString(out, string(v))
	case lua.LNumber:
		return wire.AppendInt(out, value.ToInt(float64(v)))
	case lua.LBool:
		return w.appendBool(out, bool(v))
	case *lua.LTable:
		if depth == maxReplyDeep {
			return append(out, "-ERR reached lua stack limit\r\n"...)
		}
		return w.appendTable(out, v, depth+1)
	}
	return wire.AppendNull(out, w.resp3)
}

// appendTable reads tables as they are: a reply calls no functions of the script.
func (w *replyWriter) appendTable(out []byte, t *lua.LTable, depth int) []byte {
	if text, ok := t.RawGetString("err").(lua.LString); ok {
		w.e.counted = depth == 1 && lua.LVAsBool(t.RawGetString(countedField))
		return wire.AppendError(out, string(text))
	}
	if text, ok := t.RawGetString("ok").(lua.LString); ok {
		return wire.AppendStatus(out, string(text))
	}
	if n, ok := t.RawGetString("double").(lua.LNumber); ok {
		return wire.AppendDouble(out, string(value.AppendNumber(nil, float64(n), 17)), w.resp3)
	}
	if inner, ok := t.RawGetString("map").(*lua.LTable); ok {
		return w.appendPairs(out, inner, true, depth)
	}
	if inner, ok := t.RawGetString("set").(*lua.LTable); ok {
		return w.appendPairs(out, inner, false, depth)
	}
	if text, ok := t.RawGetString("big_number").(lua.LString); ok {
		return wire.AppendBigNumber(out, string(text), w.resp3)
	}
	if inner, ok := t.RawGetString("verbatim_string").(*lua.LTable); ok {
		text, hasText := inner.RawGetString("string").(lua.LString)
		format, hasFormat := inner.RawGetString("format").(lua.LString)
		if hasText && hasFormat {
			return wire.AppendVerbatim(out, (string(format) + "   ")[:3], string(text), w.resp3)
		}
	}
	n := 0
	for t.RawGetInt(n+1) != lua.LNil {
		n++
	}
	out = wire.AppendArray(out, n)
	for i := range n {
		if out = w.append(out, t.RawGetInt(i+1), depth); w.full {
			break
		}
	}
	return out
}

// appendPairs writes a map, or the keys of a table as a set.
func (w *replyWriter) appendPairs(out []byte, t *lua.LTable, values bool, depth int) []byte {
	n := 0
	t.ForEach(func(lua.LValue, lua.LValue) { n++ })
	if values {
		out = wire.AppendMap(out, n, w.resp3)
	} else {
		out = wire.AppendSet(out, n, w.resp3)
	}
	t.ForEach(func(key, value lua.LValue) {
		if out = w.append(out, key, depth); values {
			out = w.append(out, value, depth)
		}
	})
	return out
}

// appendBool writes false as Redis does: a null, but 0 or #f once the script has asked for RESP3.
func (w *replyWriter) appendBool(out []byte, yes bool) []byte {
	if yes || w.e.resp3 {
		return wire.AppendBool(out, yes, w.e.resp3 && w.resp3)
	}
	return wire.AppendNull(out, w.resp3)
}
