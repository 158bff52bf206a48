package decide

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"celld/cell"
	"celld/resp/wire"
	"celld/store/policy"
)

// find reads a whole frame.
func (w *world) find(raw string) *Shape {
	w.t.Helper()
	args, n := wire.Whole([]byte(raw), nil, wire.Limits{MaxArgs: 1 << 20, MaxBulk: 1 << 20, Authed: true})
	if n != len(raw) {
		w.t.Fatalf("%q has %d bytes", raw, n)
	}
	return w.d.find([]byte(raw), args)
}

// A call whose shape was met is recognised by its bytes, with any key, and what is not whole or too long is not.
func TestShapesAreRecognised(t *testing.T) {
	w := newWorld(t)
	s := &w.d.shapes
	for _, call := range [][]string{
		{"CL.THROTTLE", "k", "15", "30", "60"}, {"cl.throttle", "k", "15", "30", "60", "1"},
		{"CL.TAKE", "k", "5/1h"}, {"CL.TAKE", "k", "1/1s", "1/2s", "1/3s", "1/4s", "1/5s", "1/6s", "1/7s"},
		{"CL.TAKE", "k", "1/1s", "1/2s", "1/3s", "1/4s", "1/5s", "1/6s", "1/7s", "1/8s", "COST", "2"},
	} {
		f := w.find(frame(call...))
		if f == nil {
			t.Errorf("%q is not kept", call)
			continue
		}
		for _, key := range []string{"", "l", "nine byte", "ten bytes.", strings.Repeat("x", 200)} {
			call[1] = key
			raw := frame(call...)
			if got, n := f.match([]byte(raw+"*1\r\n"), 200); string(got) != key || n != len(raw) {
				t.Errorf("%q: key %q and %d bytes of %d", call, got, n, len(raw))
			}
			for cut := range raw {
				if _, n := f.match([]byte(raw[:cut]), 200); n != 0 {
					t.Errorf("%q is recognised", raw[:cut])
				}
			}
			if w.find(raw) != f {
				t.Errorf("%q is read anew", call)
			}
		}
		if _, n := f.match([]byte(frame(call...)), 199); n != 0 {
			t.Error("a key that is too long is recognised")
		}
		before := s.last
		s.met(f)
		if s.last != f || s.prev != before || before.next != f || s.other(f) != before || s.other(before) != f {
			t.Errorf("%q: the last two are not those that were met last", call)
		}
	}
	for _, call := range [][]string{
		{"PING", "k", "x"}, {"GET", "k"}, {"CL.THROTTLE", "k", "x", "30", "60"}, {"CL.MTAKE", "1", "k", "5/1h"},
		{"CL.GIVE", "k", "5/1h", "1"}, {"CL.TAKE", "k", "x"}, {"CL.TAKE", "k"},
		{"CL.TAKE", "k", "5/1h", "WAIT", "5"}, {"CL.TAKE", "k", "5/1m,algo=conc"}, {"CL.TAKE", strings.Repeat("k", 16<<10), "7/1h"},
		append([]string{"CL.TAKE", "k"}, slices.Repeat([]string{"5/1h"}, 63)...),
	} {
		if w.find(frame(call...)) != nil {
			t.Errorf("%.100q is kept", call)
		}
	}
}

// A shape has up to 1 KB beside its key. Limits may be long, as they may begin with zeros.
func TestTheLongestShape(t *testing.T) {
	w := newWorld(t)
	for zeros := 0; zeros < 1100; zeros++ {
		raw := frame("CL.THROTTLE", "key", "5", "1", strings.Repeat("0", zeros)+"60")
		short := len(raw)-len("3\r\nkey") <= maxShape
		if kept := w.find(raw) != nil; kept != short {
			t.Fatalf("%d bytes: kept %v", len(raw), kept)
		}
	}
}

// However many shapes take turns, each call is answered by its own, and none that a batch holds becomes another.
func TestManyShapesTakeTurns(t *testing.T) {
	w := newWorld(t)
	const shapes = 400
	var held []*Shape
	for round := range 3 {
		for i := range shapes {
			limit := fmt.Sprint(1+i, "/1h")
			f := w.find(frame("CL.TAKE", "k", limit))
			if f == nil || f.limits[0].Count != int64(1+i) {
				t.Fatalf("round %d: %s is read as %v", round, limit, f)
			}
			if again := w.find(frame("CL.TAKE", "other", limit)); again != f {
				t.Fatalf("%s is read anew", limit)
			}
			if held = append(held, f); len(held) > 64 {
				held = held[1:]
			}
			for at, g := range held {
				if want := int64(1 + (i-len(held)+1+at+shapes)%shapes); g.limits[0].Count != want {
					t.Fatalf("round %d, %d: the shape of %d/1h is now that of %d", round, i, want, g.limits[0].Count)
				}
			}
		}
	}
	if w.find(frame("CL.TAKE", "k", "x")) != nil || w.find(frame("CL.TAKE", "k", fmt.Sprint(shapes, "/1h"))) == nil {
		t.Error("a call that is wrong has spoilt a shape")
	}
}

