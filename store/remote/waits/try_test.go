package waits

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
	"celld/store/remote/queue"
)

const tenSeconds = "1/10s,burst=1"

// A line is tried half a lookahead before its first may pass, is booked then, and goes ahead at the very moment.
func TestWhenALineIsTried(t *testing.T) {
	atADesk(t, func(d *desk) {
		d.s.waits.lookAgain = time.Hour
		d.spend("k", tenSeconds)
		w := d.waits(time.Hour, d.call("k", tenSeconds))
		d.one()
		d.sleep(10*time.Second - lookahead/2 - 1)
		if d.asked() != 0 {
			t.Error("it is tried too early")
		}
		d.sleep(time.Nanosecond)
		if d.asked() != 1 {
			t.Error("it is not tried in time")
		}
		d.one()
		l := d.line("k", tenSeconds)
		if len(l.grants) != 1 || !l.booked(l.Waiters[0]) || l.grants[0].at.Sub(w.began) != 10*time.Second || !w.waits() ||
			!l.next.IsZero() {
			t.Errorf("slots %+v, next %v", l.grants, l.next)
		}
		d.sleep(lookahead / 2)
		d.is(w, "the first", 10*time.Second, false)
		if d.asked() != 0 {
			t.Error("something is asked for a line that has gone")
		}
		d.empty()
	})
}

// What passes much later is looked at again and again, as it may be given back unheard.
func TestALineLooksAgain(t *testing.T) {
	atADesk(t, func(d *desk) {
		const limit = "1/1h,burst=1"
		d.spend("k", limit)
		w := d.waits(2*time.Hour, d.call("k", limit))
		d.one()
		for i := range 3 {
			d.sleep(lookAgain - 1)
			if d.asked() != 0 {
				t.Errorf("look %d is too early", i)
			}
			d.sleep(time.Nanosecond)
			d.one()
		}
		l := d.line("k", limit)
		if l.exact || l.losses != 0 {
			t.Errorf("exact %v, %d losses", l.exact, l.losses)
		}
		d.v.Delete([]byte("k"), d.v.NowNS)
		d.s.waits.poke("other")
		if d.asked() != 0 {
			t.Error("it is tried for another key")
		}
		d.s.waits.poke("k")
		d.all()
		d.is(w, "once it is free", 3*time.Second, false)
	})
}

// A line for which others are quicker looks further ahead, up to a second, until it has booked.
func TestALineThatLosesLooksFurtherAhead(t *testing.T) {
	l := &line{waits: &Waits{lookahead: lookahead}}
	for losses, want := range map[int]time.Duration{0: 50, 1: 100, 2: 200, 4: 800, 5: 1000, 10: 1000, 11: 1000, 99: 1000} {
		if l.losses = losses; l.ahead() != want*time.Millisecond {
			t.Errorf("%d losses: %v", losses, l.ahead())
		}
	}
	if l.waits.lookahead = time.Minute; l.ahead() != time.Minute {
		t.Errorf("%v", l.ahead())
	}
	atADesk(t, func(d *desk) {
		d.s.waits.lookAgain = time.Hour
		d.spend("k", tenSeconds)
		w := d.waits(time.Hour, d.call("k", tenSeconds))
		d.one()
		l := d.line("k", tenSeconds)
		for i := 1; i <= 3; i++ {
			d.sleep(time.Until(l.next))
			d.v.NowNS = time.Now().UnixNano()
			reserve := store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Reserve, MaxNS: 1e9}}
			if _, err := d.v.Take([]store.Call{d.call("k", tenSeconds)}, reserve, store.Access{NowNS: d.v.NowNS}); err != nil {
				t.Fatal(err)
			}
			if d.one(); l.losses != i || !w.waits() {
				t.Fatalf("%d losses after %d", l.losses, i)
			}
			if before := w.began.Add(time.Duration(i+1) * 10 * time.Second).Sub(l.next); before != lookahead<<i/2 {
				t.Errorf("after %d losses it is tried %v before", i, before)
			}
		}
		d.s.waits.poke("k") // which is no loss
		if d.one(); l.losses != 3 {
			t.Errorf("%d losses", l.losses)
		}
		d.sleep(time.Until(l.next))
		if d.one(); l.losses != 0 || len(l.grants) != 1 {
			t.Errorf("%d losses, %d slots", l.losses, len(l.grants))
		}
		d.sleep(time.Second)
		d.is(w, "at last", 40*time.Second, false)
	})
}

