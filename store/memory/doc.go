// Package memory is the store in memory: it decides on limits and keeps their states under keys.
//
//	s := memory.New(memory.Options{MaxKeys: 1_000_000})
//	d, err := s.Throttle(key, limit, 1, store.Access{NowNS: now})
//	if errors.Is(err, store.ErrFull) { … } // only with NoEviction, or a key that MaxBytes can never hold
//	go every100ms(func(now int64) { for s.Sweep(now) {} })
//
// It knows no wire and no files. It reads no clock except for those who wait: callers pass the time, in Unix nanoseconds. Any goroutine may
// call any method.
//
//	Take ─▶ takes: load states, repeat?, judge, delay, change, answer ─▶ shard.Shards ─▶ table.Table
//	                                          └─▶ wait in the shard.Line of a state ─▶ timer ─▶ serve
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
// A Take on Terms waits, or books ahead. Those who wait for a state stand in its line (package waiting). They take nothing before they are
// first and pass: so they are in no file, and after their key is deleted they pass as on a new one. While somebody waits, any other call on
// that state is denied. A key that somebody waits for is not evicted. Timers serve the lines, by Options.Now; a waiter needs no goroutine.
//
// # Leases
//
// A Take on Terms may be granted a lease (leases.go), which flows back at its end, or when it is released or settled. Leases are limit
// entries like any other, so they go where their key goes: into files, and with Rename, but not with Copy. What expired leases held is
// given back as of their ends when their key is next looked up (shard/leaseexpiry.go), and before those who wait are looked at. The key of
// a live lease is not evicted. IDs grow, also across restarts: the highest that is loaded is where they go on.
//
// Package shard has the keys: how they live, end and are evicted.
package memory
