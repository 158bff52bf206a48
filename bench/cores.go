//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// cores is a Go benchmark of the store or of sessions, without the kernel: by one goroutine, by two on one store, and by two that
// have a store each. A core cannot bring more than the last of these shows, so that is the ceiling.
type cores struct {
	pkg   string // its folder
	bench string // what -bench matches; the last part of each name is the figure's
	keys  int
	calls int  // a figure
	fresh bool // new keys beside a hit, both by one goroutine
}

const (
	oneNS          metric = "one_ns"
	twoNS          metric = "two_ns"
	ceilingNS      metric = "ceiling_ns"
	growingNS      metric = "growing_ns"
	floodNS        metric = "flood_ns"
	shareOfCeiling metric = "share_of_ceiling"
	twoOverOne     metric = "two_over_one"
	growingOverHit metric = "growing_over_hit"
	floodOverHit   metric = "flood_over_hit"
	callsOfCores          = 5_000_000
	callsOfFresh          = 10_000_000
)

// benchmarkFiles are copied into the tree of an earlier commit.
var benchmarkFiles = map[string][]string{"store/memory": {"scale_test.go", "new_bench_test.go"}, "resp": {"scale_test.go"}}

var coreRows, coreGoals = everyCore()

// everyCore returns the rows, and what is asked of each.
func everyCore() (rows []row, goals []goal) {
	for _, ask := range []struct{ name, title, pkg, bench string }{
		{"throttle", "store, CL.THROTTLE", "store/memory", "throttle"}, {"take", "store, CL.TAKE", "store/memory", "take"},
		{"pipe1", "sessions, P=1", "resp", "P=1"}, {"pipe16", "sessions, P=16", "resp", "P=16"},
		{"pipe128", "sessions, P=128", "resp", "P=128"},
	} {
		for _, keys := range []struct {
			n           int
			name, title string
		}{{1, "1", "one key"}, {1_000, "1k", "1,000 keys"}, {1_000_000, "1m", "1M keys"}} {
			for _, mix := range []string{"denied", "pass", "mixed"} {
				if ask.pkg == "resp" && (keys.n == 1 || mix == "mixed") || keys.n == 1 && mix == "mixed" {
					continue
				}
				name := fmt.Sprintf("cores-%s-%s-%s", ask.name, keys.name, mix)
				bench := fmt.Sprintf("^BenchmarkScale$/^%s$/^keys=%d$/^%s$", ask.bench, keys.n, mix)
				rows = append(rows, row{name: name, title: fmt.Sprintf("%s, %s, %s", ask.title, keys.title, mix),
					work: cores{pkg: ask.pkg, bench: bench, keys: keys.n, calls: callsOfCores}})
				switch {
				case keys.n == 1 && mix == "denied":
					goals = append(goals, goal{row: name, metric: twoOverOne, atLeast: 1.7})
				case keys.n == 1_000_000 || keys.n == 1_000 && mix == "denied":
					goals = append(goals, goal{row: name, metric: shareOfCeiling, atLeast: 0.9})
				case keys.n == 1_000 && mix == "pass":
					goals = append(goals, goal{row: name, metric: shareOfCeiling, atLeast: 0.75})
				}
			}
		}
		if ask.pkg == "store/memory" {
			name := "cores-new-" + ask.name
			bench := fmt.Sprintf("^BenchmarkNew$/^%s$|^BenchmarkScale$/^%[1]s$/^keys=1000000$/^pass$/^one$", ask.bench)
			rows = append(rows, row{name: name, title: ask.title + ", new keys",
				work: cores{pkg: ask.pkg, bench: bench, keys: 1_000_000, calls: callsOfFresh, fresh: true}})
			goals = append(goals, goal{row: name, metric: growingOverHit, atMost: 1.6}, goal{row: name, metric: floodOverHit, atMost: 2})
		}
	}
	return rows, goals
}

func (w cores) fits(p *peer) bool { return p.isCelld() }

func (w cores) quick() work {
	w.calls /= 10
	return w
}

func (w cores) seconds(*peer) float64 { return float64(w.calls)*500e-9 + float64(w.keys)*7e-6 }

// run is one round. The rounds of all rows take turns, which -count would not do.
func (w cores) run(b *bench, p *peer) (sample, error) {
	binary, err := b.benchmarks(p, w.pkg)
	if err != nil {
		return nil, err
	}
	run := exec.CommandContext(b.ctx, binary, "-test.run", "^$", "-test.bench", w.bench, "-test.benchtime", fmt.Sprintf("%dx", w.calls))
	run.Dir, run.Env = filepath.Join(b.tools.trees[p.name], w.pkg), plainEnvironment()
	out, err := run.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("-bench %s: %w\n%s", w.bench, err, out)
	}
	return parseBenchmarks(string(out))
}

// benchmarks returns the test binary of a package, as of the peer's commit but with the benchmarks of today.
func (b *bench) benchmarks(p *peer, pkg string) (string, error) {
	binary := filepath.Join(b.dir, p.name+"-"+strings.ReplaceAll(pkg, "/", "-")+".test")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	tree, today := b.tools.trees[p.name], b.tools.trees["celld"]
	for _, name := range benchmarkFiles[pkg] {
		text, err := os.ReadFile(filepath.Join(today, pkg, name))
		if err == nil && tree != today {
			err = os.WriteFile(filepath.Join(tree, pkg, name), text, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	build := exec.CommandContext(b.ctx, "go", "test", "-c", "-o", binary, "./"+pkg)
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("these benchmarks cannot be built with the code of %s: %w\n%s", p.title, err, out)
	}
	return binary, nil
}

// benchmarkLine matches the last part of a name, without GOMAXPROCS, and the time. It is not golang.org/x/perf/benchfmt that
// reads it: for this one number go.mod would name two more modules, and `go mod graph` 40 more, Google's cloud among them.
var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark\S*/([a-z]+)(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op`)

// parseBenchmarks reads what a test binary prints, and compares the figures with each other.
func parseBenchmarks(text string) (sample, error) {
	result := sample{}
	for _, m := range benchmarkLine.FindAllStringSubmatch(text, -1) {
		figure := metric(m[1] + "_ns")
		ns, err := strconv.ParseFloat(m[2], 64)
		if _, twice := result[figure]; twice || err != nil {
			return nil, fmt.Errorf("a benchmark printed %q: %v", m[0], err)
		}
		result[figure] = ns
	}
	if len(result) < 2 || result[oneNS] == 0 {
		return nil, fmt.Errorf("of the benchmarks only %v ran", result)
	}
	for _, r := range []struct{ ratio, of, over metric }{
		{shareOfCeiling, ceilingNS, twoNS}, {twoOverOne, oneNS, twoNS}, {growingOverHit, growingNS, oneNS}, {floodOverHit, floodNS, oneNS},
	} {
		if result[r.of] > 0 && result[r.over] > 0 {
			result[r.ratio] = result[r.of] / result[r.over]
		}
	}
	return result, nil
}
