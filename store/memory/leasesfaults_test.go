package memory_test

import (
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// A first key that only leads to the others pays nothing of what a lease has cost.
func TestWhoOnlyLeadsPaysNothing(t *testing.T) {
	s := memory.New(memory.Options{})
	calls := []store.Call{{Key: []byte("a"), Limit: limitOf(t, "5/1h")}, {Key: []byte("b"), Limit: limitOf(t, "5/1m,algo=conc")}}
	terms := &store.Terms{}
	if taken, err := s.Take(calls, store.TakeOptions{Cost: 1, Terms: terms}, memtest.At(t0)); err != nil || taken.Limited {
		t.Fatal(taken, err)
	}
	if !memtest.Did(s.Settle([]byte("a"), terms.Lease, 4, memtest.At(t0))) || left(t, s, "a", "5/1h", t0) != 4 ||
		left(t, s, "b", "5/1m,algo=conc", t0) != 5 {
		t.Error("it pays")
	}
}

// A lease that is read from a file has all later IDs above its own, though the clock is far behind.
func TestIDsAreAboveThoseOfAFile(t *testing.T) {
	s := memory.New(memory.Options{})
	_, id := take(t, s, "k", "5/1m,algo=conc", 1, store.Terms{}, t0)
	other := memory.New(memory.Options{})
	_, err := s.Limits([]byte("k"), memtest.At(t0), func(l *store.LimitState) {
		if _, err := other.ParseField(string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State))); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, next := take(t, other, "k", "5/1m,algo=conc", 1, store.Terms{}, t0-3600*second); next <= id {
		t.Errorf("%d after %d", next, id)
	}
}
