// Package script runs Lua scripts as Redis's EVAL does, on gopher-lua. It knows neither sessions nor commands: a Host runs
// what a script calls.
//
// A script sees what Redis gives it, except coroutines (a gopher-lua coroutine cannot be interrupted) and the libraries bit,
// cjson, cmsgpack and struct. It cannot reach files, the system, other scripts or the next run: globals and libraries are
// read-only. The resources of a script are bounded:
//
//   - time: Host.Tick is called every 256 instructions, or sooner if they take more than a millisecond, and may end the script
//   - memory: 16 MB more than the process held when the script began. Garbage and single instructions add to that up to a bound,
//     too: the heap has less than 64 MB more
//   - errors: one costs what its text costs, however deep the calls are (see sandbox)
//   - stack: 300 calls deep, of which a pcall takes two, and 64k values
//   - text: MaxScript bytes, 4 KB in loadstring and load, 1000 levels deep, 500 functions, 2000 constants
//
// # The rooms
//
// gopher-lua bounds nothing, and differs from Lua 5.1 where scripts notice. Each room is for one part of that, and has its cost:
//
//	sandbox  libraries of its own: those of gopher-lua reach files, and may take any amount of memory. string.sub takes 0.20 µs, not 0.14
//	source   instructions that may take any amount of memory become calls that check first: t[i] = i takes 100 ns, not 51, and a .. b
//	         126, not 88
//	pattern  Lua's patterns: gopher-lua's matcher overflows Go's stack, which ends the process. This one takes a third of the time
//	budget   counts instructions and memory, so that a script can be ended. A loop takes 10 to 20 % longer
//	value    numbers and texts as C reads them: gopher-lua takes '010' for 8
//	plain    only for speed. Most scripts of limiters do without the interpreter: an EVALSHA takes 16.0 µs, not 20.6, and 3.3, not 6.9,
//	         in pipelines of 16
package script
