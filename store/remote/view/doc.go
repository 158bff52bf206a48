// Package view changes keys of the engine by the code that changes keys in memory. It knows neither buckets nor who waits.
//
//	v := views.Open(keys, waker)    // waker.Wake follows: v.Err says why nothing was read
//	v.Table()                       // change the keys by the methods of the table
//	done := v.Commit(waker)         // if false, waker.Wake follows; after a v.Conflict() the keys are as they are now
//	v.Close()
//
//	queues.Enqueue(views.NewChange(keys, deadline, decide, done))    // the same with the other changes of a key
//
// A View reads keys into a table of this process. What differs after the change is stored by compare-and-set:
//
//	engine ─ openScript ─▶ content ─ put ─▶ table ─ decide ─▶ table ─ textOf ─▶ content ─ commitScript ─▶ engine
//	             ▲                                                                             │
//	             └──────────────── conflict: the engine holds something else, which is read ─────┘
//
// # What a key holds
//
// A TAT is a string of decimal Unix nanoseconds, as redis-cell stores it. Limits are a hash: what HGETALL shows of a key in memory.
package view
