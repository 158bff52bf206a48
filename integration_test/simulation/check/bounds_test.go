package check

import (
	"testing"

	"celld/cell"
)

func TestBounds(t *testing.T) {
	bounded := func(calls ...Call) (h History) {
		for _, c := range calls {
			c.Bounded = true
			h.Calls = append(h.Calls, c)
		}
		return h
	}
	grant, deny := []int64{0, 2, 0, -1, 0}, []int64{1, 2, 0, 1, 0}
	waits := func(waitNS, toNS int64) Call {
		c := call(2, 3, 4, deny, 9*s)
		c.Waits, c.WaitNS, c.ToNS = true, waitNS, toNS
		return c
	}
	deleted := call(0, 2, 3, []int64{1}, 9*s)
	deleted.Kind = Del
	for _, c := range []struct {
		name  string
		h     History
		loss  bool
		wrong bool
	}{
		{"as many as the limit", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s)), false, false},
		{"one more", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s), call(2, 3, 4, grant, 9*s)), false, true},
		{"one more after a loss", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s), call(2, 3, 4, grant, 9*s)), true, false},
		{"one more after a second", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s), call(2, 3, 4, grant, 10*s)), false, false},
		{"denied while there is room", bounded(call(0, 1, 2, grant, 9*s), call(1, 3, 4, deny, 9*s)), false, true},
		{"denied at the end of a wait in which it would have passed", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s),
			waits(2*s, 11*s)), false, true},
		{"denied at the end of a wait that was too short", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s),
			waits(s/2, 10*s-s/2)), false, false},
		{"denied before the end of its wait", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s), waits(2*s, 9*s)), false, false},
		{"as many again after DEL", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, grant, 9*s), deleted, call(2, 4, 5, grant, 9*s)),
			false, false},
		{"denied long after DEL", bounded(call(0, 1, 1, grant, 9*s-1), call(1, 1, 1, grant, 9*s-1), deleted,
			call(2, 4, 5, grant, 9*s), call(2, 6, 7, deny, 10*s+s/5)), false, true},
		{"denied soon after DEL", bounded(call(0, 1, 1, grant, 9*s-1), call(1, 1, 1, grant, 9*s-1), deleted,
			call(2, 4, 5, grant, 9*s), call(2, 6, 7, deny, 9*s+s/5)), false, false},
		{"denied after a call that may count", bounded(call(0, 1, 2, grant, 9*s), call(1, 1, 2, nil, 9*s), call(1, 3, 4, deny, 9*s)), false, false},
	} {
		if c.loss {
			c.h.Losses = []Loss{{Began: 2, Ended: 3}}
		}
		if faults := Bounds(c.h); (len(faults) > 0) != c.wrong {
			t.Errorf("%s: %v", c.name, faults)
		}
	}
}

// Units that another server has taken before DEL may pass as long as they last, and no longer.
func TestUnitsAfterDel(t *testing.T) {
	for _, c := range []struct {
		aheadNS, atNS int64
		wrong         bool
	}{{0, 9 * s, true}, {s / 10, 9 * s, false}, {s / 10, 9*s + s/5, true}} {
		grant := []int64{0, 2, 0, -1, 0}
		deleted := call(0, 1, 2, []int64{1}, 9*s)
		deleted.Kind = Del
		h := History{AheadNS: c.aheadNS, Calls: []Call{deleted}}
		for i := range int64(3) {
			h.Calls = append(h.Calls, call(1, 3+2*i, 4+2*i, grant, c.atNS))
		}
		for i := range h.Calls {
			h.Calls[i].Bounded = true
		}
		if faults := Bounds(h); (len(faults) > 0) != c.wrong {
			t.Errorf("%d after DEL, with units of %d: %v", c.atNS-9*s, c.aheadNS, faults)
		}
	}
}

