package source

import (
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// SetTogether is how many elements ({a, b}) of a table Lua sets at once. Keys among them are set before, so the elements win.
const SetTogether = 50

// maxFilled is how many fields one call of fill gets, as a function has 200 registers.
const maxFilled = 32

// table moves the fields from the first computed key on out of a table constructor. A function sets them once the table exists.
// It also moves fields with a key behind 50, 100, … elements: there gopher-lua sets the last 50 elements again, to whatever the
// registers hold by then.
func (r *rewriter) table(x *ast.TableExpr) ast.Expr {
	if len(x.Fields) > MaxFields {
		panic(tooMuch("table has too many elements"))
	}
	var kept, later []*ast.Field
	elements := 0 // among those kept
	for i, f := range x.Fields {
		if f.Key != nil {
			f.Key = single(r.expr(f.Key))
		}
		f.Value = r.expr(f.Value)
		last := i == len(x.Fields)-1 && f.Key == nil
		if !last { // a key's value, too, else {1, x = ...} has an element 2 in gopher-lua
			single(f.Value)
		}
		full := elements > 0 && elements%SetTogether == 0 && (f.Key != nil || many(f.Value))
		switch {
		case len(later) > 0 || full || f.Key != nil && !plainKey(f.Key):
			later = append(later, f)
			continue
		case last && many(f.Value):
			list := call(f.Value, ListName, f.Value)
			list.(*ast.FuncCallExpr).AdjustRet = false
			f.Value = list
		case f.Key == nil:
			elements++
		}
		kept = append(kept, f)
	}
	x.Fields = kept
	filled := ast.Expr(x)
	for some := range slices.Chunk(later, maxFilled) {
		filled, elements = r.filled(x, filled, some, elements)
	}
	return filled
}

// filled sets fields of a table that has so many elements, and returns how many it has then.
func (r *rewriter) filled(x *ast.TableExpr, table ast.Expr, fields []*ast.Field, elements int) (ast.Expr, int) {
	kinds, at := "", placed(&ast.NumberExpr{Value: strconv.Itoa(elements)}, x)
	var values []ast.Expr
	for _, f := range fields {
		if f.Key != nil {
			kinds, values = kinds+"k", append(values, f.Key, f.Value)
		} else {
			kinds, values = kinds+"e", append(values, f.Value)
			elements++
		}
	}
	which := placed(&ast.StringExpr{Value: kinds}, x)
	return call(x, FillName, append([]ast.Expr{table, r.expr(which), r.expr(at)}, values...)...), elements
}
