package shard

import (
	"math"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
	"celld/store/waiting"
)

// Line holds those who wait for a state, first come first served. They take nothing before the moment at which they are first and pass.
// A line belongs to the shard of its key, not to the key's slot: so it outlives the key.
//
//	line ─▶ first waiter ─▶ … ─▶ last       timer: at the first's moment, the line is served
//
// The first of a line takes at the moment at which its call passes, whenever the timer fires: a late timer costs no rate. While somebody
// waits, a call that comes later is denied, as if all who wait had taken already. Whatever may have changed the moment pokes the line:
// then the first is looked at again.
//
// A call of several limits stands in the line of the limit that it waits for longest. When that passes, it asks all of them. If another
// denies it, it goes to the line of that one, to the place of its ticket. It holds nothing meanwhile. So nobody waits for a call with a
// later ticket, and there is no deadlock.
type Line struct {
	waiting.Line[*Waiter]
	Sh     *Shard
	hash   uint64
	key    string
	policy uint32     // Policy.ID; 0: of literals
	shape  cell.Shape // of literals

	cost        int64 // of all waiters
	NotBeforeNS int64 // nobody who waits can have passed before
	timer       *time.Timer
	timerNS     int64 // when the timer fires; 0: at once, NoTimer: never
	now         func() int64
	Quiet       bool // its first is being served: what that changes pokes nobody

	kept      *Waiter // in another line, for which those with later tickets leave this state alone
	KeptUntil int64

	ahead forecast
}

const NoTimer = math.MaxInt64

// Waiter is a call that waits, or a reservation behind such calls. A reservation has been answered, and takes when it is first.
type Waiter struct {
	waiting.Waiter[*Waiter]
	Locks      ShardSet
	DeadlineNS int64

	Line *Line // nil: it waits no longer, or with another
	Cost int64 // of its line's state
}

// LineOf is the line of a call's state, nil if nobody waits for it.
func (sh *Shard) LineOf(c *store.Call) *Line {
	if len(sh.waited.OfKey) == 0 {
		return nil
	}
	return sh.waited.Find(c.Key, func(q *Line) bool { return q.Is(c) })
}

// WaitingFor is how many callers wait for a call's state.
func (s *Shards) WaitingFor(c *store.Call) (n int64) {
	sh := s.ShardOf(s.Hash(c.Key))
	sh.Mu.Lock()
	defer sh.Unlock()
	if q := sh.LineOf(c); q != nil {
		n = q.Callers()
	}
	return n
}

// Is reports whether a call of the line's key shares its state.
func (q *Line) Is(c *store.Call) bool {
	return c.PolicyID() == q.policy && (c.Policy != nil || c.Limit.Shape == q.shape)
}

// NewLine makes the line of the state of a call whose key has that hash. It calls serve when its first may pass.
func (sh *Shard) NewLine(c *store.Call, hash uint64, now func() int64, serve func(*Line)) *Line {
	q := &Line{Sh: sh, hash: hash, key: string(c.Key), policy: c.PolicyID(), shape: c.Limit.Shape, timerNS: NoTimer, now: now}
	q.Spoil()
	q.timer = time.AfterFunc(math.MaxInt64, func() { serve(q) })
	if sh.waited.Add(q.key, q) {
		q.flagWaited(table.FlagWaited)
	}
	return q
}

// Spoil notes that the forecast is not right any more.
func (q *Line) Spoil() { q.ahead.stale = true }

// Rang notes that the timer has fired.
func (q *Line) Rang() { q.timerNS = NoTimer }

// KeepsFor reports whether the state is left alone for a waiter in another line.
func (q *Line) KeepsFor(w *Waiter) bool { return q.kept == w }

// KeepFor leaves the state alone for a waiter in another line for waitNS and moreNS, unless it does so already for one with an earlier
// ticket.
func (q *Line) KeepFor(w *Waiter, nowNS int64, waitNS, moreNS uint64) {
	if !q.Keeps(nowNS) || q.kept.Ticket >= w.Ticket {
		q.kept, q.KeptUntil = w, int64(LaterNS(int64(LaterNS(nowNS, int64(waitNS))), int64(moreNS)))
	}
}

// drop removes a line in which nobody waits.
func (q *Line) drop() {
	q.timer.Stop()
	if q.Sh.waited.Remove(q.key, q) {
		q.flagWaited(0)
	}
}

// flagWaited sets FlagWaited of the key's slot, if the key is there.
func (q *Line) flagWaited(value uint64) {
	if _, e := q.Sh.Slot(q.hash, []byte(q.key)); e != nil {
		e.SetInfo(table.FlagWaited, value)
	}
}

