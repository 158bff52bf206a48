// Package waits decides on Takes on an engine, also on those that wait. It knows no buckets.
//
//	if w.Waits(&req, nowNS) {
//		answered := w.Enter(&req, access, waker)    // if false, waker.Wake follows, or w.Leave(&req, why)
//	} else {
//		w.Take(&req, access, deadline, done)
//	}
//	w.Freed(key)    // those who wait for a key are tried again, in all instances
//
// Those who wait for a state stand in a line of this process. A try is a change of the engine's keys, which books for the first of them:
//
//	Enter ─▶ line ─▶ try (package view) ─▶ grants ─▶ each wakes its caller when its moment has come
//	           ▲
//	           └── Freed here, or an invalidation from another instance: try again
package waits
