// Package view brings keys of the engine into a table of this process. There they are changed by the code that changes them in memory;
// what differs is stored by compare-and-set.
//
//	v := views.Open(keys, waker)    // waker.Wake follows: v.Err says why nothing was read
//	v.Table()                       // change the keys by the methods of the table
//	done := v.Commit(waker)         // if false, waker.Wake follows; after a v.Conflict() the keys are as they are now
//	v.Close()
//
//	queues.Ask(views.NewChange(keys, deadline, decide, done))    // the same with the other changes of a key
//
//	engine ─ openScript ─▶ content ─ put ─▶ table ─ decide ─▶ table ─ textOf ─▶ content ─ commitScript ─▶ engine
//	             ▲                                                                             │
//	             └──────────────── conflict: the engine has something else, which is read ─────┘
//
// # What a key holds
//
// A TAT is a string of decimal Unix nanoseconds, as redis-cell stores it. Limits are a hash: what HGETALL shows of a key in memory.
package view
