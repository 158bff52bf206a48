package shard_test

import (
	"slices"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
	"celld/store/policy"
)

// A key that holds nothing but what was used of a policy that is gone is as free for CL.THROTTLE as one that is not there.
func TestThrottleWhereAPolicyIsGone(t *testing.T) {
	s := memory.New(memory.Options{})
	limit, err := cell.ParseLimit("5/1h")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetPolicy("api", []cell.Limit{limit}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	a := store.Access{NowNS: 1.7e18}
	calls := []store.Call{{Key: []byte("k"), Limit: &limit, Policy: s.PolicyNamed("api").Limits[0]}}
	if _, err := s.Take(calls, store.TakeOptions{Cost: 1}, a); err != nil {
		t.Fatal(err)
	}
	tat, err := cell.NewBucket(4, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Throttle([]byte("k"), tat, 1, a); err != store.ErrWrongType {
		t.Errorf("while the policy is there: %v", err)
	}
	s.DeletePolicy("api")
	d, err := s.Throttle([]byte("k"), tat, 1, a)
	if err != nil || d.Limited || d.Remaining != 4 {
		t.Errorf("when it is gone: %+v, %v", d, err)
	}
	if st, ok := s.Get([]byte("k"), a); !ok || st.HoldsLimits {
		t.Errorf("the key holds %+v, %v", st, ok)
	}
}

// A denied call that needs room among a key's limits drops those of a policy that is gone. Then the key ends with what is left.
func TestADeniedCallDropsWhatIsGone(t *testing.T) {
	s, limits, key := memory.New(memory.Options{Shards: 1}), []string{"5/1h", "5/1m"}, []byte("k")
	for _, text := range limits {
		if _, err := s.SetPolicy(text, []cell.Limit{memtest.MustParse(t, text)}, policy.Options{}); err != nil {
			t.Fatal(err)
		}
		l := memtest.MustParse(t, text)
		memtest.MustTake(t, s, 1, t0, []store.Call{{Key: key, Limit: &l, Policy: s.PolicyNamed(text).Limits[0]}})
	}
	short := memtest.MustParse(t, limits[1])
	call := store.Call{Key: key, Limit: &short, Policy: s.PolicyNamed(limits[1]).Limits[0]}
	s.DeletePolicy(limits[0])
	if taken := memtest.MustTake(t, s, 1, t0, slices.Repeat([]store.Call{call}, store.MaxLimits-1)); !taken.Limited {
		t.Fatalf("%d calls pass at once: %+v", store.MaxLimits-1, taken)
	}
	memtest.MustAudit(t, s)
	for used := range int64(2) {
		endNS := t0 + (used+1)*12*second
		if st, ok := s.Get(key, memtest.At(t0)); !ok || st.TAT != uint64(endNS) {
			t.Errorf("after %d calls the key ends %d ns after the start", used+1, int64(st.TAT)-t0)
		}
		memtest.MustTake(t, s, 1, t0, []store.Call{call})
	}
	if removed := memtest.Sweep(s, t0+36*second); removed != 1 {
		t.Errorf("%d keys are swept when the limit ends", removed)
	}
}
