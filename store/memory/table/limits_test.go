package table

import (
	"runtime"
	"slices"
	"testing"

	"celld/cell"
	"celld/store"
)

func limit(t *testing.T, text string) cell.Limit {
	l, err := cell.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A key's limits are found by policy or shape, counted, and go together. The time of the last use stays with the key.
func TestLimitEntriesOfAKey(t *testing.T) {
	table := newTable()
	n, e := table.add(1<<32, []byte("key"))
	const touched = 5 << touchedUnit
	table.SetTouched(e, touched)
	if e.HoldsLimits() || table.CountLimits(e) != 0 || table.LimitBytes(e) != 0 || table.LimitsEndNS(e) != 0 ||
		table.TouchedNS(e) != touched {
		t.Error("a key without limits says otherwise")
	}
	table.DropLimits(e) // has none
	texts := []string{"5/1s", "5/1m", "7/1s,algo=window", "5/1s,algo=log"}
	var entries []*LimitEntry
	for i, text := range texts {
		l := limit(t, text)
		st := cell.State{A: uint64(1000 * (i + 1))}
		if l.KeepsCalls() {
			st.Ring = []uint64{1, 2}
		}
		p := table.AddLimit(e, &cell.Limit{}, 0)
		table.Limits.Keep(p, &l, l.Code(), &st)
		entries = append(entries, p)
		if table.TouchedNS(e) != touched {
			t.Errorf("with %d limits the last use is at %d", i+1, table.TouchedNS(e))
		}
	}
	policy := table.AddLimit(e, &cell.Limit{}, 9)
	l := limit(t, "5/1s")
	table.Limits.Keep(policy, &l, l.Code(), &cell.State{A: 77})
	for i, text := range texts {
		l := limit(t, text)
		if got := table.FindLimit(e, &l, 0, l.Code()); got != entries[i] {
			t.Errorf("%s has limit entry %p, want %p", text, got, entries[i])
		}
	}
	for text, id := range map[string]uint32{"5/1s": 8, "5/2s": 0, "5/3s,algo=window": 0} {
		if l := limit(t, text); table.FindLimit(e, &l, id, l.Code()) != nil {
			t.Errorf("%s of policy %d is there", text, id)
		}
	}
	other := limit(t, "9/1h")
	if table.FindLimit(e, &other, 9, other.Code()) != policy {
		t.Error("a policy's state is not found after its limit has changed")
	}
	if other.Leases = true; table.FindLimit(e, &other, 9, other.Code()) != nil {
		t.Error("a policy's state is taken for that of its leases")
	}
	if got := slices.Collect(table.LimitsOf(e)); len(got) != 5 || got[0] != policy || got[4] != entries[0] {
		t.Errorf("the key holds %v", got)
	}
	ring := int64(RingBytes + 8*2)
	if count, bytes := table.CountLimits(e), table.LimitBytes(e); count != 5 || bytes != 5*LimitEntryBytes+ring ||
		table.CostBytes(n, e) != OverheadBytes+bytes {
		t.Errorf("%d limits take %d bytes", count, bytes)
	}
	if st := table.State(n, e); !st.HoldsLimits {
		t.Errorf("the state is %+v", st)
	}
	table.SetTouched(e, 2*touched)
	if table.DropLimits(e); e.HoldsLimits() || table.TouchedNS(e) != 2*touched || table.Limits.FreePlaces.InUse != 0 ||
		table.Limits.Rings.FreePlaces.InUse != 0 {
		t.Errorf("limits are dropped, and %d places are used, at %d", table.Limits.FreePlaces.InUse, table.TouchedNS(e))
	}
	for range table.LimitsOf(e) {
		t.Error("a key has limits that were dropped")
	}
}

// A limit goes on with a state only if nothing of it differs.
func TestSameAndAlone(t *testing.T) {
	table := newTable()
	_, e := table.add(1<<32, []byte("key"))
	l := limit(t, "5/1s,burst=3")
	p := table.AddLimit(e, &cell.Limit{}, 4)
	table.Limits.Keep(p, &l, l.Code(), &cell.State{})
	if !p.Same(&l, l.Code()) || !p.Alone(&l, 4) || p.Alone(&l, 0) {
		t.Error("a limit entry is not that of its limit")
	}
	for _, text := range []string{"6/1s,burst=3", "5/2s,burst=3", "5/1s,burst=4", "5/1s,algo=window"} {
		if l := limit(t, text); p.Same(&l, l.Code()) || p.Alone(&l, 4) {
			t.Errorf("a limit entry of 5/1s,burst=3 is that of %s", text)
		}
	}
	if first := table.AddLimit(e, &cell.Limit{}, 4); first.Next.Load() == 0 || first.Alone(&l, 4) {
		t.Error("one of two is alone")
	}
}

// A state is stored in all of its words, a ring in place of another, and a limit's companion leads to it.
func TestKeptStates(t *testing.T) {
	table := newTable()
	_, e := table.add(1<<32, []byte("key"))
	l := limit(t, "5/1s,algo=log")
	p := table.AddLimit(e, &cell.Limit{}, 0)
	for _, st := range []cell.State{{A: 1, B: 2, BlockedNS: 3}, {A: 4, B: 2, BlockedNS: 3}, {A: 4, B: 5, BlockedNS: 3},
		{A: 4, B: 5, BlockedNS: 6}, {},
		{Ring: []uint64{1, 2}}, {Ring: []uint64{3, 4}}, {Ring: []uint64{5}}, {A: 1}} {
		table.Limits.Keep(p, &l, l.Code(), &st)
		got := table.Limits.State(p)
		if got.A != st.A || got.B != st.B || got.BlockedNS != st.BlockedNS || !slices.Equal(got.Ring, st.Ring) {
			t.Errorf("%+v is kept as %+v", st, got)
		}
	}
	if copied := CloneRing(nil); copied != nil {
		t.Errorf("a copy of no ring is %v", copied)
	}
	ring := []uint64{7, 8, 9}
	if copied := CloneRing(ring); !slices.Equal(copied, ring) || &copied[0] == &ring[0] || cap(copied) != 3 {
		t.Errorf("a copy of %v is %v", ring, copied)
	}
	companion := l
	companion.Leases = true
	c := table.AddLimit(e, &cell.Limit{}, 0)
	table.Limits.Keep(c, &companion, companion.Code(), &cell.State{})
	if !c.HoldsLeases() || p.HoldsLeases() || table.BaseOf(e, c) != p {
		t.Error("a companion does not lead to its limit")
	}
}

// A key dies at its TAT or its expiry, whichever comes first; one that holds no limit at its expiry alone.
func TestEndOfAKey(t *testing.T) {
	table := newTable()
	n, e := table.add(1<<32, []byte("key"))
	e.TAT.Store(1000)
	if end := table.EndNS(n, e); end != 1000 || table.Dead(n, e, 999) || !table.Dead(n, e, 1000) {
		t.Errorf("the end is %d", end)
	}
	table.Slabs.SetExpiry(n, 500)
	e.SetInfo(FlagsOfState, FlagExpiry)
	table.Wall.Store(100)
	if end, st := table.EndNS(n, e), table.State(n, e); end != 400 || st != (store.Value{TAT: 1000, ExpiryNS: 500}) {
		t.Errorf("the end is %d of %+v", end, st)
	}
	if e.TAT.Store(300); table.EndNS(n, e) != 300 {
		t.Errorf("the end is %d, want the TAT", table.EndNS(n, e))
	}
	for _, count := range []int64{300, -300, 0, 1 << 62} {
		st := store.Value{Count: count, ExpiryNS: 500}
		e.PutValue(st)
		e.SetInfo(FlagExpiry|FlagNoExpiry, FlagExpiry)
		if end, is := table.EndNS(n, e), table.State(n, e); end != 400 || is != st || e.SettledTAT() != 0 {
			t.Errorf("%+v ends at %d, want its expiry", is, end)
		}
		e.SetInfo(FlagExpiry|FlagNoExpiry, FlagNoExpiry)
		if end, st := table.EndNS(n, e), table.State(n, e); end != Never || st.ExpiryNS != store.NoExpiry || table.Dead(n, e, 1<<62) {
			t.Errorf("a count that does not expire ends at %d: %+v", end, st)
		}
	}
}

// What a call without the lock is about to store is waited for.
func TestHeldWaitsForTheBusyCall(t *testing.T) {
	table := newTable()
	_, e := table.add(1<<32, []byte("key"))
	e.SetInfo(FlagBusy, FlagBusy)
	started := make(chan bool)
	go func() {
		close(started)
		for range 100 {
			runtime.Gosched()
		}
		e.TAT.Store(7)
		e.Info.And(^uint64(FlagBusy))
	}()
	<-started
	if tat := e.SettledTAT(); tat != 7 {
		t.Errorf("the TAT is %d", tat)
	}
}

// Limits by the clock are decided and end in wall time, and others in limit time.
func TestLimitsByTheClock(t *testing.T) {
	table := newTable()
	const ahead, now = int64(5e9), int64(1_800_000_000_000_000_000)
	table.Wall.Store(ahead)
	plain, clock := limit(t, "5/1m,algo=window"), limit(t, "5/1m,algo=window,align=clock")
	if at := table.TimeOf(&plain, now); at != now {
		t.Errorf("a limit in limit time is decided at %d", at)
	}
	if at := table.TimeOf(&clock, now); at != now+ahead {
		t.Errorf("a limit in wall time is decided at %d", at)
	}
	var limits store.Limits
	_, e := table.add(1<<32, []byte("key"))
	var want uint64
	for _, l := range []cell.Limit{plain, clock} {
		var st cell.State
		l.Decide(&st, table.TimeOf(&l, now), 1, cell.Take)
		end := l.EndNS(&st)
		if l.Aligned() {
			end -= uint64(ahead)
		}
		if got := table.LimitEndNS(&l, &st); got != end {
			t.Errorf("%+v ends at %d, want %d", l.Shape, got, end)
		}
		limits = append(limits, store.LimitState{Limit: l, State: st})
		p := table.AddLimit(e, &cell.Limit{}, 0)
		table.Limits.Keep(p, &l, l.Code(), &st)
		if table.EntryEndNS(p) != end {
			t.Errorf("the limit entry of %+v ends at %d, want %d", l.Shape, table.EntryEndNS(p), end)
		}
		want = max(want, end)
	}
	if table.LimitsEndNS(e) != want || table.EndOf(limits) != want || EndNS(limits, ahead) != want {
		t.Errorf("the limits end at %d and %d, want %d", table.LimitsEndNS(e), table.EndOf(limits), want)
	}
	before := map[*LimitEntry]cell.State{}
	for p := range table.LimitsOf(e) {
		before[p] = table.Limits.State(p)
	}
	table.Realign(e, -90e9, now+ahead-90e9)
	for p, st := range before {
		l := table.Limits.Limit(p)
		if l.Aligned() {
			l.Realign(&st, -90e9, now+ahead-90e9)
			if st.A == before[p].A && st.B == before[p].B {
				t.Error("a window by the clock does not move with it")
			}
		}
		if got := table.Limits.State(p); got.A != st.A || got.B != st.B {
			t.Errorf("after the clock has moved %+v is %+v, want %+v", l.Shape, got, st)
		}
	}
}
