package memory

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
type queue struct {
	waiting.Line[*waiter]
	sh     *shard
	hash   uint64
	key    string
	policy uint32     // Policy.ID; 0: of literals
	shape  cell.Shape // of literals

	cost   int64 // of all waiters
	seenNS int64 // nobody who waits can have passed before
	timer  *time.Timer
	dueNS  int64 // of the timer; 0: at once, notDue: it is not set
	now    func() int64
	quiet  bool // its first is being served: what that changes pokes nobody

	kept      *waiter // in another queue, for which those with later tickets leave this state alone
	keptUntil int64

	ahead forecast
}

const notDue = math.MaxInt64

// waiter is a call that waits, or a reservation behind such calls: that has been answered, and takes when its turn comes.
type waiter struct {
	waiting.Waiter[*waiter]
	locks      shardSet
	deadlineNS int64

	queue *queue // nil: it waits no longer, or with another
	cost  int64  // of its queue's state
}

// queueOf is the queue of a call's state, nil if nobody waits for it.
func (sh *shard) queueOf(c *store.Call) *queue {
	if len(sh.waited.OfKey) == 0 {
		return nil
	}
	for _, q := range sh.waited.OfKey[string(c.Key)] {
		if q.is(c) {
			return q
		}
	}
	return nil
}

// is reports whether a call of the queue's key shares its state.
func (q *queue) is(c *store.Call) bool {
	return c.Policy == q.policy && (c.Policy != 0 || c.Limit.Shape == q.shape)
}

// newQueue makes the queue of the state of a call whose key has that hash. serve is called when it is to be looked at.
func (sh *shard) newQueue(c *store.Call, hash uint64, now func() int64, serve func(*queue)) *queue {
	q := &queue{sh: sh, hash: hash, key: string(c.Key), policy: c.Policy, shape: c.Limit.Shape, dueNS: notDue, now: now}
	q.spoil()
	q.timer = time.AfterFunc(math.MaxInt64, func() { serve(q) })
	if sh.waited.Add(q.key, q) {
		q.flagWaited(table.FlagWaited)
	}
	return q
}

// spoil notes that the forecast is not right any more.
func (q *queue) spoil() { q.ahead.stale = true }

// rang notes that the timer has come.
func (q *queue) rang() { q.dueNS = notDue }

// keepsFor reports whether the state is left alone for a waiter in another queue.
func (q *queue) keepsFor(w *waiter) bool { return q.kept == w }

// keepFor leaves the state alone for a waiter in another queue until it has waited, and for so much longer, unless it is for one with an
// earlier ticket already.
func (q *queue) keepFor(w *waiter, nowNS int64, waitNS, moreNS uint64) {
	if !q.keeps(nowNS) || q.kept.Ticket >= w.Ticket {
		q.kept, q.keptUntil = w, int64(laterNS(int64(laterNS(nowNS, int64(waitNS))), int64(moreNS)))
	}
}

// drop removes a queue in which nobody waits.
func (q *queue) drop() {
	q.timer.Stop()
	if q.sh.waited.Remove(q.key, q) {
		q.flagWaited(0)
	}
}

// flagWaited sets the flag of the key's slot, if the key is there.
func (q *queue) flagWaited(value uint64) {
	if _, e := q.sh.Slot(q.hash, []byte(q.key)); e != nil {
		e.SetInfo(table.FlagWaited, value)
	}
}

func (q *queue) insert(w *waiter, cost int64) {
	w.queue, w.cost = q, cost
	q.cost += cost
	q.Insert(w, 0)
}

// remove takes a waiter out, and drops the queue with the last one. After its first the next is looked at from nowNS on.
func (q *queue) remove(w *waiter, nowNS int64) {
	if q.Remove(w) == 0 {
		q.seenNS = max(q.seenNS, nowNS)
	}
	w.queue = nil
	if q.cost -= w.cost; len(q.Waiters) == 0 {
		q.drop()
	}
}

// replace puts another waiter in the place of one.
func (q *queue) replace(w, by *waiter) {
	q.Waiters[q.Index(w)] = by
	by.queue, by.cost, w.queue = q, w.cost, nil
}

// poke has the first looked at again at once, as something has changed at nowNS.
func (q *queue) poke(nowNS int64) {
	if q.quiet {
		return
	}
	q.seenNS = max(q.seenNS, nowNS)
	q.spoil()
	if q.dueNS != 0 {
		q.dueNS = 0
		q.timer.Reset(0)
	}
}

// setTimer has the queue served at an instant. A poke is not put off.
func (q *queue) setTimer(atNS int64) {
	if q.dueNS != 0 && q.dueNS != atNS {
		q.dueNS = atNS
		q.timer.Reset(time.Duration(max(atNS-q.now(), 0)))
	}
}

// pokeKey pokes the queues of a key.
func (sh *shard) pokeKey(key []byte, nowNS int64) {
	for _, q := range sh.waited.OfKey[string(key)] {
		q.poke(nowNS)
	}
}

// pokeAll pokes the shard's queues.
func (sh *shard) pokeAll(nowNS int64) {
	for _, of := range sh.waited.OfKey {
		for _, q := range of {
			q.poke(nowNS)
		}
	}
}

// keeps reports whether the first leaves the state alone for another.
func (q *queue) keeps(nowNS int64) bool {
	if q.kept == nil {
		return false
	}
	if q.kept.queue == nil || q.kept.queue == q || q.keptUntil <= nowNS {
		q.kept = nil
		q.seenNS = max(q.seenNS, min(nowNS, q.keptUntil)) // nobody takes in what was idle
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

// waitNS is how long a call of a limit has to wait behind the queue, at least 1 ns; Never if it never passes. st is the state at nowNS.
// Where nothing can be booked it is what is known: until the first may pass, and until this call would without the others.
func (q *queue) waitNS(l *cell.Limit, st cell.State, nowNS, cost int64) uint64 {
	at := q.sh.TimeOf(l, nowNS)
	switch {
	case !l.Bookable():
		first := uint64(0)
		if q.dueNS != notDue && q.dueNS > nowNS {
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
func (q *queue) bookAll(l *cell.Limit, st cell.State, at int64) {
	f := &q.ahead
	if !f.stale && f.limit.Shape == l.Shape && f.limit.Params == l.Params {
		return
	}
	if f.looks++; f.looks < len(q.Waiters)/looksPerBooking && f.limit != nil && f.limit.Shape == l.Shape {
		return
	}
	*f = forecast{st: st, limit: l}
	for _, w := range q.Waiters {
		f.limit.Book(&f.st, at, w.cost)
	}
}

// book notes that a call has come to the end of the queue.
func (q *queue) book(l *cell.Limit, st cell.State, nowNS, cost int64) {
	if l.Bookable() && !l.Additive() {
		at := q.sh.TimeOf(l, nowNS)
		q.bookAll(l, st, at)
		q.ahead.limit.Book(&q.ahead.st, at, cost)
	}
}

// laterNS is so many ns from now, or the last instant that a file can have.
func laterNS(nowNS, ns int64) uint64 { return uint64(nowNS + min(ns, math.MaxInt64-nowNS)) }
