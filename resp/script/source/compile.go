package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// MaxUpvalues is Lua's own bound on the variables of outer functions that a function uses.
const MaxUpvalues = 60

// Compile compiles a chunk, and returns how many functions are in it. If see is not nil, it gets the chunk as it was parsed, and must not
// change it. The error has the line, as in Lua. Any goroutine may call it.
func Compile(text, name string, see func(chunk []ast.Stmt)) (proto *lua.FunctionProto, functions int, err error) {
	chunk, err := parse.Parse(strings.NewReader(text), name)
	if err != nil {
		return nil, 0, syntaxError(err, text, name)
	}
	if see != nil {
		see(chunk)
	}
	r := &rewriter{}
	if text := r.rewrite(chunk); text != "" {
		return nil, 0, fmt.Errorf("%s:%d: %s", name, r.line, text)
	}
	if proto, err = lua.Compile(chunk, name); err != nil {
		if compiling, ok := errors.AsType[*lua.CompileError](err); ok && strings.Contains(compiling.Message, "local variables") {
			compiling.Line = r.mostLine
		}
		return nil, 0, syntaxError(err, text, name)
	}
	return proto, r.functions, nil
}

// An instruction of gopher-lua is the operation, in the upper 6 bits, a register, in 8, and here the number of a constant.
const (
	operationShift = 26
	registerMask   = 0xff << 18
	constantMask   = 1<<18 - 1
)

// Link makes each instruction that gets a global of the rewriter one that gets the function as a constant: hidden has these by the names
// of the rewriter. The error has the line.
func Link(proto *lua.FunctionProto, hidden map[string]*lua.LFunction) error {
	if len(proto.DbgUpvalues) > MaxUpvalues {
		return fmt.Errorf("%d: function at line %d has more than %d upvalues", max(1, proto.LineDefined), proto.LineDefined, MaxUpvalues)
	}
	linked := map[string]uint32{}
	for at, instruction := range proto.Code {
		if int(instruction>>operationShift) != lua.OP_GETGLOBAL {
			continue
		}
		name := lua.LVAsString(proto.Constants[instruction&constantMask])
		function := hidden[name]
		if function == nil {
			continue
		}
		if _, ok := linked[name]; !ok {
			linked[name] = uint32(len(proto.Constants))
			proto.Constants = append(proto.Constants, function)
		}
		proto.Code[at] = uint32(lua.OP_LOADK<<operationShift) | instruction&registerMask | linked[name]
	}
	trim(proto)
	for _, inner := range proto.FunctionPrototypes {
		if err := Link(inner, hidden); err != nil {
			return err
		}
	}
	return nil
}

// trim frees the 14 KB of unused room that the compiler leaves in each function.
func trim(proto *lua.FunctionProto) {
	proto.Code, proto.Constants = slices.Clone(proto.Code), slices.Clone(proto.Constants)
	proto.FunctionPrototypes, proto.DbgSourcePositions = slices.Clone(proto.FunctionPrototypes), slices.Clone(proto.DbgSourcePositions)
	proto.DbgLocals, proto.DbgCalls = slices.Clone(proto.DbgLocals), slices.Clone(proto.DbgCalls)
	proto.DbgUpvalues = slices.Clone(proto.DbgUpvalues)
}

func syntaxError(err error, text, name string) error {
	if at, ok := errors.AsType[*parse.Error](err); ok {
		line, token := at.Pos.Line, at.Token
		if line == parse.EOF {
			line, token = 1+strings.Count(text, "\n"), "<eof>"
		}
		return fmt.Errorf("%s:%d: %s near '%s'", name, line, strings.TrimSpace(at.Message), token)
	}
	if compiling, ok := errors.AsType[*lua.CompileError](err); ok {
		return fmt.Errorf("%s:%d: %s", name, max(1, compiling.Line), compiling.Message)
	}
	return fmt.Errorf("%s: %w", name, err)
}
