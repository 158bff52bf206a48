package shard

import (
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/cell/lease"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/memory/table"
	"celld/store/policy"
)

func limit(t *testing.T, text string) *cell.Limit {
	t.Helper()
	l, err := cell.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

func clock() int64 { return time.Now().UnixNano() }

// queue makes the line of a limit of key k, and a count of how often it is served.
func queue(s *Store, l *cell.Limit, p *policy.Limit) (q *Line, served *int) {
	served = new(int)
	key := []byte("k")
	hash := s.Hash(key)
	return s.ShardOf(hash).NewLine(&store.Call{Key: key, Limit: l, Policy: p}, hash, clock, func(q *Line) {
		q.Sh.Lock(0)
		q.Rang()
		*served++
		q.Sh.Unlock()
	}), served
}

func waiterOf(ticket uint64) *Waiter {
	w := &Waiter{}
	w.Ticket = ticket
	return w
}

// A line is found by its key and state. The key's slot has FlagWaited as long as anybody waits.
func TestLineOfAState(t *testing.T) {
	s := New(Options{Shards: 1})
	sh, k := &s.All[0], []byte("k")
	put := func() {
		if err := s.Update(k, store.Access{NowNS: 1}, func(store.Value, bool) (store.Value, bool) {
			return store.Value{TAT: 1000}, true
		}); err != nil {
			t.Fatal(err)
		}
	}
	waited := func() bool { _, e := sh.Slot(s.Hash(k), k); return e != nil && e.Has(table.FlagWaited) }
	put()
	of := func(key, text string, p *policy.Limit) *Line {
		return sh.LineOf(&store.Call{Key: []byte(key), Limit: limit(t, text), Policy: p})
	}
	if of("k", "5/1s", nil) != nil || waited() || s.WaitedKeys() != 0 {
		t.Error("a key is waited for by nobody")
	}
	literal, _ := queue(s, limit(t, "5/1s"), nil)
	named, _ := queue(s, limit(t, "5/1s"), &policy.Limit{ID: 7})
	if of("k", "5/1s", nil) != literal || of("k", "9/1s", nil) != literal || of("k", "5/1s", &policy.Limit{ID: 7}) != named ||
		of("k", "1/1m,algo=log", &policy.Limit{ID: 7}) != named {
		t.Error("a queue is not found")
	}
	if of("k", "5/1m", nil) != nil || of("k", "5/1s", &policy.Limit{ID: 8}) != nil || of("l", "5/1s", nil) != nil {
		t.Error("another state's queue is found")
	}
	if !waited() || s.WaitedKeys() != 1 {
		t.Error("the key is not waited for")
	}
	s.Delete(k, 2)
	if put(); !waited() {
		t.Error("a key that comes back is not waited for")
	}
	a, b, c := waiterOf(1), waiterOf(2), waiterOf(3)
	literal.Add(a, 2)
	literal.Add(b, 3)
	named.Add(c, 1)
	if literal.First() != a || literal.cost != 5 || a.Line != literal || a.Cost != 2 {
		t.Errorf("the queue is %+v", literal)
	}
	seen := literal.NotBeforeNS
	if literal.Withdraw(b, 9); literal.NotBeforeNS != seen || literal.cost != 2 || b.Line != nil {
		t.Errorf("the last has gone: %d, %d", literal.NotBeforeNS, literal.cost)
	}
	by := waiterOf(1)
	if literal.Replace(a, by); literal.First() != by || by.Line != literal || by.Cost != 2 || a.Line != nil {
		t.Errorf("another has not taken the place: %+v", by)
	}
	if literal.Withdraw(by, 9); literal.NotBeforeNS != 9 || of("k", "5/1s", nil) != nil || !waited() {
		t.Error("a queue of nobody stays, or that of another goes")
	}
	if named.Withdraw(c, 9); of("k", "5/1s", &policy.Limit{ID: 7}) != nil || waited() || s.WaitedKeys() != 0 {
		t.Error("a key that nobody waits for is waited for")
	}
}

// A line is served when its timer fires, and at once when something has changed, unless it has changed that itself.
func TestWhenALineIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Shards: 4})
		q, served := queue(s, limit(t, "5/1s"), nil)
		w := waiterOf(1)
		locked := func(do func()) {
			q.Sh.Lock(0)
			do()
			q.Sh.Unlock()
		}
		expect := func(what string, want int) {
			t.Helper()
			synctest.Wait()
			locked(func() {
				if *served != want {
					t.Errorf("%s: served %d times, want %d", what, *served, want)
				}
				*served = 0
			})
		}
		locked(func() { q.Add(w, 1) })
		setTimer := func(atNS int64) { locked(func() { q.SetTimer(atNS) }) }
		expect("at first", 0)
		start := clock()
		setTimer(start + int64(time.Second))
		setTimer(start + int64(time.Second))
		celldtest.Pass(time.Second - 1)
		expect("before the moment", 0)
		celldtest.Pass(time.Nanosecond)
		expect("at the moment", 1)
		celldtest.Pass(time.Hour)
		expect("later", 0)
		for name, poke := range map[string]func(){
			"Poke":    func() { locked(func() { q.Poke(clock()) }) },
			"PokeKey": func() { locked(func() { q.Sh.PokeKey([]byte("k"), clock()) }) },
			"PokeAll": func() { s.PokeAll(clock()) },
			"Flush":   func() { s.Flush(clock()) },
			"SetWall": func() { s.SetWall(clock()+5, clock()) },
		} {
			setTimer(clock() + int64(time.Hour))
			locked(func() { q.ahead.stale = false })
			poke()
			setTimer(clock() + int64(time.Minute)) // does not put it off
			locked(func() {
				if q.NotBeforeNS != clock() || !q.ahead.stale {
					t.Errorf("%s: seen at %d, want %d", name, q.NotBeforeNS, clock())
				}
			})
			expect(name, 1)
			celldtest.Pass(2 * time.Hour)
			expect(name+", later", 0)
		}
		locked(func() { q.Sh.PokeKey([]byte("l"), clock()) })
		expect("another key", 0)
		locked(func() {
			q.Quiet = true
			q.Poke(clock() + 1)
			q.Quiet = false
		})
		if expect("quiet", 0); q.NotBeforeNS > clock() {
			t.Error("a quiet queue is poked")
		}
		setTimer(clock() + int64(time.Second))
		locked(func() { q.Withdraw(w, clock()) })
		celldtest.Pass(time.Hour)
		expect("without anybody", 0)
	})
}

