package store_test

import (
	"fmt"
	"testing"

	"celld/store"
	"celld/store/policy"
)

// What is given back is told, and the key ends sooner.
func TestGiveIsTold(t *testing.T) {
	s := store.New(store.Options{Shards: 1, Journal: true})
	mustTake(t, s, 10, t0, calls(t, "k", "10/100s"))
	drained(s)
	l := mustParse(t, "10/100s")
	if n, err := s.Give([]byte("k"), &l, 0, 8, at(t0)); n != 8 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := drained(s); got != "k=20000000000" {
		t.Errorf("%q is told", got)
	}
	if n := sweep(s, t0+25*second); n != 1 {
		t.Errorf("%d keys have ended", n)
	}
}

// A limit whose algorithm has changed may need more room when it is given back to, and other keys go for it where it may.
func TestGiveThatNeedsRoom(t *testing.T) {
	for _, noEviction := range []bool{false, true} {
		s := store.New(store.Options{Shards: 1, NoEviction: noEviction})
		set := func(limit string) *policy.Policy {
			if _, err := s.SetPolicy("p", mustParse(t, limit), policy.Options{}); err != nil {
				t.Fatal(err)
			}
			return s.PolicyNamed("p")
		}
		for other := range 9 {
			mustPut(t, s, fmt.Sprint(other), live(t0, second), t0)
		}
		p := set("5/1h")
		mustTake(t, s, 3, t0, []store.Call{{Key: []byte("k"), Limit: &p.Limit, Policy: p.ID}})
		s.SetLimits(100, s.Stats(t0).Bytes, noEviction)
		p = set("5/1h,algo=log")
		n, err := s.Give([]byte("k"), &p.Limit, p.ID, 1, at(t0))
		keys := s.Len(t0)
		if noEviction && (n != 0 || err != store.ErrFull || keys != 10) || !noEviction && (n != 1 || err != nil || keys == 10) {
			t.Errorf("no eviction %v: %d are given, %v, %d keys", noEviction, n, err, keys)
		}
		mustAudit(t, s)
	}
}
