// Package remote keeps limits on Redis or Valkey, so that several instances share them. A Store is a store.Limiter that answers later.
//
//	s, err := remote.Open(remote.Options{URL: "redis://cache:6379", Policies: keys.Set})  // an error for what can never work
//	if !s.ThrottleBatch(reqs, access, waker) { … }                                       // waker.Wake follows
//
// # How a call is decided
//
//	call ─▶ queue of its key ─▶ lane ─▶ engine
//	        one under way         pipelines what has gathered
//
// For each key one request to the engine is under way. What is asked meanwhile waits in the key's queue, and is decided by the
// next, in its order: so 50 clients on one key cost the engine one script and not 50. There are these kinds of requests:
//
//   - A bucket (CL.THROTTLE, and CL.TAKE with one gcra limit) is decided by a script on the engine, in its time. The script
//     answers the TAT that it found and the time, and package cell computes the replies from these.
//   - If it is known what TAT a key of CL.THROTTLE has, and the outcome does not depend on the exact time, celld decides, and the script
//     only compares and stores: half the engine's CPU. If the key holds another, the same script decides.
//   - A key that seems unused is taken by SET NX GET, without a script.
//   - All else is a change: the keys' texts are read into a table of their own, a view, where package store decides as it does in
//     memory. What has changed is stored by compare-and-set; after a conflict it is decided again.
//
// # What a key holds
//
// A TAT is a string of decimal Unix nanoseconds, as redis-cell stores it. Limits are a hash: what HGETALL shows of a key in memory.
//
// What keys held when the engine last answered is remembered, and is checked before anything is stored: see versions.
//
// # When the engine fails
//
// What was sent is not sent again, unless the answer says that nothing was done. Package link has the connection, and package failure says
// what callers are answered.
package remote
