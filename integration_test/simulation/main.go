// Command simulation runs celld, its clients, its disk and its network in one process in virtual time, from a seed: see docs/design.md.
//
//	go -C integration_test run ./simulation -seed 7            # one run, with its trace; the same each time, on each machine
//	go -C integration_test run ./simulation -seed 7 -shrink    # the least of it that fails, as commands of redis-cli and curl
//	go -C integration_test run ./simulation -seeds 10000       # many, from -seed on, on all cores; each that fails is told
//	go -C integration_test run ./simulation -seeds 10000 -about leases # only worlds of one focus or scene
//	go -C integration_test run ./simulation -seeds 1000 -coverage      # how much of each package they run
//	go -C integration_test run ./simulation -seeds 10000 -mutants .    # the first that sees each of the mutants; with -shrink, how
//
// The packages below this one are runner (programs in virtual time), world (a run: what a seed draws, machines, clients, scenes, faults),
// network and disk (what is simulated, as internal/enginetest; the tests in engine ask that and a real Redis the same) and check (what must
// hold).
//
// Each seed draws its plan, which is the first line of a trace: how many machines and clients there are, their settings, which limits they
// use, what is in memory and what on an engine, and what fails. Users, policies and Envoy's limits are read from real files, in a folder of
// the run. Clients ask by RESP, in scripts and by JSON: the same checkers look at all answers.
// After the last fault each machine must be ready within half a minute, nobody may wait, and who is denied passes when the answer says.
// Limits in memory are then looked at, and once more after the process has ended a last time: so what it has forgotten is seen. A summary
// lists what no seed has met. With 100,000 seeds that is an error, because the simulation does not reach it.
//
// # Where does a new one go?
//
//   - A fault is a row of the table in world/faults.go: a process that is killed, a disk that refuses, an engine that fails over.
//   - A focus is a row of the table in world/focus.go. A world with one is mostly about that: so what needs several things at once is not
//     rare.
//   - A scene is a file in world and a row of world/scene.go. It runs beside the clients, and checks what it alone knows: a guest tries the
//     keys of others, a policy changes while members ask by it, new keys fill the table, an operator rewrites files and closes connections.
//   - A checker is a file in check, which reads a History and returns what is wrong. limits.go looks for an order of the calls in which
//     package cell gives the same answers, over crashes. bounds.go is for calls whose instant nobody knows, such as those on an engine.
//     leases.go counts who holds what.
//   - A mutant is a row of the table in mutants.go: a change of a file that breaks celld, by defects that it has had. It names what the
//     worlds are about that see it; seeds of other worlds are passed over, as plans are drawn outside of WebAssembly.
//   - A seed that found a fault becomes a row in found_all_test.go. The mended package gets a test of its own, because a seed may become
//     another run.
//   - What a new fault, scene or client draws comes from a source of its own, p.chance("its name"). So older seeds stay the runs that they
//     were, as far as nothing else changes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"celld/integration_test/simulation/runner"
	"celld/integration_test/simulation/world"
)

// options are what to do with seeds.
type options struct {
	seeds                          uint64 // 0: run one, with its trace
	twice, first, coverage, shrink bool
	mutants, about                 string
}

