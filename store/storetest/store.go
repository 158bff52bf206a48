package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
)

// RunStore tests whole Stores, which hold nothing yet: newStore returns another each time, with the policies and rules that are in force in
// its process. They take Access.NowNS and OpenOptions.NowNS as their time. Run and RunWaits test Stores as Limiters.
func RunStore(t *testing.T, newStore func() (store.Store, *policy.Set)) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *keeper)
	}{
		{"a transaction stores", transactionStores},
		{"no change is lost", noChangeLost},
		{"a transaction of many keys", manyKeys},
		{"names of keys change", namesChange},
		{"fields", fieldsOfKeys},
		{"leases end once", leasesEndOnce},
		{"leases of several keys", leasesOfSeveral},
		{"nobody's right", rightsToLinks},
		{"looks change nothing", looksChangeNothing},
		{"policies", policiesChange},
		{"plans", plansChange},
		{"rules", rulesDecide},
		{"policies of a file", policiesOfAFile},
		{"health", health},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, set := newStore()
			test.run(t, &keeper{Store: s, set: set, nowNS: t0})
		})
	}
}

// keeper uses a Store, and waits for its answers.
type keeper struct {
	store.Store
	set   *policy.Set
	nowNS int64
}

func (k *keeper) access() store.Access { return store.Access{NowNS: k.nowNS} }

// do runs a handler on keys until what it does is stored.
func (k *keeper) do(t *testing.T, handler func(keys store.Keys, a store.Access), names ...string) {
	t.Helper()
	if err := k.try(handler, names...); err != nil {
		t.Fatal(err)
	}
}

func (k *keeper) try(handler func(keys store.Keys, a store.Access), names ...string) error {
	var keys [][]byte
	for _, name := range names {
		keys = append(keys, []byte(name))
	}
	woken := make(waker, 1)
	x := k.Open(keys, store.OpenOptions{NowNS: k.nowNS}, woken)
	defer x.Close()
	for range 1000 {
		<-woken
		if err := x.Err(); err != nil {
			return err
		}
		a := k.access()
		a.NowNS = x.TimeNS()
		handler(x.Keys(), a)
		if !x.Commit(woken) {
			<-woken
			if x.Conflict() {
				woken <- struct{}{}
				continue
			}
		}
		return x.Err()
	}
	return errors.New("others change the keys all the time")
}

// take asks the limiter, outside of a transaction.
func (k *keeper) take(t *testing.T, o store.TakeOptions, calls ...store.Call) *store.TakeRequest {
	t.Helper()
	reqs := []store.TakeRequest{{Calls: calls, TakeOptions: o}}
	woken := make(waker, 1)
	if !k.TakeBatch(reqs, k.access(), woken) {
		<-woken
	}
	if reqs[0].Err != nil {
		t.Fatal(reqs[0].Err)
	}
	return &reqs[0]
}

// left is what remains of a limit.
func (k *keeper) left(t *testing.T, key string, l *cell.Limit) int64 {
	t.Helper()
	return k.take(t, store.TakeOptions{}, store.Call{Key: []byte(key), Limit: l}).Calls[0].Decision.Remaining
}

func put(keys store.Keys, a store.Access, key string, v store.Value) {
	_ = keys.Update([]byte(key), a, func(store.Value, bool) (store.Value, bool) { return v, true })
}

func (k *keeper) value(t *testing.T, key string) (v store.Value, there bool) {
	t.Helper()
	k.do(t, func(keys store.Keys, a store.Access) { v, there = keys.Get([]byte(key), a) }, key)
	return v, there
}

