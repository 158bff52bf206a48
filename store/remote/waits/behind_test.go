package waits

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/failure"
	"celld/store/remote/link/linktest"
)

// A plain call stands behind those who wait for the same state and are not booked, and is told when it would be first. Others do not.
func TestPlainCallsBehindWaiters(t *testing.T) {
	atADesk(t, func(d *desk) {
		for _, name := range []string{"p", "q"} {
			if _, err := d.s.policies.SetPolicy(name, []cell.Limit{*linktest.Literal(t, "5/10s")}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		d.spend("k", tenSeconds)
		waiter := d.waits(time.Hour, d.call("k", tenSeconds))
		other := d.s.await(t, time.Hour, 6, policyCall(d.s, "o", "p")) // which never passes, and is told so
		d.all()
		d.is(other, "more than the limit", 0, true)
		held := d.plainly(5, store.TakeOptions{}, policyCall(d.s, "o", "p"))
		other = d.s.await(t, time.Hour, 5, policyCall(d.s, "o", "p"))
		d.all()
		if held.Taken.Limited || !waiter.waits() || !other.waits() {
			t.Fatal("they do not wait")
		}
		twice := policyCall(d.s, "o", "p")
		twice.Own, twice.Cost = true, 2
		gone := policyCall(d.s, "o", "q")
		d.s.policies.DeletePolicy("q")
		for i, c := range []struct {
			what    string
			cost    int64
			options store.TakeOptions
			call    store.Call
			behind  bool
			retryNS uint64
		}{
			{"a plain call", 1, store.TakeOptions{}, d.call("k", tenSeconds), true, 20e9},
			{"a look", 0, store.TakeOptions{}, d.call("k", tenSeconds), true, cell.Never},
			{"a peek", 1, store.TakeOptions{Mode: cell.Peek}, d.call("k", tenSeconds), true, 20e9},
			{"by force", 1, store.TakeOptions{Mode: cell.Force}, d.call("k", tenSeconds), false, 0},
			{"a refund", -1, store.TakeOptions{}, d.call("k", tenSeconds), false, 0},
			{"another limit", 1, store.TakeOptions{}, d.call("k", "2/10s,algo=window"), false, 0},
			{"a RESERVE", 1, store.TakeOptions{Terms: &store.Terms{Mode: store.Reserve}}, d.call("k", tenSeconds), false, 0},
			{"a repeat", 1, store.TakeOptions{Terms: &store.Terms{Name: "n", LeaseNS: 1}}, d.call("k", tenSeconds), false, 0},
			{"a lease", 1, store.TakeOptions{Terms: &store.Terms{LeaseNS: 1}}, d.call("k", tenSeconds), true, 20e9},
			{"a policy", 1, store.TakeOptions{}, policyCall(d.s, "o", "p"), true, 12e9},
			{"a policy, twice", 1, store.TakeOptions{}, twice, true, 14e9},
			{"a policy for another key", 1, store.TakeOptions{}, policyCall(d.s, "k", "p"), false, 0},
			{"a policy that has gone", 1, store.TakeOptions{}, gone, false, 0},
		} {
			options := c.options
			options.Cost = c.cost
			r := store.TakeRequest{Calls: []store.Call{c.call}, TakeOptions: options}
			if got := d.s.waits.refuseBehind(d.v, &r, store.Access{}); got != c.behind {
				t.Errorf("%s: it stands behind: %v", c.what, got)
			} else if d := r.Calls[0].Decision; got && (d.Remaining != 0 || r.Taken.Limited != (c.cost > 0) ||
				r.Mode != options.Mode || r.Terms != options.Terms || r.Taken.Granted != 0 || c.retryNS != cell.Never &&
				r.Taken.RetryAfterNS != c.retryNS) {
				t.Errorf("%d, %s: %+v, %+v", i, c.what, r.Taken, d)
			}
		}
		d.sleep(10*time.Second - lookahead/2)
		d.all() // the one is booked
		r := store.TakeRequest{Calls: []store.Call{d.call("k", tenSeconds)}, TakeOptions: store.TakeOptions{Cost: 1}}
		if d.s.waits.refuseBehind(d.v, &r, store.Access{}) {
			t.Error("it stands behind one that is booked")
		}
		for _, c := range []*caller{waiter, other} {
			d.s.Leave(&c.reqs[0], nil)
		}
		if d.s.waits.refuseBehind(d.v, &r, store.Access{}) {
			t.Error("it stands behind nobody")
		}
	})
}

// While calls with WAIT wait for the engine's first answer, a plain call passes if there is room for all of them and for it.
func TestPlainCallsBehindThoseWhoHaveJustCome(t *testing.T) {
	for _, algo := range []string{"", ",algo=window", ",algo=slide", ",algo=log", ",algo=conc"} {
		atADesk(t, func(d *desk) {
			if _, err := d.s.policies.SetPolicy("p", []cell.Limit{*linktest.Literal(t, "5/10s"+algo)}, policy.Options{}); err != nil {
				t.Fatal(err)
			}
			for _, calls := range [][]store.Call{{d.call("k", "5/10s"+algo)}, {policyCall(d.s, "o", "p")}} {
				d.s.await(t, time.Hour, 1, calls...)
				d.s.await(t, time.Hour, 2, calls...)
				for cost, behind := range []bool{false, false, false, true} {
					r := store.TakeRequest{Calls: slices.Clone(calls), TakeOptions: store.TakeOptions{Cost: int64(cost)}}
					if got := d.s.waits.refuseBehind(d.v, &r, store.Access{}); got != behind {
						t.Errorf("5/10s%s, cost %d: it stands behind: %v", algo, cost, got)
					}
					if cost == 0 {
						continue
					}
					r.Cost, r.Calls[0].Own, r.Calls[0].Cost = 1, true, int64(cost)
					if got := d.s.waits.refuseBehind(d.v, &r, store.Access{}); got != behind {
						t.Errorf("5/10s%s, %d times: it stands behind: %v", algo, cost, got)
					}
				}
			}
			r := store.TakeRequest{Calls: []store.Call{d.call("k", "6/10s"+algo)}, TakeOptions: store.TakeOptions{Cost: 1}}
			if !d.s.waits.refuseBehind(d.v, &r, store.Access{}) {
				t.Errorf("6/10s%s: it does not stand behind those who ask for less", algo)
			}
		})
	}
}

// What a try has granted is in the view that decides on a plain call after it. Those who were granted it do not count once more.
func TestPlainCallsBehindATryThatIsDecided(t *testing.T) {
	for _, limit := range []string{"3/1h", "3/1h,algo=window", "3/1h,algo=log", "3/1h,algo=conc"} {
		atADesk(t, func(d *desk) {
			d.s.await(t, time.Hour, 1, d.call("k", limit))
			plain := func(cost int64) (behind bool) {
				r := store.TakeRequest{Calls: []store.Call{d.call("k", limit)}, TakeOptions: store.TakeOptions{Cost: cost}}
				return d.s.waits.refuseBehind(d.v, &r, store.Access{})
			}
			if plain(2) || !plain(3) {
				t.Errorf("%s: beside one who has just come", limit)
			}
			tried := d.take()
			late := d.s.await(t, time.Hour, 1, d.call("k", limit)) // for the next try
			d.decide(tried)
			if plain(1) || !plain(2) {
				t.Errorf("%s: beside one who has just come, and one who is granted", limit)
			}
			tried.Done(nil)
			d.all()
			if late.waits() {
				t.Errorf("%s: who came later waits", limit)
			}
		})
	}
}

// What waits for something that cannot be booked has no time: others are told to look again soon.
func TestPlainCallsBehindWhatCannotBeBooked(t *testing.T) {
	atADesk(t, func(d *desk) {
		const limit = "1/1h,algo=conc"
		d.spend("k", limit)
		d.waits(time.Hour, d.call("k", limit))
		d.all()
		if d.s.waits.For("other") || !d.s.waits.For("k") {
			t.Error("who waits for which key")
		}
		d.v.Delete([]byte("k"), d.v.NowNS)
		if r := d.plainly(1, store.TakeOptions{}, d.call("k", limit)); !r.Taken.Limited || r.Taken.RetryAfterNS != 1 {
			t.Errorf("%+v", r.Taken)
		}
	})
}

// A RESERVE of one limit stands in line with those who are not booked; one of several books at once.
func TestWhichReservesStandInLine(t *testing.T) {
	atADesk(t, func(d *desk) {
		reserve := func(calls ...store.Call) bool {
			return d.s.waits.comesBehind(&store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: 1}})
		}
		if reserve(d.call("k", tenSeconds)) {
			t.Error("nobody waits")
		}
		d.spend("k", tenSeconds)
		d.waits(time.Hour, d.call("k", tenSeconds))
		d.all()
		for i, want := range []bool{true, false, false} {
			calls := [][]store.Call{{d.call("k", tenSeconds)}, {d.call("o", tenSeconds)},
				{d.call("k", tenSeconds), d.call("o", tenSeconds)}}[i]
			if reserve(calls...) != want {
				t.Errorf("%d stands in line: %v", i, !want)
			}
		}
	})
}

