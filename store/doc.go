// Package store says what any store of limits promises: its port to sessions is Store, in port.go. It does not know how limits are kept.
//
//	var limiter store.Limiter = memory.New(memory.Options{})
//	reqs := []store.TakeRequest{{Calls: []store.Call{{Key: key, Limit: &limit}}, TakeOptions: store.TakeOptions{Cost: 1}}}
//	if limiter.TakeBatch(reqs, store.Access{NowNS: now}, waker) {
//		fmt.Println(reqs[0].Taken, reqs[0].Err)
//	}
//
//	sessions ─▶ Store ┬─ Limiter   decide on calls                    package memory: in this process
//	                  ├─ Tx, Keys  transactions on named keys         package remote: on an engine, Redis or Valkey
//	                  ├─ Leases, policy.Keeper, health                package storetest: the tests that both pass
//
// A store reads no clock except for those who wait: whoever calls it says what time it is, in Unix nanoseconds.
package store