// A state is left alone for a waiter in another line with an earlier ticket, for a while.
func TestALineKeepsItsState(t *testing.T) {
	s := New(Options{Shards: 1})
	q, _ := queue(s, limit(t, "5/1s"), nil)
	other, _ := queue(s, limit(t, "5/1m"), nil)
	early, first, late := waiterOf(1), waiterOf(2), waiterOf(3)
	for _, w := range []*Waiter{early, late} {
		other.Add(w, 1)
	}
	if q.Keeps(0) {
		t.Error("it keeps its state for nobody")
	}
	q.KeepFor(late, 100, 10, 5)
	if !q.KeepsFor(late) || q.KeptUntil != 115 || !q.Keeps(114) {
		t.Errorf("kept until %d", q.KeptUntil)
	}
	if q.Add(first, 1); q.Keeps(110) {
		t.Error("the first leaves its state to a later one")
	}
	q.KeepFor(early, 100, 20, 5)
	if !q.KeepsFor(early) || q.KeptUntil != 125 || !q.Keeps(124) {
		t.Errorf("kept until %d for the earlier one", q.KeptUntil)
	}
	if q.KeepFor(late, 100, 90, 5); !q.KeepsFor(early) || q.KeptUntil != 125 {
		t.Error("a later one takes the place of an earlier one")
	}
	if q.Keeps(125) || q.NotBeforeNS != 125 || q.KeepsFor(early) {
		t.Errorf("kept beyond the end, seen at %d", q.NotBeforeNS)
	}
	q.KeepFor(early, 200, 20, 5)
	if other.Withdraw(early, 0); q.Keeps(210) || q.NotBeforeNS != 210 {
		t.Errorf("kept for one who has gone, seen at %d", q.NotBeforeNS)
	}
}

