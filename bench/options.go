//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// options are the command line's.
type options struct {
	quick  bool
	rows   string
	rounds int
	peers  string
	celld  string
	before string
}

func parseOptions() options {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "a tenth of the requests, no 10M keys, no keys of 40 bytes, 1 round")
	flag.StringVar(&o.rows, "rows", "",
		"measure only the rows whose name this regular `expression` matches: "+strings.Join(rowNames(), " "))
	flag.IntVar(&o.rounds, "rounds", 0, "number of rounds, whose median is shown (default 3, with -quick 1)")
	others := slices.DeleteFunc(peerNames(), func(name string) bool { return name == "before" })
	flag.StringVar(&o.peers, "peers", strings.Join(others, ","), "measure only these servers")
	flag.StringVar(&o.celld, "celld", "", "more `flags` for celld, such as '--io-threads 2'")
	flag.StringVar(&o.before, "before", "", "measure celld as of this `commit` as the peer before, to see what a change has cost")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "bench: unknown argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if o.rounds <= 0 {
		o.rounds = 3
		if o.quick {
			o.rounds = 1
		}
	}
	return o
}

// partial tells that rows, peers, celld's flags or an earlier celld were chosen. Such a run prints what it measured and leaves the result
// files alone.
func (o options) partial() bool {
	partial := false
	flag.Visit(func(f *flag.Flag) {
		partial = partial || f.Name == "rows" || f.Name == "peers" || f.Name == "celld" || f.Name == "before"
	})
	return partial
}

// commandLine is how to repeat the run.
func (o options) commandLine() string {
	words := []string{"go -C bench run ."}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "quick" {
			words = append(words, "-quick")
		} else {
			words = append(words, fmt.Sprintf("-%s '%s'", f.Name, f.Value))
		}
	})
	return strings.Join(words, " ")
}