// A call behind others may wait exactly as long as it takes until it is first, and no ns less.
func TestWhoMayWaitBehindOthers(t *testing.T) {
	atADesk(t, func(d *desk) {
		d.spend("k", tenSeconds)
		first := d.waits(10*time.Second, d.call("k", tenSeconds))
		second := d.waits(20*time.Second-1, d.call("k", tenSeconds))
		third := d.waits(20*time.Second, d.call("k", tenSeconds))
		fourth := d.waits(30*time.Second-1, d.call("k", tenSeconds))
		d.all()
		d.is(second, "too late by 1 ns", 0, true)
		d.is(fourth, "the fourth", 0, true)
		for _, c := range []*caller{second, fourth} {
			got, want := c.reqs[0].Taken.RetryAfterNS, c.reqs[0].Terms.MaxNS+1
			if int64(got) != want || c.reqs[0].Calls[0].Decision.Remaining != 0 {
				t.Errorf("it is to come again in %d, want %d", got, want)
			}
		}
		if l := d.line("k", tenSeconds); l.tailNS != first.began.UnixNano()+20e9 || len(l.Waiters) != 2 {
			t.Errorf("the last passes in %v, and %d wait", time.Duration(l.tailNS-first.began.UnixNano()), len(l.Waiters))
		}
		for range 2 {
			d.sleep(10*time.Second - lookahead/2)
			d.all()
			d.sleep(lookahead / 2)
			d.all()
		}
		d.is(first, "the first", 10*time.Second, false)
		d.is(third, "the third", 20*time.Second, false)
		d.empty()
	})
	atADesk(t, func(d *desk) { // behind one that was looked at before
		d.spend("k", tenSeconds)
		d.waits(time.Hour, d.call("k", tenSeconds))
		d.waits(time.Hour, d.call("k", tenSeconds))
		d.all()
		late, soon := d.waits(30*time.Second-1, d.call("k", tenSeconds)), d.waits(30*time.Second, d.call("k", tenSeconds))
		d.all()
		d.is(late, "too late by 1 ns", 0, true)
		if !soon.waits() {
			t.Error("it could have waited")
		}
		if n := d.s.waits.room.Callers(); n != 3 {
			t.Errorf("%d wait", n)
		}
	})
}

// A RESERVE behind others has these booked before it, if it may wait so long, to the ns.
func TestAReserveBehindOthers(t *testing.T) {
	for longest, books := range map[time.Duration]bool{20 * time.Second: true, 20*time.Second - 1: false, -1: false} {
		atADesk(t, func(d *desk) {
			d.spend("k", tenSeconds)
			w := d.waits(time.Hour, d.call("k", tenSeconds))
			d.all()
			r := d.s.askOn(t, store.Terms{Mode: store.Reserve, MaxNS: int64(longest)}, 1, d.call("k", tenSeconds))
			d.all()
			d.is(r, "the RESERVE", 0, !books)
			l := d.line("k", tenSeconds)
			if books && (len(l.grants) != 1 || r.reqs[0].Terms.WaitNS != 20e9) || !books &&
				(len(l.grants) != 0 || r.reqs[0].Taken.RetryAfterNS != 20e9) {
				t.Errorf("%v: %d slots, %+v, %+v", longest, len(l.grants), r.reqs[0].Taken, r.reqs[0].Terms)
			}
			if !w.waits() {
				t.Error("who came first waits no longer")
			}
		})
	}
}

