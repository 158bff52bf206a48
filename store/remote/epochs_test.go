package remote

import (
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// After a reset, a process that has not heard of it grants no more than once more what the policy has.
func TestResetThatIsNotKnownYet(t *testing.T) {
	all := testStores(t, 2)
	one, other := all[0], all[1]
	done := make(chan struct{})
	set := func(o policy.Options) {
		one.SetPolicy("p", []cell.Limit{*linktest.Literal(t, "1/1h")}, o, func(bool, error) { done <- struct{}{} })
		<-done
	}
	set(policy.Options{})
	other.AwaitPolicies()
	one.plainly(t, 1, policyCall(one, "k", "p"))
	set(policy.Options{Reset: true})
	granted := int64(0)
	for range 20 {
		for _, s := range []*Store{one, other} {
			c := &store.TakeRequest{Calls: []store.Call{policyCall(s, "k", "p")}, TakeOptions: store.TakeOptions{Cost: 1}}
			s.takeNow(c)
			granted += c.Taken.Granted
		}
	}
	if granted > 2 {
		t.Errorf("%d granted", granted)
	}
}
