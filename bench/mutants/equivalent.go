//go:build linux

package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// A line is a mutant's name, two blanks and a dash, and why no test can see it. # starts a comment.
//
//go:embed equivalent.txt
var equivalentText string

type equivalents map[string]bool

func readEquivalent() (equivalents, error) {
	names := equivalents{}
	for line := range strings.Lines(equivalentText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, reason, _ := strings.Cut(line, "  - ")
		if reason == "" {
			return nil, fmt.Errorf("equivalent.txt: no reason for %s", name)
		}
		names[name] = true
	}
	return names, nil
}

// stale are the names of b's package that fit none of its mutants: the code they are about has changed.
func (e equivalents) stale(b *binary) []string {
	var stale []string
	for name := range e {
		known := slices.ContainsFunc(b.mutants, func(m mutant) bool { return m.name == name })
		path, _, _ := strings.Cut(name, " ")
		if !known && path[:strings.LastIndexByte(path, '/')] == b.pkg {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	return stale
}
