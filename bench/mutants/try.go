//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A mutant may allocate without end. Without the race detector, Go's tests need far less than this much address space, in KiB.
const memory = 8 << 20

type test struct {
	name string
	took time.Duration
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// run tells whether the tests pass, and whether the time was up. It waits for no program that a test leaves behind.
func (b *binary) run(tests []test, timeout time.Duration, env ...string) (passed, slow bool) {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	args := append([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, memory), b.path, "-test.failfast",
		"-test.run=^(" + strings.Join(names, "|") + ")$"}, b.flags...)
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if err != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return err == nil || errors.Is(err, exec.ErrWaitDelay), ctx.Err() != nil
}

// measureTests runs each test without a living mutant: how long does it take, and which mutants does it run?
func (b *binary) measureTests() error {
	cmd := exec.Command(b.path, "-test.list=^(Test|Fuzz|Example)")
	cmd.Dir = b.dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the tests: %w", err)
	}
	names := strings.Fields(string(out))
	b.reached = map[int][]int{}
	reached := filepath.Join(b.scratch, "reached")
	line := progress{}
	for i, name := range names {
		line.show("%s: %d of %d tests measured", b.pkg, i, len(names))
		if err := os.WriteFile(reached, nil, 0o644); err != nil {
			return err
		}
		start := time.Now()
		passed, _ := b.run([]test{{name: name}}, 10*time.Minute, "MUTANT_REACHED="+reached)
		if b.ctx.Err() != nil {
			return b.ctx.Err()
		}
		if !passed {
			fmt.Printf("%s: %s fails without a mutant, so it is not used\n", b.pkg, name)
			continue
		}
		b.tests = append(b.tests, test{name, time.Since(start)})
		numbers, err := os.ReadFile(reached)
		if err != nil {
			return err
		}
		for number := range strings.FieldsSeq(string(numbers)) {
			id, _ := strconv.Atoi(number)
			b.reached[id] = append(b.reached[id], len(b.tests)-1)
		}
	}
	return nil
}

func (b *binary) try(chosen []mutant) result {
	r := result{pkg: b.pkg, all: len(b.mutants), chosen: len(chosen)}
	line := progress{}
	for i, m := range chosen {
		line.show("%s: %d of %d mutants, %d killed, %d survive", b.pkg, i, len(chosen), r.killed, r.survived)
		killed, slow := b.kills(m)
		switch {
		case b.ctx.Err() != nil:
			return r
		case killed:
			r.killed++
		case len(b.reached[m.id]) == 0:
			fmt.Printf("not reached  line %d  %s\n", m.line, m.name)
			r.survived++
		default:
			fmt.Printf("survives     line %d  %s\n", m.line, m.name)
			r.survived++
		}
		if slow {
			r.slow++
		}
	}
	fmt.Printf("%s: %d of %d mutants killed, %.1f %%\n", b.pkg, r.killed, r.chosen, r.percent())
	return r
}

// kills runs the tests that reach the mutant in groups, the quickest first: most mutants die in the first group. The groups stay
// short, as a mutant that hangs takes the time-out of its group.
func (b *binary) kills(m mutant) (killed, slow bool) {
	var tests []test
	for _, i := range b.reached[m.id] {
		tests = append(tests, b.tests[i])
	}
	slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	for budget := time.Second / 4; len(tests) > 0; budget = min(8*budget, 4*time.Second) {
		n, sum := 0, time.Duration(0)
		for n < len(tests) && (n == 0 || sum+tests[n].took < budget) {
			sum += tests[n].took
			n++
		}
		passed, slow := b.run(tests[:n], 5*time.Second+3*sum, "MUTANT="+strconv.Itoa(m.id))
		if !passed {
			return true, slow
		}
		tests = tests[n:]
	}
	return false, false
}

// progress prints a line every 10 seconds.
type progress struct{ last time.Time }

func (p *progress) show(format string, args ...any) {
	if time.Since(p.last) >= 10*time.Second {
		fmt.Printf(format+"\n", args...)
		p.last = time.Now()
	}
}
