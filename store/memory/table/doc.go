// Package table keeps keys and their states in memory: slots, the index that finds them, their order of use, and when they end. A Table
// knows no lock, except where a method says so, and decides nothing: package memory locks it, and asks package cell.
//
//	var reserves table.Reserves   // memory that the tables of a store share
//	reserves.Init()
//	var t table.Table
//	t.Clear()
//	t.UseMemory(&reserves, &wall)
//	n, e := t.Slot(hash, key)     // number and slot of a key, or NoSlot and nil
//	for p := range t.TalliesOf(e) // its limits
//
// A key costs the garbage collector nothing: slabs and chunks have no pointers, and slots link to each other by number.
package table
