package plain

import (
	"math"

	"github.com/yuin/gopher-lua/ast"
)

// Program is a plain script.
type Program struct{ body []statement }

// An expression computes a value, a statement reports whether the script has returned.
type (
	expression func(m *Machine) val
	statement  func(m *Machine) (returned bool)
)

// Bounds on a program. A script beyond them is the interpreter's, which asks its Host now and then whether it may go on.
const (
	mostCommands  = 16
	mostArguments = 32
	mostLocals    = 32
	deepest       = 50
)

// Compile compiles a chunk that is plain, and returns nil for any other. It does not change the chunk.
func Compile(chunk []ast.Stmt) *Program {
	c := &compiler{plain: true}
	body := c.block(chunk)
	if !c.plain {
		return nil
	}
	return &Program{body}
}

// compiler notes whether all that it has met is plain.
type compiler struct {
	plain    bool
	locals   []string // those in scope, by their places
	depth    int
	commands int
}

// refuse notes that a chunk is not plain.
func (c *compiler) refuse() expression {
	c.plain = false
	return nil
}

// local returns the place of a local variable, or -1.
func (c *compiler) local(name string) int {
	for at := len(c.locals) - 1; at >= 0; at-- {
		if c.locals[at] == name {
			return at
		}
	}
	return -1
}

// isGlobal reports a name that stands for a global.
func (c *compiler) isGlobal(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.IdentExpr)
	return ok && ident.Value == name && c.local(name) < 0
}

func (c *compiler) block(list []ast.Stmt) (body []statement) {
	outside := len(c.locals)
	if c.depth++; c.depth > deepest {
		c.plain = false
	}
	for _, s := range list {
		if !c.plain {
			return nil
		}
		body = append(body, c.statement(s))
	}
	c.depth--
	c.locals = c.locals[:outside]
	return body
}

func (c *compiler) statement(s ast.Stmt) statement {
	switch s := s.(type) {
	case *ast.LocalAssignStmt:
		return c.declaration(s)
	case *ast.AssignStmt:
		return c.assignment(s)
	case *ast.FuncCallStmt:
		e := c.expression(s.Expr)
		return func(m *Machine) bool { e(m); return false }
	case *ast.IfStmt:
		condition, then, otherwise := c.expression(s.Condition), c.block(s.Then), c.block(s.Else)
		return func(m *Machine) bool {
			if is := condition(m); is.holds() {
				return m.run(then)
			}
			return m.run(otherwise)
		}
	case *ast.ReturnStmt:
		return c.result(s)
	}
	c.plain = false
	return nil
}

// declaration is local names, or as many names as expressions. These do not see the new variables.
func (c *compiler) declaration(s *ast.LocalAssignStmt) statement {
	if len(s.Exprs) > 0 && len(s.Exprs) != len(s.Names) || len(c.locals)+len(s.Names) > mostLocals {
		c.plain = false
		return nil
	}
	var values []expression
	for _, e := range s.Exprs {
		values = append(values, c.expression(e))
	}
	from, to := len(c.locals), len(c.locals)+len(s.Names)
	c.locals = append(c.locals, s.Names...)
	return func(m *Machine) bool {
		clear(m.locals[from:to])
		for i, value := range values {
			m.locals[from+i] = value(m)
		}
		return false
	}
}

// assignment is name = expression, for a local variable.
func (c *compiler) assignment(s *ast.AssignStmt) statement {
	at := -1
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		if name, ok := s.Lhs[0].(*ast.IdentExpr); ok {
			at = c.local(name.Value)
		}
	}
	if at < 0 {
		c.plain = false
		return nil
	}
	e := c.expression(s.Rhs[0])
	return func(m *Machine) bool { m.locals[at] = e(m); return false }
}

