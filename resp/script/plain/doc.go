// Package plain runs scripts that only call commands, compare and branch, without the interpreter of Lua.
//
//	p := plain.Compile(chunk)           // nil: the script needs the interpreter
//	result, failed := p.Run(host, keys, args)
//
// Most scripts of libraries that limit are such: INCR, EXPIRE if it answers 1, and what is left. They have local variables, if, return,
// redis.call and pcall, KEYS and ARGV by number, tonumber, a few functions of math, comparisons, arithmetic, and, or, not. A script with
// anything else, such as a loop, a function, a table that it looks into or a text that it joins, is the interpreter's. So a plain script
// ends by itself, and takes no memory that grows.
//
// A script answers the same both ways, errors and their lines included: a test compares them.
package plain