func transactionStores(t *testing.T, k *keeper) {
	tat := uint64(k.nowNS + 60*second)
	k.do(t, func(keys store.Keys, a store.Access) {
		put(keys, a, "k", store.Value{TAT: tat})
		if v, there := keys.Get([]byte("k"), a); !there || v.TAT != tat {
			t.Errorf("in the transaction: %v, %v", v, there)
		}
	}, "k")
	if v, there := k.value(t, "k"); !there || v.TAT != tat || v.ExpiryNS != store.AtTAT {
		t.Errorf("after it: %v, %v", v, there)
	}
	k.do(t, func(keys store.Keys, a store.Access) {
		put(keys, a, "k", store.Value{TAT: tat, ExpiryNS: store.NoExpiry})
		if idle, there := keys.IdleNS([]byte("k"), a.NowNS); !there || idle > second {
			t.Errorf("idle for %d, %v", idle, there)
		}
		if n, there := keys.KeyBytes([]byte("k"), a.NowNS); !there || n <= 0 {
			t.Errorf("%d bytes, %v", n, there)
		}
	}, "k")
	if v, _ := k.value(t, "k"); v.ExpiryNS != store.NoExpiry {
		t.Errorf("without an expiry it has %d", v.ExpiryNS)
	}
	deleted := false
	k.do(t, func(keys store.Keys, a store.Access) { deleted = keys.Delete([]byte("k"), a.NowNS) }, "k")
	if _, there := k.value(t, "k"); there || !deleted {
		t.Errorf("deleted %v, and there %v", deleted, there)
	}
	k.do(t, func(keys store.Keys, a store.Access) { deleted = keys.Delete([]byte("k"), a.NowNS) }, "k")
	if deleted {
		t.Error("deleted twice")
	}
}

