// Package source compiles Lua so that it can be bounded:
//
//	proto, functions, err := source.Compile(text, source.Name, nil)  // any goroutine may do this
//	err = source.Link(proto, hidden)                            // for one interpreter, with its functions of these names
//
// An instruction of gopher-lua that could take any amount of memory becomes the call of a function that checks first.
package source

import lua "github.com/yuin/gopher-lua"

// Name is that of a script in its errors.
const Name = "user_script"

// Otherwise a function with ... that does not read it makes a table arg of 2.8 KB in each call, which takes 5 µs and no budget counts. Its
// compiler and each call read this variable, and no option of a state stands for it. The mark of one function (VarArgNeedsArg) would take
// the table away, but leave a local arg, nil, which hides a variable arg of the script.
func init() { lua.CompatVarArg = false }
