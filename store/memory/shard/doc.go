// Package shard keeps keys in shards, each a table under a lock, and decides on calls of one limit.
//
//	var s shard.Shards
//	s.Init(16, &policy.Set{}, false)  // a power of two
//	d, err := s.Throttle(key, limit, 1, store.Access{NowNS: now})
//
// It finds, stores, expires, evicts, exports and journals keys. It decides on calls of one limit without a lock where it can (LockFree).
// Whoever changes several keys at once locks their shards, and has paid for the room before (Prepaid). It knows who waits in the line of
// a state (Line), but neither why nor what they will get. It knows neither calls of several limits nor the terms of leases.
//
// Sweeper, Capacity, Exports and Teller work on Shards: they remove what is over, change how much there may be, copy all, and tell of
// changes.
//
// # Life and death
//
// A key is dead, which is the same as absent, once its TAT has passed, or its expiry, whichever is first. A count has no TAT,
// so it lives until its expiry, or until it is deleted.
//
// Look-ups that meet a dead key remove it; so do Sweep, and an insert that needs its room. Until then it takes memory and nothing else:
// no method counts, lists or finds it.
//
// # Whom to evict
//
// When room is needed, dead keys go first, and then live ones in the order of a segmented LRU: a key
// seen once is on probation, and goes before any that was used again and so became protected. What is protected beyond
// 80 % of the keys falls back to the head of probation. So a flood of new keys, however large, frees nobody who is limited and asks
// now and then. A plain LRU would free all of them with each table full of keys that passes. A key in constant use is moved in the order
// only once a second, unless MaxKeys is 4,096 or less.
//
// # Inside
//
//	key ── hash ──▶ shard: mutex ┬─ index   tag → slot: open addressing in chunks of 512 bytes, grown one at a time
//	                             ├─ slabs   slots of 48 bytes, 512 in a slab: key, TAT, links
//	                             ├─ keys    what is longer than a slot holds
//	                             ├─ limit entries of 64 bytes, the states of limits, in a list a key; and their rings
//	                             ├─ lists   slots in order of use: probation, protected
//	                             ├─ wheel   slots by a lower bound of the end of each
//	                             ├─ expiries, the instants of the few slots that have one
//	                             ├─ journal, the slots that changed since the last Drain
//	                             ├─ watched keys and their versions
//	                             └─ lines, of those who wait
//
// No key costs the garbage collector anything: slabs and chunks have no pointers, and slots link to each other by number. Only the rings of
// logs and sub-windows are objects of their own. Growing never copies, so no insert pauses for longer than some microseconds. A key keeps
// its slot for life. Then the slot is used again, the lowest free one first: so slabs become empty, and these are given back. Idle places
// in others count against MaxBytes, beyond an eighth of it and 4 MB.
//
// A call of one limit on a key that is there takes no lock, so any number of cores decide at once: lockfree.go shows how. Any other takes
// its shard's lock, Rename and Copy two and Take those of its keys in index order, Flush all in index order. Under these the locks of
// policies, rules and exports are taken, and under those that of settings. No lock is held for longer than some 64 keys take, or the 128
// calls that a Take may have. The room (how many keys and bytes are held, of how many) is shared by all shards and atomic, so the limits
// are exact whatever the number of shards; the order of eviction is exact within a shard.
package shard
