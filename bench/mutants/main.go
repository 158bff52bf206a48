//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// tested returns the packages of the module in this folder that have tests. Those whose names end in test serve tests themselves.
func tested(ctx context.Context) (packages []string, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{if and .GoFiles (or .TestGoFiles .XTestGoFiles)}}{{.ImportPath}}{{end}}",
		"./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		if _, path, _ := strings.Cut(pkg, "/"); !strings.HasSuffix(path, "test") {
			packages = append(packages, "./"+path)
		}
	}
	return packages, nil
}

type options struct {
	sample int
	seed   uint64
	only   string
	checks int
	least  float64
}

func main() {
	var o options
	flag.IntVar(&o.sample, "n", 200, "`mutants` of each package, chosen at random; 0 takes all")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "choose the same mutants again")
	flag.StringVar(&o.only, "only", "", "only mutants whose name this regular `expression` matches")
	flag.IntVar(&o.checks, "checks", 100, "random `cases` of each property, as in the ordinary tests; fewer are faster")
	flag.Float64Var(&o.least, "least", 85, "fail if the tests of a package kill less `percent`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	packages, err := flag.Args(), error(nil)
	if len(packages) == 0 {
		packages, err = tested(ctx)
	}
	if err == nil {
		err = run(ctx, o, packages)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// result is what became of one package's mutants.
type result struct {
	pkg                                 string
	all, chosen, killed, slow, survived int // slow are killed by the time-out, and counted there, too
}

func (r result) percent() float64 { return 100 * float64(r.killed) / float64(max(r.chosen, 1)) }

func run(ctx context.Context, o options, packages []string) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	equivalent, err := readEquivalent()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	tree := filepath.Join(scratch, "tree")
	if err := copyModule(tree); err != nil {
		return err
	}
	fmt.Printf("seed %d\n", o.seed)
	var results []result
	for _, pkg := range packages {
		b, err := build(ctx, scratch, tree, pkg, o)
		if err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		for _, name := range equivalent.stale(b) {
			fmt.Printf("equivalent.txt names no mutant: %s\n", name)
		}
		chosen := slices.DeleteFunc(slices.Clone(b.mutants), func(m mutant) bool {
			return equivalent[m.name] || !only.MatchString(m.name)
		})
		if o.sample > 0 && o.sample < len(chosen) {
			rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
			chosen = chosen[:o.sample]
			slices.SortFunc(chosen, func(a, b mutant) int { return a.id - b.id })
		}
		if err := b.measureTests(); err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		results = append(results, b.try(chosen))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return report(results, o)
}

func report(results []result, o options) error {
	fmt.Printf("\n%-28s %8s %8s %8s %8s %8s %8s\n", "package", "mutants", "tried", "killed", "by time", "survive", "share")
	var err error
	for _, r := range results {
		fmt.Printf("%-28s %8d %8d %8d %8d %8d %7.1f%%\n", r.pkg, r.all, r.chosen, r.killed, r.slow, r.survived, r.percent())
		if r.chosen > 0 && r.percent() < o.least {
			err = fmt.Errorf("the tests of a package kill less than %g %% (seed %d)", o.least, o.seed)
		}
	}
	return err
}
