package plain

import lua "github.com/yuin/gopher-lua"

// Result is what a script has returned. It is the Machine's until the next Run.
type Result struct {
	list  bool
	one   val
	items []val
}

// Writer appends values of a script to its reply.
type Writer interface {
	Array(n int)
	Number(n float64)
	Text(text []byte)
	Status(text []byte)
	Bool(is bool)
	Nil()
	Other(v lua.LValue) // what a command has answered
}

// To appends the result.
func (r *Result) To(w Writer) {
	if !r.list {
		r.one.to(w)
		return
	}
	n := 0 // nil ends a list, as in Lua
	for n < len(r.items) && r.items[n].kind != isNil {
		n++
	}
	w.Array(n)
	for i := range n {
		r.items[i].to(w)
	}
}

func (v *val) to(w Writer) {
	switch v.kind {
	case isNil:
		w.Nil()
	case isFalse, isTrue:
		w.Bool(v.kind == isTrue)
	case isNumber:
		w.Number(v.n)
	case isText:
		w.Text(v.text)
	case isStatus:
		w.Status(v.text)
	default:
		w.Other(v.table)
	}
}
