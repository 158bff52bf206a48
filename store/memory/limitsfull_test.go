package memory_test

import (
	"fmt"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/memory/table"
	"celld/store/policy"
)

// What is over, or of a policy that is gone, stays under its key until its place is needed, though the key has many.
func TestWhatIsOverStaysUntilItsPlaceIsNeeded(t *testing.T) {
	s := memory.New(memory.Options{})
	for i := range store.MaxLimits - 1 {
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", fmt.Sprintf("1/%ds", i+1)))
	}
	now := t0 + 10*second // ten are over
	for i, limit := range []string{"1/100s", "1/1h", "1/2h"} {
		memtest.MustTake(t, s, 1, now, memtest.Calls(t, "k", limit))
		want := []int{store.MaxLimits - 1, store.MaxLimits, store.MaxLimits - 10 + 1}[i]
		if n := (int(s.Stats(now).Bytes) - table.OverheadBytes) / table.LimitEntryBytes; n != want {
			t.Errorf("%s: %d limits, want %d", limit, n, want)
		}
	}
}

// Where the limits of a policy that is gone have made room, and not enough, the key ends with those that are left.
func TestAKeyEndsWithoutWhatHasMadeRoom(t *testing.T) {
	s := memory.New(memory.Options{})
	if _, err := s.SetPolicy("p", []cell.Limit{memtest.MustParse(t, "1/9h")}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	p := s.PolicyNamed("p")
	memtest.MustTake(t, s, 1, t0, []store.Call{store.CallOf([]byte("k"), p.Limits[0])})
	for i := range store.MaxLimits - 1 {
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "k", fmt.Sprintf("1/%ds", i+1)))
	}
	s.DeletePolicy("p")
	for i := range 2 {
		before := s.Stats(t0).Changes
		if _, err := s.Take(memtest.Calls(t, "k", "1/1h", "k", "1/2h"), store.TakeOptions{Cost: 1},
			memtest.At(t0)); err != store.ErrTooManyLimits {
			t.Error(err)
		}
		if n := s.Stats(t0).Changes - before; n != int64(1-i) { // nothing is left to go the second time
			t.Errorf("%d: %d changes", i, n)
		}
		memtest.MustAudit(t, s)
	}
	if st, there := s.Get([]byte("k"), memtest.At(t0)); !there || st.TAT != uint64(t0+int64(store.MaxLimits-1)*second) {
		t.Errorf("it ends at %d", int64(st.TAT)-t0)
	}
}
