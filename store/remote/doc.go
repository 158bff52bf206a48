// Package remote keeps limits on an engine, Redis or Valkey, so that several instances share them. A Store answers later. It knows neither
// sessions, wire nor files.
//
//	s, err := remote.Open(remote.Options{URL: "redis://cache:6379", Policies: policies})  // an error for what can never work
//	if !s.ThrottleBatch(reqs, access, waker) { … }                                        // waker.Wake follows
//
// # How a call is decided
//
//	                 ┌─ bucket or window: a script ───────┐
//	call ─▶ queue ───┤                                    ├─▶ pipeline ─▶ engine
//	        of a key └─ change: view, a table in between ─┘   of link
//
// The steps:
//
//  1. A session asks Store.ThrottleBatch or Store.TakeBatch in store.go, which answer later. It waits, and its event loop serves others.
//  2. Store.decideBucket in bucket.go denies a call at once that is known to be denied: tatcache.go keeps what keys held last. Any other
//     call goes into the queue of its key, by Queues.Enqueue in store/remote/queue/queue.go. While a request for the key is under way,
//     calls gather there, and the next request decides them together.
//  3. A bucket or a window (CL.THROTTLE, and CL.TAKE with one limit of gcra or window) is decided on the engine, in its time, by
//     deciding.byScript in bucketscript.go. The script takes runs of equal calls, and answers the state that it found and the time. From
//     these call.decideAt in bucket.go computes each reply, by package cell.
//  4. Two ways are shorter. A key that seems unused is first tried by SET NX GET, for a fifth of the engine's CPU: deciding.setNew in
//     shortcut.go. If the TAT of a key of CL.THROTTLE is cached, and the outcome does not depend on the exact time, celld decides, and the
//     script only compares and stores, for half: deciding.expect in shortcut.go. If the key holds another TAT, the same script decides.
//  5. All else is a change. Views.Decide in store/remote/view/change.go reads the keys into a View, where the code of package memory
//     decides at the engine's time. View.Commit in store/remote/view/view.go stores what differs, if the engine still has what was read. If
//     not, the script answers what it has now, and the change is decided again. store/remote/view/cache.go saves reading keys that nobody
//     else changes, and store/remote/view/ticket.go queues views that lose often.
//  6. pipeline.run in store/remote/link/pipelines.go sends what has gathered. pending.answered in store.go counts the answers, and the last
//     wakes the session.
//  7. Where there was no answer, Decider.Throttle and Decider.Take in store/remote/failure/failure.go make one.
//
// What was taken stays on the engine for a second longer than it counts (Linger). So nobody stores past a call that they have not
// seen.
//
// A command on keys (GET, DEL, EXPIRE, EXEC, EVAL …) is a key transaction. inFlight.openTx in resp/session/keytx.go opens a View of its
// keys, runs the handler that serves the table in memory, too, and commits.
//
// The jobs have packages: queue (one request at a time for a key), view (keys of the engine in a table of this process), waits
// (who waits, and plain Takes), settings (policies and rules of all instances), keyspace (all keys), link (the connection) and failure
// (what callers are answered while the engine is away). Buckets are in this one, which wires all.
//
// # When the engine fails
//
// What was sent is not sent again, unless the answer says that nothing was done.
package remote