// Many add to one key, each what it has read and one more.
func noChangeLost(t *testing.T, k *keeper) {
	const adders, turns = 4, 10
	base := uint64(k.nowNS + 3600*second)
	var wg sync.WaitGroup
	failed := make(chan error, adders)
	for range adders {
		wg.Go(func() {
			for range turns {
				if err := k.try(func(keys store.Keys, a store.Access) {
					_ = keys.Update([]byte("sum"), a, func(old store.Value, there bool) (store.Value, bool) {
						if !there {
							old.TAT = base
						}
						old.TAT++
						return old, true
					})
				}, "sum"); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	if v, _ := k.value(t, "sum"); v.TAT != base+adders*turns {
		t.Errorf("%d of %d are counted", v.TAT-base, adders*turns)
	}
}

func manyKeys(t *testing.T, k *keeper) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("many ", i))
	}
	tat := uint64(k.nowNS + 60*second)
	k.do(t, func(keys store.Keys, a store.Access) {
		for i, name := range names {
			put(keys, a, name, store.Value{TAT: tat + uint64(i)})
		}
	}, names...)
	k.do(t, func(keys store.Keys, a store.Access) {
		for i, name := range names {
			if v, there := keys.Get([]byte(name), a); !there || v.TAT != tat+uint64(i) {
				t.Errorf("%s: %v, %v", name, v, there)
			}
		}
	}, names...)
}

func namesChange(t *testing.T, k *keeper) {
	l := literal(t, "10/1h")
	k.take(t, store.TakeOptions{Cost: 3}, store.Call{Key: []byte("a"), Limit: l})
	k.do(t, func(keys store.Keys, a store.Access) {
		if copied, err := keys.Copy([]byte("a"), []byte("b"), false, a); !copied || err != nil {
			t.Error(copied, err)
		}
		if copied, err := keys.Copy([]byte("a"), []byte("b"), false, a); copied || err != nil {
			t.Error("copied over one that is there", err)
		}
	}, "a", "b")
	k.take(t, store.TakeOptions{Cost: 1}, store.Call{Key: []byte("b"), Limit: l})
	k.do(t, func(keys store.Keys, a store.Access) {
		if there, moved, err := keys.RenameNew([]byte("a"), []byte("b"), a); !there || moved || err != nil {
			t.Error(there, moved, err)
		}
		if there, err := keys.Rename([]byte("a"), []byte("c"), a); !there || err != nil {
			t.Error(there, err)
		}
		if there, err := keys.Rename([]byte("a"), []byte("c"), a); there || err != nil {
			t.Error("renamed twice", err)
		}
	}, "a", "b", "c")
	for key, want := range map[string]int64{"a": 10, "b": 6, "c": 7} {
		if got := k.left(t, key, l); got != want {
			t.Errorf("%s: %d left, want %d", key, got, want)
		}
	}
}

// What Limits tells, ParseField and PutFields take.
func fieldsOfKeys(t *testing.T, k *keeper) {
	l := literal(t, "10/1h")
	k.take(t, store.TakeOptions{Cost: 4}, store.Call{Key: []byte("from"), Limit: l})
	var fields [][2]string
	k.do(t, func(keys store.Keys, a store.Access) {
		fields = nil
		there, err := keys.Limits([]byte("from"), a, func(s *store.LimitState) {
			fields = append(fields, [2]string{string(s.AppendName(nil)), string(s.Limit.AppendState(nil, &s.State))})
		})
		if !there || err != nil {
			t.Error(there, err)
		}
	}, "from")
	if len(fields) != 1 {
		t.Fatalf("%q", fields)
	}
	k.do(t, func(keys store.Keys, a store.Access) {
		f, err := keys.ParseField(fields[0][0], fields[0][1])
		if err != nil {
			t.Fatal(err)
		}
		if added, err := keys.PutFields([]byte("to"), []store.Field{f}, true, a); added != 1 || err != nil {
			t.Error(added, err)
		}
		if _, err := keys.ParseField("10/1h", "nothing"); err == nil {
			t.Error("a state that is none was read")
		}
	}, "to")
	if got := k.left(t, "to", l); got != 6 {
		t.Errorf("%d left", got)
	}
	k.do(t, func(keys store.Keys, a store.Access) {
		put(keys, a, "tat", store.Value{TAT: uint64(a.NowNS + second)})
		if _, err := keys.Limits([]byte("tat"), a, func(*store.LimitState) {}); !errors.Is(err, store.ErrWrongType) {
			t.Error(err)
		}
	}, "tat")
}

func leasesEndOnce(t *testing.T, k *keeper) {
	l := literal(t, "10/1h")
	lease := func(cost int64) int64 {
		terms := &store.Terms{LeaseNS: 60 * second}
		if r := k.take(t, store.TakeOptions{Cost: cost, Terms: terms}, store.Call{Key: []byte("k"), Limit: l}); r.Taken.Limited ||
			terms.Lease == 0 {
			t.Fatalf("%+v", r.Taken)
		}
		return terms.Lease
	}
	end := func(id int64, how func(keys store.Keys, a store.Access) (bool, error)) (ended bool) {
		k.do(t, func(keys store.Keys, a store.Access) {
			var err error
			if ended, err = how(keys, a); err != nil {
				t.Error(err)
			}
		}, "k")
		return ended
	}
	first, second60 := lease(4), lease(2)
	if first >= second60 {
		t.Errorf("IDs %d, %d", first, second60)
	}
	release := func(id int64) func(store.Keys, store.Access) (bool, error) {
		return func(keys store.Keys, a store.Access) (bool, error) { return keys.Release([]byte("k"), id, a) }
	}
	if !end(first, release(first)) || end(first, release(first)) {
		t.Error("a lease does not end once")
	}
	if got := k.left(t, "k", l); got != 8 {
		t.Errorf("%d left after a release", got)
	}
	settle := func(keys store.Keys, a store.Access) (bool, error) { return keys.Settle([]byte("k"), second60, 5, a) }
	if !end(second60, settle) || end(second60, settle) {
		t.Error("a lease is not settled once")
	}
	if got := k.left(t, "k", l); got != 5 {
		t.Errorf("%d left after a settlement", got)
	}
	third := lease(3)
	renew := func(keys store.Keys, a store.Access) (bool, error) {
		return keys.Renew([]byte("k"), third, 120*second, a)
	}
	if !end(third, renew) {
		t.Error("not renewed")
	}
	k.nowNS += 100 * second // longer than it was to last
	if !end(third, renew) {
		t.Error("it has ended before its end")
	}
	k.nowNS += 121 * second
	if end(third, renew) {
		t.Error("renewed after its end")
	}
	if end(12345, release(12345)) {
		t.Error("a lease ended that nobody has taken")
	}
}

// The first key of a call leads to its others.
func leasesOfSeveral(t *testing.T, k *keeper) {
	l := literal(t, "10/1h")
	terms := &store.Terms{LeaseNS: 60 * second}
	calls := []store.Call{{Key: []byte("one"), Limit: l}, {Key: []byte("two"), Limit: l}, {Key: []byte("three"), Limit: l}}
	k.take(t, store.TakeOptions{Cost: 4, Terms: terms}, calls...)
	ended := false
	k.do(t, func(keys store.Keys, a store.Access) { ended, _ = keys.Release([]byte("one"), terms.Lease, a) }, "one")
	for _, key := range []string{"one", "two", "three"} {
		if got := k.left(t, key, l); got != 10 || !ended {
			t.Errorf("ended %v: %d left of %s", ended, got, key)
		}
	}
}

func rightsToLinks(t *testing.T, k *keeper) {
	l := literal(t, "10/1h")
	terms := &store.Terms{LeaseNS: 60 * second}
	k.take(t, store.TakeOptions{Cost: 4, Terms: terms}, store.Call{Key: []byte("mine"), Limit: l},
		store.Call{Key: []byte("other"), Limit: l})
	var refused error
	k.do(t, func(keys store.Keys, a store.Access) {
		a.May = func(key []byte, _, _ bool) bool { return bytes.Equal(key, []byte("mine")) }
		_, refused = keys.Release([]byte("mine"), terms.Lease, a)
	}, "mine")
	if no := (*store.NoRightError)(nil); !errors.As(refused, &no) || string(no.Key) != "other" {
		t.Error(refused)
	}
	if got := k.left(t, "other", l); got != 6 {
		t.Errorf("%d left", got)
	}
}

// answered waits for the answer to a change of a setting.
func answered(ask func(done func(bool, error))) (did bool, err error) {
	var wg sync.WaitGroup
	wg.Add(1)
	ask(func(d bool, e error) {
		did, err = d, e
		wg.Done()
	})
	wg.Wait()
	return did, err
}

func policiesChange(t *testing.T, k *keeper) {
	set := func(text string, o policy.Options) bool {
		t.Helper()
		did, err := answered(func(done func(bool, error)) { k.SetPolicy("api", []cell.Limit{*literal(t, text)}, o, done) })
		if err != nil {
			t.Fatal(err)
		}
		return did
	}
	take := func(cost int64) bool {
		t.Helper()
		p := k.set.PolicyNamed("api")
		if p == nil {
			t.Fatal("no policy")
		}
		return !k.take(t, store.TakeOptions{Cost: cost}, store.CallOf([]byte("k"), p.Limits[0])).Taken.Limited
	}
	if set("10/1h,algo=window", policy.Options{IfThere: true}) || !set("10/1h,algo=window", policy.Options{IfAbsent: true}) ||
		set("5/1h", policy.Options{IfAbsent: true}) {
		t.Error("NX or XX is not heeded")
	}
	if !take(8) || take(3) || !take(2) {
		t.Error("ten are not ten")
	}
	set("20/1h,algo=window", policy.Options{})
	if take(11) { // ten of the twenty were used
		t.Error("what was used does not count under the new limit")
	}
	set("20/1h,algo=window", policy.Options{Reset: true})
	if !take(20) {
		t.Error("what was used before a reset counts")
	}
	deleted := func() bool {
		did, err := answered(func(done func(bool, error)) { k.DeletePolicy("api", done) })
		if err != nil {
			t.Fatal(err)
		}
		return did
	}
	if !deleted() || deleted() || k.set.PolicyNamed("api") != nil {
		t.Error("a policy is not deleted once")
	}
	if err := k.PoliciesUnknown(); err != nil {
		t.Error(err)
	}
}

// plansChange: a policy of several limits takes from all or from none, and a limit that stays alike keeps what was used.
func plansChange(t *testing.T, k *keeper) {
	left := func(plan string, o policy.Options, cost int64, want ...int64) {
		t.Helper()
		limits, err := policy.ParseLimits(plan)
		if err != nil {
			t.Fatal(err)
		}
		did, err := answered(func(done func(bool, error)) { k.SetPolicy("gold", limits, o, done) })
		if !did || err != nil {
			t.Fatal(did, err)
		}
		var calls []store.Call
		for _, l := range k.set.PolicyNamed("gold").Limits {
			calls = append(calls, store.CallOf([]byte("k"), l))
		}
		var got []int64
		for _, c := range k.take(t, store.TakeOptions{Cost: cost}, calls...).Calls {
			got = append(got, c.Decision.Remaining)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s leaves %d, want %d", plan, got, want)
		}
	}
	left("10/1h,algo=window 100/1d", policy.Options{}, 4, 6, 96)
	left("10/1h,algo=window 100/1d", policy.Options{}, 7, 6, 96)
	left("100/1d 20/1h,algo=window", policy.Options{}, 0, 96, 16)
	left("100/1d 20/1h,algo=log", policy.Options{}, 1, 95, 19)
	left("20/1h,algo=window 100/1d", policy.Options{}, 0, 20, 95)
	left("50/1440m", policy.Options{}, 0, 45)
	left("50/1d 5/1h", policy.Options{Reset: true}, 5, 45, 0)
	left("10/1h,algo=window 100/1d", policy.Options{Reset: true}, 4, 6, 96)
	// A process that has ended the policies of an hour takes no other that ends in that hour. So each here ends an hour later.
	hours := func(n int64) policy.Options { return policy.Options{NowNS: k.nowNS, UntilNS: k.nowNS + n*3600e9} }
	end := func(n int64) { k.EndPolicies(k.nowNS + n*3600e9 + 60e9) } // an engine has its own clock
	left("30/1h,algo=window 9/1m", hours(1), 1, 25, 8)
	left("20/1h,algo=window", policy.Options{Lasting: true}, 2, 23, 6) // the temporary one stays in force
	end(0)
	left("10/1h,algo=window 100/1d", policy.Options{Lasting: true}, 0, 23, 6)
	end(1)
	left("10/1h,algo=window 100/1d", policy.Options{IfThere: true}, 0, 3, 100)
	left("50/1h,algo=window", hours(2), 0, 43)
	end(2)
	left("10/1h,algo=window 100/1d", policy.Options{IfThere: true}, 1, 2, 99)
	left("50/1h,algo=window", hours(3), 1, 41)
	left("10/1h,algo=window 100/1d", policy.Options{}, 0, 1, 99) // it replaces both
	end(3)
	if now := k.set.PolicyNamed("gold"); now == nil || now.UntilNS != 0 {
		t.Error("a policy that lasts has ended")
	}
	if did, err := answered(func(done func(bool, error)) { k.DeletePolicy("gold", done) }); !did || err != nil {
		t.Fatal(did, err)
	}
	left("5/1h", hours(4), 0, 5)
	end(4)
	if k.set.PolicyNamed("gold") != nil {
		t.Error("after a temporary policy there is another")
	}
	twice := policy.New("twice", *literal(t, "5/1m"), *literal(t, "6/60s"))
	did, err := answered(func(done func(bool, error)) { k.SetPolicy("twice", twice.Plain(), policy.Options{}, done) })
	if did || err == nil || k.set.PolicyNamed("twice") != nil {
		t.Error("a policy has two limits that are alike", did, err)
	}
}

func rulesDecide(t *testing.T, k *keeper) {
	l := literal(t, "1/1h")
	deny := policy.Rule{Deny: true, Pattern: "bad:*", Net: netip.Prefix{}}
	passes := func() bool {
		return !k.take(t, store.TakeOptions{Cost: 1}, store.Call{Key: []byte("bad:1"), Limit: l}).Taken.Limited
	}
	if added, err := answered(func(done func(bool, error)) { k.PutRule(deny, k.nowNS, done) }); !added || err != nil {
		t.Fatal(added, err)
	}
	if passes() {
		t.Error("a rule that denies lets pass")
	}
	if held, err := answered(func(done func(bool, error)) { k.DeleteRule(deny, k.nowNS, done) }); !held || err != nil {
		t.Fatal(held, err)
	}
	if held, err := answered(func(done func(bool, error)) { k.DeleteRule(deny, k.nowNS, done) }); held || err != nil {
		t.Error("a rule is deleted twice", err)
	}
	if !passes() || passes() {
		t.Error("the limit does not decide again")
	}
	inNet := policy.Rule{Net: netip.MustParsePrefix("2001:db8::/32")}
	if added, err := answered(func(done func(bool, error)) { k.PutRule(inNet, k.nowNS, done) }); !added || err != nil {
		t.Fatal(added, err)
	}
	seen := &policy.Seen{Addresses: [][]byte{[]byte("2001:db8::1")}}
	for _, limit := range []string{"1/1h", "1/1h,algo=window"} { // an engine decides on them in different ways
		for n := range int64(3) {
			call := store.Call{Key: []byte("k" + limit), Limit: literal(t, limit), Seen: seen}
			if k.take(t, store.TakeOptions{Cost: 9}, call).Taken.Limited {
				t.Error("a rule does not see an address", limit)
			}
			if call.Seen = nil; k.take(t, store.TakeOptions{Cost: 1}, call).Taken.Limited != (n > 0) {
				t.Error("what a rule allowed has taken", limit)
			}
		}
	}
	if held, err := answered(func(done func(bool, error)) { k.DeleteRule(inNet, k.nowNS, done) }); !held || err != nil {
		t.Fatal(held, err)
	}
}

func policiesOfAFile(t *testing.T, k *keeper) {
	list := []*policy.Policy{policy.New("a", *literal(t, "1/1s")), policy.New("b", *literal(t, "2/1s"), *literal(t, "9/1h"))}
	if refused, err := k.KeepPolicies(list, nil); refused != 0 || err != nil {
		t.Fatal(refused, err)
	}
	for _, p := range list {
		if got := k.set.PolicyNamed(p.Name); got == nil || !got.Same(p) {
			t.Errorf("%s: %v", p.Name, got)
		}
	}
	k.AwaitPolicies()
	rules := []policy.Rule{{Deny: true, Pattern: "bad:*"}}
	if refused, err := k.KeepRules(rules, nil); refused != 0 || err != nil || !slices.Equal(k.set.Rules(k.nowNS), rules) {
		t.Errorf("%d, %v: %v", refused, err, k.set.Rules(k.nowNS))
	}
}

func health(t *testing.T, k *keeper) {
	if err := k.Away(); err != nil {
		t.Error(err)
	}
	if callers, waited := k.Waiting(); callers != 0 || waited != 0 {
		t.Errorf("%d wait for %d keys", callers, waited)
	}
	if k.Leave(&store.TakeRequest{}, nil) {
		t.Error("one left that did not wait")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := literal(t, "5/1h")
	k.take(t, store.TakeOptions{Cost: 2}, store.Call{Key: []byte("k"), Limit: l})
	if _, err := k.GiveBack([]byte("k"), l, nil, 2, 0, k.access()); err != nil {
		t.Error(err)
	}
	if !k.Drain(ctx)() {
		t.Error("not drained")
	}
	if got := k.left(t, "k", l); got != 5 {
		t.Errorf("%d left after what nobody waited for", got)
	}
}
