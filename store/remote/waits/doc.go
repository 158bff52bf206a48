// Package waits decides on Takes by changes of the engine's keys, for those who wait and those who do not.
//
//	if w.Waits(&req, nowNS) {
//		answered := w.Enter(&req, access, waker)    // if false, waker.Wake follows, or w.Leave(&req, why)
//	} else {
//		w.Take(&req, access, deadline, done)
//	}
//	w.Freed(key)    // those who wait for a key are tried again, in all instances
package waits
