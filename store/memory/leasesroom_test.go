package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// Leases take as much room as the store says, whether they have a companion, share one, or lie in the limit itself; and none when
// they have ended.
func TestLeasesTakeTheRoomThatIsCounted(t *testing.T) {
	for _, c := range [][]string{
		{"a", "5/1h"}, {"a", "5/1m,algo=conc"}, {"a", "5/1h", "a", "5/1h"}, {"a", "5/1m,algo=conc", "a", "5/1m,algo=conc"},
		{"a", "5/1h,algo=log", "b", "5/1h"}, {"a", "5/1h", "b", "5/1m,algo=conc"}, {"a", "5/1h", "a", "9/1m", "b", "5/1h", "b", "5/1h"},
	} {
		s := memory.New(memory.Options{})
		var ids []int64
		for range 2 {
			list := memtest.Calls(t, c...)
			terms := &store.Terms{LeaseNS: 60 * second}
			if slices.ContainsFunc(list, func(c store.Call) bool { return c.Limit.HoldsLeases() }) {
				terms.LeaseNS = 0
			}
			if taken, err := s.Take(list, store.TakeOptions{Cost: 1, Terms: terms}, memtest.At(t0)); err != nil || taken.Limited ||
				terms.Lease == 0 {
				t.Fatalf("%v: %+v, %v", c, taken, err)
			}
			ids = append(ids, terms.Lease)
			memtest.MustAudit(t, s)
		}
		for _, id := range ids {
			if !memtest.Did(s.Release([]byte("a"), id, memtest.At(t0))) {
				t.Errorf("%v: not released", c)
			}
			memtest.MustAudit(t, s)
		}
		if st := s.Stats(t0); st.Bytes != 0 && s.Len(t0+hour*2) != 0 {
			t.Errorf("%v: %+v", c, st)
		}
	}
}

// Linked tells the other keys of a lease, each time that it is asked.
func TestLinkedKeys(t *testing.T) {
	s := memory.New(memory.Options{Shards: 1})
	id := leads(t, s, "9/1h", "")
	for range 2 {
		names, err := s.Linked([]byte("a"), id, memtest.At(t0))
		if err != nil || len(names) != 1 || string(names[0]) != "b" {
			t.Errorf("it leads to %q, %v", names, err)
		}
	}
	none := store.Access{NowNS: t0, May: func([]byte, bool, bool) bool { return false }}
	if _, err := s.Linked([]byte("a"), id, none); err == nil {
		t.Error("it is told to one who has no right to what it leads to")
	}
	if _, err := s.ParseField("policy", "limit=5/1h tat=1"); err == nil {
		t.Error("a field of no policy is read")
	}
	for key, id := range map[string]int64{"b": id, "a": id + 1, "none": id} {
		if names, err := s.Linked([]byte(key), id, memtest.At(t0)); err != nil || len(names) != 0 {
			t.Errorf("%s leads to %q, %v", key, names, err)
		}
	}
}

// A call of several limits ends an EXPIRE of the keys that it takes from, and of no others; one that is denied ends none, unless it blocks.
func TestWhichCallsEndAnExpiry(t *testing.T) {
	const expiry = t0 + 50*second
	for _, c := range []struct {
		limits []string
		cost   int64
		ends   bool
	}{
		{[]string{"k", "5/1h", "k", "9/1m"}, 1, true},
		{[]string{"k", "5/1h", "l", "9/1m"}, 1, true},
		{[]string{"k", "5/1h", "k", "9/1m"}, 8, false},
		{[]string{"k", "5/1h,block=3m", "k", "9/1m"}, 8, true},
		{[]string{"k", "7/1h", "k", "9/1m"}, 8, false}, // carries its state over
	} {
		s := memory.New(memory.Options{})
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", "5/1h", "k", "9/1m"))
		if err := s.Update([]byte("k"), memtest.At(t0), func(st store.Value, _ bool) (store.Value, bool) {
			st.ExpiryNS = expiry
			return st, true
		}); err != nil {
			t.Fatal(err)
		}
		memtest.MustTake(t, s, c.cost, t0, memtest.Calls(t, c.limits...))
		want := int64(expiry)
		if c.ends {
			want = store.AtTAT
		}
		if st, ok := s.Get([]byte("k"), memtest.At(t0)); !ok || st.ExpiryNS != want {
			t.Errorf("%v of %d: the expiry is %d, want %d", c.limits, c.cost, st.ExpiryNS, want)
		}
		memtest.MustAudit(t, s)
	}
}