func (q *Line) Add(w *Waiter, cost int64) {
	w.Line, w.Cost = q, cost
	q.cost += cost
	q.Insert(w, 0)
}

// Withdraw takes a waiter out, and drops the line with its last one. If it was the first, the next is looked at from nowNS on.
func (q *Line) Withdraw(w *Waiter, nowNS int64) {
	if q.Remove(w) == 0 {
		q.NotBeforeNS = max(q.NotBeforeNS, nowNS)
	}
	w.Line = nil
	if q.cost -= w.Cost; len(q.Waiters) == 0 {
		q.drop()
	}
}

// Replace puts another waiter in the place of one.
func (q *Line) Replace(w, by *Waiter) {
	q.Line.Replace(w, by)
	by.Line, by.Cost, w.Line = q, w.Cost, nil
}

// Poke asks for a look at the first at once, as something has changed at nowNS.
func (q *Line) Poke(nowNS int64) {
	if q.Quiet {
		return
	}
	q.NotBeforeNS = max(q.NotBeforeNS, nowNS)
	q.Spoil()
	if q.timerNS != 0 {
		q.timerNS = 0
		q.timer.Reset(0)
	}
}

// SetTimer sets when the line is served. It does not put off a poke.
func (q *Line) SetTimer(atNS int64) {
	if q.timerNS != 0 && q.timerNS != atNS {
		q.timerNS = atNS
		q.timer.Reset(time.Duration(max(atNS-q.now(), 0)))
	}
}

// PokeKey pokes the lines of a key.
func (sh *Shard) PokeKey(key []byte, nowNS int64) {
	for _, q := range sh.waited.OfKey[string(key)] {
		q.Poke(nowNS)
	}
}

// pokeAll pokes the shard's lines.
func (sh *Shard) pokeAll(nowNS int64) {
	for _, q := range sh.waited.All() {
		q.Poke(nowNS)
	}
}

// Keeps reports whether the first leaves the state alone for another.
func (q *Line) Keeps(nowNS int64) bool {
	if q.kept == nil {
		return false
	}
	if q.kept.Line == nil || q.kept.Line == q || q.KeptUntil <= nowNS {
		q.kept = nil
		q.NotBeforeNS = max(q.NotBeforeNS, min(nowNS, q.KeptUntil)) // nobody takes in what was idle
		return false
	}
	return len(q.Waiters) == 0 || q.kept.Ticket < q.First().Ticket
}

// forecast is a state in which all who wait for a window are booked. Windows need it, as the rest of a window that is too small for the
// next call goes to waste. Buckets and warm-ups owe just the sum of what all wait for.
type forecast struct {
	st    cell.State
	limit *cell.Limit
	stale bool // somebody left, or the state has changed
	looks int  // since it was stale
}

// looksPerBooking is how many waiters there are for each look that does not book anew. So a line of a thousand whose middle leaves is
// booked anew once in 64 looks. Meanwhile callers are told waits that are too long.
const looksPerBooking = 16

// WaitNS is how long a call of a limit has to wait behind the line, at least 1 ns; Never if it never passes. st is the state at nowNS.
// If the limit cannot be booked, it is the time until the first may pass, or until this call would pass alone if that is longer.
func (q *Line) WaitNS(l *cell.Limit, st cell.State, nowNS, cost int64) uint64 {
	at := q.Sh.TimeOf(l, nowNS)
	switch {
	case !l.Bookable():
		first := uint64(0)
		if q.timerNS != NoTimer && q.timerNS > nowNS {
			first = uint64(q.timerNS - nowNS)
		}
		return max(l.Forecast(&st, at, cost), first, 1)
	case l.Additive():
		waiting.Owe(l, &st, at, q.cost)
	default:
		q.bookAll(l, st, at)
		st = q.ahead.st
	}
	return max(l.Forecast(&st, at, cost), 1)
}

// bookAll books all who wait anew, if the forecast is stale.
func (q *Line) bookAll(l *cell.Limit, st cell.State, at int64) {
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

// Book notes that a call has come to the end of the line.
func (q *Line) Book(l *cell.Limit, st cell.State, nowNS, cost int64) {
	if l.Bookable() && !l.Additive() {
		at := q.Sh.TimeOf(l, nowNS)
		q.bookAll(l, st, at)
		q.ahead.limit.Book(&q.ahead.st, at, cost)
	}
}

// LaterNS is so many ns from now, or the last instant that a file can have.
func LaterNS(nowNS, ns int64) uint64 { return uint64(nowNS + min(ns, math.MaxInt64-nowNS)) }
