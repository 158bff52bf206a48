package store_test

import (
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
)

// A key that holds nothing but what was used of a policy that is gone is as free for CL.THROTTLE as one that is not there.
func TestThrottleWhereAPolicyIsGone(t *testing.T) {
	s := store.New(store.Options{})
	limit, err := cell.ParseLimit("5/1h")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetPolicy("api", limit, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	a := store.Access{NowNS: 1.7e18}
	calls := []store.Call{{Key: []byte("k"), Limit: &limit, Policy: s.PolicyNamed("api").ID}}
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
	if st, ok := s.Get([]byte("k"), a); !ok || st.Kind != store.HoldsTAT {
		t.Errorf("the key holds %+v, %v", st, ok)
	}
}
