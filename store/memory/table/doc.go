// Package table keeps keys and their states in memory. It decides nothing and takes no lock, except where a method says so.
//
//	var reserves table.Reserves   // memory that the tables of a store share
//	reserves.Init()
//	var t table.Table
//	t.Clear()
//	t.UseMemory(&reserves, &wall)
//	n, e := t.Slot(hash, key)     // number and slot of a key, or NoSlot and nil
//	for p := range t.LimitsOf(e) { … } // its limit entries
//
// A slot is a key and its state; a limit entry is the state of one of its limits, where it holds several:
//
//	hash ─▶ Index ─▶ slot n ┬─ TAT, or ─▶ limit entry ─▶ limit entry ─▶ …   each with a ring, if its state is longer
//	                        ├─ Lists: order of use      probation, protected
//	                        ├─ Wheel: buckets by a lower bound of the end
//	                        └─ Keys: tails of a key that is longer than a slot holds
//
// Slots, limit entries and tails lie in slabs of 512. A FreeList knows which places are free. A key costs the garbage collector nothing:
// slabs and chunks hold no pointers, and slots link to each other by number.
package table
