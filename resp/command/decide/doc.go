// Package decide is the family of commands that the limiter decides: CL.THROTTLE, CL.TAKE, CL.MTAKE, CL.EXPLAIN,
// CL.GIVE, and INCR and its kin.
//
//	d := decide.New(server, lane)        // reads and answers for one caller at a time
//	used, _ := d.Gather(b, data, &args, limits)
//	if d.Ask(b, limiter, access, waker) { // else once waker was woken
//		d.Answer(call, b)
//	}
//
// A Shape is a call without its key: what it asks for, and how it is answered. A service sends the same few shapes for many keys. So a
// Decider keeps the shapes that it has met, recognises them by their bytes, and parses nothing of them again.
//
//	bytes ─▶ shape, key ─▶ Batch ─▶ store.Limiter ─▶ Batch ─▶ replies, counts
//	         recognised    up to 64 calls            decided
//	         or read
//
// A command that stands alone, or in a transaction or a script, goes the same way as a batch of one: its handler reads a Shape, and
// Server.Ask asks for it. Who does not speak RESP asks by an Ask, of which Read makes a request.
//
// The caller waits for the limiter, and ends the leases of a connection that closes.
package decide
