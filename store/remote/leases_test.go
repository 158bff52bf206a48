package remote

import (
	"testing"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link/linktest"
)

// leases takes 20 leases of a key, which are all that there are.
func (s *Store) leases(t *testing.T, key string) (ids []int64) {
	t.Helper()
	for range 20 {
		c := s.askOn(t, store.Terms{Bound: true}, 1, takeCall(t, key, "20/1h,algo=conc"))
		if c.answered().Limited {
			t.Fatal("it is denied")
		}
		ids = append(ids, c.reqs[0].Terms.Lease)
	}
	return ids
}

// Who drains a Store waits until the engine has the ends of all leases. What it did not take meanwhile is asked again, and nothing is
// otherwise.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		name         string
		away, drains bool
		free         int64
	}{
		{"an engine that is there", false, true, 20},
		{"one that comes back", true, true, 20},
		{"one that comes back later", true, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := testStores(t, 2)
			s, other := all[0], all[1]
			ids := s.leases(t, "k")
			var drained func() bool
			if c.drains {
				drained = s.Drain(t.Context())
			}
			h := s.byHand()
			if c.away {
				s.link.Break("k", linktest.Down)
			}
			for _, id := range ids {
				s.Release([]byte("k"), id, store.Access{})
			}
			if c.away {
				h.Pass(drainAgain)
				celldtest.Eventually(t, "it is back", func() bool { return s.link.DownAt("k") == nil })
			}
			if c.drains && !drained() {
				t.Error("it is not drained")
			}
			if left := s.drain.left.Load(); left != 0 {
				t.Errorf("%d changes are left", left)
			}
			r := other.plainly(t, 0, takeCall(t, "k", "20/1h,algo=conc"))
			if r.answered(); r.reqs[0].Calls[0].Decision.Remaining != c.free {
				t.Errorf("%d are free, want %d", r.reqs[0].Calls[0].Decision.Remaining, c.free)
			}
		})
	}
}
