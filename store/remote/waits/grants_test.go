package waits

import (
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// booked starts calls that wait. Their grants are 10 s apart and all booked.
func (d *desk) booked(n int, terms store.Terms) (all []*caller) {
	d.t.Helper()
	d.s.waits.lookahead = time.Hour
	d.spend("k", tenSeconds)
	terms.Mode, terms.MaxNS = store.Wait, int64(time.Hour)
	for range n {
		all = append(all, d.s.askOn(d.t, terms, 1, d.call("k", tenSeconds)))
	}
	d.all()
	if l := d.line("k", tenSeconds); len(l.grants) != n {
		d.t.Fatalf("%d slots", len(l.grants))
	}
	return all
}

// ahead is when the key's state has all of it back.
func (d *desk) ahead(key, limit string) time.Duration {
	d.v.NowNS = time.Now().UnixNano()
	st, _ := stateOf(d.v, &store.Call{Key: []byte(key), Limit: d.call(key, limit).Limit})
	return time.Duration(int64(d.call(key, limit).Limit.EndNS(&st)) - d.v.NowNS)
}

// What lies ahead is given back only while nobody has booked behind it; what has passed always is. A lease is ended, and one with a name
// stays.
func TestWhatIsGivenBack(t *testing.T) {
	atADesk(t, func(d *desk) {
		all := d.booked(2, store.Terms{})
		d.s.Leave(&all[1].reqs[0], nil)
		if d.all(); d.ahead("k", tenSeconds) != 20*time.Second {
			t.Errorf("the last leaves: %v", d.ahead("k", tenSeconds))
		}
		reserve := store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Reserve, MaxNS: int64(time.Hour)}}
		if _, err := d.v.Take([]store.Call{d.call("k", tenSeconds)}, reserve, store.Access{NowNS: d.v.NowNS}); err != nil {
			t.Fatal(err)
		}
		d.s.Leave(&all[0].reqs[0], nil)
		if d.all(); d.ahead("k", tenSeconds) != 30*time.Second {
			t.Errorf("another has booked behind it: %v", d.ahead("k", tenSeconds))
		}
		d.empty()
	})
	for _, c := range []struct {
		name  string
		terms store.Terms
		stays bool
	}{
		{"a lease", store.Terms{LeaseNS: int64(time.Hour)}, false},
		{"a lease with a name", store.Terms{LeaseNS: int64(time.Hour), Name: "n"}, true},
		{"a lease with a name that ends with its connection", store.Terms{LeaseNS: int64(time.Hour), Name: "n", Bound: true}, false},
	} {
		atADesk(t, func(d *desk) {
			all := d.booked(1, c.terms)
			d.s.Leave(&all[0].reqs[0], nil)
			d.all()
			if left := d.ahead("k", tenSeconds); (left == 20*time.Second) != c.stays || (left == 10*time.Second) == c.stays {
				t.Errorf("%s: %v", c.name, left)
			}
			if _, leased := stateOf(d.v, &store.Call{Key: []byte("k"), Limit: linktest.Literal(t, tenSeconds)}); leased != c.stays {
				t.Errorf("%s: it is there: %v", c.name, leased)
			}
			d.empty()
		})
	}
	atADesk(t, func(d *desk) { // a grant whose moment has come
		const limit, window = "2/10s", "2/10s,algo=window"
		calls := []store.Call{d.call("k", limit), d.call("o", window)}
		r := d.plainly(2, store.TakeOptions{}, calls...)
		v := &waiter{states: []stateName{{key: "k"}, {key: "o"}}}
		ask := store.TakeRequest{Calls: r.Calls, Taken: r.Taken, TakeOptions: store.TakeOptions{Cost: 2, Terms: &store.Terms{}}}
		d.s.waits.mu.Lock()
		d.s.waits.giveBack(&grant{by: v, at: time.Now(), answer: ask})
		d.s.waits.unlock()
		d.all()
		for key, text := range map[string]string{"k": limit, "o": window} {
			if got := d.plainly(2, store.TakeOptions{}, d.call(key, text)); got.Taken.Limited {
				t.Errorf("%s: %+v", key, got.Taken)
			}
		}
	})
}

