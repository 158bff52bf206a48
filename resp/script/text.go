package script

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func (e *Engine) luaRep(L *lua.LState) int {
	text, n := checkText(L, 1), max(0, checkInt(L, 2))
	if len(text) > 0 && n > maxMemory/len(text) {
		e.take(L, maxMemory+1)
	}
	e.take(L, len(text)*n)
	L.Push(textOf(e, strings.Repeat(text, n)))
	return 1
}

func luaLen(L *lua.LState) int {
	L.Push(lua.LNumber(len(checkText(L, 1))))
	return 1
}

func luaSub(L *lua.LState) int {
	text := checkText(L, 1)
	checkNumber(L, 2)
	first, last := max(1, optPlace(L, 2, len(text), 1)), min(len(text), optPlace(L, 3, len(text), -1))
	if first > last {
		text = ""
	} else {
		text = text[first-1 : last]
	}
	L.Push(lua.LString(text))
	return 1
}

func (e *Engine) luaByte(L *lua.LState) int {
	text := checkText(L, 1)
	first := optPlace(L, 2, len(text), 1)
	last := min(len(text), optPlace(L, 3, len(text), first))
	first = max(1, first)
	e.spend(16 * max(0, last-first))
	for i := first; i <= last; i++ {
		L.Push(lua.LNumber(text[i-1]))
	}
	return max(0, last-first+1)
}

func luaChar(L *lua.LState) int {
	text := make([]byte, L.GetTop())
	for i := range text {
		c := checkInt(L, i+1)
		if c < 0 || c > 255 {
			L.ArgError(i+1, "invalid value")
		}
		text[i] = byte(c)
	}
	L.Push(lua.LString(text))
	return 1
}

func (e *Engine) luaReverse(L *lua.LState) int {
	text := []byte(checkText(L, 1))
	e.take(L, 2*len(text))
	for i, j := 0, len(text)-1; i < j; i, j = i+1, j-1 {
		text[i], text[j] = text[j], text[i]
	}
	L.Push(textOf(e, text))
	return 1
}

// luaLower and luaUpper change ASCII letters and leave all other bytes, as Lua does in the C locale.
func (e *Engine) luaLower(L *lua.LState) int { return e.mapBytes(L, 'A', 'Z') }
func (e *Engine) luaUpper(L *lua.LState) int { return e.mapBytes(L, 'a', 'z') }

func (e *Engine) mapBytes(L *lua.LState, first, last byte) int {
	text := []byte(checkText(L, 1))
	e.take(L, 2*len(text))
	for i, c := range text {
		if first <= c && c <= last {
			text[i] = c ^ 0x20
		}
	}
	L.Push(textOf(e, text))
	return 1
}

// luaFormat is string.format. Width and precision have at most two digits, as in Lua; Go accepts a million.
func (e *Engine) luaFormat(L *lua.LState) int {
	format, arg := checkText(L, 1), 1
	var out []byte
	counted := 0
	for i := 0; i < len(format); i++ {
		plain, _, _ := strings.Cut(format[i:], "%")
		if out = append(out, plain...); cap(out) > counted {
			counted = cap(out)
			e.take(L, counted)
		}
		if i += len(plain); i == len(format) {
			break
		}
		e.step(L)
		start := i
		for i++; i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0; i++ {
		}
		if i-start > 6 {
			L.RaiseError("invalid format (repeated flags)")
		}
		i = twoDigits(format, i)
		if i < len(format) && format[i] == '.' {
			i = twoDigits(format, i+1)
		}
		if i < len(format) && '0' <= format[i] && format[i] <= '9' {
			L.RaiseError("invalid format (width or precision too long)")
		}
		if i == len(format) {
			L.RaiseError("invalid option '%%' to 'format'")
		}
		verb, spec := format[i], format[start:i]
		if verb == '%' && spec == "%" {
			out = append(out, '%')
			continue
		}
		arg++
		switch verb {
		case 'c':
			out = appendPadded(out, spec, string([]byte{byte(toInt(checkNumber(L, arg)))}))
		case 'd', 'i':
			out = fmt.Appendf(out, spec+"d", toInt(checkNumber(L, arg)))
		case 'u':
			out = appendUnsigned(out, spec, 'd', toUint(checkNumber(L, arg)))
		case 'o', 'x', 'X':
			out = appendUnsigned(out, spec, verb, toUint(checkNumber(L, arg)))
		case 'e', 'E', 'f', 'g', 'G':
			out = appendFloat(out, spec, verb, checkNumber(L, arg))
		case 'q':
			text := checkText(L, arg)
			e.take(L, 4*len(text))
			out = appendQuoted(out, text)
		case 's':
			v := L.Get(arg)
			if !isText(v) {
				L.TypeError(arg, lua.LTString)
			}
			text := toString(v)
			e.take(L, len(text))
			out = appendPadded(out, spec, text)
		default:
			L.RaiseError("invalid option '%%%c' to 'format'", verb)
		}
	}
	L.Push(textOf(e, out))
	return 1
}

func twoDigits(format string, i int) int {
	for n := 0; n < 2 && i < len(format) && '0' <= format[i] && format[i] <= '9'; n++ {
		i++
	}
	return i
}

// appendPadded pads and cuts a text by a spec such as %-5.2, in bytes. Go's fmt counts characters, and may pad with zeros.
func appendPadded(out []byte, spec, text string) []byte {
	size, precision, cut := strings.Cut(strings.TrimLeft(spec, "%-+ #0"), ".")
	if most, _ := strconv.Atoi(precision); cut && most < len(text) {
		text = text[:most]
	}
	width, _ := strconv.Atoi(size)
	blanks := strings.Repeat(" ", max(0, width-len(text)))
	if strings.Contains(strings.TrimRight(spec, "0123456789."), "-") {
		return append(append(out, text...), blanks...)
	}
	return append(append(out, blanks...), text...)
}

// appendUnsigned ignores the flags for signs, and writes no 0x before 0, as in C.
func appendUnsigned(out []byte, spec string, verb byte, n uint64) []byte {
	spec = strings.NewReplacer("+", "", " ", "").Replace(spec)
	if n == 0 && verb != 'o' {
		spec = strings.ReplaceAll(spec, "#", "")
	}
	return fmt.Appendf(out, spec+string(verb), n)
}

func appendFloat(out []byte, spec string, verb byte, n float64) []byte {
	if text := string(appendNumber(nil, n, 14)); strings.HasSuffix(text, "n") || strings.HasSuffix(text, "f") { // nan, inf
		for _, sign := range "+ " {
			if strings.ContainsRune(spec, sign) && text[0] != '-' {
				text = string(sign) + text
				break
			}
		}
		return appendPadded(out, spec, text)
	}
	if (verb == 'g' || verb == 'G') && !strings.Contains(spec, ".") { // Go's default is the shortest text that reads back as n
		spec += ".6"
	}
	return fmt.Appendf(out, spec+string(verb), n)
}

// appendQuoted writes a string as a Lua literal.
func appendQuoted(out []byte, text string) []byte {
	out = append(out, '"')
	for i := range len(text) {
		switch c := text[i]; c {
		case '"', '\\', '\n':
			out = append(out, '\\', c)
		case '\r':
			out = append(out, `\r`...)
		case 0:
			out = append(out, `\000`...)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
