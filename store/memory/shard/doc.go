// Package shard keeps keys in shards, each a table under a lock: it finds, stores, ends, evicts, exports and journals them, and
// decides on calls of one limit without a lock where it can. Whoever changes several keys at once locks their shards, and has paid for
// the room before (Prepaid). It knows in which queue somebody waits for a state, and neither why nor what he gets.
//
//	var s shard.Shards
//	s.Init(16, &policy.Set{}, false)  // a power of two
//	d, err := s.Throttle(key, limit, 1, store.Access{NowNS: now})
//
// Sweeper, Resize, Exports and Teller work on Shards: they remove what is over, change how much there may be, copy all, and tell of
// changes.
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
// A call of one limit on a key that is there takes no lock, so any number of cores decide at once: free.go shows how. Any other takes its
// shard's lock, Rename and Copy two and Take those of its keys in index order, Flush all in index order. Under these the locks of policies,
// rules and exports are taken, and under those that of settings. No lock is held for longer than some 64 keys take, or the 128 calls that a
// Take may have. The room (how many keys and bytes are held, of how many) is shared by all shards and atomic, so the limits are exact
// whatever the number of shards; the order of eviction is exact within a shard.
package shard