// A waiter that leaves hands its place to a follower, with its grant, or to those behind it.
func TestWhoTakesAPlace(t *testing.T) {
	named := store.Terms{LeaseNS: int64(time.Hour), Name: "n"}
	atADesk(t, func(d *desk) {
		d.s.waits.lookahead = time.Hour
		d.spend("k", tenSeconds)
		named.Mode, named.MaxNS = store.Wait, int64(time.Hour)
		ask := func() *caller { return d.s.askOn(t, named, 1, d.call("k", tenSeconds)) }
		all := []*caller{ask(), ask(), ask(), ask()}
		other := d.waits(time.Hour, d.call("k", tenSeconds))
		if n, keys := d.s.Waiting(); n != 5 || keys != 1 {
			t.Errorf("%d wait for %d keys", n, keys)
		}
		d.all()
		if !d.s.Leave(&all[1].reqs[0], nil) || !d.s.Leave(&all[0].reqs[0], nil) || d.s.Leave(&all[0].reqs[0], nil) {
			t.Error("they do not wait")
		}
		l := d.line("k", tenSeconds)
		heir := d.s.waits.room.Find(&all[2].reqs[0])
		if l.Waiters[0] != heir || l.grants[0].by != heir || heir.line != l || heir.Ticket != 1 || !heir.looked ||
			len(heir.Followers) != 1 || heir.Followers[0].Leader != heir {
			t.Errorf("the heir is %+v, and the slot is of %+v", heir, l.grants[0].by)
		}
		if d.asked() != 0 {
			t.Error("something is given back")
		}
		d.sleep(10 * time.Second)
		d.is(all[2], "the heir", 10*time.Second, false)
		d.is(all[3], "who has joined it", 10*time.Second, false)
		if a, b := all[2].reqs[0].Terms.Lease, all[3].reqs[0].Terms.Lease; a == 0 || a != b {
			t.Errorf("leases %d and %d", a, b)
		}
		if !all[0].waits() || !all[1].waits() {
			t.Error("who has gone is answered")
		}
		d.sleep(10 * time.Second)
		d.is(other, "another", 20*time.Second, false)
		d.empty()
	})
	atADesk(t, func(d *desk) { // refused, not left
		d.spend("k", tenSeconds)
		named.Mode, named.MaxNS = store.Wait, int64(time.Hour)
		ask := func() *caller { return d.s.askOn(t, named, 1, d.call("k", tenSeconds)) }
		all := []*caller{ask(), ask(), ask()}
		d.all()
		for i, c := range []*caller{all[1], all[0]} {
			d.s.Leave(&c.reqs[0], store.ErrRefused)
			d.all()
			d.is(c, "refused", 0, true)
			if n, _ := d.s.Waiting(); n != int64(2-i) || !all[2].waits() {
				t.Errorf("%d wait", n)
			}
		}
		d.s.Leave(&all[2].reqs[0], nil)
		d.empty()
	})
}

