package script

import (
	"math"
	"strconv"
	"strings"

	"celld/resp/wire"

	lua "github.com/yuin/gopher-lua"
)

// The conversions are those of https://redis.io/docs/latest/develop/programmability/lua-api/#data-type-conversion.

// tableBytes is what a table with a field or two takes.
const tableBytes = 1 << 10

// value converts the reply at the start of raw to a Lua value, and returns what follows it. The reply is celld's own, so it is
// well-formed.
func (e *Engine) value(L *lua.LState, raw []byte) (v lua.LValue, rest []byte) {
	reply, rest, _ := wire.ParseReply(raw)
	text := reply.Text
	switch reply.Kind {
	case '*', '+', '-', ',', '=', '%', '~':
		e.take(L, tableBytes)
	}
	switch reply.Kind {
	case ':':
		n, _ := strconv.ParseInt(string(text), 10, 64)
		return lua.LNumber(n), rest
	case '+':
		t := L.CreateTable(0, 1)
		t.RawSetString("ok", lua.LString(text))
		return t, rest
	case '-':
		t := errorTable(L, errorReply("-"+string(text)))
		t.RawSetString(countedField, lua.LTrue)
		return t, rest
	case '_':
		return lua.LNil, rest
	case '#':
		return lua.LBool(text[0] == 't'), rest
	case ',':
		t := L.NewTable()
		n, _ := strconv.ParseFloat(string(text), 64)
		t.RawSetString("double", lua.LNumber(n))
		return t, rest
	case '=':
		inner := L.NewTable()
		inner.RawSetString("format", lua.LString(text[:3]))
		inner.RawSetString("string", textOf(e, text[4:]))
		return wrap(L, "verbatim_string", inner), rest
	case '%':
		inner := L.NewTable()
		for range reply.N / 2 {
			var key, item lua.LValue
			key, rest = e.value(L, rest)
			item, rest = e.value(L, rest)
			inner.RawSet(key, item)
		}
		return wrap(L, "map", inner), rest
	case '~':
		inner := L.NewTable()
		for range reply.N {
			var item lua.LValue
			item, rest = e.value(L, rest)
			inner.RawSet(item, lua.LTrue)
		}
		return wrap(L, "set", inner), rest
	}
	switch {
	case reply.Null:
		return lua.LFalse, rest
	case reply.Kind == '$':
		return textOf(e, text), rest
	}
	t := L.CreateTable(reply.N, 0)
	for i := range reply.N {
		var item lua.LValue
		item, rest = e.value(L, rest)
		if item != lua.LNil {
			t.RawSetInt(i+1, item)
		}
	}
	return t, rest
}

func wrap(L *lua.LState, name string, inner *lua.LTable) *lua.LTable {
	t := L.NewTable()
	t.RawSetString(name, inner)
	return t
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
	if w.full = w.full || len(out)-w.start > maxMemory || w.e.host.OverOutput(len(out)-w.start); w.full {
		return out
	}
	switch v := v.(type) {
	case lua.LString:
		return wire.AppendString(out, string(v))
	case lua.LNumber:
		return wire.AppendInt(out, toInt(float64(v)))
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
		return wire.AppendDouble(out, string(appendNumber(nil, float64(n), 17)), w.resp3)
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
		text, isText := inner.RawGetString("string").(lua.LString)
		format, hasFormat := inner.RawGetString("format").(lua.LString)
		if isText && hasFormat {
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

// toInt truncates a number as C does on the machines that Redis runs on: a number out of range becomes the smallest integer.
func toInt(n float64) int64 {
	if n != n || n >= math.MaxInt64 || n < math.MinInt64 {
		return math.MinInt64
	}
	return int64(n)
}

// toUint is toInt for an unsigned integer: a number out of range becomes 2^63 or 0.
func toUint(n float64) uint64 {
	if n >= 1<<63 {
		return uint64(toInt(n-1<<63)) ^ 1<<63
	}
	return uint64(toInt(n))
}
