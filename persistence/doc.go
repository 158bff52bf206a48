// Package persistence keeps a store's limits on disk in Redis's own file formats:
//
//	disk := persistence.New(store, options)
//	found, err := disk.Load(apply)     // at the start
//	err = disk.Start(background)
//	disk.Tick()                        // every 100 ms
//	err = disk.Commit()                // with appendfsync always, before replies are sent
//	disk.Stop()
//	err = disk.Close(save)
//
// Redis's tools can read the files, and celld and Redis can load each other's. There are two:
//
//	snapshot          dump.rdb        an RDB file of all limits, written every now and then
//	append-only file  appendonly.aof  the commands that make the limits what they are, extended as they change
//
// Either, both or none may be on. Load reads the append-only file, or the snapshot if there is none. Package load reads the files, packages
// rdb and aof know their formats, and package dir knows the directory. None of them knows sessions.
//
//	changes ─ store's journal ─▶ log ─▶ appendonly.aof          twice a second, or before the replies are sent
//	all keys ─ store's Export ─▶ rdb.Writer ─▶ dump.rdb          in small steps
//	                         └─▶ rewrite ─▶ appendonly.aof      from time to time, so that it stays short
//
// Load locks the directory, so that no other process writes there. Tick checks that the lock and the files are still in place.
//
// A limit of CL.THROTTLE is stored as redis-cell stores it: a string key that holds the TAT in Unix nanoseconds as decimal,
// and expires at a time in Unix milliseconds. A key of CL.TAKE is a hash with one field for each limit, whose value is the
// limit's state as text. The files hold states, not calls, so they mean the same whenever they are read. The append-only
// file splits a long log into several fields (log/1h 3) and writes only those that are new. Policies and rules are written
// as auxiliary fields and as ECHO commands, which Redis ignores.
//
// The append-only file grows by units, each a transaction that ends with what the keys hold at one instant between two calls: so a crash
// leaves whole calls, transactions and scripts. See gather in aof.go.
package persistence