// Limits that count in spans: two windows, or all of a log, pass in a period, and a call is denied only if a period has used all.
func TestBoundsOfSpans(t *testing.T) {
	for _, c := range []struct {
		limit string
		most  int   // that may pass in a moment
		room  int64 // after that many periods nothing of a call is left
	}{{"2/1s,algo=window", 4, 1}, {"2/1s,algo=log", 2, 1}, {"2/1s,algo=slide", 4, 2}} {
		l, err := cell.ParseLimit(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		take := func(number, atNS int64, answer []int64) Call {
			return Call{Key: "k", Kind: Take, Limit: l, Cost: 1, Began: number, Ended: number, FromNS: atNS, ToNS: atNS, Answer: answer,
				Bounded: true}
		}
		grant, deny := []int64{0, 2, 0, -1, 0, 1, 0}, []int64{1, 2, 0, 1, 0, 0, 0}
		var h History
		for i := range c.most + 1 {
			if faults := Bounds(h); len(faults) > 0 {
				t.Errorf("%s: %d have passed: %v", c.limit, i, faults)
			}
			h.Calls = append(h.Calls, take(int64(i), 9*s, grant))
		}
		if len(Bounds(h)) == 0 {
			t.Errorf("%s: %d may pass", c.limit, len(h.Calls))
		}
		used := []Call{take(1, 9*s, grant), take(2, 9*s, grant)}
		if faults := Bounds(History{Calls: append(used, take(3, (9+c.room)*s, deny))}); len(faults) > 0 {
			t.Errorf("%s: %v", c.limit, faults)
		}
		if len(Bounds(History{Calls: append(used, take(3, (9+c.room)*s+1, deny))})) == 0 {
			t.Errorf("%s: a call may be denied after all have flowed back", c.limit)
		}
	}
}

func TestWindowsOfTheClock(t *testing.T) {
	l, err := cell.ParseLimit("2/10s,algo=window,align=clock")
	if err != nil {
		t.Fatal(err)
	}
	pass := func(number, fromNS, toNS int64) Call {
		return Call{Key: "k", Kind: Take, Limit: l, Cost: 1, Began: number, Ended: number, FromNS: fromNS, ToNS: toNS,
			Answer: []int64{0, 2, 0, -1, 0, 1, 0}, Bounded: true}
	}
	first, second := pass(1, 5*s, 6*s), pass(2, 9*s, 10*s-1)
	for name, c := range map[string]struct {
		third Call
		loss  []Loss
		wrong bool
	}{
		"in the same": {pass(3, 7*s, 8*s), nil, true}, "perhaps in the next": {pass(3, 9*s, 10*s), nil, false},
		"after a loss": {pass(3, 7*s, 8*s), []Loss{{Began: 2, Ended: 2}}, false},
	} {
		if faults := Bounds(History{Calls: []Call{first, second, c.third}, Losses: c.loss}); (len(faults) > 0) != c.wrong {
			t.Errorf("%s: %v", name, faults)
		}
	}
}

func TestOrderOfThoseWhoWait(t *testing.T) {
	waits := func(number, fromNS, toNS int64) Call {
		c := call(int(number), number, number, []int64{0, 2, 0, -1, 0}, fromNS)
		c.ToNS, c.Waits, c.First, c.Bounded = toNS, true, true, true
		return c
	}
	in, out := waits(1, 9*s, 11*s), waits(2, 10*s, 12*s)
	late := waits(2, 10*s, 10*s+1)
	elsewhere := late
	elsewhere.Server = 1
	for _, c := range []struct {
		name      string
		calls     []Call
		arrivesNS int64
		wrong     bool
	}{
		{"in order", []Call{in, out}, 1, false}, {"not in order", []Call{in, late}, 1, true},
		{"not in order, at two servers", []Call{in, elsewhere}, 1, false}, {"at about the same time", []Call{in, late}, s + 1, false},
	} {
		if faults := Bounds(History{Calls: c.calls, ArrivesNS: c.arrivesNS}); (len(faults) > 0) != c.wrong {
			t.Errorf("%s: %v", c.name, faults)
		}
	}
}