// A name is for one question: another limit, cost or lease under it waits for itself.
func TestWhichCallsAreCoalesced(t *testing.T) {
	s := newStore(t, "", nil)
	t.Cleanup(s.waits.Close)
	if _, err := s.policies.SetPolicy("p", []cell.Limit{*linktest.Literal(t, "5/1s")}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	newOne := func(change func(r *store.TakeRequest)) *waiter {
		t.Helper()
		terms := store.Terms{Mode: store.Wait, LeaseNS: 1e9, Name: "n"}
		r := &store.TakeRequest{Calls: []store.Call{takeCall(t, "k", "5/1s"), policyCall(s, "k", "p")},
			TakeOptions: store.TakeOptions{Cost: 1, Terms: &terms}}
		change(r)
		v, err := s.waits.newWaiter(r, store.Access{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	one := newOne(func(*store.TakeRequest) {})
	for name, c := range map[string]struct {
		change func(r *store.TakeRequest)
		same   bool
	}{
		"the same":         {func(*store.TakeRequest) {}, true},
		"another wait":     {func(r *store.TakeRequest) { r.Terms.MaxNS = 7 }, true},
		"another cost":     {func(r *store.TakeRequest) { r.Cost = 2 }, false},
		"up to":            {func(r *store.TakeRequest) { r.UpTo = true }, false},
		"another lease":    {func(r *store.TakeRequest) { r.Terms.LeaseNS = 2e9 }, false},
		"bound":            {func(r *store.TakeRequest) { r.Terms.Bound = true }, false},
		"another key":      {func(r *store.TakeRequest) { r.Calls[0].Key = []byte("o") }, false},
		"another count":    {func(r *store.TakeRequest) { r.Calls[0].Limit = linktest.Literal(t, "6/1s") }, false},
		"a limit anew":     {func(r *store.TakeRequest) { r.Calls[0].Limit = linktest.Literal(t, "5/1s") }, true},
		"a policy's limit": {func(r *store.TakeRequest) { r.Calls[1].Limit = linktest.Literal(t, "6/1s") }, true},
		"fewer":            {func(r *store.TakeRequest) { r.Calls = r.Calls[:1] }, false},
	} {
		if v := newOne(c.change); one.AsksAs(&v.Waiter) != c.same || v.AsksAs(&one.Waiter) != c.same {
			t.Errorf("%s: %v", name, !c.same)
		}
	}
}

func ticketed(ticket uint64, states ...stateName) *waiter {
	v := &waiter{states: states}
	v.Ticket = ticket
	return v
}

// Those who wait stand in the order in which they came, behind those that are booked.
func TestInsertByTicket(t *testing.T) {
	l := &line{}
	tickets := func() (all []uint64) {
		for _, v := range l.Waiters {
			all = append(all, v.Ticket)
		}
		return all
	}
	for _, ticket := range []uint64{5, 3, 9, 7} {
		v := ticketed(ticket)
		if l.insert(v); v.line != l {
			t.Error("it knows no line")
		}
	}
	l.grants = make([]grant, 2) // of 3 and 5
	l.insert(ticketed(1))
	for i, want := range []uint64{3, 5, 1, 7, 9} {
		if got := tickets(); got[i] != want {
			t.Fatalf("%v", got)
		}
	}
	for i, v := range l.Waiters {
		if l.booked(v) != (i < 2) {
			t.Errorf("%d is booked: %v", i, i >= 2)
		}
	}
	if (*line)(nil).booked(l.Waiters[0]) {
		t.Error("it is booked in no line")
	}
	l.Waiters = l.Waiters[:1]
	if !l.booked(l.Waiters[0]) {
		t.Error("more slots than waiters")
	}
}

// Of two lines of its states, a call stands where one came before it.
func TestWhichLineIsFirst(t *testing.T) {
	w := &Waits{}
	a, b := stateName{key: "a"}, stateName{key: "b"}
	here, there := &line{waits: w, state: a}, &line{waits: w, state: b}
	w.lines.Add("a", here)
	w.lines.Add("b", there)
	v := ticketed(5, a, b, stateName{key: "c"})
	if here.before(v) != nil {
		t.Error("nobody waits there")
	}
	for ticket, before := range map[uint64]bool{4: true, 6: false} {
		there.Waiters = []*waiter{ticketed(ticket)}
		if (here.before(v) == there) != before {
			t.Errorf("one with ticket %d is before: %v", ticket, !before)
		}
	}
	here.Waiters = []*waiter{ticketed(1)}
	if there.Waiters = nil; here.before(v) != nil {
		t.Error("its own line")
	}
}

// Rules that decide on all keys of a call answer it at once; else it waits as any.
func TestAWaitUnderRules(t *testing.T) {
	atADesk(t, func(d *desk) {
		if d.s.waits.ruled(&store.TakeRequest{Calls: []store.Call{d.call("k", tenSeconds)}}, 0) {
			t.Error("there is no rule")
		}
		if _, err := d.s.policies.PutRule(policy.Rule{Pattern: "k"}, 0); err != nil {
			t.Fatal(err)
		}
		d.s.waits.Timeout = time.Minute
		one := d.waits(time.Hour, d.call("k", tenSeconds))
		d.is(one, "one with a rule", 0, false)
		d.spend("o", tenSeconds)
		two := d.waits(time.Hour, d.call("k", tenSeconds), d.call("o", tenSeconds))
		d.all()
		if !two.waits() {
			t.Error("one without a rule does not wait")
		}
		d.s.Leave(&two.reqs[0], nil)
		d.empty()
	})
}

// A failure of the engine answers those who are not booked. Those that are go ahead.
func TestGrantsOutliveAFailure(t *testing.T) {
	atADesk(t, func(d *desk) {
		d.s.waits.lookAgain = time.Hour
		d.spend("k", tenSeconds)
		first := d.waits(time.Hour, d.call("k", tenSeconds))
		d.all()
		second := d.waits(time.Hour, d.call("k", tenSeconds))
		d.all()
		d.sleep(10*time.Second - lookahead/2)
		d.all() // the first is booked
		d.s.waits.poke("k")
		d.take().Done(linktest.Down)
		if synctest.Wait(); second.waits() || second.reqs[0].Err == nil || !first.waits() {
			t.Errorf("%v, %v, %v", second.waits(), second.reqs[0].Err, first.waits())
		}
		d.sleep(lookahead)
		d.is(first, "the first", 10*time.Second, false)
		d.empty()
	})
	if w := (&waiter{terms: store.Terms{MaxNS: -5}}); w.patience() != 0 || w.left() != 0 {
		t.Errorf("%v, %v", w.patience(), w.left())
	}
}
