// Package memory is the store in memory. It keeps the states of limits under their keys: it decides, remembers, forgets what has run out,
// and makes room when it is full. It knows no wire and no files, and reads no clock except for those who wait: a method that needs the time
// is given it, as Unix nanoseconds. Every method may be called by many goroutines at once.
//
//	s := memory.New(memory.Options{MaxKeys: 1_000_000})
//	d, err := s.Throttle(key, limit, 1, store.Access{NowNS: now})
//	if errors.Is(err, store.ErrFull) { … } // only with NoEviction, or a key that MaxBytes can never hold
//	go every100ms(func(now int64) { for s.Sweep(now) {} })
//
// # Two kinds of keys
//
// A key holds a TAT, of Throttle, or limits, of Take: up to MaxLimits states, each of a literal's shape or of a policy. The
// other kind's method answers ErrWrongType. For all else they are alike: the TAT of a key with limits is when the last of them
// has nothing left to remember.
//
//	taken, err := s.Take([]store.Call{{Key: key, Limit: &literal}}, store.TakeOptions{Cost: 1}, store.Access{NowNS: now})
//
// Policies and rules are no keys: they have names of their own, are never evicted, and outlive Flush.
//
// # Who waits
//
// A Take on Terms waits, or books ahead. Those who wait for a state stand in its queue (package waiting) and take nothing before their
// turn, so they are in no file, and a key that is deleted lets them through as a fresh one would. While somebody waits, any other
// call on that state is denied. The key of a queue is not evicted. Timers serve the queues, by Options.Now; there is no goroutine
// for a waiter.
//
// # Leases
//
// What a Take on Terms is granted may be a lease (leases.go): it flows back at its end, or when it is released or settled. Leases are
// tallies like any other, so they go where their key goes: into files, and with Rename, but not with Copy. What has ended is given back
// when its key is next looked up (shard/due.go), and before those who wait are looked at. The key of a live lease is not evicted. IDs grow,
// also across restarts: the highest that is loaded is where they go on.
//
// Package shard has the keys: how they live, end and are evicted.
package memory
