package plain

import (
	"bytes"
	"strconv"

	"celld/resp/script/source"
	"celld/resp/script/value"

	lua "github.com/yuin/gopher-lua"
)

// Host runs the commands of a script.
type Host interface {
	// Call runs a command. Its reply is valid until the next one.
	Call(args [][]byte) (reply []byte)

	// Value is a reply as a script sees it. The error ends the script.
	Value(reply []byte) (lua.LValue, error)

	// Error is the error of a call that is none.
	Error(text string) *lua.LTable

	// Raise is the error with which a script ends at a line: a text with its place, or a table.
	Raise(object lua.LValue, line int) error
}

// Machine runs programs, one at a time. Its zero value is ready.
type Machine struct {
	host       Host
	keys, args [][]byte
	locals     [mostLocals]val
	stack      []val    // of arguments of calls that are not made yet
	words      [][]byte // of a command
	numbers    []byte   // among them, as text
	texts      []byte   // of replies
	answered   int      // statuses
	result     Result
	failure    error
}

// LongestText is how many bytes a key or an argument may have. To compare longer ones takes time that the interpreter counts.
const LongestText = 16 << 10

// Fit reports keys and arguments that are short enough for a Machine.
func Fit(keys, args [][]byte) bool {
	for _, list := range [...][][]byte{keys, args} {
		for _, text := range list {
			if len(text) > LongestText {
				return false
			}
		}
	}
	return true
}

// mostKept is how much room for texts is kept for the next program.
const mostKept = 64 << 10

// Run runs a program. keys and args must Fit, and be valid until the result has been appended. The error is one of Host's.
func (m *Machine) Run(p *Program, host Host, keys, args [][]byte) (result *Result, err error) {
	m.host, m.keys, m.args, m.failure = host, keys, args, nil
	m.stack, m.texts, m.result = m.stack[:0], m.texts[:0], Result{items: m.result.items[:0]}
	if cap(m.texts) > mostKept {
		m.texts = nil
	}
	defer func() {
		if m.failure != nil { // otherwise nobody has panicked, or a command has
			_ = recover()
			err = m.failure
		}
	}()
	m.run(p.body)
	return &m.result, nil
}

// end ends the script.
func (m *Machine) end(err error) {
	m.failure = err
	panic(err)
}

// fail ends the script with an error of its own.
func (m *Machine) fail(line int, text string) {
	m.end(m.host.Raise(lua.LString(source.Name+":"+strconv.Itoa(line)+": "+text), line))
}

func (m *Machine) run(body []statement) (returned bool) {
	for _, s := range body {
		if s(m) {
			return true
		}
	}
	return false
}

// less is a < b, or a <= b.
func (m *Machine) less(a, b *val, orEqual bool, line int) bool {
	switch {
	case a.kind == isNumber && b.kind == isNumber:
		if orEqual {
			return a.n <= b.n
		}
		return a.n < b.n
	case a.kind == isText && b.kind == isText:
		order := bytes.Compare(a.text, b.text)
		return order < 0 || orEqual && order == 0
	}
	m.fail(line, "attempt to compare "+a.typeName()+" with "+b.typeName())
	return false
}

// operands are two values as numbers, one of which is none.
func (m *Machine) operands(a, b *val, operator string, line int) (x, y float64) {
	x, okA := a.asNumber()
	y, okB := b.asNumber()
	switch {
	case okA && okB:
	case a.kind != isText && b.kind != isText:
		m.fail(line, "cannot perform "+operator+" operation between "+a.typeName()+" and "+b.typeName())
	case !okA:
		m.fail(line, "attempt to perform arithmetic on a "+a.typeName()+" value")
	default:
		m.fail(line, "attempt to perform arithmetic on a "+b.typeName()+" value")
	}
	return x, y
}

// command calls a command.
func (m *Machine) command(given []val, protected bool, line int) val {
	m.words, m.numbers = m.words[:0], m.numbers[:0]
	for i := range given {
		switch v := &given[i]; v.kind {
		case isText:
			m.words = append(m.words, v.text)
		case isNumber:
			from := len(m.numbers)
			m.numbers = value.AppendNumber(m.numbers, v.n, 17)
			m.words = append(m.words, m.numbers[from:])
		default:
			return m.failed(m.host.Error("ERR Lua redis lib command arguments must be strings or integers"), protected, line)
		}
	}
	reply := m.host.Call(m.words)
	switch reply[0] {
	case ':':
		return number(integer(reply))
	case '+':
		m.answered++
		return val{kind: isStatus, n: float64(m.answered), text: m.keep(reply[1 : len(reply)-2])}
	case '$':
		if reply[1] == '-' {
			return no
		}
		return val{kind: isText, text: m.keep(reply[bytes.IndexByte(reply, '\n')+1 : len(reply)-2])}
	}
	v, err := m.host.Value(reply)
	switch {
	case err != nil:
		m.end(err)
	case reply[0] == '-':
		return m.failed(v.(*lua.LTable), protected, line)
	case v == lua.LFalse: // no list
		return no
	}
	return val{kind: isTable, table: v}
}

// integer reads a reply that is one, which is celld's own.
func integer(reply []byte) float64 {
	n, sign, at := int64(0), int64(1), 1
	if reply[1] == '-' {
		sign, at = -1, 2
	}
	for ; reply[at] != '\r'; at++ {
		n = n*10 + sign*int64(reply[at]-'0')
	}
	return float64(n)
}

// keep copies a text of a reply.
func (m *Machine) keep(text []byte) []byte {
	from := len(m.texts)
	m.texts = append(m.texts, text...)
	return m.texts[from:]
}

// failed is the error of a call, which ends the script unless the call is protected.
func (m *Machine) failed(t *lua.LTable, protected bool, line int) val {
	if !protected {
		m.end(m.host.Raise(t, line))
	}
	return val{kind: isTable, table: t}
}
