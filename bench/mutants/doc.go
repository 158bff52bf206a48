//go:build linux

// Mutants breaks the product in small ways, one at a time, and counts how often a test of the same package notices.
//
//	make mutants                                       200 mutants of each package
//	make mutants MUTANTS=0 ARGS=./cell                 all of one
//	make mutants MUTANTS=0 ARGS="-only 'wheel.go' ./store/memory/table"   those whose name matches
//
// A mutant is one changed operator: < becomes <=, a condition is negated, + becomes -, ++ becomes --, a call is left
// out, a result becomes zero. All mutants of a package are compiled into one test binary, and the environment names the
// one that is alive (helper.go.txt). So a mutant costs a start of that binary, not a build, which is what gremlins 0.6
// takes for each. The binary also notes which mutants a test reaches; only those tests run, the quickest first.
//
// A mutant is killed if a test fails, panics or takes too long. One that no test can see, because the program behaves as
// before, stands in equivalent.txt with the reason. It does not count. An entry that fits no mutant is reported.
//
// It works in a copy of the module, so a mutant cannot damage the tree. A test still runs with your rights.
package main
