package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"celld/resp/script/budget"
	"celld/resp/script/value"

	lua "github.com/yuin/gopher-lua"
)

func (x *Sandbox) luaRep(L *lua.LState) int {
	text, n := value.CheckText(L, 1), max(0, value.CheckInt(L, 2))
	if len(text) > 0 && n > budget.MaxMemory/len(text) {
		x.budget.Charge(L, budget.MaxMemory+1)
	}
	x.budget.Charge(L, len(text)*n)
	return value.Push(L, budget.Text(x.budget, strings.Repeat(text, n)))
}

func luaLen(L *lua.LState) int {
	return value.Push(L, lua.LNumber(len(value.CheckText(L, 1))))
}

func luaSub(L *lua.LState) int {
	text := value.CheckText(L, 1)
	value.CheckNumber(L, 2)
	first, last := max(1, value.OptPlace(L, 2, len(text), 1)), min(len(text), value.OptPlace(L, 3, len(text), -1))
	if first > last {
		text = ""
	} else {
		text = text[first-1 : last]
	}
	return value.Push(L, lua.LString(text))
}

func (x *Sandbox) luaByte(L *lua.LState) int {
	text := value.CheckText(L, 1)
	first := value.OptPlace(L, 2, len(text), 1)
	last := min(len(text), value.OptPlace(L, 3, len(text), first))
	first = max(1, first)
	x.budget.Spend(16 * max(0, last-first))
	for i := first; i <= last; i++ {
		L.Push(lua.LNumber(text[i-1]))
	}
	return max(0, last-first+1)
}

func luaChar(L *lua.LState) int {
	text := make([]byte, L.GetTop())
	for i := range text {
		c := value.CheckInt(L, i+1)
		if c < 0 || c > 255 {
			L.ArgError(i+1, "invalid value")
		}
		text[i] = byte(c)
	}
	return value.Push(L, lua.LString(text))
}

func (x *Sandbox) luaReverse(L *lua.LState) int {
	text := []byte(value.CheckText(L, 1))
	x.budget.Charge(L, 2*len(text))
	slices.Reverse(text)
	return value.Push(L, budget.Text(x.budget, text))
}

// luaLower and luaUpper change ASCII letters and leave all other bytes, as Lua does in the C locale.
func (x *Sandbox) luaLower(L *lua.LState) int { return x.mapBytes(L, 'A', 'Z') }
func (x *Sandbox) luaUpper(L *lua.LState) int { return x.mapBytes(L, 'a', 'z') }

func (x *Sandbox) mapBytes(L *lua.LState, first, last byte) int {
	text := []byte(value.CheckText(L, 1))
	x.budget.Charge(L, 2*len(text))
	for i, c := range text {
		if first <= c && c <= last {
			text[i] = c ^ 0x20
		}
	}
	return value.Push(L, budget.Text(x.budget, text))
}

// luaFormat is string.format. Width and precision have at most two digits, as in Lua; Go accepts a million.
func (x *Sandbox) luaFormat(L *lua.LState) int {
	format, arg := value.CheckText(L, 1), 1
	var out []byte
	counted := 0
	for i := 0; i < len(format); i++ {
		plain, _, _ := strings.Cut(format[i:], "%")
		out = append(out, plain...)
		counted = x.grown(L, out, counted)
		if i += len(plain); i == len(format) {
			break
		}
		x.budget.Step(L)
		start := i
		i = verbAt(L, format, i)
		verb, spec := format[i], format[start:i]
		if verb == '%' && spec == "%" {
			out = append(out, '%')
			continue
		}
		arg++
		out = x.appendFormatted(L, out, spec, verb, arg)
	}
	return value.Push(L, budget.Text(x.budget, out))
}

// grown announces the room of a text that had so much, if it has more now, and returns it.
func (x *Sandbox) grown(L *lua.LState, text []byte, was int) int {
	if cap(text) > was {
		x.budget.Charge(L, cap(text))
	}
	return max(was, cap(text))
}

// verbAt returns where the verb is of a spec that begins at i.
func verbAt(L *lua.LState, format string, i int) int {
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
	return i
}

// appendFormatted appends an argument by its spec, such as %-5.2, and verb.
func (x *Sandbox) appendFormatted(L *lua.LState, out []byte, spec string, verb byte, arg int) []byte {
	switch verb {
	case 'c':
		return appendPadded(out, spec, string([]byte{byte(value.ToInt(value.CheckNumber(L, arg)))}))
	case 'd', 'i':
		return fmt.Appendf(out, spec+"d", value.ToInt(value.CheckNumber(L, arg)))
	case 'u':
		return appendUnsigned(out, spec, 'd', value.ToUint(value.CheckNumber(L, arg)))
	case 'o', 'x', 'X':
		return appendUnsigned(out, spec, verb, value.ToUint(value.CheckNumber(L, arg)))
	case 'e', 'E', 'f', 'g', 'G':
		return appendFloat(out, spec, verb, value.CheckNumber(L, arg))
	case 'q':
		text := value.CheckText(L, arg)
		x.budget.Charge(L, 4*len(text))
		return AppendQuoted(out, text)
	case 's':
		v := L.Get(arg)
		if !value.IsText(v) {
			L.TypeError(arg, lua.LTString)
		}
		text := value.String(v)
		x.budget.Charge(L, len(text))
		return appendPadded(out, spec, text)
	}
	L.RaiseError("invalid option '%%%c' to 'format'", verb)
	return nil
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
	if text := string(value.AppendNumber(nil, n, 14)); strings.HasSuffix(text, "n") || strings.HasSuffix(text, "f") { // nan, inf
		for _, sign := range "+ " {
			if strings.ContainsRune(spec, sign) && text[0] != '-' {
				text = string(sign) + text
				break
			}
		}
		spec, _, _ = strings.Cut(spec, ".") // no precision cuts them
		return appendPadded(out, spec, text)
	}
	if (verb == 'g' || verb == 'G') && !strings.Contains(spec, ".") { // Go's default is the shortest text that reads back as n
		spec += ".6"
	}
	return fmt.Appendf(out, spec+string(verb), n)
}

// AppendQuoted writes a string as a Lua literal.
func AppendQuoted(out []byte, text string) []byte {
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
