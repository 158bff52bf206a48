package shard

import (
	"math"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
	"celld/store/waiting"
)

// Those who wait for a state stand in its queue, first come first served, and take nothing before their turn. A queue belongs to
// the shard of its key, and not to its slot: so it outlives the key.
//
//	queue ─▶ first waiter ─▶ … ─▶ last       timer: at the first's moment, the queue is served
//
// The first of a queue takes at the moment at which its call passes, whenever the timer comes: a timer that is late costs no
// rate. Until somebody waits no longer, a call that comes later is denied, as if all who wait had taken already. Whatever may
// have changed the moment pokes the queue: then the first is looked at again.
//
// A call of several limits stands in the queue of the one that it waits for longest. When that passes, it asks all of them, and
// if another denies it goes to that one's queue, to the place of its ticket. It holds nothing meanwhile. So nobody waits for one
// with a later ticket, and there is no deadlock.
type Queue struct {
	waiting.Line[*Waiter]
	Sh     *Shard
	hash   uint64
	key    string
	policy uint32     // Policy.ID; 0: of literals
	shape  cell.Shape // of literals

	cost   int64 // of all waiters
	SeenNS int64 // nobody who waits can have passed before
	timer  *time.Timer
	dueNS  int64 // of the timer; 0: at once, notDue: it is not set
	now    func() int64
	Quiet  bool // its first is being served: what that changes pokes nobody

	kept      *Waiter // in another queue, for which those with later tickets leave this state alone
	KeptUntil int64

	ahead forecast
}

const NotDue = math.MaxInt64

// Waiter is a call that waits, or a reservation behind such calls: that has been answered, and takes when its turn comes.
type Waiter struct {
	waiting.Waiter[*Waiter]
	Locks      ShardSet
	DeadlineNS int64

	Queue *Queue // nil: it waits no longer, or with another
	Cost  int64  // of its queue's state
}

// QueueOf is the queue of a call's state, nil if nobody waits for it.
func (sh *Shard) QueueOf(c *store.Call) *Queue {
	if len(sh.waited.OfKey) == 0 {
		return nil
	}
	for _, q := range sh.waited.OfKey[string(c.Key)] {
		if q.Is(c) {
			return q
		}
	}
	return nil
}

// Is reports whether a call of the queue's key shares its state.
func (q *Queue) Is(c *store.Call) bool {
	return c.Policy == q.policy && (c.Policy != 0 || c.Limit.Shape == q.shape)
}

// NewQueue makes the queue of the state of a call whose key has that hash. serve is called when it is to be looked at.
func (sh *Shard) NewQueue(c *store.Call, hash uint64, now func() int64, serve func(*Queue)) *Queue {
	q := &Queue{Sh: sh, hash: hash, key: string(c.Key), policy: c.Policy, shape: c.Limit.Shape, dueNS: NotDue, now: now}
	q.Spoil()
	q.timer = time.AfterFunc(math.MaxInt64, func() { serve(q) })
	if sh.waited.Add(q.key, q) {
		q.flagWaited(table.FlagWaited)
	}
	return q
}

// Spoil notes that the forecast is not right any more.
func (q *Queue) Spoil() { q.ahead.stale = true }

// Rang notes that the timer has come.
func (q *Queue) Rang() { q.dueNS = NotDue }

// KeepsFor reports whether the state is left alone for a waiter in another queue.
func (q *Queue) KeepsFor(w *Waiter) bool { return q.kept == w }

// KeepFor leaves the state alone for a waiter in another queue until it has waited, and for so much longer, unless it is for one with an
// earlier ticket already.
func (q *Queue) KeepFor(w *Waiter, nowNS int64, waitNS, moreNS uint64) {
	if !q.Keeps(nowNS) || q.kept.Ticket >= w.Ticket {
		q.kept, q.KeptUntil = w, int64(LaterNS(int64(LaterNS(nowNS, int64(waitNS))), int64(moreNS)))
	}
}

// drop removes a queue in which nobody waits.
func (q *Queue) drop() {
	q.timer.Stop()
	if q.Sh.waited.Remove(q.key, q) {
		q.flagWaited(0)
	}
}

// flagWaited sets the flag of the key's slot, if the key is there.
func (q *Queue) flagWaited(value uint64) {
	if _, e := q.Sh.Slot(q.hash, []byte(q.key)); e != nil {
		e.SetInfo(table.FlagWaited, value)
	}
}

func (q *Queue) Add(w *Waiter, cost int64) {
	w.Queue, w.Cost = q, cost
	q.cost += cost
	q.Insert(w, 0)
}

