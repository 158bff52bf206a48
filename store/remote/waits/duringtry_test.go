package waits

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/store"
)

// Who is refused, or whose deadline comes, while a try is under way for it is answered behind that, once, and not at all if it has gone.
// What the try grants to one that is late is its own.
func TestRefusedDuringATry(t *testing.T) {
	for _, c := range []struct {
		name    string
		refuse  bool // else its deadline comes
		free    bool
		goes    bool
		limited bool
	}{
		{"refused, and has to wait", true, false, false, true},
		{"refused, and granted", true, true, false, false},
		{"late, and granted", false, true, false, false},
		{"late, and has to wait", false, false, false, true},
		{"refused, and has gone", true, false, true, false},
		{"late, and has gone", false, false, true, false},
		{"refused, granted, and has gone", true, true, true, false},
	} {
		atADesk(t, func(d *desk) {
			const limit = "1/1h,burst=1"
			if !c.free {
				d.spend("k", limit)
			}
			w := d.waits(time.Hour/2, d.call("k", limit))
			try := d.take()
			v := d.s.waits.room.Find(&w.reqs[0])
			if c.refuse {
				if !d.s.Leave(&w.reqs[0], store.ErrRefused) || v.trial != refused {
					t.Errorf("%s: it does not wait", c.name)
				}
			} else {
				d.s.waits.mu.Lock()
				v.deadline = time.Now()
				d.s.waits.mu.Unlock()
				if d.s.waits.expire(v); v.trial != late {
					t.Errorf("%s: it has time", c.name)
				}
			}
			if c.goes && !d.s.Leave(&w.reqs[0], nil) {
				t.Errorf("%s: it has gone", c.name)
			}
			d.decide(try)
			try.Done(nil)
			d.all()
			if !c.goes {
				d.is(w, c.name, 0, c.limited)
			} else if synctest.Wait(); !w.waits() {
				t.Errorf("%s: it is answered", c.name)
			}
			if left := d.ahead("k", limit); (left > 0) != (!c.free || !c.goes) {
				t.Errorf("%s: the key is spent for %v", c.name, left)
			}
			d.empty()
		})
	}
	for _, refuse := range []bool{false, true} { // what is booked ahead is kept by who is late, and not by who is refused before that
		atADesk(t, func(d *desk) {
			d.s.waits.lookahead = time.Hour
			d.spend("k", tenSeconds)
			w := d.waits(time.Hour, d.call("k", tenSeconds))
			try := d.take()
			if refuse {
				d.s.Leave(&w.reqs[0], store.ErrRefused)
			}
			v := d.s.waits.room.Find(&w.reqs[0])
			v.deadline = time.Now()
			d.s.waits.expire(v)
			d.decide(try)
			try.Done(nil)
			d.all()
			after := 10 * time.Second
			if refuse {
				after = 0
			}
			d.sleep(after)
			d.is(w, fmt.Sprint("refused: ", refuse), after, refuse)
			d.empty()
		})
	}
	atADesk(t, func(d *desk) { // another stays as it was
		d.spend("k", tenSeconds)
		first, second := d.waits(time.Hour, d.call("k", tenSeconds)), d.waits(time.Hour, d.call("k", tenSeconds))
		d.all()
		d.s.waits.poke("k")
		try := d.take()
		d.s.Leave(&first.reqs[0], store.ErrRefused)
		d.decide(try)
		try.Done(nil)
		asked := d.asked()
		if d.s.Leave(&first.reqs[0], store.ErrRefused); d.asked() != asked {
			t.Error("it is refused twice")
		}
		d.all()
		d.is(first, "refused", 0, true)
		if !second.waits() || len(d.line("k", tenSeconds).Waiters) != 1 {
			t.Error("the second does not wait")
		}
		d.sleep(10 * time.Second)
		d.all()
		d.is(second, "the second", 10*time.Second, false)
		d.empty()
	})
}