// Who is refused while it waits is answered as one that does not wait: the first by what there is, others as standing behind it.
func TestRefusedWhileTheyWait(t *testing.T) {
	atADesk(t, func(d *desk) {
		d.spend("k", tenSeconds)
		first, second := d.waits(time.Hour, d.call("k", tenSeconds)), d.waits(time.Hour, d.call("k", tenSeconds))
		third := d.waits(time.Hour, d.call("k", tenSeconds))
		d.all()
		d.sleep(500 * time.Millisecond)
		refuse := func(c *caller) {
			t.Helper()
			if !d.s.Leave(&c.reqs[0], store.ErrRefused) {
				t.Error("it does not wait")
			}
			if d.s.Leave(&c.reqs[0], errors.New("another")) {
				t.Error("its answer is on its way, and it is told of an error")
			}
		}
		refuse(second)
		d.all()
		d.is(second, "the second", 500*time.Millisecond, true)
		d.v.Delete([]byte("k"), d.v.NowNS)
		refuse(third)
		d.one()
		d.is(third, "the third, though there is enough", 500*time.Millisecond, true)
		refuse(first)
		d.one()
		d.is(first, "the first, as there is enough", 500*time.Millisecond, false)
		d.empty()
		if d.asked() != 0 {
			t.Error("something is given back")
		}
	})
}

