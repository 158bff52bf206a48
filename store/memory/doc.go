// Package memory is the store in memory. It keeps the states of limits under their keys: it decides, remembers, forgets what has run out, and makes
// room when it is full. It knows no wire and no files, and reads no clock but for those who wait: a method that needs the time is
// given it, as Unix nanoseconds. Every method may be called by many goroutines at once.
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
// # Life and death
//
// A key is dead, which is the same as absent, once its TAT has passed, or its expiry, whichever is first. There is one
// exception: a value that was past when it was put (SET key 5) holds no limit and never will by itself. It is called
// spent, is kept until its expiry, and is the first to go when room is needed.
//
// Dead keys are removed when they are met, by Sweep, and by an insert that needs their room; until then they take
// memory and nothing else: no method counts, lists or finds them.
//
// # Whom to evict
//
// When room is needed, dead keys go first, then spent ones, and then live limits in the order of a segmented LRU: a key
// seen once is on probation, and goes before any that was used again and so became protected. What is protected beyond
// 80 % of the keys falls back to the head of probation. So a flood of keys that are seen once frees nobody who is limited
// and asks now and then, however many they are. A plain LRU would free all of them with each table full of
// keys that passes. A key that is asked all the time is moved in the order once a second only, unless MaxKeys is 4,096 or less.
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
// What a Take on Terms is granted may be a lease (leases.go): it flows back at its end, or when it is released or settled. Leases
// are tallies like any other, so they go where their key goes: into files, and with Rename, but not with Copy. What has
// ended is given back when its key is next looked up (due.go), and before those who wait are looked at. The key of a live lease is not
// evicted. IDs grow, also across restarts: the highest that is loaded is where they go on.
//
// # Inside
//
//	key ── hash ──▶ shard: mutex ┬─ index   tag → slot: open addressing in chunks of 512 bytes, grown one at a time
//	                             ├─ slabs   slots of 48 bytes, 512 in a slab: key, TAT, links
//	                             ├─ keys    what is longer than a slot holds
//	                             ├─ tallies of 64 bytes, the states of limits, in a list a key; and their rings
//	                             ├─ lists   slots in order of use: probation, protected, spent
//	                             ├─ ends    wheel of slots, by a lower bound of the end of each
//	                             ├─ expiries, the instants of the few slots that have one
//	                             ├─ journal, the slots that changed since the last Drain
//	                             ├─ watched keys and their versions
//	                             └─ queues, of those who wait
//
// No key costs the garbage collector anything: slabs and chunks have no pointers, and slots link to each other by number. Only
// the rings of logs and sub-windows are objects of their own.
// Nothing is ever copied in order to grow, so no insert pauses for longer than some microseconds. A slot is for life, and
// used again after it; the lowest free one is, so that slabs become empty, and those are given back. What is idle in others counts
// against MaxBytes, beyond an eighth of it and 4 MB.
//
// A call of one limit on a key that is there takes no lock, so any number of cores decide at once: free.go shows how. Any other
// takes its shard's lock, Rename and Copy two and Take those of its keys in index order, Flush all in index order. Under these
// the locks of policies, rules and exports are taken, and under those that of settings. No lock is held for longer than some
// 64 keys take, or the 128 calls that a Take may have. The room (how many keys and bytes are held, of how many) is shared by all shards and atomic,
// so the limits are exact whatever the number of shards; the order of eviction is exact within a shard.
package memory
