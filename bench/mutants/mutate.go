//go:build linux

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A mutant is one change. Its name holds no line number, so that it stays the same while other code changes.
type mutant struct {
	id   int    // from 1, in the order of the source
	name string // "cell/gcra.go take: tat < now becomes <="
	path string
	line int
}

// mutator changes one file. The changes do not move lines, so that the compiler's messages say which mutant they are about.
type mutator struct {
	path    string // "cell/gcra.go"
	src     []byte
	file    *token.File
	pkg     *types.Package
	info    *types.Info
	without map[string]bool // names of mutants that do not compile
	add     func(mutant) int

	edits   []edit
	names   map[string]int
	parents []ast.Node
}

// edit replaces src[from:to]. Those of one place stand in the order in which they were made.
type edit struct {
	from, to int
	text     string
}

func (m *mutator) mutate(file *ast.File) []byte {
	m.names = map[string]int{}
	m.inside(file)
	// a+b: what closes a stands before the +
	slices.SortStableFunc(m.edits, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	var out bytes.Buffer
	at := 0
	for _, e := range m.edits {
		out.Write(m.src[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(m.src[at:])
	return out.Bytes()
}

// inside changes n's children, from the first to the last. An opening text is edited before the node's children, a closing one after them.
func (m *mutator) inside(n ast.Node) {
	m.parents = append(m.parents, n)
	first := true
	ast.Inspect(n, func(child ast.Node) bool {
		if first {
			first = false
			return true
		}
		if child != nil {
			m.node(child)
		}
		return false
	})
	m.parents = m.parents[:len(m.parents)-1]
}

func (m *mutator) node(n ast.Node) {
	if x, ok := n.(ast.Expr); ok && m.info.Types[x].Value != nil {
		return // a constant, which another type may depend on
	}
	end := ""
	switch n := n.(type) {
	case *ast.GenDecl:
		if n.Tok == token.CONST || n.Tok == token.TYPE {
			return
		}
	case *ast.BinaryExpr:
		end = m.binary(n)
	case *ast.IncDecStmt:
		m.step(n)
	case *ast.AssignStmt:
		end = m.assign(n)
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !m.isPanic(call) {
			end = m.leaveOut(n)
		}
	case *ast.DeferStmt:
		end = m.leaveOut(n)
	case *ast.ReturnStmt:
		m.results(n)
		return
	}
	if x, ok := n.(ast.Expr); ok && m.isCondition(x) {
		end += m.wrap(x, "negated", "mutantIs(%d) != (", ")")
	}
	m.inside(n)
	m.insert(n.End(), end)
}

var comparisons = map[token.Token]string{
	token.LSS: "mutantLess <=", token.LEQ: "mutantLessEqual <", token.GTR: "mutantGreater >=", token.GEQ: "mutantGreaterEqual >",
}

var arithmetic = map[token.Token]string{
	token.ADD: "mutantAdd -", token.SUB: "mutantSubtract +", token.MUL: "mutantMultiply /", token.QUO: "mutantDivide *",
	token.REM: "mutantRemainder *",
}

// binary returns what closes the change after the right operand.
func (m *mutator) binary(n *ast.BinaryExpr) string {
	end := ""
	function, compares := comparisons[n.Op]
	if compares || n.Op == token.EQL || n.Op == token.NEQ {
		end = m.wrap(n, "negated", "(mutantIs(%d) != (", "))")
	}
	if !compares {
		function = arithmetic[n.Op]
	}
	if function == "" || !compares && m.isText(n) {
		return end
	}
	function, becomes, _ := strings.Cut(function, " ")
	inner := m.wrap(n, "becomes "+becomes, function+"(%d, ", ")")
	if inner != "" {
		m.replace(n.OpPos, len(n.Op.String()), ",")
	}
	return inner + end
}

// isCondition tells whether x is a whole condition that binary does not negate.
func (m *mutator) isCondition(x ast.Expr) bool {
	if _, ok := x.(*ast.BinaryExpr); ok {
		return false // a comparison, or one of && and ||, of which each operand is negated
	}
	switch parent := m.parents[len(m.parents)-1].(type) {
	case *ast.IfStmt:
		return x == parent.Cond
	case *ast.ForStmt:
		return x == parent.Cond
	case *ast.BinaryExpr:
		return parent.Op == token.LAND || parent.Op == token.LOR
	}
	return false
}

// step leaves alone the steps of a for clause: without them the loop never ends, which any test sees.
func (m *mutator) step(n *ast.IncDecStmt) {
	if loop, ok := m.parents[len(m.parents)-1].(*ast.ForStmt); ok && loop.Post == ast.Stmt(n) || hasCall(n.X) {
		return
	}
	function, becomes := "mutantAdd", "--"
	if n.Tok == token.DEC {
		function, becomes = "mutantSubtract", "++"
	}
	if id := m.new(n, "becomes "+becomes); id > 0 {
		m.replace(n.TokPos, 2, fmt.Sprintf(" = %s(%d, %s, 1)", function, id, m.text(n.X)))
	}
}

func (m *mutator) assign(n *ast.AssignStmt) string {
	operators := map[token.Token]token.Token{
		token.ADD_ASSIGN: token.ADD, token.SUB_ASSIGN: token.SUB, token.MUL_ASSIGN: token.MUL, token.QUO_ASSIGN: token.QUO,
		token.REM_ASSIGN: token.REM,
	}
	function, becomes, ok := strings.Cut(arithmetic[operators[n.Tok]], " ")
	loop, in := m.parents[len(m.parents)-1].(*ast.ForStmt)
	if !ok || in && loop.Post == ast.Stmt(n) || m.isText(n.Lhs[0]) || hasCall(n.Lhs[0]) {
		return ""
	}
	id := m.new(n, "becomes "+becomes+"=")
	if id == 0 {
		return ""
	}
	m.replace(n.TokPos, len(n.Tok.String()), fmt.Sprintf("= %s(%d, %s,", function, id, m.text(n.Lhs[0])))
	return ")"
}

func (m *mutator) leaveOut(n ast.Stmt) string {
	switch m.parents[len(m.parents)-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return m.wrap(n, "left out", "if !mutantIs(%d) { ", " }")
	}
	return ""
}

// results makes each result of a basic type, and each error, its zero value; what is zero already becomes one. What stands
// beside an error or false means nothing, and stays.
func (m *mutator) results(n *ast.ReturnStmt) {
	var signature *types.Signature
	for _, parent := range slices.Backward(m.parents) {
		if f, ok := parent.(*ast.FuncLit); ok {
			signature = m.info.TypeOf(f).(*types.Signature)
		} else if f, ok := parent.(*ast.FuncDecl); ok {
			signature = m.info.TypeOf(f.Name).(*types.Signature)
		}
		if signature != nil {
			break
		}
	}
	m.parents = append(m.parents, n)
	for i, x := range n.Results {
		end := ""
		if len(n.Results) == signature.Results().Len() && (i == len(n.Results)-1 || !m.saysNone(n.Results[len(n.Results)-1])) {
			end = m.result(x, signature.Results().At(i).Type())
		}
		m.node(x)
		m.insert(x.End(), end)
	}
	m.parents = m.parents[:len(m.parents)-1]
}

// saysNone tells whether a last result says that those before it mean nothing: false, or an error for certain.
func (m *mutator) saysNone(last ast.Expr) bool {
	of := m.info.Types[last]
	if of.Value != nil && of.Value.Kind() == constant.Bool {
		return !constant.BoolVal(of.Value)
	}
	name, isName := last.(*ast.Ident)
	isError := types.Implements(of.Type, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
	return isError && (!isName || len(name.Name) > 3 && strings.HasPrefix(strings.ToLower(name.Name), "err"))
}

func (m *mutator) result(x ast.Expr, t types.Type) string {
	instead := ""
	value := m.info.Types[x].Value
	basic, _ := t.Underlying().(*types.Basic)
	switch {
	case types.Identical(t, types.Universe.Lookup("error").Type()):
		instead = "nil"
	case basic == nil:
	case basic.Info()&types.IsBoolean != 0:
		if b, ok := x.(*ast.BinaryExpr); !ok || b.Op == token.LAND || b.Op == token.LOR {
			return m.wrap(x, "returned negated", "mutantIs(%d) != (", ")")
		}
	case basic.Info()&types.IsNumeric != 0:
		instead = "0"
		if value != nil && value.ExactString() == "0" {
			instead = "1"
		}
	case basic.Info()&types.IsString != 0:
		instead = `""`
	}
	if instead == "" || instead == m.text(x) {
		return ""
	}
	name := types.TypeString(t, func(p *types.Package) string {
		if p == m.pkg {
			return ""
		}
		return p.Name()
	})
	return m.wrap(x, "returned as "+instead, "mutantReturn["+name+"](%d, ", ", "+instead+")")
}

// wrap returns what closes the change after n, or nothing if there is no such mutant.
func (m *mutator) wrap(n ast.Node, change, before, after string) string {
	id := m.new(n, change)
	if id == 0 {
		return ""
	}
	m.insert(n.Pos(), fmt.Sprintf(before, id))
	return after
}

func (m *mutator) new(n ast.Node, change string) int {
	function := "-"
	for _, parent := range m.parents {
		if f, ok := parent.(*ast.FuncDecl); ok {
			function = f.Name.Name
		}
	}
	name := fmt.Sprintf("%s %s: %s %s", m.path, function, strings.Join(strings.Fields(m.text(n)), " "), change)
	m.names[name]++
	if m.names[name] > 1 {
		name = fmt.Sprintf("%s (%d)", name, m.names[name])
	}
	if m.without[name] {
		return 0
	}
	return m.add(mutant{name: name, path: m.path, line: m.file.Line(n.Pos())})
}

func (m *mutator) text(n ast.Node) string {
	return string(m.src[m.file.Offset(n.Pos()):m.file.Offset(n.End())])
}

func (m *mutator) insert(at token.Pos, text string) { m.replace(at, 0, text) }

func (m *mutator) replace(at token.Pos, length int, text string) {
	if text != "" || length > 0 {
		from := m.file.Offset(at)
		m.edits = append(m.edits, edit{from, from + length, text})
	}
}

func (m *mutator) isText(x ast.Expr) bool {
	basic, ok := m.info.TypeOf(x).Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

func (m *mutator) isPanic(call *ast.CallExpr) bool {
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "panic"
}

func hasCall(x ast.Expr) bool {
	found := false
	ast.Inspect(x, func(n ast.Node) bool {
		_, call := n.(*ast.CallExpr)
		found = found || call
		return true
	})
	return found
}