// An engine may answer long after it has granted. If the waiter has gone by then, one who came after the grant's moment does not get it, as
// it has flowed back, and one who came before does.
func TestAGrantThatComesLate(t *testing.T) {
	for _, before := range []bool{false, true} {
		atADesk(t, func(d *desk) {
			const limit = "5/1s,burst=1"
			d.spend("k", limit)
			gone := d.waits(time.Hour, d.call("k", limit))
			d.all()
			d.sleep(175 * time.Millisecond)
			try := d.take() // which books 25 ms ahead
			var next *caller
			if before {
				next = d.waits(time.Hour, d.call("k", limit))
			}
			d.decide(try)
			d.sleep(400 * time.Millisecond)
			if !d.s.Leave(&gone.reqs[0], nil) {
				t.Error("it does not wait")
			}
			after := 400 * time.Millisecond
			if !before {
				next, after = d.waits(time.Hour, d.call("k", limit)), 0
			}
			try.Done(nil)
			d.all()
			d.is(next, fmt.Sprint("the next, ", before), after, false)
			if left := d.ahead("k", limit); (left > 0) == before {
				t.Errorf("%v: the key is spent for %v", before, left)
			}
			d.empty()
		})
	}
}

// Where a try that was to grant something grants nothing for longer than it looks ahead, others were quicker.
func TestWhenOthersWereQuicker(t *testing.T) {
	for i, c := range []struct {
		booked, timed bool
		againNS       time.Duration
		losses        int // after 3
	}{
		{false, true, lookahead + 1, 4}, {false, true, lookahead, 3}, {false, false, time.Hour, 3}, {true, true, time.Hour, 0},
		{true, false, 0, 0},
	} {
		w := &Waits{lookahead: lookahead, lookAgain: lookAgain}
		v := &waiter{states: []stateName{{key: "k"}}, own: store.TakeRequest{Calls: []store.Call{takeCall(t, "k", "1/1s,algo=conc")}}}
		l := &line{waits: w, state: v.states[0], losses: 3, tailNS: 5}
		l.insert(v)
		read := time.Unix(1000, 0)
		try := &try{line: l, timed: c.timed, ahead: lookahead, againNS: uint64(c.againNS), read: read, outcomes: []outcome{{v: v}}}
		l.plan(try, c.booked)
		if l.losses != c.losses || l.tailNS != 5 || !l.next.Equal(read.Add(min(c.againNS, lookAgain))) {
			t.Errorf("%d: %d losses, the next try in %v", i, l.losses, l.next.Sub(read))
		}
		try.tailNS = 7
		if l.plan(try, c.booked); l.tailNS != 7 {
			t.Errorf("%d: the last passes at %d", i, l.tailNS)
		}
	}
}

// A waiter whose moment comes only after its deadline, as others were quicker, is not tried again and again until then.
func TestAWaiterThatComesTooLate(t *testing.T) {
	atADesk(t, func(d *desk) {
		d.spend("k", "10/1s,burst=1")
		waiter := d.waits(150*time.Millisecond, d.call("k", "10/1s,burst=1"))
		d.one()
		d.plainly(2, store.TakeOptions{Mode: cell.Force}, d.call("k", "10/1s,burst=1")) // it passes 300 ms after its arrival
		l := d.line("k", "10/1s,burst=1")
		for waiter.waits() {
			d.s.waits.mu.Lock()
			l.losses = 10 // so the line looks ahead as far as it may
			d.s.waits.mu.Unlock()
			for tries := 0; d.asked() > 0; tries++ {
				if d.one(); tries > 5 {
					t.Fatal("it is tried again and again at one instant")
				}
			}
			d.sleep(time.Millisecond)
		}
		d.is(waiter, "the waiter", 150*time.Millisecond, true)
		d.empty()
	})
}