// Whoever comes waits for all before it: with a bucket by the sum of their costs, with windows by their bookings, and else until the
// first may pass.
func TestWaitBehindALine(t *testing.T) {
	const now = int64(1_800_000_000_000_000_000)
	s := New(Options{Shards: 1})
	for _, c := range []struct {
		text  string
		costs []int64
		cost  int64
		dueNS int64
		want  uint64
	}{
		{"10/1s,burst=1", nil, 1, NoTimer, 1e8},
		{"10/1s,burst=1", []int64{1, 1}, 1, NoTimer, 3e8},
		{"5/1s,algo=window", nil, 1, NoTimer, 1e9},
		{"5/1s,algo=window", []int64{3, 3, 1}, 2, NoTimer, 3e9}, // 3, 3 and 1, 2 in the third
		{"5/1s,algo=log", []int64{1}, 1, now + 3e9, 3e9},
		{"5/1s,algo=log", []int64{1}, 1, now, 1e9},
		{"5/1s,algo=log", []int64{1}, 1, NoTimer, 1e9},
	} {
		l := limit(t, c.text)
		var st cell.State
		l.Fit(&st, now, 1)
		full := int64(5)
		if l.IsBucket() {
			full = 1
		}
		if d := l.Decide(&st, now, full, cell.Take); d.Limited {
			t.Fatalf("%s: %+v", c.text, d)
		}
		q, _ := queue(s, l, nil)
		var all []*Waiter
		for i, cost := range c.costs {
			w := waiterOf(uint64(i + 1))
			q.Add(w, cost)
			all = append(all, w)
		}
		q.timerNS = c.dueNS
		if got := q.WaitNS(l, st, now, c.cost); got != c.want {
			t.Errorf("%s behind %v: %d ns, want %d", c.text, c.costs, got, c.want)
		}
		if l.Bookable() && !l.Additive() { // one who comes is booked behind them
			q.Book(l, st, now, 5)
			if got := q.WaitNS(l, st, now, 5); got != c.want+1e9 && got != c.want+2e9 {
				t.Errorf("%s behind one more: %d ns", c.text, got)
			}
		}
		for _, w := range all {
			q.Withdraw(w, now)
		}
		if len(all) == 0 {
			q.drop()
		}
	}
}

// When leases flow back, those who wait for their key may pass from then on, and no sooner.
func TestLeasesFlowBackToALine(t *testing.T) {
	const now, end = int64(1_800_000_000_000_000_000), int64(1_800_000_010_000_000_000)
	s := New(Options{Shards: 1})
	l, key := limit(t, "5/1h"), []byte("k")
	var st, held cell.State
	l.Decide(&st, now, 3, cell.Take)
	companion := *l
	companion.Leases = true
	held.Leases().Fit(1)
	held.Leases().Add(lease.Lease{ID: 1, ExpiryNS: uint64(end), Cost: 2, TakenNS: l.TakenNS(&st, now)})
	limits := store.Limits{{Limit: *l, State: st}, {Limit: companion, State: held}}
	if err := s.Update(key, store.Access{NowNS: now}, func(store.Value, bool) (store.Value, bool) {
		return store.Value{TAT: table.EndNS(limits, 0), HoldsLimits: true, Limits: &limits}, true
	}); err != nil {
		t.Fatal(err)
	}
	q, _ := queue(s, l, nil)
	q.Add(waiterOf(1), 5)
	for _, at := range []int64{now, end - 1, end, end + 5} {
		q.NotBeforeNS, q.ahead.stale = now, false
		s.Get(key, store.Access{NowNS: at})
		if flows := at == end; q.ahead.stale != flows || q.NotBeforeNS != now && !flows || flows && q.NotBeforeNS != end {
			t.Errorf("%d ns after the lease's end: seen %d ns after it, stale %v", at-end, q.NotBeforeNS-end, q.ahead.stale)
		}
	}
	q.Withdraw(q.First(), end)
}