// The answer of one that has gone meanwhile is told to nobody, and what it took is given back; if it took nothing, nothing is.
func TestGoneWhileItIsRefused(t *testing.T) {
	for _, c := range []struct {
		name      string
		free      bool
		outcome   error
		givesBack bool
	}{{"it takes", true, nil, true}, {"it is denied", false, nil, false}, {"the engine fails", true, linktest.Down, false}} {
		atADesk(t, func(d *desk) {
			d.spend("k", tenSeconds)
			w := d.waits(time.Hour, d.call("k", tenSeconds))
			d.all()
			d.s.Leave(&w.reqs[0], store.ErrRefused)
			if c.free {
				d.v.Delete([]byte("k"), d.v.NowNS)
			}
			if !d.s.Leave(&w.reqs[0], nil) {
				t.Errorf("%s: it has been answered", c.name)
			}
			if d.s.Leave(&w.reqs[0], nil) {
				t.Errorf("%s: it leaves twice", c.name)
			}
			ch := d.take()
			d.decide(ch)
			ch.Done(c.outcome)
			if n := d.asked(); (n > 0) != c.givesBack {
				t.Errorf("%s: %d changes follow", c.name, n)
			}
			d.all()
			if _, there := d.v.Get([]byte("k"), store.Access{NowNS: d.v.NowNS}); there != (!c.givesBack) {
				t.Errorf("%s: something is taken: %v", c.name, there)
			}
			if synctest.Wait(); !w.waits() {
				t.Errorf("%s: it is answered", c.name)
			}
			d.empty()
		})
	}
}

