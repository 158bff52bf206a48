// Command world is one run of the simulation: it is compiled to WebAssembly, and the program simulation runs it in virtual time. It also
// runs by itself, in real time and in an order of its own: that helps to debug it.
//
//	world -seed 7 [-trace] [-without 3,5]
//
// Its output is the trace, what is wrong, and a last line with the hash of all that has happened.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func main() {
	seed := flag.Uint64("seed", 1, "draws everything")
	trace := flag.Bool("trace", false, "print each event")
	without := flag.String("without", "", "the numbers of faults and clients to leave out")
	flag.Parse()
	masked := map[int]bool{}
	for number := range strings.SplitSeq(*without, ",") {
		if n, err := strconv.Atoi(number); err == nil {
			masked[n] = true
		}
	}
	w := newWorld(*seed, masked, *trace)
	w.run()
	for _, fault := range w.faults {
		fmt.Println("FAULT", fault)
	}
	fmt.Printf("hash=%016x events=%d calls=%d virtual=%s parts=%d clients=%d %s\n",
		w.hash.Sum64(), w.events, len(w.history.Calls), w.since(), w.plan.parts(), w.plan.clients, w.countsText())
	if len(w.faults) > 0 {
		os.Exit(3)
	}
}
