package resp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"celld/resp/wire"
)

// Each call of a pipeline is answered under its own limit, whatever the number of limits, also where they are more than forms
// are kept of.
func TestPipelinesOfManyLimits(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	for range 20 {
		var pipeline, want strings.Builder
		for range 1000 {
			limit, form := 1+rand.IntN(300), rand.IntN(3)
			switch form {
			case 0:
				pipeline.WriteString(frame("CL.THROTTLE", "k", fmt.Sprint(limit-1), "1", "60", "0"))
				fmt.Fprintf(&want, "*5\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n", limit, limit)
			case 1:
				pipeline.WriteString(frame("CL.TAKE", "t", fmt.Sprint(limit, "/1h"), "PEEK"))
				fmt.Fprintf(&want, "*7\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n:0\r\n:0\r\n", limit, limit)
			case 2:
				pipeline.WriteString("1\r\n")
				fmt.Fprintf(&want, "-ERR unknown command '1', with args beginning with: \r\n")
				pipeline.WriteString(frame("ECHO", fmt.Sprint(limit)))
				fmt.Fprintf(&want, "$%d\r\n%d\r\n", len(fmt.Sprint(limit)), limit)
			}
			if rand.IntN(3) > 0 { // some in a row
				n := rand.IntN(100)
				for i := range n {
					pipeline.WriteString(frame("CL.THROTTLE", "k", fmt.Sprint(limit+i), "1", "60", "0"))
					fmt.Fprintf(&want, "*5\r\n:0\r\n:%d\r\n:%d\r\n:-1\r\n:0\r\n", limit+i+1, limit+i+1)
				}
			}
		}
		if got := p.send(pipeline.String()); got != want.String() {
			i := 0
			for i < len(got) && got[i] == want.String()[i] {
				i++
			}
			t.Fatalf("at %d: %.80q, want %.80q", i, got[i:], want.String()[i:])
		}
	}
}

// A call whose form was met is recognised by its bytes, with any key, and what is not whole or too long is not.
func TestFormsRecognise(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.borrow()
	defer p.giveBack()
	read := func(raw string) (*form, *forms) {
		fs := p.scratch.forms
		args, n := wire.Whole([]byte(raw), nil, p.srv.frameLimits(true))
		if n != len(raw) {
			t.Fatalf("%q has %d bytes", raw, n)
		}
		return fs.find(p.Session, []byte(raw), args), fs
	}
	for _, call := range [][]string{
		{"CL.THROTTLE", "k", "15", "30", "60"}, {"cl.throttle", "k", "15", "30", "60", "1"}, {"GCRA", "k", "15", "30", "60"}, {"CL.TAKE", "k", "5/1h"},
		{"CL.TAKE", "k", "1/1s", "1/2s", "1/3s", "1/4s", "1/5s", "1/6s", "1/7s"}, {"CL.TAKE", "k", "1/1s", "1/2s", "1/3s", "1/4s", "1/5s", "1/6s", "1/7s", "1/8s", "COST", "2"},
	} {
		f, fs := read(frame(call...))
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
			if again, _ := read(raw); again != f {
				t.Errorf("%q is read anew", call)
			}
		}
		if _, n := f.match([]byte(frame(call...)), 199); n != 0 {
			t.Error("a key that is too long is recognised")
		}
		before := fs.last
		fs.met(f)
		if fs.last != f || fs.prev != before || before.next != f || fs.other(f) != before || fs.other(before) != f {
			t.Errorf("%q: the last two are not those that were met last", call)
		}
	}
	for _, call := range [][]string{{"PING", "k", "x"}, {"GET", "k"}, {"CL.THROTTLE", "k", "x", "30", "60"}, {"CL.MTAKE", "1", "k", "5/1h"}, {"CL.GIVE", "k", "5/1h", "1"}, {"CL.TAKE", "k", "x"}, {"CL.TAKE", "k"}} {
		if f, _ := read(frame(call...)); f != nil {
			t.Errorf("%q is kept", call)
		}
	}
}

// A limit that was read is found again by its text, while log-max and the policies are as they were.
func TestLimitsAreReadOnce(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	p.borrow()
	defer p.giveBack()
	for _, text := range []string{"5/1h", "5/1h,algo=log", "@" + strings.Repeat("n", maxCachedText-1), "@" + strings.Repeat("n", maxCachedText)} {
		if name, isPolicy := strings.CutPrefix(text, "@"); isPolicy {
			w.connect().do("CL.POLICY", "SET", name, "5/1h")
		}
		if _, problem := p.limit([]byte(text)); problem != "" {
			t.Errorf("%s: %s", text, problem)
		}
		kept := slices.ContainsFunc(p.scratch.literals.entries[:], func(e cachedLimit) bool { return string(e.text) == text })
		first, _ := p.limit([]byte(text))
		second, _ := p.limit([]byte(text))
		if kept != (len(text) <= maxCachedText) || first.Limit != second.Limit {
			t.Errorf("%d bytes: kept %v", len(text), kept)
		}
	}
	const literal = "7/1h,algo=log"
	before, _ := p.limit([]byte(literal))
	for _, change := range []string{"CL.POLICY SET p 5/1h", "CONFIG SET log-max 7"} {
		w.connect().do(strings.Fields(change)...)
		if after, _ := p.limit([]byte(literal)); after.Limit == before.Limit {
			t.Errorf("%s: is not read anew", change)
		} else {
			before = after
		}
	}
	w.connect().do("CONFIG", "SET", "log-max", "6")
	if _, problem := p.limit([]byte(literal)); problem == "" {
		t.Error("is taken though log-max is less")
	}
}
