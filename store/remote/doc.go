// Package remote keeps limits on an engine, Redis or Valkey, so that several instances share them. A Store answers later.
//
//	s, err := remote.Open(remote.Options{URL: "redis://cache:6379", Policies: policies})  // an error for what can never work
//	if !s.ThrottleBatch(reqs, access, waker) { … }                                        // waker.Wake follows
//
// # How a call is decided
//
//	                 ┌─ bucket: a script ─────────────────┐
//	call ─▶ queue ───┤                                    ├─▶ pipeline ─▶ engine
//	        of a key └─ change: view, a table in between ─┘   of link
//
// There are these kinds of requests:
//
//   - A bucket (CL.THROTTLE, and CL.TAKE with one gcra limit) is decided by a script on the engine, in its time. The script
//     answers the TAT that it found and the time, and package cell computes the replies from these.
//   - If the TAT of a key of CL.THROTTLE is cached, and the outcome does not depend on the exact time, celld decides, and the script only
//     compares and stores: half the engine's CPU. If the key holds another TAT, the same script decides.
//   - A key that seems unused is taken by SET NX GET, without a script.
//   - All else is a change, which package view decides as memory does.
//
// Each of these jobs has a package: queue (one request at a time for a key), view (keys of the engine in a table of this process), waits
// (who waits, and plain Takes), settings (policies and rules of all instances), keyspace (all keys), link (the connection) and failure
// (what callers are answered while the engine is away). Buckets are in this one, which wires all.
//
// # When the engine fails
//
// What was sent is not sent again, unless the answer says that nothing was done.
package remote
