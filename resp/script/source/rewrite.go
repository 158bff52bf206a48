package source

import (
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// A single instruction of gopher-lua can take any amount of memory: t[67108863] = 1 fills the gap with a gigabyte, and .. joins
// strings of any length. Such expressions become calls of functions that check first. The rewriter writes a call as that of a global
// whose name no script can write. Once compiled, the function itself takes the place of the name (Link): no global has it.
const (
	ConcatName = "(concat)" // of any number of values
	SetName    = "(set)"    // table, key, value
	FillName   = "(fill)"   // table, what the values are, how many elements there are, values
	ListName   = "(list)"   // the last values of a table constructor
	NumberName = "(number)" // a bound of a for loop, and its name
)

// SmallIndex is the largest constant index that is not rewritten, as its gap is small.
const SmallIndex = 64

// MaxNesting bounds the nesting of a script, as the compiler recurses for each level. Lua's own bound is mostly 200.
const MaxNesting = 1000

// MaxFunctions bounds the functions of a script, as the compiler takes 14 KB for each.
const MaxFunctions = 500

type rewriter struct {
	depth, line int
	temps       int
	functions   int
	constants   map[string]bool

	locals, most, mostLine int // local variables now, the most of any function so far, and the line of that
}

// tooMuch says why a script is refused.
type tooMuch string

func (r *rewriter) rewrite(chunk []ast.Stmt) (refusal string) {
	defer func() {
		if cause := recover(); cause != nil {
			why, ours := cause.(tooMuch)
			if !ours {
				panic(cause)
			}
			refusal = string(why)
		}
	}()
	r.stmts(chunk)
	return ""
}

func (r *rewriter) enter(line int) {
	if line > 0 {
		r.line = line
	}
	if r.depth++; r.depth > MaxNesting {
		panic(tooMuch("chunk has too many syntax levels"))
	}
}

// The compiler searches all constants of a function for each new one: 25,000 took 4 s. It loses the elements of a table beyond
// 25,550.
const (
	MaxConstants = 2000
	MaxFields    = 25_000
	maxLocals    = 200 // gopher-lua's own bound, and Lua's
)

func (r *rewriter) function(parameters *ast.ParList, body []ast.Stmt) {
	if r.functions++; r.functions > MaxFunctions {
		panic(tooMuch("chunk has too many functions"))
	}
	outside := r.locals
	r.locals = 0
	r.declare(len(parameters.Names))
	r.stmts(body)
	r.locals = outside
}

// declare counts local variables, as gopher-lua's error for too many has no line.
func (r *rewriter) declare(n int) {
	if r.locals += n; r.locals > r.most && r.most <= maxLocals {
		r.most, r.mostLine = r.locals, r.line
	}
}

func (r *rewriter) leave() { r.depth-- }

func (r *rewriter) stmts(list []ast.Stmt) {
	outside := r.locals
	for i := range list {
		list[i] = r.stmt(list[i])
	}
	r.locals = outside
}

func (r *rewriter) stmt(s ast.Stmt) ast.Stmt {
	r.enter(s.Line())
	defer r.leave()
	switch s := s.(type) {
	case *ast.AssignStmt:
		r.exprs(s.Lhs)
		r.exprs(s.Rhs)
		return r.assign(s)
	case *ast.LocalAssignStmt:
		r.exprs(s.Exprs)
		r.declare(len(s.Names))
	case *ast.FuncCallStmt:
		s.Expr = r.expr(s.Expr)
	case *ast.DoBlockStmt:
		r.stmts(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.expr(s.Condition)
		r.stmts(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = r.expr(s.Condition)
		r.stmts(s.Stmts)
	case *ast.IfStmt:
		s.Condition = r.expr(s.Condition)
		r.stmts(s.Then)
		r.stmts(s.Else)
		if len(s.Else) > 0 {
			s.Else = r.fenced(s.Else)
		} else {
			s.Then = r.fenced(s.Then)
		}
	case *ast.NumberForStmt:
		s.Init, s.Limit, s.Step = r.bound(s.Init, "initial value"), r.bound(s.Limit, "limit"), r.bound(s.Step, "step")
		r.declare(1)
		r.stmts(s.Stmts)
		r.locals--
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		for len(s.Exprs) < 3 && !many(s.Exprs[len(s.Exprs)-1]) { // gopher-lua would begin at whatever a register holds
			s.Exprs = append(s.Exprs, placed(&ast.NilExpr{}, s))
		}
		r.declare(len(s.Names))
		r.stmts(s.Stmts)
		r.locals -= len(s.Names)
	case *ast.FuncDefStmt:
		s.Name.Func, s.Name.Receiver = r.expr(s.Name.Func), r.expr(s.Name.Receiver)
		r.function(s.Func.ParList, s.Func.Stmts)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	}
	return s
}

// bound rewrites a bound of a for loop, which may be a string.
func (r *rewriter) bound(x ast.Expr, name string) ast.Expr {
	if _, ok := x.(*ast.NumberExpr); ok || x == nil {
		return x
	}
	return call(x, NumberName, single(r.expr(x)), placed(&ast.StringExpr{Value: name}, x))
}

func (r *rewriter) exprs(list []ast.Expr) {
	for i := range list {
		list[i] = r.expr(list[i])
	}
}

func (r *rewriter) expr(x ast.Expr) ast.Expr {
	if x == nil {
		return nil
	}
	r.enter(x.Line())
	defer r.leave()
	switch x := x.(type) {
	case *ast.AttrGetExpr:
		x.Object, x.Key = r.expr(x.Object), r.expr(x.Key)
	case *ast.TableExpr:
		return r.table(x)
	case *ast.FuncCallExpr:
		x.Func, x.Receiver = r.expr(x.Func), r.expr(x.Receiver)
		r.exprs(x.Args)
	case *ast.LogicalOpExpr:
		x.Lhs, x.Rhs = r.expr(x.Lhs), r.expr(x.Rhs)
	case *ast.RelationalOpExpr:
		x.Lhs, x.Rhs = r.expr(x.Lhs), r.expr(x.Rhs)
	case *ast.ArithmeticOpExpr:
		x.Lhs, x.Rhs = r.expr(x.Lhs), r.expr(x.Rhs)
	case *ast.StringConcatOpExpr:
		return call(x, ConcatName, r.joined(x)...)
	case *ast.UnaryMinusOpExpr:
		x.Expr = r.expr(x.Expr)
	case *ast.UnaryNotOpExpr:
		x.Expr = r.expr(x.Expr)
	case *ast.UnaryLenOpExpr:
		x.Expr = r.expr(x.Expr)
	case *ast.FunctionExpr:
		r.function(x.ParList, x.Stmts)
	case *ast.StringExpr:
		r.constant(x.Value)
	case *ast.NumberExpr:
		r.constant(x.Value)
	case *ast.IdentExpr:
		r.constant(x.Value)
	}
	return x
}

// joined are the parts of a..b..c, which is one join, from the right as Lua does it.
func (r *rewriter) joined(x ast.Expr) (parts []ast.Expr) {
	for {
		join, ok := x.(*ast.StringConcatOpExpr)
		if !ok {
			return append(parts, single(r.expr(x)))
		}
		parts, x = append(parts, single(r.expr(join.Lhs))), join.Rhs
	}
}

// constant counts a possible constant: a number, a string or the name of a global.
func (r *rewriter) constant(text string) {
	if r.constants == nil {
		r.constants = map[string]bool{}
	}
	if r.constants[text] = true; len(r.constants) > MaxConstants {
		panic(tooMuch("chunk has too many constants"))
	}
}

// many says whether an expression may have any number of values.
func many(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.FuncCallExpr:
		return !x.AdjustRet
	case *ast.Comma3Expr:
		return !x.AdjustRet
	}
	return false
}

// fenced puts an instruction behind a nil that ends the last block of an if. gopher-lua may leave out a nil that comes next, even where the
// block has not run: if c then local a = nil end local b = nil.
func (r *rewriter) fenced(block []ast.Stmt) []ast.Stmt {
	if len(block) == 0 || !endsInNil(block[len(block)-1]) {
		return block
	}
	s := block[len(block)-1]
	r.declare(1)
	r.locals--
	return append(block, placed(&ast.LocalAssignStmt{Names: []string{r.temp()}, Exprs: []ast.Expr{placed(&ast.FalseExpr{}, s)}}, s))
}

func endsInNil(s ast.Stmt) bool {
	var values []ast.Expr
	switch s := s.(type) {
	case *ast.DoBlockStmt:
		return len(s.Stmts) > 0 && endsInNil(s.Stmts[len(s.Stmts)-1])
	case *ast.LocalAssignStmt:
		if values = s.Exprs; len(values) < len(s.Names) {
			return true
		}
	case *ast.AssignStmt:
		if values = s.Rhs; len(values) < len(s.Lhs) {
			return true
		}
	default:
		return false
	}
	_, isNil := values[len(values)-1].(*ast.NilExpr)
	return isNil
}

// assign turns assignments to computed keys into calls. An assignment to several variables evaluates all before it sets any. So does one
// whose value gopher-lua would compute in the variable itself (see isInPlace).
func (r *rewriter) assign(s *ast.AssignStmt) ast.Stmt {
	switch {
	case slices.ContainsFunc(s.Lhs, isComputed):
		if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
			return r.set(s, s.Lhs[0], s.Rhs[0])
		}
	case !slices.ContainsFunc(s.Rhs, isInPlace):
		return s
	}
	before, values := placed(&ast.LocalAssignStmt{}, s), placed(&ast.LocalAssignStmt{Exprs: s.Rhs}, s)
	block := placed(&ast.DoBlockStmt{Stmts: []ast.Stmt{before, values}}, s)
	hold := func(x ast.Expr) ast.Expr {
		before.Names, before.Exprs = append(before.Names, r.temp()), append(before.Exprs, single(x))
		return ident(s, before.Names[len(before.Names)-1])
	}
	for _, left := range s.Lhs {
		if attr, ok := left.(*ast.AttrGetExpr); ok {
			attr.Object, attr.Key = hold(attr.Object), hold(attr.Key)
		}
		values.Names = append(values.Names, r.temp())
	}
	for i, left := range slices.Backward(s.Lhs) { // the last is set first, as Lua does
		value := ident(s, values.Names[i])
		if isComputed(left) {
			block.Stmts = append(block.Stmts, r.set(s, left, value))
		} else {
			block.Stmts = append(block.Stmts, placed(&ast.AssignStmt{Lhs: []ast.Expr{left}, Rhs: []ast.Expr{value}}, s))
		}
	}
	if len(before.Names) == 0 {
		block.Stmts = block.Stmts[1:]
	}
	return block
}

func (r *rewriter) temp() string {
	r.temps++
	return "(" + strconv.Itoa(r.temps) + ")"
}

func (r *rewriter) set(s ast.Stmt, left, value ast.Expr) ast.Stmt {
	attr := left.(*ast.AttrGetExpr)
	return placed(&ast.FuncCallStmt{Expr: call(s, SetName, single(attr.Object), single(attr.Key), single(value))}, s)
}

func isComputed(left ast.Expr) bool {
	attr, ok := left.(*ast.AttrGetExpr)
	return ok && !plainKey(attr.Key)
}

// isInPlace reports what gopher-lua computes wrongly in a local variable. a = x and y leaves a as it was if x is nil. a = (f(a)), which a
// join of texts becomes, calls f with itself if a is the last parameter.
func isInPlace(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.LogicalOpExpr:
		return true
	case *ast.FuncCallExpr:
		return x.AdjustRet
	}
	return false
}

func plainKey(key ast.Expr) bool {
	switch key := key.(type) {
	case *ast.StringExpr, *ast.TrueExpr, *ast.FalseExpr:
		return true
	case *ast.NumberExpr:
		n, err := strconv.ParseFloat(key.Value, 64)
		return err == nil && n <= SmallIndex
	}
	return false
}

// single cuts a call, or ..., to one value.
func single(x ast.Expr) ast.Expr {
	switch x := x.(type) {
	case *ast.FuncCallExpr:
		x.AdjustRet = true
	case *ast.Comma3Expr:
		x.AdjustRet = true
	}
	return x
}

func ident(at ast.PositionHolder, name string) ast.Expr {
	return placed(&ast.IdentExpr{Value: name}, at)
}

func call(at ast.PositionHolder, name string, args ...ast.Expr) ast.Expr {
	return placed(&ast.FuncCallExpr{Func: ident(at, name), Args: args, AdjustRet: true}, at)
}

func placed[T ast.PositionHolder](x T, at ast.PositionHolder) T {
	x.SetLine(at.Line())
	x.SetLastLine(at.LastLine())
	return x
}