// result is return, with an expression or a list of these.
func (c *compiler) result(s *ast.ReturnStmt) statement {
	if len(s.Exprs) == 0 {
		return func(*Machine) bool { return true }
	}
	if len(s.Exprs) > 1 {
		c.plain = false
		return nil
	}
	table, isList := s.Exprs[0].(*ast.TableExpr)
	if !isList {
		e := c.expression(s.Exprs[0])
		return func(m *Machine) bool { m.result.one = e(m); return true }
	}
	var items []expression
	for _, field := range table.Fields {
		if field.Key != nil {
			c.plain = false
			return nil
		}
		items = append(items, c.expression(field.Value))
	}
	return func(m *Machine) bool {
		m.result.list = true
		for _, item := range items {
			m.result.items = append(m.result.items, item(m))
		}
		return true
	}
}

func (c *compiler) expression(e ast.Expr) expression {
	if c.depth++; c.depth > deepest || !c.plain {
		return c.refuse()
	}
	defer func() { c.depth-- }()
	switch e := e.(type) {
	case *ast.NilExpr:
		return func(*Machine) val { return val{} }
	case *ast.TrueExpr:
		return func(*Machine) val { return yes }
	case *ast.FalseExpr:
		return func(*Machine) val { return no }
	case *ast.NumberExpr:
		n, ok := constant(e)
		if !ok {
			return c.refuse()
		}
		return func(*Machine) val { return number(n) }
	case *ast.StringExpr:
		text := []byte(e.Value)
		return func(*Machine) val { return val{kind: isText, text: text} }
	case *ast.IdentExpr:
		at := c.local(e.Value)
		if at < 0 {
			return c.refuse()
		}
		return func(m *Machine) val { return m.locals[at] }
	case *ast.AttrGetExpr:
		return c.argument(e)
	case *ast.UnaryMinusOpExpr:
		return c.negative(e)
	case *ast.UnaryNotOpExpr:
		inner := c.expression(e.Expr)
		return func(m *Machine) val { v := inner(m); return truth(!v.holds()) }
	case *ast.UnaryLenOpExpr:
		return c.length(e)
	case *ast.LogicalOpExpr:
		return c.logical(e)
	case *ast.RelationalOpExpr:
		return c.comparison(e)
	case *ast.ArithmeticOpExpr:
		return c.arithmetic(e)
	case *ast.FuncCallExpr:
		return c.call(e)
	}
	return c.refuse()
}

// constant is a number that a script has in digits.
func constant(e ast.Expr) (n float64, ok bool) {
	text, ok := e.(*ast.NumberExpr)
	if !ok {
		return 0, false
	}
	whole, ok := digits([]byte(text.Value))
	return float64(whole), ok
}

// negative is a constant with a minus before it. The interpreter has a -0 only if it is one.
func (c *compiler) negative(e *ast.UnaryMinusOpExpr) expression {
	n, ok := constant(e.Expr)
	if !ok || n == 0 {
		return c.refuse()
	}
	return func(*Machine) val { return number(-n) }
}

// argument is KEYS[n] or ARGV[n].
func (c *compiler) argument(e *ast.AttrGetExpr) expression {
	n, ok := constant(e.Key)
	keys := c.isGlobal(e.Object, "KEYS")
	if !ok || n == 0 || !keys && !c.isGlobal(e.Object, "ARGV") {
		return c.refuse()
	}
	at := int(n) - 1
	return func(m *Machine) val {
		list := m.args
		if keys {
			list = m.keys
		}
		if at >= len(list) {
			return val{}
		}
		return val{kind: isText, text: list[at]}
	}
}

// length is #KEYS or #ARGV.
func (c *compiler) length(e *ast.UnaryLenOpExpr) expression {
	switch {
	case c.isGlobal(e.Expr, "KEYS"):
		return func(m *Machine) val { return number(float64(len(m.keys))) }
	case c.isGlobal(e.Expr, "ARGV"):
		return func(m *Machine) val { return number(float64(len(m.args))) }
	}
	return c.refuse()
}

func (c *compiler) logical(e *ast.LogicalOpExpr) expression {
	left, right, or := c.expression(e.Lhs), c.expression(e.Rhs), e.Operator == "or"
	return func(m *Machine) val {
		if v := left(m); v.holds() == or {
			return v
		}
		return right(m)
	}
}

