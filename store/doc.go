// Package store says what any store of limits promises. Package memory keeps them in this process, package remote on a Redis or
// Valkey; package storetest has the tests that both pass.
//
//	var limiter store.Limiter = memory.New(memory.Options{})
//	reqs := []store.TakeRequest{{Calls: []store.Call{{Key: key, Limit: &limit}}, TakeOptions: store.TakeOptions{Cost: 1}}}
//	if limiter.TakeBatch(reqs, store.Access{NowNS: now}, waker) {
//		fmt.Println(reqs[0].Taken, reqs[0].Err)
//	}
//
// A store reads no clock except for those who wait: whoever calls it says what time it is, in Unix nanoseconds.
package store
