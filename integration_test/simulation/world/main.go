// Package world is one run of the simulation, and what a seed draws for it.
//
//	world.About(7, "leases")    // whether the world of seed 7 is about that, without a run of it
//	world.Main()                // the program: run -seed 7 [-trace] [-hash] [-without 3,1001] [-calls 20]
//
// The program's output is a line with what may be left out, the trace, what scenes have found wrong, the history for the checkers, and a
// last line with the hash of all that has happened, if it was asked for.
package world

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"celld/integration_test/simulation/check"
)

// About reports whether the world of a seed is about each of these words: it has that focus, or that scene. "" is true of all.
func About(seed uint64, what string) bool {
	if what == "" {
		return true
	}
	p := draw(seed, nil, "")
	for word := range strings.FieldsSeq(what) {
		if p.focus != word && !p.has(word) {
			return false
		}
	}
	return true
}

// Topics are what worlds may be about: each focus and each scene.
func Topics() (names []string) {
	for _, f := range focuses {
		names = append(names, f.name)
	}
	for _, s := range scenes {
		names = append(names, s.name)
	}
	return names
}

// Numbers reads what a run leaves out: numbers, and ranges of them, with commas between.
func Numbers(text string) (list []int, err error) {
	for part := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ',' }) {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || from > to || to > 1e7 {
			return nil, fmt.Errorf("-without is numbers and ranges with commas between them, such as 0,3,10001-10017, not %q", text)
		}
		for ; from <= to; from++ {
			list = append(list, from)
		}
	}
	return list, nil
}

// roundsText is what each caller may leave out: 1:150,101:40.
func (w *world) roundsText() string {
	var parts []string
	for _, host := range slices.Sorted(maps.Keys(w.rounds)) {
		parts = append(parts, fmt.Sprintf("%d:%d", host, w.rounds[host]))
	}
	return strings.Join(parts, ",")
}

// Main runs a world, as the arguments of the program say.
func Main() {
	seed := flag.Uint64("seed", 1, "draws everything")
	trace := flag.Bool("trace", false, "print each event")
	hashes := flag.Bool("hash", false, "hash each event")
	calls := flag.Int("calls", 0, "the most of each client; 0: as many as the seed draws")
	without := flag.String("without", "", "the numbers of faults, clients, scenes, keys and calls to leave out")
	flag.Parse()
	masked := map[int]bool{}
	numbers, err := Numbers(*without)
	if err != nil {
		panic(err)
	}
	for _, n := range numbers {
		masked[n] = true
	}
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	w := newWorld(*seed, masked, folder, *trace)
	w.hashes = *hashes
	if *calls > 0 {
		w.plan.calls = min(w.plan.calls, *calls)
	}
	p := &w.plan
	fmt.Printf("drawn=%d faults=%d clients=%d scenes=%d keys=%d\n", p.calls, len(p.faults), p.clients, len(p.scenes), len(p.keys))
	w.run()
	os.RemoveAll(folder)
	w.ends()
}

// ends tells what has happened, and ends the program if something is wrong.
func (w *world) ends() {
	for _, fault := range w.faults {
		fmt.Println("FAULT", fault)
	}
	fmt.Printf("HISTORY %s\n", check.Encode(w.history))
	fmt.Printf("hash=%016x events=%d calls=%d virtual=%s rounds=%s %s\n", w.hash.Sum64(), w.events, len(w.history.Calls), w.since(),
		w.roundsText(), w.counts)
	if len(w.faults) > 0 {
		os.Exit(3)
	}
}

// endsHere notes what must not be, and ends the world there, as the rest would wait for it in vain.
func (w *world) endsHere(format string, args ...any) {
	w.wrong(format, args...)
	w.ends()
}