func (c *compiler) comparison(e *ast.RelationalOpExpr) expression {
	left, right, line := c.expression(e.Lhs), c.expression(e.Rhs), e.Line()
	switch e.Operator {
	case "==", "~=":
		same := e.Operator == "=="
		return func(m *Machine) val {
			a, b := left(m), right(m)
			return truth(a.equals(&b) == same)
		}
	case "<", "<=", ">", ">=":
		orEqual, swapped := len(e.Operator) == 2, e.Operator[0] == '>'
		return func(m *Machine) val {
			a, b := left(m), right(m)
			if swapped { // as the interpreter, which has no > and >=
				a, b = b, a
			}
			return truth(m.less(&a, &b, orEqual, line))
		}
	}
	return c.refuse()
}

var operators = map[string]struct {
	name  string // in errors
	apply func(a, b float64) float64
}{
	"+": {"add", func(a, b float64) float64 { return a + b }},
	"-": {"sub", func(a, b float64) float64 { return a - b }},
	"*": {"mul", func(a, b float64) float64 { return a * b }},
	"/": {"div", func(a, b float64) float64 { return a / b }},
}

func (c *compiler) arithmetic(e *ast.ArithmeticOpExpr) expression {
	operator, ok := operators[e.Operator]
	if !ok {
		return c.refuse()
	}
	left, right, line := c.expression(e.Lhs), c.expression(e.Rhs), e.Line()
	return func(m *Machine) val {
		a, b := left(m), right(m)
		if a.kind == isNumber && b.kind == isNumber {
			return number(operator.apply(a.n, b.n) + 0) // 0 for -0, as in the interpreter, which keeps small numbers ready
		}
		x, y := m.operands(&a, &b, operator.name, line)
		return number(operator.apply(x, y))
	}
}

// functions are those of math that are plain with one argument that is a number.
var functions = map[string]func(float64) float64{"floor": math.Floor, "ceil": math.Ceil, "abs": math.Abs}

// call is redis.call or pcall, tonumber, or a function of math.
func (c *compiler) call(e *ast.FuncCallExpr) expression {
	if e.Receiver != nil || e.Method != "" || len(e.Args) == 0 || len(e.Args) > mostArguments {
		return c.refuse()
	}
	if c.isGlobal(e.Func, "tonumber") && len(e.Args) == 1 {
		inner := c.expression(e.Args[0])
		return func(m *Machine) val {
			v := inner(m)
			if n, ok := v.asNumber(); ok {
				return number(n)
			}
			return val{}
		}
	}
	member, ok := e.Func.(*ast.AttrGetExpr)
	if !ok {
		return c.refuse()
	}
	name, ok := member.Key.(*ast.StringExpr)
	switch {
	case !ok:
		return c.refuse()
	case c.isGlobal(member.Object, "redis") && (name.Value == "call" || name.Value == "pcall"):
		return c.command(e, name.Value == "pcall")
	case c.isGlobal(member.Object, "math") && len(e.Args) == 1 && functions[name.Value] != nil:
		return c.function(e, name.Value)
	}
	return c.refuse()
}

func (c *compiler) function(e *ast.FuncCallExpr, name string) expression {
	inner, apply, line := c.expression(e.Args[0]), functions[name], e.Line()
	return func(m *Machine) val {
		v := inner(m)
		n, ok := v.asNumber()
		if !ok {
			m.fail(line, "bad argument #1 to "+name+" (number expected, got "+v.typeName()+")")
		}
		return number(apply(n))
	}
}

func (c *compiler) command(e *ast.FuncCallExpr, protected bool) expression {
	if c.commands++; c.commands > mostCommands {
		return c.refuse()
	}
	var words []expression
	for _, argument := range e.Args {
		words = append(words, c.expression(argument))
	}
	line := e.Line()
	return func(m *Machine) val {
		from := len(m.stack)
		for _, word := range words {
			v := word(m)
			m.stack = append(m.stack, v)
		}
		answer := m.command(m.stack[from:], protected, line)
		m.stack = m.stack[:from]
		return answer
	}
}
