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

// Otherwise each call of a function with ... makes a table arg, which Lua 5.1 kept for older scripts. That doubles the time of a
// short function. It is a variable of gopher-lua, which any goroutine may read.
func init() { lua.CompatVarArg = false }
