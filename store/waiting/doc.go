// Package waiting knows who waits for what, in which order, and with whom: in memory and for an engine alike.
//
//	type waiter struct {
//		waiting.Waiter[*waiter]
//		… // what the store knows of it
//	}
//
//	w := &waiter{}
//	err := room.Enter(w, r, access, waker) // it is counted, and has a ticket
//	if first := room.Same(r); first != nil {
//		room.Join(w, first) // it is answered as that
//	} else {
//		line.Insert(w, 0)
//		room.Know(w)
//	}
//	…
//	room.Answer(w, r) // those who have joined it, too
//
// A Line is one queue, first come first served, and Lines are the queues of all keys. A store asks for its first when its moment has
// come, and nobody takes anything before:
//
//	Lines ─▶ key ─▶ Line ─▶ first ─▶ second ─▶ … ─▶ last        in the order of tickets
//	                           └─ joined ─▶ same name, same call    answered as the first, whose place they inherit
//
// A Room's own lock is for finding waiters. All that changes one, or a Line, needs the lock under which the store keeps them.
package waiting
