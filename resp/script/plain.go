package script

import (
	"celld/resp/script/plain"
	"celld/resp/script/sandbox"
	"celld/resp/script/value"
	"celld/resp/wire"

	lua "github.com/yuin/gopher-lua"
)

// plainHost is an Engine as plain scripts see it.
type plainHost Engine

func (h *plainHost) Call(args [][]byte) (reply []byte) { return h.host.Call(args) }

// Value converts a reply under the bounds of a script, as it may be long.
func (h *plainHost) Value(reply []byte) (v lua.LValue, err error) {
	e := (*Engine)(h)
	e.budget.Start(h.host, 0)
	err = e.box.Run(e.box.L.NewFunction(func(L *lua.LState) int {
		e.budget.Charge(L, 4*len(reply)) // see Engine.call
		v, _ := e.value(L, reply)
		return value.Push(L, v)
	}))
	if err != nil {
		return nil, err
	}
	v = e.box.L.Get(-1)
	e.box.L.SetTop(0)
	return v, nil
}

func (h *plainHost) Error(text string) *lua.LTable { return sandbox.ErrorTable(h.box.L, text) }

func (h *plainHost) Raise(object lua.LValue, line int) error { return h.box.Raised(object, line) }

// appendResult appends what a plain script has returned.
func (w *replyWriter) appendResult(out []byte, r *plain.Result) []byte {
	p := &w.e.ofPlain
	*p = plainWriter{w, out, 0}
	r.To(p)
	out, p.out = p.out, nil
	return out
}

// plainWriter appends values as replyWriter does.
type plainWriter struct {
	*replyWriter
	out   []byte
	depth int // in lists
}

func (p *plainWriter) Array(n int) {
	p.out = wire.AppendArray(p.out, n)
	p.depth++
}

func (p *plainWriter) Number(n float64)   { p.out = wire.AppendInt(p.out, value.ToInt(n)) }
func (p *plainWriter) Text(text []byte)   { p.out = wire.AppendBulk(p.out, text) }
func (p *plainWriter) Status(text []byte) { p.out = wire.AppendStatus(p.out, string(text)) }
func (p *plainWriter) Bool(is bool)       { p.out = p.appendBool(p.out, is) }
func (p *plainWriter) Nil()               { p.out = wire.AppendNull(p.out, p.resp3) }
func (p *plainWriter) Other(v lua.LValue) { p.out = p.append(p.out, v, p.depth) }