// A shape that is forgotten is recognised no more, though others lead to it.
func TestForgottenShapes(t *testing.T) {
	w := newWorld(t)
	first := w.find(frame("CL.TAKE", "k", "1/1h"))
	for i := 0; len(first.head) > 0; i++ {
		if i == 10_000 {
			t.Fatal("it stays")
		}
		w.find(frame("CL.TAKE", "k", fmt.Sprint(2+i, "/1h")))
	}
	if _, n := first.match([]byte(frame("CL.TAKE", "k", "1/1h")), 100); n != 0 {
		t.Error("it is recognised")
	}
}

// A limit that was read is found again by its text, while log-max and the policies are as they were.
func TestLimitsAreReadOnce(t *testing.T) {
	w := newWorld(t)
	read := func(text string) (first limit, problem string) {
		found, problem := w.d.lookUp([]byte(text), w.server.edition())
		if problem == "" {
			first = found[0]
		}
		return first, problem
	}
	for _, text := range []string{
		"5/1h", "5/1h,algo=log", "@" + strings.Repeat("n", maxKnownText-1), "@" + strings.Repeat("n", maxKnownText),
	} {
		if name, isPolicy := strings.CutPrefix(text, "@"); isPolicy {
			w.set(name, "5/1h")
		}
		first, problem := read(text)
		second, _ := read(text)
		kept := false
		for i := range w.d.known {
			kept = kept || string(w.d.known[i].text) == text
		}
		if problem != "" || kept != (len(text) <= maxKnownText) || first.Limit != second.Limit {
			t.Errorf("%d bytes: kept %v, %s", len(text), kept, problem)
		}
	}
	const literal = "7/1h,algo=log"
	before, _ := read(literal)
	for name, change := range map[string]func(){"a policy": func() { w.set("p", "5/1h") }, "log-max": func() { w.cfg.LogMax.Put(7) }} {
		change()
		if after, _ := read(literal); after.Limit == before.Limit {
			t.Errorf("%s: is not read anew", name)
		} else {
			before = after
		}
	}
	w.cfg.LogMax.Put(6)
	if _, problem := read(literal); problem == "" {
		t.Error("is taken though log-max is less")
	}
	if _, problem := read(""); problem == "" {
		t.Error("nothing is a limit")
	}
}

func (w *world) set(name, text string) {
	w.t.Helper()
	literal, problem := w.server.parse([]byte(text), 1000)
	if problem != "" {
		w.t.Fatal(problem)
	}
	if _, err := w.Store.SetPolicy(name, []cell.Limit{*literal[0].Limit}, policy.Options{}); err != nil {
		w.t.Fatal(err)
	}
}

// A pipeline goes by the limit that a policy has now, and by the log-max of now.
func TestShapesGoStale(t *testing.T) {
	w := newWorld(t)
	named, log := frame("CL.TAKE", "k", "@p", "PEEK"), frame("CL.TAKE", "k", "9/1m,algo=log", "PEEK")
	has := func(limit int) string {
		return fmt.Sprintf("*7\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n:0\r\n:0\r\n", limit, limit)
	}
	for count := 1; count < 5; count++ {
		w.set("p", fmt.Sprint(count, "/1h"))
		if got := w.send(named + named + log + named); got != has(count)+has(count)+has(9)+has(count) {
			t.Errorf("%q", got)
		}
	}
	w.cfg.LogMax.Put(8)
	if got := w.send(log + log + named); strings.Count(got, "-ERR") != 2 || !strings.HasSuffix(got, has(4)) {
		t.Errorf("%q", got)
	}
	w.cfg.LogMax.Put(9)
	w.Store.DeletePolicy("p")
	if got := w.send(log + named + log); got != has(9)+"-NOPOLICY no such policy 'p'\r\n"+has(9) {
		t.Errorf("%q", got)
	}
}
