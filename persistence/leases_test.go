package persistence_test

import (
	"testing"

	"celld/persistence"
	"celld/store"
)

// After a restart, leases are there, except those that end with their connections. IDs grow, although the clock was set back and the
// key is gone.
func TestRestartWithLeases(t *testing.T) {
	for name, set := range map[string]func(*persistence.Options){"snapshot": snapshots, "append-only": appendOnly} {
		t.Run(name, func(t *testing.T) {
			w, _ := inMemory(t, set)
			w.mustOpen()
			lease := func(w *world, limit string, terms store.Terms) int64 {
				t.Helper()
				l := w.literal(limit)
				calls := []store.Call{{Key: []byte("k"), Limit: &l}, {Key: []byte("other"), Limit: &l}}
				if _, err := w.store.Take(calls, store.TakeOptions{Cost: 2, Terms: &terms}, store.Access{NowNS: w.now}); err != nil ||
					terms.Lease == 0 {
					t.Fatal(err, terms.Lease)
				}
				return terms.Lease
			}
			const conc, log = "9/1h,algo=conc", "9/1h,algo=log"
			one := lease(w, conc, store.Terms{Name: "n"})
			lease(w, conc, store.Terms{Bound: true})
			two := lease(w, log, store.Terms{LeaseNS: 1800 * second})
			lease(w, log, store.Terms{LeaseNS: 1800 * second, Bound: true})
			lease(w, "20/10s", store.Terms{LeaseNS: 1800 * second, Bound: true})
			w.take("k", 18, "20/10s")
			w.now += second / 2
			w = w.reopen()
			if !w.take("k", 3, "20/10s").Limited || w.take("k", 2, "20/10s").Limited { // of its 1 s, half had flowed back
				t.Error("what was bound does not flow back as of the restart")
			}
			a := store.Access{NowNS: w.now}
			for _, limit := range []string{conc, log} {
				for _, key := range []string{"k", "other"} {
					if !w.take(key, 8, limit).Limited || w.take(key, 7, limit).Limited {
						t.Errorf("%s of %s: not 2 are held", limit, key)
					}
				}
			}
			if again := lease(w, conc, store.Terms{Name: "n"}); again != one {
				t.Errorf("%d again is %d", one, again)
			}
			if !did(w.store.Release([]byte("k"), one, a)) || !did(w.store.Settle([]byte("k"), two, 0, a)) ||
				w.take("other", 2, conc).Limited {
				t.Error("not released under both keys")
			}
			last := lease(w, "9/2h,algo=conc", store.Terms{})
			w.store.Delete([]byte("k"), w.now)
			w.store.Delete([]byte("other"), w.now)
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			w.now -= 86400 * second
			w = w.mustOpen()
			if next := lease(w, conc, store.Terms{}); next <= last {
				t.Errorf("%d follows %d", next, last)
			}
		})
	}
}
