package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"celld/integration_test/simulation/runner"
)

// World is the program that is one run.
const World = "celld/integration_test/simulation/world"

// patience is how long a run may take in real time before it counts as one that never ends.
var patience = 5 * time.Minute

// Simulation runs seeds.
type Simulation struct{ *runner.Program }

// Seed is a run, and what it leaves out.
type Seed struct {
	Number  uint64
	Trace   bool
	Without []int // numbers of faults; clients are numbered from 1000 on
}

// Result is how a run has ended.
type Result struct {
	Seed    Seed
	Output  string
	Hash    string
	Virtual time.Duration
	Counts  map[string]int // what has happened, by kind, and events, calls and parts
	Err     error          // what is wrong
}

// Run runs a seed.
func (s Simulation) Run(ctx context.Context, seed Seed) (r Result) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var without []string
	for _, n := range seed.Without {
		without = append(without, strconv.Itoa(n))
	}
	ran, err := s.Program.Run(ctx, runner.Options{Seed: seed.Number, Args: []string{"-seed", strconv.FormatUint(seed.Number, 10),
		"-trace=" + strconv.FormatBool(seed.Trace), "-without", strings.Join(without, ",")}})
	r = Result{Seed: seed, Output: string(ran.Output), Err: err, Counts: map[string]int{}}
	lines := strings.Split(strings.TrimSpace(r.Output), "\n")
	for word := range strings.FieldsSeq(lines[len(lines)-1]) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "hash":
			r.Hash = value
		case "virtual":
			r.Virtual, _ = time.ParseDuration(value)
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
	case ran.Code != 0:
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

// Summary is what many seeds have done.
type Summary struct {
	Seeds   uint64
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
	fmt.Fprintf(&b, "%d seeds in %s, %s of simulated time:", s.Seeds, s.Took.Round(time.Second), s.Virtual.Round(time.Second))
	for _, kind := range slices.Sorted(maps.Keys(s.Counts)) {
		fmt.Fprintf(&b, " %s %d;", kind, s.Counts[kind])
	}
	b.WriteByte('\n')
	return b.String()
}

// Many runs seeds from first on, several at once, and tells about its progress every second.
func (s Simulation) Many(ctx context.Context, first, seeds uint64, atOnce int, twice bool,
	tell func(done uint64, failed []Result)) Summary {
	sum := Summary{Seeds: seeds, Counts: map[string]int{}}
	began := time.Now()
	told := began
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := first
	for range atOnce {
		workers.Go(func() {
			for {
				mu.Lock()
				seed := next
				next++
				mu.Unlock()
				if seed >= first+seeds || ctx.Err() != nil {
					return
				}
				r := s.Run(ctx, Seed{Number: seed})
				if twice && r.Err == nil {
					if again := s.Run(ctx, Seed{Number: seed}); again.Hash != r.Hash {
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

// shrink leaves out one fault or client after the other, keeps what is needed to fail, and prints the run that is left.
func (s Simulation) shrink(ctx context.Context, number uint64) error {
	seed := Seed{Number: number}
	whole := s.Run(ctx, seed)
	if whole.Err == nil {
		return fmt.Errorf("seed %d does not fail", number)
	}
	for again := true; again; {
		again = false
		for n := range whole.Counts["parts"] {
			again = s.shorter(ctx, &seed, n) || again
		}
		for n := range whole.Counts["clients"] {
			again = s.shorter(ctx, &seed, 1000+n) || again
		}
	}
	seed.Trace = true
	r := s.Run(ctx, seed)
	fmt.Print(r.Output)
	fmt.Printf("seed %d fails without %v\n", number, seed.Without)
	return r.Err
}

// shorter leaves out a part if the run fails without it, too.
func (s Simulation) shorter(ctx context.Context, seed *Seed, part int) bool {
	if slices.Contains(seed.Without, part) {
		return false
	}
	try := *seed
	try.Without = append(slices.Clone(seed.Without), part)
	if s.Run(ctx, try).Err == nil {
		return false
	}
	*seed = try
	return true
}