func main() {
	var o options
	seed := flag.Uint64("seed", 1, "the first seed")
	flag.Uint64Var(&o.seeds, "seeds", 0, "how many to run, without their traces; 0: one, with it")
	flag.BoolVar(&o.twice, "twice", false, "run each seed twice, and compare the hashes")
	flag.BoolVar(&o.coverage, "coverage", false, "print how much of each package the seeds have run, and which functions none has entered")
	flag.BoolVar(&o.first, "first", false, "stop at the first seed that fails")
	flag.DurationVar(&patience, "patience", patience, "how long a run may take in real time before it counts as one that never ends")
	without := flag.String("without", "", "what a run of one seed leaves out, as -shrink tells: 0,3,10001-10017")
	calls := flag.Int("calls", 0, "the most calls of each client in a run of one seed; 0: as many as it draws")
	flag.BoolVar(&o.shrink, "shrink", false, "leave out what a failure does not need, and print the commands that are left")
	flag.StringVar(&o.mutants, "mutants", "",
		"break celld in each way of mutants.go whose name matches, and print\nwhich of -seeds sees it first")
	flag.StringVar(&o.about, "about", "",
		"run only those of -seeds whose worlds are about all of these words: "+strings.Join(world.Topics(), ", ")+"; \"\": all")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		fail(fmt.Errorf("%q is no flag; a seed is given as -seed N", flag.Arg(0)))
	case o.shrink && o.seeds > 0 && o.mutants == "", o.seeds == 0 && (o.first || o.twice || o.coverage || o.mutants != ""):
		fail(errors.New("-first, -twice, -coverage and -mutants go with -seeds N, and -shrink with -seed N alone or -mutants"))
	case o.mutants != "" && (o.first || o.twice || o.coverage || o.about != ""):
		fail(errors.New("-mutants goes without -first, -twice, -coverage and -about"))
	case o.about != "" && (o.seeds == 0 || noTopic(o.about) != ""):
		fail(fmt.Errorf("-about goes with -seeds N, and is one or more of %s", strings.Join(world.Topics(), ", ")))
	case o.seeds > 0 && (*without != "" || *calls != 0), *calls < 0:
		fail(errors.New("-without and -calls, which is 1 or more, go with -seed N alone"))
	case o.seeds > 0 && *seed+o.seeds < *seed:
		fail(fmt.Errorf("there are no %d seeds from %d on; the last is %d", o.seeds, *seed, uint64(math.MaxUint64)))
	}
	one := Seed{Number: *seed, Trace: true, Calls: *calls}
	var err error
	if one.Without, err = world.Numbers(*without); err != nil {
		fail(err)
	}
	if err := run(one, o); err != nil {
		fail(err)
	}
}

// noTopic is the first word that no world is about, "" where all are topics.
func noTopic(about string) string {
	for word := range strings.FieldsSeq(about) {
		if !slices.Contains(world.Topics(), word) {
			return word
		}
	}
	return ""
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "simulation:", err)
	os.Exit(1)
}

func run(one Seed, o options) (err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if o.mutants != "" {
		which, err := regexp.Compile(o.mutants)
		if err != nil {
			return fmt.Errorf("-mutants: %w", err)
		}
		return prove(ctx, one.Number, o.seeds, which, o.shrink)
	}
	var s Simulation
	var flags []string
	if o.coverage {
		if s.Coverage, err = os.MkdirTemp("", "celld-simulation-"); err != nil {
			return err
		}
		defer os.RemoveAll(s.Coverage)
		flags = []string{"-cover", "-coverpkg=" + World + "," + product} // without World, Go would note nothing
	}
	if s.Program, err = runner.Build(ctx, World, flags...); err != nil {
		return err
	}
	defer s.Close(ctx)
	switch {
	case o.shrink:
		return s.shrink(ctx, one.Number)
	case o.seeds == 0:
		r := s.Run(ctx, one)
		fmt.Print(r.Output)
		return r.Err
	}
	began := time.Now()
	sum := s.Many(ctx, one.Number, o.seeds, o.about, runtime.NumCPU(), o.twice, func(done uint64, failed []Result) {
		if o.first && len(failed) > 0 {
			stop()
		}
		fmt.Fprintf(os.Stderr, "\r%d of %d seeds, %d failed, %s", done, o.seeds, len(failed), time.Since(began).Round(time.Second))
	})
	fmt.Fprintln(os.Stderr)
	fmt.Print(sum)
	if o.coverage {
		if err := s.tellCoverage(); err != nil {
			return err
		}
	}
	if n := len(sum.Failed); n > 0 {
		return fmt.Errorf("%d of %d seeds failed", n, o.seeds)
	}
	if never := sum.Never(); o.about == "" && o.seeds >= enough && len(never) > 0 {
		return fmt.Errorf("%d seeds have never met %v: the simulation does not reach it", o.seeds, never)
	}
	return nil
}

// tellCoverage prints how much of each package the seeds have run, and which functions they never entered.
func (s Simulation) tellCoverage() error {
	for _, what := range []string{"percent", "func"} {
		tool := exec.Command("go", "tool", "covdata", what, "-i", s.Coverage)
		tool.Stderr = os.Stderr
		out, err := tool.Output()
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(out)) {
			if what == "percent" || strings.HasSuffix(line, "\t0.0%\n") {
				fmt.Print(line)
			}
		}
	}
	return nil
}

// product is the packages whose coverage is noted.
const product = "celld/cell/...,celld/persistence/...,celld/resp/...,celld/store/..."

// enough seeds meet all that may happen.
const enough = 100_000
