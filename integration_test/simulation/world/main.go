// Command world is one run of the simulation: it is compiled to WebAssembly, and the program simulation runs it in virtual time.
//
//	world -seed 7 [-trace] [-without 3,1001] [-calls 20]
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
	calls := flag.Int("calls", 0, "the most of each client; 0: as many as the seed draws")
	without := flag.String("without", "", "the numbers of faults, clients, scenes and keys to leave out")
	about := flag.String("about", "", "run nothing if the world has another focus; \"\": run any")
	flag.Parse()
	masked := map[int]bool{}
	for number := range strings.SplitSeq(*without, ",") {
		if n, err := strconv.Atoi(number); err == nil {
			masked[n] = true
		}
	}
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	w := newWorld(*seed, masked, folder, *trace)
	if *about != "" && w.plan.focus != *about {
		fmt.Println("hash=none")
		return
	}
	if *calls > 0 {
		w.plan.calls = min(w.plan.calls, *calls)
	}
	w.run()
	os.RemoveAll(folder)
	for _, fault := range w.faults {
		fmt.Println("FAULT", fault)
	}
	p := &w.plan
	fmt.Printf("hash=%016x events=%d calls=%d virtual=%s faults=%d clients=%d scenes=%d keys=%d drawn=%d %s\n",
		w.hash.Sum64(), w.events, len(w.history.Calls), w.since(), len(p.faults), p.clients, len(p.scenes), len(p.keys), p.calls, w.counts)
	if len(w.faults) > 0 {
		os.Exit(3)
	}
}