// Where a policy is reset between the asking and the deciding, the call is asked again with the new one. Where it has gone, that is the
// answer.
func TestAPolicyThatChangesDuringATry(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *Store)
		gone   bool
	}{
		{"reset", func(s *Store) {
			_, _ = s.policies.SetPolicy("p", []cell.Limit{*linktest.Literal(t, tenSeconds)}, policy.Options{Reset: true})
		}, false},
		{"deleted", func(s *Store) { s.policies.DeletePolicy("p") }, true},
		{"one reset, and one deleted", func(s *Store) {
			_, _ = s.policies.SetPolicy("p", []cell.Limit{*linktest.Literal(t, tenSeconds)}, policy.Options{Reset: true})
			s.policies.DeletePolicy("q")
		}, true},
	} {
		atADesk(t, func(d *desk) {
			for _, name := range []string{"p", "q"} {
				if _, err := d.s.policies.SetPolicy(name, []cell.Limit{*linktest.Literal(t, tenSeconds)}, policy.Options{}); err != nil {
					t.Fatal(err)
				}
			}
			w := d.waits(time.Hour, policyCall(d.s, "k", "p"), policyCall(d.s, "o", "q"))
			try := d.take()
			c.change(d.s)
			d.decide(try)
			try.Done(nil)
			if c.gone {
				if synctest.Wait(); w.waits() || !errors.Is(w.reqs[0].Err, policy.ErrNoPolicy) {
					t.Errorf("%s: it waits: %v, %v", c.name, w.waits(), w.reqs[0].Err)
				}
			} else {
				d.one()
				d.is(w, c.name, 0, false)
			}
			d.empty()
		})
	}
}

// A policy that has gone before a try is the answer, and the others are tried.
func TestAPolicyThatHasGone(t *testing.T) {
	atADesk(t, func(d *desk) {
		if _, err := d.s.policies.SetPolicy("p", []cell.Limit{*linktest.Literal(t, tenSeconds)}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		call := policyCall(d.s, "k", "p")
		first, second := d.waits(time.Hour, call), d.waits(time.Hour, call)
		d.one() // for the first
		d.is(first, "the first", 0, false)
		d.one()
		d.s.policies.DeletePolicy("p")
		d.s.waits.pokeAll()
		d.all()
		if second.waits() || !errors.Is(second.reqs[0].Err, policy.ErrNoPolicy) {
			t.Errorf("it waits: %v, %v", second.waits(), second.reqs[0].Err)
		}
		d.empty()
		if w := d.waits(time.Hour, call); !errors.Is(w.reqs[0].Err, policy.ErrNoPolicy) || w.waits() {
			t.Errorf("a new one: %v", w.reqs[0].Err)
		}
	})
}

// A call for two states waits in the line of the one for which it waits longer, in the order in which all came.
func TestACallChangesItsLine(t *testing.T) {
	atADesk(t, func(d *desk) {
		const long = "1/40s,burst=1"
		d.spend("a", tenSeconds)
		d.spend("b", long)
		both := d.waits(time.Hour, d.call("a", tenSeconds), d.call("b", long))
		d.one()
		a, b := d.line("a", tenSeconds), d.line("b", long)
		if b == nil || len(b.Waiters) != 1 || a != nil && len(a.Waiters) > 0 {
			t.Fatalf("it waits in %+v and %+v", a, b)
		}
		one := d.waits(time.Hour, d.call("a", tenSeconds))
		d.all()
		if !one.waits() {
			t.Error("it does not wait")
		}
		for range 60 {
			d.sleep(lookAgain)
			d.all()
		}
		if one.waits() || both.waits() || both.reqs[0].Taken.Limited || one.reqs[0].Taken.Limited {
			t.Errorf("%v, %+v; %v, %+v", one.waits(), one.reqs[0].Taken, both.waits(), both.reqs[0].Taken)
		}
		d.is(one, "of one state", 10*time.Second, false)
		d.is(both, "of both states", 40*time.Second, false)
		d.empty()
	})
}

// One try is for so many calls at most, and the next follows at once.
func TestATryIsBounded(t *testing.T) {
	atADesk(t, func(d *desk) {
		const limit = "1000/1s,burst=1000"
		first := d.waits(time.Hour, d.call("k", limit))
		var all []*caller
		for range 2*queue.Most + 1 {
			all = append(all, d.waits(time.Hour, d.call("k", limit)))
		}
		passed := func() (n int) {
			synctest.Wait()
			for _, c := range all {
				if !c.waits() {
					n++
				}
			}
			return n
		}
		d.one()
		d.is(first, "the first", 0, false)
		for i := range 2 {
			if d.one(); passed() != (i+1)*queue.Most {
				t.Errorf("%d have passed after %d tries", passed(), i+1)
			}
		}
		if d.one(); passed() != len(all) {
			t.Errorf("%d have passed", passed())
		}
		d.empty()
	})
}