// TakeOut takes a waiter out, and drops the queue with the last one. After its first the next is looked at from nowNS on.
func (q *Queue) TakeOut(w *Waiter, nowNS int64) {
	if q.Remove(w) == 0 {
		q.SeenNS = max(q.SeenNS, nowNS)
	}
	w.Queue = nil
	if q.cost -= w.Cost; len(q.Waiters) == 0 {
		q.drop()
	}
}

// Replace puts another waiter in the place of one.
func (q *Queue) Replace(w, by *Waiter) {
	q.Waiters[q.Index(w)] = by
	by.Queue, by.Cost, w.Queue = q, w.Cost, nil
}

// Poke asks for a look at the first at once, as something has changed at nowNS.
func (q *Queue) Poke(nowNS int64) {
	if q.Quiet {
		return
	}
	q.SeenNS = max(q.SeenNS, nowNS)
	q.Spoil()
	if q.dueNS != 0 {
		q.dueNS = 0
		q.timer.Reset(0)
	}
}

// SetTimer sets when the queue is served. A poke is not put off.
func (q *Queue) SetTimer(atNS int64) {
	if q.dueNS != 0 && q.dueNS != atNS {
		q.dueNS = atNS
		q.timer.Reset(time.Duration(max(atNS-q.now(), 0)))
	}
}

// PokeKey pokes the queues of a key.
func (sh *Shard) PokeKey(key []byte, nowNS int64) {
	for _, q := range sh.waited.OfKey[string(key)] {
		q.Poke(nowNS)
	}
}

// pokeAll pokes the shard's queues.
func (sh *Shard) pokeAll(nowNS int64) {
	for _, of := range sh.waited.OfKey {
		for _, q := range of {
			q.Poke(nowNS)
		}
	}
}

// Keeps reports whether the first leaves the state alone for another.
func (q *Queue) Keeps(nowNS int64) bool {
	if q.kept == nil {
		return false
	}
	if q.kept.Queue == nil || q.kept.Queue == q || q.KeptUntil <= nowNS {
		q.kept = nil
		q.SeenNS = max(q.SeenNS, min(nowNS, q.KeptUntil)) // nobody takes in what was idle
		return false
	}
	return len(q.Waiters) == 0 || q.kept.Ticket < q.First().Ticket
}

// forecast is a state in which all who wait for a window have been booked. Windows need it, as the rest of one that is too small
// for the next call goes to waste. What buckets and warm-ups owe is just the sum of what all wait for.
type forecast struct {
	st    cell.State
	limit *cell.Limit
	stale bool // somebody left, or the state has changed
	looks int  // since it was stale
}

// looksPerBooking is for how many waiters a look may book anew. So a queue of a thousand whose middle leaves is booked anew once
// in 64 looks, and meanwhile its waits are told too long.
const looksPerBooking = 16

// WaitNS is how long a call of a limit has to wait behind the queue, at least 1 ns; Never if it never passes. st is the state at nowNS.
// Where nothing can be booked it is what is known: until the first may pass, and until this call would without the others.
func (q *Queue) WaitNS(l *cell.Limit, st cell.State, nowNS, cost int64) uint64 {
	at := q.Sh.TimeOf(l, nowNS)
	switch {
	case !l.Bookable():
		first := uint64(0)
		if q.dueNS != NotDue && q.dueNS > nowNS {
			first = uint64(q.dueNS - nowNS)
		}
		return max(l.Forecast(&st, at, cost), first, 1)
	case l.Additive():
		l.Decide(&st, int64(min(max(uint64(at), st.BlockedNS), math.MaxInt64)), q.cost, cell.Force)
	default:
		q.bookAll(l, st, at)
		st = q.ahead.st
	}
	return max(l.Forecast(&st, at, cost), 1)
}

// bookAll books all who wait anew, if the forecast is stale.
func (q *Queue) bookAll(l *cell.Limit, st cell.State, at int64) {
	f := &q.ahead
	if !f.stale && f.limit.Shape == l.Shape && f.limit.Params == l.Params {
		return
	}
	if f.looks++; f.looks < len(q.Waiters)/looksPerBooking && f.limit != nil && f.limit.Shape == l.Shape {
		return
	}
	*f = forecast{st: st, limit: l}
	for _, w := range q.Waiters {
		f.limit.Book(&f.st, at, w.Cost)
	}
}

// Book notes that a call has come to the end of the queue.
func (q *Queue) Book(l *cell.Limit, st cell.State, nowNS, cost int64) {
	if l.Bookable() && !l.Additive() {
		at := q.Sh.TimeOf(l, nowNS)
		q.bookAll(l, st, at)
		q.ahead.limit.Book(&q.ahead.st, at, cost)
	}
}

// LaterNS is so many ns from now, or the last instant that a file can have.
func LaterNS(nowNS, ns int64) uint64 { return uint64(nowNS + min(ns, math.MaxInt64-nowNS)) }