// Who comes behind calls for other states, too, is told at once whether it may wait: behind all that these ask for.
func TestWhoMayWaitBehindCallsForOtherStates(t *testing.T) {
	for longest, may := range map[time.Duration]bool{50*time.Second - 1: false, 50 * time.Second: true} {
		atADesk(t, func(d *desk) {
			const limit = "1/10s,burst=3"
			d.spend("k", limit)
			all := []*caller{d.waits(time.Hour, d.call("k", limit)), d.s.await(t, time.Hour, 3, d.call("k", limit), d.call("o", limit))}
			d.all()
			last := d.waits(longest, d.call("k", limit))
			for d.asked() > 0 {
				d.one()
			}
			if last.waits() != may {
				t.Errorf("%v: it waits: %v", longest, last.waits())
			}
			if !may {
				d.is(last, "too late by 1 ns", 0, true)
				if retry := last.reqs[0].Taken.RetryAfterNS; retry != 50e9 {
					t.Errorf("it is to come again in %d", retry)
				}
			}
			for _, c := range append(all, last) {
				d.s.Leave(&c.reqs[0], nil)
			}
			d.all()
			d.empty()
		})
	}
}

// One request with WAIT or RESERVE that takes something waits. All others are decided at once.
func TestWhichCallsWait(t *testing.T) {
	for i, c := range []struct {
		n     int
		cost  int64
		terms *store.Terms
		waits bool
	}{
		{1, 1, &store.Terms{Mode: store.Wait, MaxNS: 1e9}, true},
		{1, 0, &store.Terms{Mode: store.Wait, MaxNS: 1e9}, false},
		{1, -1, &store.Terms{Mode: store.Wait, MaxNS: 1e9}, false},
		{2, 1, &store.Terms{Mode: store.Wait, MaxNS: 1e9}, false},
		{1, 1, &store.Terms{MaxNS: 1e9}, false},
		{1, 1, nil, false},
	} {
		atADesk(t, func(d *desk) {
			d.spend("k", tenSeconds)
			reqs := make([]store.TakeRequest, c.n)
			for i := range reqs {
				reqs[i] = store.TakeRequest{Calls: []store.Call{d.call("k", tenSeconds)},
					TakeOptions: store.TakeOptions{Cost: c.cost, Terms: c.terms}}
			}
			d.s.TakeBatch(reqs, store.Access{NowNS: time.Now().UnixNano()}, make(signal, 1))
			if n, _ := d.s.Waiting(); (n == 1) != c.waits {
				t.Errorf("%d: %d wait", i, n)
			}
		})
	}
}

// Who is refused is blocked where its limit says so, unless it only looks; and what it asks for stays.
func TestARefusalBlocks(t *testing.T) {
	for i, c := range []struct {
		cost   int64
		mode   cell.Mode
		free   bool
		wait   time.Duration
		blocks bool
		retry  time.Duration
	}{
		{1, cell.Take, false, time.Second, true, time.Minute},
		{1, cell.Take, false, time.Hour, true, time.Hour},
		{1, cell.Take, true, time.Second, false, time.Second},
		{1, cell.Peek, false, time.Second, false, 10 * time.Second},
		{1, cell.Peek, true, time.Second, false, time.Second},
		{0, cell.Take, false, time.Second, false, 0},
		{0, cell.Take, true, time.Second, false, 0},
	} {
		atADesk(t, func(d *desk) {
			const limit = "1/10s,burst=1,block=1m"
			if !c.free {
				d.spend("k", limit)
			}
			terms := &store.Terms{Mode: store.Wait}
			r := store.TakeRequest{Calls: []store.Call{d.call("k", limit)},
				TakeOptions: store.TakeOptions{Cost: c.cost, Mode: c.mode, Terms: terms}}
			d.v.NowNS = time.Now().UnixNano()
			refuse(d.v, &r, store.Access{}, uint64(c.wait))
			one := r.Calls[0].Decision
			if r.Err != nil || r.Terms != terms || r.Mode != c.mode || one.Remaining != 0 || r.Taken.Limited != (c.cost > 0) ||
				r.Taken.Granted != 0 ||
				c.cost > 0 && (!one.Limited || one.RetryAfterNS != uint64(c.retry) || r.Taken.RetryAfterNS != uint64(c.retry)) {
				t.Errorf("%d: %+v, %+v, %v", i, r.Taken, one, r.Err)
			}
			next := d.plainly(0, store.TakeOptions{}, d.call("k", limit))
			if (next.Calls[0].Decision.ResetAfterNS == uint64(time.Minute)) != c.blocks {
				t.Errorf("%d: then %+v", i, next.Calls[0].Decision)
			}
		})
	}
}
