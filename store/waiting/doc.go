// Package waiting keeps calls that wait for a limit, in order: for the store in memory and for one on an engine alike.
//
//	type waiter struct {
//		waiting.Waiter[*waiter]
//		… // what the store knows of it
//	}
//
//	w := &waiter{}
//	w.Request, w.Calls, w.Access, w.Waker = r, slices.Clone(r.Calls), access, waker
//	changed, err := room.Enter(w) // it is counted, and has a ticket
//	if first := room.Leader(r); first != nil {
//		room.Coalesce(w, first) // it is answered with that one
//	} else {
//		line.Insert(w, 0)
//		room.Register(w)
//	}
//	…
//	room.Answer(w, r) // and its followers
//
// A Line is those who wait for one state, first come first served; Lines are those of all keys. The store decides on the first when its
// moment has come, and nobody takes anything before:
//
//	Lines ─▶ key ─▶ Line ─▶ first ─▶ second ─▶ … ─▶ last        in the order of tickets
//	                           └─ followers: same name, same call    answered with the first, whose place they inherit
//
// A Room's own lock is for finding waiters. Whoever changes a waiter or a Line holds the lock under which the store keeps them.
package waiting
