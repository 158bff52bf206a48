// Package persistence keeps a store's limits on disk in Redis's own file formats, so that Redis's tools read them and a
// file that one of both wrote serves the other.
//
//	snapshot          dump.rdb        an RDB file of all limits, written every now and then
//	append-only file  appendonly.aof  the commands that lead to the limits as they are, extended as they change
//
// Either may be on, or both, or none. Load reads them at the start, the append-only file before the snapshot.
//
//	changes ─ store's journal ─▶ log ─▶ appendonly.aof          every second, or before the replies leave
//	all keys ─ store's Export ─▶ rdbWriter ─▶ dump.rdb          in small steps
//	                         └─▶ rewrite ─▶ appendonly.aof      from time to time, so that it stays short
//
// Load locks the directory, so that no other process writes there, and Tick looks whether the lock and the files are still in
// their place.
//
// What is stored of a limit of CL.THROTTLE is the string key that redis-cell keeps, its TAT in Unix nanoseconds as decimal,
// and its expiry in Unix milliseconds. A key of CL.TAKE is a hash, with a field for each limit and its state as text. Written
// as states and not as calls, they mean the same whenever they are read. The append-only file has a long log in parts, in
// fields of their own (log/1h 3), and of one that it has already those that are new. Policies and rules stand in auxiliary fields and in
// ECHOs, which Redis passes over.
package persistence