// If the engine fails while one is refused, the call goes by --store-failure.
func TestRefusedAsTheEngineFails(t *testing.T) {
	atADesk(t, func(d *desk) {
		d.spend("k", tenSeconds)
		for mode, limited := range map[string]bool{"allow": false, "deny": true} {
			d.s.failure.SetModes(modesOf(mode))
			w := d.waits(time.Hour, d.call("k", tenSeconds))
			d.all()
			d.s.Leave(&w.reqs[0], store.ErrRefused)
			d.take().Done(linktest.Down)
			d.is(w, mode, 0, limited)
		}
		d.s.failure.SetModes(modesOf("local"))
		const leases = "1/1h"
		d.spend("leased", leases)
		named := store.Terms{Mode: store.Wait, MaxNS: int64(2 * time.Hour), LeaseNS: int64(time.Hour), Name: "n"}
		first := d.s.askOn(t, named, 1, d.call("leased", leases))
		w := d.s.askOn(t, named, 1, d.call("leased", leases)) // a follower, on which no try decides
		d.all()
		d.s.Leave(&w.reqs[0], store.ErrRefused)
		d.take().Done(linktest.Down)
		if d.is(w, "local", 0, false); w.reqs[0].Terms.Lease == 0 {
			t.Error("it is not told its lease")
		}
		d.s.Leave(&first.reqs[0], nil)
		d.s.failure.SetModes(failure.Modes{})
		w = d.waits(time.Hour, d.call("k", tenSeconds))
		d.all()
		d.s.Leave(&w.reqs[0], store.ErrRefused)
		d.take().Done(linktest.Down)
		if synctest.Wait(); w.waits() || w.reqs[0].Err != linktest.Down {
			t.Errorf("%v, %v", w.waits(), w.reqs[0].Err)
		}
		d.empty()
	})
}

// At its deadline a call is refused, but not before, and not one that is booked for that very moment.
func TestDeadlinesOfWaits(t *testing.T) {
	atADesk(t, func(d *desk) {
		d.s.waits.lookAgain = time.Hour
		const limit = "1/1h,algo=conc"
		d.spend("k", limit)
		w := d.waits(3*time.Second, d.call("k", limit))
		d.all()
		d.sleep(3*time.Second - 1)
		if d.asked() != 0 || !w.waits() {
			t.Error("it is refused before its deadline")
		}
		d.sleep(time.Nanosecond)
		d.all()
		d.is(w, "at its deadline", 3*time.Second, true)
		d.empty()

		d.spend("k", tenSeconds)
		w = d.waits(10*time.Second, d.call("k", tenSeconds))
		d.all()
		d.sleep(10*time.Second - lookahead/2)
		d.all()
		d.sleep(time.Second)
		d.is(w, "booked for its deadline", 10*time.Second, false)
		d.empty()
	})
}

// What is told to those who wait counts from the first look: before, they have the engine's timeout, too.
func TestPatienceBeginsWithTheFirstLook(t *testing.T) {
	atADesk(t, func(d *desk) {
		const limit = "1/1h,algo=conc"
		d.spend("k", limit)
		d.s.waits.lookAgain = time.Hour
		w := d.waits(time.Second, d.call("k", limit))
		d.sleep(d.s.waits.Timeout)
		d.one()
		d.sleep(time.Second - 1)
		if d.asked() != 0 || !w.waits() {
			t.Error("it is refused too early")
		}
		d.sleep(time.Nanosecond)
		d.all()
		d.is(w, "a second after the look", time.Second+d.s.waits.Timeout, true)
	})
}