// A lease that is bound to a connection has ended when it is read from a file, and another has not.
func TestBoundLeasesEndInAFile(t *testing.T) {
	for _, bound := range []bool{false, true} {
		s, other := memory.New(memory.Options{}), memory.New(memory.Options{})
		const limit = "5/1m,algo=conc"
		take(t, s, "k", limit, 2, store.Terms{Bound: bound}, t0)
		if _, err := s.Limits([]byte("k"), memtest.At(t0), func(l *store.LimitState) {
			f, err := other.ParseField(string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State)))
			if err == nil {
				_, err = other.PutFields([]byte("k"), []store.Field{f}, true, memtest.At(t0))
			}
			if err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		want := int64(3)
		if bound {
			want = 5
		}
		if n := left(t, other, "k", limit, t0); n != want {
			t.Errorf("bound %v: %d are left, want %d", bound, n, want)
		}
	}
}

// What holds the leases of a limit counts as a limit of its key, once.
func TestLeasesCountAsALimit(t *testing.T) {
	s := memory.New(memory.Options{})
	for i := range store.MaxLimits - 2 {
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", fmt.Sprintf("9/%dm", i+1)))
	}
	for i, step := range []struct {
		limit string
		lease int64
		want  error
		held  int
	}{
		{"9/1m", second, nil, store.MaxLimits - 1},
		{"9/1m", second, nil, store.MaxLimits - 1},
		{"9/999m", second, store.ErrTooManyLimits, store.MaxLimits - 1}, // the limit, and its leases
		{"9/2m", second, nil, store.MaxLimits},
		{"9/3m", second, store.ErrTooManyLimits, store.MaxLimits},
		{"9/3m", 0, nil, store.MaxLimits},
		{"9/1m", second, nil, store.MaxLimits},
	} {
		_, err := s.Take(memtest.Calls(t, "k", step.limit), store.TakeOptions{Cost: 1, Terms: &store.Terms{LeaseNS: step.lease}},
			memtest.At(t0))
		if n := count(s, "k", t0); err != step.want || n != step.held {
			t.Errorf("%d: %v, %d limits", i, err, n)
		}
		memtest.MustAudit(t, s)
	}
}

// Leases that have ended make room for new ones of their limit.
func TestEndedLeasesMakeRoom(t *testing.T) {
	const limit = "99/1m,algo=conc"
	for n := int64(1); n < 20; n++ {
		s := memory.New(memory.Options{})
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", "9/1h")) // so that the key stays
		for i := range n {
			memtest.MustTake(t, s, 1, t0+i, memtest.Calls(t, "k", limit))
		}
		before := s.Stats(t0).Bytes
		for range n - 1 { // the last has not ended yet
			memtest.MustTake(t, s, 1, t0+60*second+n-2, memtest.Calls(t, "k", limit))
		}
		if got := s.Stats(t0).Bytes; got != before || left(t, s, "k", limit, t0+60*second+n-2) != 99-n {
			t.Errorf("%d: %d bytes, %d before", n, got, before)
		}
		memtest.MustAudit(t, s)
	}
}

// A lease leads once to each other key, however many calls take from that. What it owes is taken by the limit that the key has by then.
func TestALeaseOfSeveralLimitsOfAnotherKey(t *testing.T) {
	s := memory.New(memory.Options{})
	list := memtest.Calls(t, "a", "9/1h", "b", "9/1h", "c", "9/1h", "b", "9/1m", "c", "9/1h")
	terms := &store.Terms{LeaseNS: 60 * second}
	if taken, err := s.Take(list, store.TakeOptions{Cost: 1, Terms: terms}, memtest.At(t0)); err != nil || taken.Limited {
		t.Fatal(taken, err)
	}
	names, err := s.Linked([]byte("a"), terms.Lease, memtest.At(t0))
	if err != nil || !slices.EqualFunc(names, []string{"b", "c"}, func(a []byte, b string) bool { return string(a) == b }) {
		t.Errorf("it leads to %q, %v", names, err)
	}
	memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "b", "5/1h,burst=90"))
	if !memtest.Did(s.Settle([]byte("a"), terms.Lease, 4, memtest.At(t0))) {
		t.Error("it is not settled")
	}
	if got, want := held(s, t0, "b"), "limit=5/1h,burst=90 "; !strings.Contains(got, want) {
		t.Errorf("b holds %s, want %s", got, want)
	}
	memtest.MustAudit(t, s)
}
