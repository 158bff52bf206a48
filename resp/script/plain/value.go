package plain

import (
	"bytes"

	"celld/resp/script/value"

	lua "github.com/yuin/gopher-lua"
)

// kind is the type of a val.
type kind uint8

const (
	isNil kind = iota
	isFalse
	isTrue
	isNumber
	isText
	isStatus // what a command has answered, a table to the script: its text
	isTable  // any other answer that is a table: an error or a list
)

// val is a value of a script.
type val struct {
	kind  kind
	n     float64 // of a status: its own
	text  []byte
	table lua.LValue
}

var (
	yes = val{kind: isTrue}
	no  = val{kind: isFalse}
)

func truth(is bool) val {
	if is {
		return yes
	}
	return no
}

func number(n float64) val { return val{kind: isNumber, n: n} }

func (v *val) holds() bool { return v.kind > isFalse }

// typeName is the type's name in errors.
func (v *val) typeName() string {
	return [...]string{
		isNil: "nil", isFalse: "boolean", isTrue: "boolean", isNumber: "number", isText: "string", isStatus: "table", isTable: "table",
	}[v.kind]
}

// equals is ==.
func (v *val) equals(other *val) bool {
	switch {
	case v.kind != other.kind:
		return false
	case v.kind == isNumber || v.kind == isStatus:
		return v.n == other.n
	case v.kind == isText:
		return bytes.Equal(v.text, other.text)
	}
	return v.table == other.table
}

// exact is how many digits a float64 holds exactly.
const exact = 15

// asNumber is the number that a value is, or reads as.
func (v *val) asNumber() (n float64, ok bool) {
	switch v.kind {
	case isNumber:
		return v.n, true
	case isText:
		if whole, ok := digits(v.text); ok {
			return float64(whole), true
		}
		return value.ReadNumber(string(v.text))
	}
	return 0, false
}

// digits reads a short text of digits, as most numbers are.
func digits(text []byte) (n int64, ok bool) {
	if len(text) == 0 || len(text) > exact {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
