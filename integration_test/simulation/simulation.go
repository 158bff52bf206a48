package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"celld/integration_test/simulation/check"
	"celld/integration_test/simulation/runner"
	"celld/integration_test/simulation/world"
)

// World is the program that is one run.
const World = "celld/integration_test/simulation/world/run"

// patience is how long a run may take in real time before it counts as one that never ends.
var patience = 5 * time.Minute

// Simulation runs seeds.
type Simulation struct {
	*runner.Program
	Coverage string // a folder for what Go notes about the code that runs; "": nothing is noted
}

// Seed is a run, and what it leaves out.
type Seed struct {
	Number  uint64
	Trace   bool
	Hash    bool  // of all events, to compare two runs
	Without []int // numbers of faults, from 1000 on of clients, 2000 scenes, 3000 keys, and from world.MaskCalls on of calls and rounds
	Calls   int   // the most of each client; 0: as many as the seed draws
}

func (s Seed) without() string {
	var parts []string
	numbers := slices.Sorted(slices.Values(s.Without))
	for i := 0; i < len(numbers); {
		n := 1
		for i+n < len(numbers) && numbers[i+n] == numbers[i]+n {
			n++
		}
		part := strconv.Itoa(numbers[i])
		if n > 1 {
			part += "-" + strconv.Itoa(numbers[i+n-1])
		}
		parts, i = append(parts, part), i+n
	}
	return strings.Join(parts, ",")
}

// Result is how a run has ended.
type Result struct {
	Seed    Seed
	Output  string
	Hash    string
	Virtual time.Duration
	Rounds  [][2]int       // the hosts of callers, and how many calls or rounds each may leave out
	Counts  map[string]int // of what happened, by kind; events, calls, faults, clients, scenes, keys; drawn: the calls of a client
	Err     error          // what is wrong
}

// Run runs a seed.
func (s Simulation) Run(ctx context.Context, seed Seed) (r Result) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	number := strconv.FormatUint(seed.Number, 10)
	ran, err := s.Program.Run(ctx, runner.Options{Seed: seed.Number, Coverage: s.Coverage, Args: []string{"-seed", number,
		"-trace=" + strconv.FormatBool(seed.Trace), "-hash=" + strconv.FormatBool(seed.Hash || seed.Trace),
		"-without", seed.without(), "-calls", strconv.Itoa(seed.Calls)}})
	output, faults, undecided := checked(string(ran.Output))
	r = Result{Seed: seed, Output: output, Err: err, Counts: map[string]int{"undecided-keys": undecided}}
	lines := strings.Split(strings.TrimSpace(r.Output), "\n")
	for word := range strings.FieldsSeq(lines[0] + " " + lines[len(lines)-1]) { // of which a run that panics has the first only
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "hash":
			r.Hash = value
		case "virtual":
			r.Virtual, _ = time.ParseDuration(value)
		case "rounds":
			for part := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ',' }) {
				var one [2]int
				if _, err := fmt.Sscanf(part, "%d:%d", &one[0], &one[1]); err == nil {
					r.Rounds = append(r.Rounds, one)
				}
			}
		default:
			r.Counts[name], _ = strconv.Atoi(value)
		}
	}
	switch {
	case ctx.Err() != nil:
		r.Err = fmt.Errorf("seed %d has not ended within %s of real time (-patience)", seed.Number, patience)
	case err != nil:
		r.Err = fmt.Errorf("seed %d: %w", seed.Number, err)
	case ran.Code == 0 && r.Hash == "":
		r.Err = errors.New("it has printed no hash")
	case ran.Code != 0, faults:
		first := ""
		for _, line := range lines {
			if strings.HasPrefix(line, "FAULT ") || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
				first = line
				break
			}
		}
		r.Err = fmt.Errorf("seed %d: %s", seed.Number, first)
	}
	return r
}

// checked checks the history in an output, and puts what is wrong in its place.
func checked(output string) (told string, faults bool, undecided int) {
	before, rest, found := strings.Cut("\n"+output, "\nHISTORY ")
	if !found {
		return output, false, 0
	}
	line, after, _ := strings.Cut(rest, "\n")
	history, err := check.Decode([]byte(line))
	if err != nil {
		return before + "\nFAULT " + err.Error() + "\n" + after, true, 0
	}
	list, undecided := check.Faults(history)
	for _, fault := range list {
		before += "\nFAULT " + fault
	}
	return strings.TrimPrefix(before+"\n"+after, "\n"), len(list) > 0, undecided
}

// Summary is what many seeds have done.
type Summary struct {
	Seeds   uint64
	Passed  uint64 // of them passed over, as their worlds are about something else
	Failed  []Result
	Virtual time.Duration
	Took    time.Duration
	Counts  map[string]int
}

