package script

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// What becomes what, both ways, is https://redis.io/docs/latest/develop/programmability/lua-api/#data-type-conversion.

// value makes a Lua value of the reply at the start of raw, and returns what follows it. The reply is celld's own, and so
// well-formed.
func (e *Engine) value(L *lua.LState, raw []byte) (v lua.LValue, rest []byte) {
	end := bytes.IndexByte(raw, '\r')
	kind, line, rest := raw[0], raw[1:end], raw[end+2:]
	switch kind {
	case ':':
		n, _ := strconv.ParseInt(string(line), 10, 64)
		return lua.LNumber(n), rest
	case '+':
		t := L.NewTable()
		t.RawSetString("ok", lua.LString(line))
		return t, rest
	case '-':
		t := errorTable(L, errorReply("-"+string(line)))
		t.RawSetString(countedField, lua.LTrue)
		return t, rest
	case '_':
		return lua.LNil, rest
	case '#':
		return lua.LBool(line[0] == 't'), rest
	case ',':
		t := L.NewTable()
		n, _ := strconv.ParseFloat(string(line), 64)
		t.RawSetString("double", lua.LNumber(n))
		return t, rest
	}
	n, _ := strconv.Atoi(string(line))
	switch {
	case n < 0:
		return lua.LFalse, rest
	case kind == '$':
		return textOf(e, rest[:n]), rest[n+2:]
	case kind == '=':
		inner := L.NewTable()
		inner.RawSetString("format", lua.LString(rest[:3]))
		inner.RawSetString("string", textOf(e, rest[4:n]))
		return wrap(L, "verbatim_string", inner), rest[n+2:]
	case kind == '%':
		inner := L.NewTable()
		for range n {
			var key, item lua.LValue
			key, rest = e.value(L, rest)
			item, rest = e.value(L, rest)
			inner.RawSet(key, item)
		}
		return wrap(L, "map", inner), rest
	case kind == '~':
		inner := L.NewTable()
		for range n {
			var item lua.LValue
			item, rest = e.value(L, rest)
			inner.RawSet(item, lua.LTrue)
		}
		return wrap(L, "set", inner), rest
	}
	t := L.CreateTable(n, 0)
	for i := range n {
		var item lua.LValue
		item, rest = e.value(L, rest)
		t.RawSetInt(i+1, item)
	}
	return t, rest
}

func wrap(L *lua.LState, name string, inner *lua.LTable) *lua.LTable {
	t := L.NewTable()
	t.RawSetString(name, inner)
	return t
}

// errorReply is the text of an error as a script's table has it: its code and what follows, without the - before.
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
	full  bool // it is more than may be
}

func (w *replyWriter) append(out []byte, v lua.LValue, depth int) []byte {
	if w.full = w.full || len(out)-w.start > maxMemory || w.e.host.OverOutput(len(out)-w.start); w.full {
		return out
	}
	switch v := v.(type) {
	case lua.LString:
		return appendBulk(out, string(v))
	case lua.LNumber:
		return appendHeader(out, ':', toInt(float64(v)))
	case lua.LBool:
		return w.appendBool(out, bool(v))
	case *lua.LTable:
		if depth == maxReplyDeep {
			return append(out, "-ERR reached lua stack limit\r\n"...)
		}
		return w.appendTable(out, v, depth+1)
	}
	return w.appendNull(out)
}