// Each is refused at its own deadline, also a follower of one whose deadline is later. One that is booked is not.
func TestEachHasItsDeadline(t *testing.T) {
	atADesk(t, func(d *desk) {
		d.s.waits.lookAgain = time.Hour
		const limit = "1/1h,algo=conc"
		d.spend("k", limit)
		named := func(longest time.Duration) *caller {
			return d.s.askOn(t, store.Terms{Mode: store.Wait, MaxNS: int64(longest), Name: "n"}, 1, d.call("k", limit))
		}
		last, first := named(5*time.Second), named(3*time.Second)
		other := d.waits(4*time.Second, d.call("k", limit))
		d.all()
		for after, c := range []*caller{first, other, last} {
			d.sleep(time.Until(c.began.Add(time.Duration(3+after) * time.Second)))
			d.all()
			d.is(c, "at its deadline", time.Duration(3+after)*time.Second, true)
		}
		d.empty()

		d.spend("k", tenSeconds)
		w := d.waits(10*time.Second, d.call("k", tenSeconds))
		d.all()
		d.sleep(10*time.Second - lookahead/2)
		d.all()
		waits := d.s.waits
		waits.mu.Lock()
		v := waits.room.Find(&w.reqs[0])
		v.deadline = time.Now() // and its moment comes later
		waits.mu.Unlock()
		if waits.expire(v); d.asked() != 0 || !w.waits() {
			t.Error("it is refused though it is booked")
		}
		d.sleep(lookahead / 2)
		d.is(w, "booked", 10*time.Second, false)
		d.empty()
	})
}

// A booked call that is refused gives back its grant, and is decided as one behind others, if there are any.
func TestRefusedThoughBooked(t *testing.T) {
	for _, others := range []int{0, 1} {
		atADesk(t, func(d *desk) {
			all := d.booked(1+others, store.Terms{})
			d.s.Leave(&all[0].reqs[0], store.ErrRefused)
			d.all()
			d.is(all[0], "who is refused", 0, true)
			if left := d.ahead("k", tenSeconds); left != time.Duration(1+others)*10*time.Second {
				t.Errorf("%d others: the key is spent for %v", others, left)
			}
			for _, c := range all[1:] {
				d.s.Leave(&c.reqs[0], nil)
			}
			d.all()
			d.empty()
		})
	}
}

// A policy loses the limit in whose line a caller stands. The caller goes to another line before others are compared with it.
func TestPlainCallsBehindALimitThatHasLeft(t *testing.T) {
	atADesk(t, func(d *desk) {
		set := func(limits string) (calls []store.Call) {
			t.Helper()
			parsed, err := policy.ParseLimits(limits)
			if err == nil {
				_, err = d.s.policies.SetPolicy("p", parsed, policy.Options{})
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range d.s.policies.PolicyNamed("p").Limits {
				calls = append(calls, store.CallOf([]byte("k"), l))
			}
			return calls
		}
		before := set("1/1h 1/1m")
		if r := d.plainly(1, store.TakeOptions{}, before...); r.Taken.Limited {
			t.Fatalf("%+v", r.Taken)
		}
		waiter := d.waits(2*time.Hour, before...)
		d.all()
		after := set("1/1m")
		d.s.waits.FreedAll(false) // a try for the waiter is under way
		if r := d.plainly(1, store.TakeOptions{}, before[0]); r.Err != nil {
			t.Errorf("a call that comes late: %v", r.Err)
		}
		if r := d.plainly(1, store.TakeOptions{}, after...); !r.Taken.Limited || r.Err != nil {
			t.Errorf("a call behind the waiter: %+v, %v", r.Taken, r.Err)
		}
		d.all()
		d.sleep(time.Minute)
		d.all()
		d.is(waiter, "the waiter", time.Minute, false)
	})
}
