//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const code = `package a

import "errors"

var errNone = errors.New("none")

func clamp(x, most int) (int, error) {
	if x < 0 || most == 0 {
		return 0, errNone
	}
	if x > most {
		x = most
	}
	return x*2+1, nil
}

func count(list []string, seen func()) (n int8) {
	for range list {
		n++
		seen()
	}
	n += 2
	return n
}

func half(x int) (int, bool) {
	if x%2 != 0 {
		return 0, false
	}
	return x / 2, x > 0
}

func loud(s string) string { return s + "!" }
`

const codeTest = `package a

import "testing"

func TestClamp(t *testing.T) {
	if x, err := clamp(5, 3); x != 7 || err != nil {
		t.Fatal(x, err)
	}
	if _, err := clamp(-1, 3); err == nil {
		t.Fatal("no error")
	}
}

func TestHalf(t *testing.T) {
	if x, ok := half(4); x != 2 || !ok {
		t.Fatal(x, ok)
	}
}

func TestCount(t *testing.T) {
	seen := 0
	if n := count([]string{"a"}, func() { seen++ }); n != 3 || seen != 1 {
		t.Fatal(n)
	}
}
`

func TestWhatIsKilled(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "a/a.go": code, "a/a_test.go": codeTest} {
		os.MkdirAll(filepath.Dir(name), 0o755)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	scratch := t.TempDir()
	tree := filepath.Join(scratch, "tree")
	if err := copyModule(tree); err != nil {
		t.Fatal(err)
	}
	b, err := build(t.Context(), scratch, tree, "./a", options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.measureTests(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range b.mutants {
		fate := "survives"
		if killed, _ := b.kills(m); killed {
			fate = "killed"
		} else if len(b.reached[m.id]) == 0 {
			fate = "not reached"
		}
		got = append(got, strings.TrimPrefix(m.name, "a/a.go ")+": "+fate)
	}
	want := []string{
		"clamp: x < 0 negated: killed",
		"clamp: x < 0 becomes <=: not reached", // needs x == 0
		"clamp: most == 0 negated: killed",
		"clamp: errNone returned as nil: killed",
		"clamp: x > most negated: killed",
		"clamp: x > most becomes >=: not reached",
		"clamp: x*2+1 returned as 0: killed",
		"clamp: x*2+1 becomes -: killed",
		"clamp: x*2 becomes /: killed",
		"count: n++ becomes --: killed",
		"count: seen() left out: killed",
		"count: n += 2 becomes -=: killed",
		"count: n returned as 0: killed",
		"half: x%2 != 0 negated: killed",
		"half: x%2 becomes *: killed",
		"half: false returned negated: not reached",
		"half: x / 2 returned as 0: killed",
		"half: x / 2 becomes *: killed",
		"half: x > 0 negated: killed",
		"half: x > 0 becomes >=: not reached",
		"loud: s + \"!\" returned as \"\": not reached",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
