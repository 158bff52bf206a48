// Package value reads and writes Lua's numbers and texts as C does, on which Redis's scripts rely: gopher-lua would read '010' as 8.
package value

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Push pushes the results of a function, and returns how many they are.
func Push(L *lua.LState, results ...lua.LValue) int {
	for _, v := range results {
		L.Push(v)
	}
	return len(results)
}

// Call calls a function, and returns its first result.
func Call(L *lua.LState, function lua.LValue, args ...lua.LValue) lua.LValue {
	L.Push(function)
	L.Call(Push(L, args...), 1)
	result := L.Get(-1)
	L.Pop(1)
	return result
}

// Table is a table of one field.
func Table(L *lua.LState, name string, v lua.LValue) *lua.LTable {
	t := L.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}

// CheckNumber returns an argument that must be a number, or a string that reads as one.
func CheckNumber(L *lua.LState, arg int) float64 {
	n, ok := Number(L.Get(arg))
	if !ok {
		L.TypeError(arg, lua.LTNumber)
	}
	return n
}

// CheckInt returns an argument as C's 32-bit int.
func CheckInt(L *lua.LState, arg int) int { return int(int32(ToInt(CheckNumber(L, arg)))) }

// OptInt is CheckInt of an argument that may be missing.
func OptInt(L *lua.LState, arg, otherwise int) int {
	if L.Get(arg) == lua.LNil {
		return otherwise
	}
	return CheckInt(L, arg)
}

// OptPlace is a place in a text, from its end where it is negative, as an offset that may be too small or too large.
func OptPlace(L *lua.LState, arg, length, otherwise int) int {
	at := int64(otherwise)
	if L.Get(arg) != lua.LNil {
		at = ToInt(CheckNumber(L, arg))
	}
	if at < 0 {
		at = max(0, at+int64(length)+1)
	}
	return int(at)
}

// CheckText returns an argument that must be a string or a number.
func CheckText(L *lua.LState, arg int) string {
	if n, ok := L.Get(arg).(lua.LNumber); ok {
		return String(n)
	}
	return L.CheckString(arg)
}

// OptText is CheckText of an argument that may be missing.
func OptText(L *lua.LState, arg int, otherwise string) string {
	if L.Get(arg) == lua.LNil {
		return otherwise
	}
	return CheckText(L, arg)
}

// Number is the number that a number is, or a string that reads as one.
func Number(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return ReadNumber(string(v))
	}
	return 0, false
}

// MaxNumber is how long the text of a number may be: reading it takes 6 ns a byte.
const MaxNumber = 4 << 10

// ReadNumber reads a number as C's strtod does.
func ReadNumber(text string) (float64, bool) {
	text = TrimSpace(text)
	if text == "" || len(text) > MaxNumber || strings.ContainsRune(text, '_') {
		return 0, false
	}
	hex := strings.TrimLeft(strings.ToLower(text), "+-")
	if digits, ok := strings.CutPrefix(hex, "0x"); ok && !strings.Contains(digits, "p") {
		text += "p0"
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil || math.IsInf(n, 0)
}

// TrimSpace cuts off blanks, as C's isspace defines them.
func TrimSpace(text string) string { return strings.Trim(text, " \t\n\v\f\r") }

// IsText reports whether Lua takes a value for a text: a string or a number.
func IsText(v lua.LValue) bool { return v.Type() == lua.LTString || v.Type() == lua.LTNumber }

// AppendText appends the text of a value that IsText.
func AppendText(b []byte, v lua.LValue) []byte {
	if n, ok := v.(lua.LNumber); ok {
		return AppendNumber(b, float64(n), 14)
	}
	return append(b, string(v.(lua.LString))...)
}

// AppendNumber writes a number as C's %.<digits>g does.
func AppendNumber(b []byte, n float64, digits int) []byte {
	switch {
	case math.IsNaN(n) && math.Signbit(n):
		return append(b, "-nan"...)
	case math.IsNaN(n):
		return append(b, "nan"...)
	case math.IsInf(n, 1):
		return append(b, "inf"...)
	case math.IsInf(n, -1):
		return append(b, "-inf"...)
	}
	if whole := int64(n); float64(whole) == n && -1e14 < n && n < 1e14 && (n != 0 || !math.Signbit(n)) {
		return strconv.AppendInt(b, whole, 10)
	}
	return strconv.AppendFloat(b, n, 'g', digits, 64)
}

// String is tostring without metamethods.
func String(v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return string(AppendNumber(nil, float64(n), 14))
	}
	return v.String()
}

// ToInt truncates a number as C does on the machines that Redis runs on: a number out of range becomes the smallest integer.
func ToInt(n float64) int64 {
	if n != n || n >= math.MaxInt64 || n < math.MinInt64 {
		return math.MinInt64
	}
	return int64(n)
}

// ToUint is ToInt for an unsigned integer: a number out of range becomes 2^63 or 0.
func ToUint(n float64) uint64 {
	if n >= 1<<63 {
		return uint64(ToInt(n-1<<63)) ^ 1<<63
	}
	return uint64(ToInt(n))
}
