// Package store keeps the states of limits under their keys: it decides, remembers, forgets what has run out, and makes
// room when it is full. It knows no wire and no files, and reads no clock: a method that needs the time is given it, as
// Unix nanoseconds. Every method may be called by many goroutines at once.
//
//	s := store.New(store.Options{MaxKeys: 1_000_000})
//	d, err := s.Throttle(key, limit, 1, store.Access{NowNS: now})
//	if errors.Is(err, store.ErrFull) { … } // only with NoEviction, or a key that MaxBytes can never hold
//	go every100ms(func(now int64) { for s.Sweep(now) {} })
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
// keys that passes.
//
// # Inside
//
//	key ── hash ──▶ shard: mutex ┬─ index   tag → slot: open addressing in chunks of 512 bytes, grown one at a time
//	                             ├─ slabs   slots of 48 bytes, 512 in a slab: key, TAT, links
//	                             ├─ keys    what is longer than a slot holds
//	                             ├─ lists   slots in order of use: probation, protected, spent
//	                             ├─ ends    wheel of slots, by a lower bound of the end of each
//	                             ├─ expiries, the instants of the few slots that have one
//	                             ├─ journal, the slots that changed since the last Drain
//	                             └─ watched keys and their versions
//
// No key costs the garbage collector anything: slabs and chunks have no pointers, and slots link to each other by number.
// Nothing is ever copied in order to grow, so no insert pauses for longer than some microseconds. A slot is for life, and
// used again after it; slabs are given back by Flush alone.
//
// A call takes one shard's lock, Rename takes two in index order, Flush all in index order. No lock is held for longer
// than some 64 keys take. The room (how many keys and bytes are held, of how many) is shared by all shards and atomic,
// so the limits are exact whatever the number of shards; the order of eviction is exact within a shard.
package store