func (s Summary) String() string {
	var b strings.Builder
	for _, r := range s.Failed {
		fmt.Fprintf(&b, "%v\n", r.Err)
	}
	if s.Passed > 0 {
		fmt.Fprintf(&b, "%d were passed over, as they are about something else; ", s.Passed)
	}
	fmt.Fprintf(&b, "%d seeds in %s, %s of simulated time:", s.Seeds-s.Passed, s.Took.Round(time.Second), s.Virtual.Round(time.Second))
	for _, kind := range slices.Sorted(maps.Keys(s.Counts)) {
		if n := s.Counts[kind]; n > 0 && kind != "drawn" {
			fmt.Fprintf(&b, " %s %d;", kind, n)
		}
	}
	if never := s.Never(); len(never) > 0 {
		fmt.Fprintf(&b, "\nnever met: %s", strings.Join(never, ", "))
	}
	b.WriteByte('\n')
	return b.String()
}

// Never are the kinds of faults and events that no seed has met.
func (s Summary) Never() (kinds []string) {
	for _, kind := range slices.Sorted(maps.Keys(s.Counts)) {
		if s.Counts[kind] == 0 && kind != "undecided-keys" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Many runs seeds from first on, several at once, and tells about its progress every second. Those whose worlds are about something else
// are passed over: about "" is all.
func (s Simulation) Many(ctx context.Context, first, seeds uint64, about string, atOnce int, twice bool,
	tell func(done uint64, failed []Result)) Summary {
	sum := Summary{Seeds: seeds, Counts: map[string]int{}}
	began := time.Now()
	told := began
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := first
	draw := func() (seed uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		for ; next < first+seeds && !world.About(next, about); next++ {
			sum.Passed++
		}
		next++
		return next - 1, next <= first+seeds && ctx.Err() == nil
	}
	for range atOnce {
		workers.Go(func() {
			for {
				seed, ok := draw()
				if !ok {
					return
				}
				one := Seed{Number: seed, Hash: twice}
				r := s.Run(ctx, one)
				if twice && r.Err == nil {
					if again := s.Run(ctx, one); again.Hash != r.Hash {
						r.Err = fmt.Errorf("seed %d: hash %s, and then %s", seed, r.Hash, again.Hash)
					}
				}
				mu.Lock()
				if r.Err != nil && ctx.Err() == nil {
					sum.Failed = append(sum.Failed, r)
				}
				sum.Virtual += r.Virtual
				for kind, n := range r.Counts {
					sum.Counts[kind] += n
				}
				if now := time.Now(); tell != nil && (now.Sub(told) > time.Second || r.Err != nil) {
					told = now
					tell(seed-first+1, sum.Failed)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	sum.Took = time.Since(began)
	slices.SortFunc(sum.Failed, func(a, b Result) int { return int(a.Seed.Number) - int(b.Seed.Number) })
	return sum
}

// shrink leaves out what a seed need not have to fail, and prints the history that is left: who asked what, the answers, and the faults.
func (s Simulation) shrink(ctx context.Context, number uint64) error {
	seed := Seed{Number: number}
	whole := s.Run(ctx, seed)
	if whole.Err == nil {
		return fmt.Errorf("seed %d does not fail", number)
	}
	rounds := whole.Rounds
	seed.Calls = whole.Counts["drawn"]
	for client := 1; whole.Rounds == nil && client <= whole.Counts["clients"]; client++ { // it panics
		rounds = append(rounds, [2]int{client, seed.Calls})
	}
	runs, told := 0, time.Now()
	fails := func(try Seed) bool {
		if runs++; time.Since(told) > time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "\r%d runs", runs)
		}
		r := s.Run(ctx, try)
		if ctx.Err() != nil || r.Err == nil {
			return false
		}
		if seed = try; r.Rounds != nil {
			rounds = r.Rounds
		}
		return true
	}
	without := func(numbers ...int) bool {
		try := seed
		try.Without = slices.Concat(seed.Without, numbers)
		return fails(try)
	}
	for again := true; again; {
		again = false
		for i, kind := range []string{"faults", "clients", "scenes", "keys"} {
			for n := range whole.Counts[kind] {
				if part := 1000*i + n; !slices.Contains(seed.Without, part) {
					again = without(part) || again
				}
			}
		}
		for seed.Calls > 1 {
			try := seed
			if try.Calls -= (try.Calls + 3) / 4; !fails(try) {
				break
			}
			again = true
		}
	}
	// Then single calls: first half of what a caller has left at once, then quarters, down to one.
	for _, caller := range rounds {
		left := make([]int, caller[1])
		for i := range left {
			left[i] = world.MaskCalls*caller[0] + i
		}
		for size := (len(left) + 1) / 2; size > 0; size /= 2 {
			for at := 0; at < len(left); {
				part := left[at:min(at+size, len(left))]
				if without(part...) {
					left = slices.Delete(slices.Clone(left), at, at+len(part))
				} else {
					at += size
				}
			}
		}
	}
	seed.Trace = true
	r := s.Run(ctx, seed)
	story := storyOf(r.Output)
	fmt.Fprintf(os.Stderr, "\r%d runs leave %d lines\n", runs, strings.Count(story, "\n"))
	fmt.Print(story)
	fmt.Printf("again: -seed %d -without %s -calls %d\n", number, seed.without(), seed.Calls)
	return r.Err
}
