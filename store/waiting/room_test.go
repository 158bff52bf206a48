package waiting_test

import (
	"slices"
	"testing"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/waiting"
)

// caller is one who waits in a Room.
type caller struct {
	waiting.Waiter[*caller]
	reqs  [1]store.TakeRequest
	woken int
}

func (c *caller) Wake() { c.woken++ }

type room struct {
	waiting.Room[*caller]
	policies policy.Set
}

func newRoom(most int64) *room {
	r := &room{}
	r.Init(&r.policies)
	r.SetMost(most)
	return r
}

// call is one of key k with 1/1s that waits under a lease's name.
func call(t testing.TB, name string) *caller {
	t.Helper()
	c := &caller{}
	l, err := cell.ParseLimit("1/1s")
	if err != nil {
		t.Fatal(err)
	}
	c.reqs[0] = store.TakeRequest{Calls: []store.Call{{Key: []byte("k"), Limit: &l}},
		TakeOptions: store.TakeOptions{Cost: 1, Terms: &store.Terms{Mode: store.Wait, MaxNS: 1e9, LeaseNS: 1e9, Name: name}}}
	c.Request, c.Calls, c.Waker = &c.reqs[0], c.reqs[0].Calls, c
	return c
}

func (r *room) enter(t testing.TB, c *caller) *caller {
	t.Helper()
	if _, err := r.Enter(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// A reservation behind a line always finds a place, however many wait by then: its caller has been told a time. It takes that place
// from those who come later.
func TestAReservationFindsAPlace(t *testing.T) {
	r := newRoom(1)
	full := func(why string) {
		t.Helper()
		if _, err := r.Enter(call(t, "")); err != store.ErrTooManyWaiters {
			t.Errorf("%s: %v", why, err)
		}
	}
	w := r.enter(t, call(t, ""))
	full("a second that waits")
	booked := call(t, "")
	booked.Waker = nil
	r.enter(t, booked)
	if n := r.Callers(); n != 1 {
		t.Errorf("%d callers wait", n)
	}
	if r.HasRoom(0) {
		t.Error("there are places for none more")
	}
	r.Leave(w)
	full("one that waits beside a reservation")
	r.Leave(booked)
	if !r.HasRoom(1) || r.HasRoom(2) {
		t.Error("there is one place")
	}
	r.enter(t, call(t, ""))
}

// A waiter is found by its request, and its timer runs, as long as it waits.
func TestFind(t *testing.T) {
	r := newRoom(0)
	c, other := call(t, ""), call(t, "")
	if r.Find(c.Request) != nil {
		t.Error("it is found before it waits")
	}
	r.enter(t, c)
	c.Timer = time.AfterFunc(time.Hour, func() {})
	r.enter(t, other)
	if r.Find(c.Request) != c || r.Find(other.Request) != other || c.Left() {
		t.Error("it is not found")
	}
	if r.Leave(c); r.Find(c.Request) != nil || r.Find(other.Request) != other || !c.Left() || other.Left() || c.Timer.Stop() {
		t.Error("it has not left")
	}
}

// A grant fits whoever asks for the same, whatever its mode.
func TestAsksAs(t *testing.T) {
	r := newRoom(0)
	enter := func(change func(c *caller)) *caller {
		c := call(t, "")
		change(c)
		return r.enter(t, c)
	}
	one := enter(func(*caller) {})
	for what, c := range map[string]struct {
		of   *caller
		same bool
	}{
		"the same":     {enter(func(*caller) {}), true},
		"another mode": {enter(func(c *caller) { c.Request.Terms.Mode = store.Reserve }), true},
		"another cost": {enter(func(c *caller) { c.Request.Cost = 2 }), false},
		"another key":  {enter(func(c *caller) { c.Calls[0].Key = []byte("o") }), false},
	} {
		if one.AsksAs(&c.of.Waiter) != c.same {
			t.Errorf("%s: %v", what, !c.same)
		}
	}
}

func TestSetMost(t *testing.T) {
	r := newRoom(1)
	for most, want := range map[int64]int64{5: 5, 0: 10_000, -1: 10_000} {
		if r.SetMost(most); !r.HasRoom(want) || r.HasRoom(want+1) {
			t.Errorf("%d: there are not places for %d", most, want)
		}
	}
}

// A repeat is coalesced only with a call that asks for the same: each change makes it another call.
func TestSame(t *testing.T) {
	r := newRoom(0)
	first := r.enter(t, call(t, "job"))
	r.Register(first)
	if same := r.Leader(&call(t, "job").reqs[0]); same != first {
		t.Fatalf("it joins %v", same)
	}
	other, err := cell.ParseLimit("2/1s")
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(q *store.TakeRequest){
		"name":     func(q *store.TakeRequest) { q.Terms.Name = "another" },
		"no name":  func(q *store.TakeRequest) { q.Terms.Name = "" },
		"mode":     func(q *store.TakeRequest) { q.Terms.Mode = store.Reserve },
		"lease":    func(q *store.TakeRequest) { q.Terms.LeaseNS = 2e9 },
		"bound":    func(q *store.TakeRequest) { q.Terms.Bound = true },
		"cost":     func(q *store.TakeRequest) { q.Cost = 2 },
		"up to":    func(q *store.TakeRequest) { q.UpTo = true },
		"key":      func(q *store.TakeRequest) { q.Calls[0].Key = []byte("other") },
		"limit":    func(q *store.TakeRequest) { q.Calls[0].Limit = &other },
		"calls":    func(q *store.TakeRequest) { q.Calls = append(q.Calls, q.Calls[0]) },
		"a policy": func(q *store.TakeRequest) { q.Calls[0].Policy = &policy.Limit{} },
	} {
		c := call(t, "job")
		if change(&c.reqs[0]); r.Leader(&c.reqs[0]) != nil {
			t.Errorf("%s: it joins", what)
		}
	}
	r.Leave(first)
	if r.Leader(&call(t, "job").reqs[0]) != nil {
		t.Error("it joins one that has gone")
	}
}

// A follower is answered with its leader, and inherits the name and the ticket when the leader goes.
func TestStepOut(t *testing.T) {
	r := newRoom(0)
	var all []*caller
	for range 4 {
		all = append(all, r.enter(t, call(t, "job")))
	}
	r.Register(all[0])
	for _, c := range all[1:] {
		r.Coalesce(c, all[0])
	}
	if r.StepOut(all[2]); all[2].Leader != nil || !slices.Equal(all[0].Followers, []*caller{all[1], all[3]}) {
		t.Fatalf("with %v: %v", all[2].Leader, all[0].Followers)
	}
	next, _ := r.StepOut(all[0])
	r.Leave(all[0])
	if next != all[1] || next.Ticket != all[0].Ticket || next.Leader != nil || all[3].Leader != next || r.Leader(&all[2].reqs[0]) != next {
		t.Fatalf("the next is %+v", next)
	}
	if next, alone := r.StepOut(all[2]); next != nil || !alone {
		t.Error("nobody has joined that one")
	}
	answer := store.TakeRequest{Calls: []store.Call{{Key: []byte("other"), Decision: cell.Decision{Remaining: 3}}},
		TakeOptions: store.TakeOptions{Terms: &store.Terms{Lease: 8, WaitNS: 9}}, Taken: store.Taken{Granted: 1}}
	r.Answer(next, &answer)
	for i, c := range all {
		q, told := &c.reqs[0], i == 1 || i == 3
		if (c.woken == 1) != told || (q.Taken.Granted == 1 && q.Terms.Lease == 8 && q.Calls[0].Decision.Remaining == 3) != told ||
			q.Terms.WaitNS != 0 || string(q.Calls[0].Key) != "k" {
			t.Errorf("%d, woken %d times: %+v %+v", i, c.woken, q, q.Terms)
		}
	}
	if r.Leave(all[2]); r.Callers() != 0 || !r.HasRoom(10_000) || r.Leader(&all[2].reqs[0]) != nil {
		t.Errorf("%d wait", r.Callers())
	}
}

// A policy's limit is that of today, also where it was set again under another ID; who waits for one that has gone is told so.
func TestRefresh(t *testing.T) {
	r := newRoom(0)
	set := func(limit string, reset bool) {
		t.Helper()
		l, err := cell.ParseLimit(limit)
		if err == nil {
			_, err = r.policies.SetPolicy("p", []cell.Limit{l}, policy.Options{Reset: reset})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	of := func(p *policy.Policy) *caller {
		c := call(t, "")
		c.Calls[0].Limit, c.Calls[0].Policy = &p.Limits[0].Limit, p.Limits[0]
		return c
	}
	set("1/1s", false)
	was := r.policies.PolicyNamed("p")
	c := of(was)
	if changed, err := r.Enter(c); changed || err != nil {
		t.Errorf("it is as it was: %v, %v", changed, err)
	}
	for i, reset := range []bool{false, true} {
		set([]string{"5/1s", "6/1s"}[i], reset)
		changed, err := r.Refresh(c)
		if l := r.policies.PolicyNamed("p").Limits[0]; !changed || err != nil || c.Calls[0].Limit != &l.Limit || c.Calls[0].Policy != l {
			t.Errorf("changed %v, %v: %+v", changed, err, c.Calls[0])
		}
		if changed, err := r.Refresh(c); changed || err != nil {
			t.Errorf("again: %v, %v", changed, err)
		}
	}
	r.policies.DeletePolicy("p")
	if _, err := r.Refresh(c); err != policy.ErrNoPolicy {
		t.Errorf("it has gone: %v", err)
	}
	if _, err := r.Enter(of(was)); err != policy.ErrNoPolicy {
		t.Errorf("it had gone: %v", err)
	}
	set("1/1s", false)
	was = r.policies.PolicyNamed("p")
	set("2/1s", false)
	late := of(was)
	if changed, err := r.Enter(late); !changed || err != nil {
		t.Errorf("it was another: %v, %v", changed, err)
	}
	if changed, err := r.Refresh(late); !changed || err != nil || late.Calls[0].Limit.Count != 2 {
		t.Errorf("it is looked up: %v, %v, %+v", changed, err, late.Calls[0].Limit)
	}
}

// A caller that waits for a policy waits for the limits that it has now. A reservation for one of them stays, and ends when that limit
// goes.
func TestRefreshOfSeveralLimits(t *testing.T) {
	r := newRoom(0)
	set := func(limits string) []*policy.Limit {
		t.Helper()
		parsed, err := policy.ParseLimits(limits)
		if err == nil {
			_, err = r.policies.SetPolicy("p", parsed, policy.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return r.policies.PolicyNamed("p").Limits
	}
	of := func(limits ...*policy.Limit) *caller {
		c := call(t, "job")
		for _, l := range limits {
			c.reqs[0].Calls = append(c.reqs[0].Calls, store.CallOf([]byte("k"), l))
		}
		c.Calls = c.reqs[0].Calls
		return c
	}
	both := set("1/1s 5/1m")
	whole, one, twice := of(both...), of(both[1]), of(append(both, both...)...)
	for _, c := range []*caller{whole, one, twice} {
		r.enter(t, c)
	}
	if whole.AsksAs(&one.Waiter) || whole.AsksAs(&twice.Waiter) || !whole.AsksAs(&whole.Waiter) {
		t.Error("calls of other limits of a policy ask for the same")
	}
	three := set("7/1d 2/1m 1/1s,algo=log")
	for c, want := range map[*caller]int{whole: 1 + 3, one: 1 + 1, twice: 1 + 6} {
		if changed, err := r.Refresh(c); !changed || err != nil || len(c.Calls) != want || len(c.reqs[0].Calls) != want {
			t.Errorf("%v, %v, %+v", changed, err, c.Calls)
		}
	}
	if one.Calls[1].Policy != three[1] || whole.Calls[1].Policy != three[0] || string(whole.Calls[3].Key) != "k" {
		t.Errorf("%+v, %+v", one.Calls, whole.Calls)
	}
	set("7/1d")
	if _, err := r.Refresh(one); err != policy.ErrNoPolicy {
		t.Errorf("a reservation for a limit that has left: %v", err)
	}
	if _, err := r.Refresh(whole); err != nil || len(whole.Calls) != 2 {
		t.Errorf("%v, %+v", err, whole.Calls)
	}
	many := of()
	for range store.MaxLimits - 1 {
		many.reqs[0].Calls = append(many.reqs[0].Calls, store.CallOf([]byte("k"), r.policies.PolicyNamed("p").Limits[0]))
	}
	many.Calls = many.reqs[0].Calls
	r.enter(t, many)
	set("7/1d 1/1s")
	if _, err := r.Refresh(many); err != store.ErrTooManyLimits {
		t.Errorf("more than a key may have: %v", err)
	}
	_, err := r.policies.SetPolicy("q", r.policies.PolicyNamed("p").Plain(), policy.Options{})
	if other := of(r.policies.PolicyNamed("q").Limits...); err != nil || other.AsksAs(&of(r.policies.PolicyNamed("p").Limits...).Waiter) {
		t.Error("calls of two policies ask for the same", err)
	}
}