func (w *replyWriter) appendTable(out []byte, t *lua.LTable, depth int) []byte {
	if text, ok := w.field(t, "err").(lua.LString); ok {
		w.e.counted = depth == 1 && lua.LVAsBool(w.field(t, countedField))
		return appendError(out, string(text))
	}
	if text, ok := w.field(t, "ok").(lua.LString); ok {
		return append(oneLine(append(out, '+'), string(text)), "\r\n"...)
	}
	if n, ok := w.field(t, "double").(lua.LNumber); ok {
		if !w.resp3 {
			return appendBulk(out, string(appendNumber(nil, float64(n), 17)))
		}
		return append(appendNumber(append(out, ','), float64(n), 17), "\r\n"...)
	}
	if inner, ok := w.field(t, "map").(*lua.LTable); ok {
		return w.appendPairs(out, inner, '%', depth)
	}
	if inner, ok := w.field(t, "set").(*lua.LTable); ok {
		return w.appendPairs(out, inner, '~', depth)
	}
	if text, ok := w.field(t, "big_number").(lua.LString); ok {
		if !w.resp3 {
			return appendBulk(out, string(oneLine(nil, string(text))))
		}
		return append(oneLine(append(out, '('), string(text)), "\r\n"...)
	}
	if inner, ok := w.field(t, "verbatim_string").(*lua.LTable); ok {
		text, isText := w.field(inner, "string").(lua.LString)
		format, hasFormat := w.field(inner, "format").(lua.LString)
		if isText && hasFormat {
			if !w.resp3 {
				return appendBulk(out, string(text))
			}
			out = appendHeader(out, '=', int64(len(text)+4))
			out = append(append(out, (string(format) + "   ")[:3]...), ':')
			return append(append(out, text...), "\r\n"...)
		}
	}
	n := 0
	for w.item(t, n+1) != lua.LNil {
		n++
	}
	out = appendHeader(out, '*', int64(n))
	for i := range n {
		if out = w.append(out, w.item(t, i+1), depth); w.full {
			break
		}
	}
	return out
}

func (w *replyWriter) appendPairs(out []byte, t *lua.LTable, kind byte, depth int) []byte {
	n := 0
	t.ForEach(func(lua.LValue, lua.LValue) { n++ })
	values := kind == '%'
	if w.resp3 {
		out = appendHeader(out, kind, int64(n))
	} else if values {
		out = appendHeader(out, '*', int64(2*n))
	} else {
		out = appendHeader(out, '*', int64(n))
	}
	t.ForEach(func(key, value lua.LValue) {
		if out = w.append(out, key, depth); values {
			out = w.append(out, value, depth)
		}
	})
	return out
}

// field and item read a table as it is: a reply calls no functions of the script.
func (w *replyWriter) field(t *lua.LTable, name string) lua.LValue { return t.RawGetString(name) }
func (w *replyWriter) item(t *lua.LTable, i int) lua.LValue        { return t.RawGetInt(i) }

func (w *replyWriter) appendBool(out []byte, yes bool) []byte {
	switch {
	case w.e.resp3 && w.resp3 && yes:
		return append(out, "#t\r\n"...)
	case w.e.resp3 && w.resp3:
		return append(out, "#f\r\n"...)
	case w.e.resp3 && !yes:
		return append(out, ":0\r\n"...)
	case yes:
		return append(out, ":1\r\n"...)
	}
	return w.appendNull(out)
}

func (w *replyWriter) appendNull(out []byte) []byte {
	if w.resp3 {
		return append(out, "_\r\n"...)
	}
	return append(out, "$-1\r\n"...)
}

// toInt cuts a number off as C does on the machines that Redis runs on: what does not fit is the smallest integer.
func toInt(n float64) int64 {
	if n != n || n >= math.MaxInt64 || n < math.MinInt64 {
		return math.MinInt64
	}
	return int64(n)
}

// toUint is that for an unsigned integer: what does not fit is 2^63 or 0.
func toUint(n float64) uint64 {
	if n >= 1<<63 {
		return uint64(toInt(n-1<<63)) ^ 1<<63
	}
	return uint64(toInt(n))
}

func appendHeader(out []byte, kind byte, n int64) []byte {
	return append(strconv.AppendInt(append(out, kind), n, 10), "\r\n"...)
}

func appendBulk(out []byte, text string) []byte {
	return append(append(appendHeader(out, '$', int64(len(text))), text...), "\r\n"...)
}

func appendError(out []byte, text string) []byte {
	return append(oneLine(append(out, '-'), strings.TrimRight(text, "\r\n")), "\r\n"...)
}

// oneLine appends a text with its line breaks as spaces, so that no reply can be smuggled in.
func oneLine(out []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c == '\r' || c == '\n' {
			out = append(out, ' ')
		} else {
			out = append(out, c)
		}
	}
	return out
}
