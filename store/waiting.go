package store

import (
	"bytes"
	"errors"
	"math"
	"time"

	"celld/cell"
)

// Errors of Take on Terms. Nothing has been spent, and nobody waits.
var (
	ErrNotBookable    = errors.New("a limit that cannot be booked ahead")
	ErrTooManyWaiters = errors.New("too many callers wait already")
)

// Reasons for Leave.
var (
	ErrRefused   = errors.New("refused")   // no error to the caller: it is answered as one that is denied
	ErrUnblocked = errors.New("unblocked") // is the call's Err
)

// errWaits says that the call waits, and is the queue's from now on.
var errWaits = errors.New("the call waits")

// turn is on whose behalf a call is decided.
type turn struct {
	waker  Waker   // of a new call that may wait; nil: it may not
	waiter *waiter // whose turn has come; nil: it is a new call
}

// first reports whether the call comes before all of a queue.
func (t turn) first(q *queue) bool { return t.waiter != nil && t.waiter.ticket <= q.first.ticket }

// waitNS is how long this limit has a call wait, at nowNS: 0 if it does not.
func (c *Call) waitNS(nowNS, cost int64) uint64 {
	switch {
	case c.ruled || c.Limit.Shadow:
		return 0
	case c.ahead != nil:
		return c.ahead.waitNS(c, nowNS, cost*c.times)
	}
	return c.Limit.Forecast(&c.st, c.sh.timeOf(c.Limit, nowNS), cost*c.times)
}

// surelyNS is how much of a call's wait is sure, whatever leases are released meanwhile.
func (c *Call) surelyNS(nowNS, cost int64, waitNS uint64) uint64 {
	l := c.Limit
	if waitNS == 0 || l.Algo == cell.Conc {
		return 0
	}
	_, p := c.companion()
	if p == nil {
		return waitNS
	}
	held := c.sh.tallies.state(p)
	if l.Algo != cell.GCRA && l.Algo != cell.Warmup { // what flows back is not known as easily
		if cell.Leased(&held) > 0 {
			return 0
		}
		return waitNS
	}
	was := c.st
	l.Give(&c.st, c.sh.timeOf(l, nowNS), cell.Leased(&held))
	waitNS = c.waitNS(nowNS, cost)
	c.st = was
	return waitNS
}

// standBehind makes the decision of a call that of one behind the queue.
func (c *Call) standBehind(nowNS, cost int64) {
	d := &c.Decision
	d.Remaining = 0
	if cost == 0 {
		return
	}
	wait := c.ahead.waitNS(c, nowNS, cost*c.times)
	if d.Limited {
		wait = max(wait, d.RetryAfterNS)
	}
	d.Limited, d.RetryAfterNS = true, wait
}

// delay has a denied call wait, or book ahead, as its terms say. It returns errWaits for a call that waits, and booked for one
// that is to take at once what it will use when WaitNS has passed. Else the call stays denied.
func (s *Store) delay(r *TakeRequest, cost int64, a Access, paid *prepaid, by turn) (booked bool, err error) {
	if err := s.adopt(r.Calls, a, paid); err != nil {
		return false, err
	}
	var longest, known uint64
	binding, behind := -1, false
	for i := range r.Calls {
		c := &r.Calls[i]
		wait := c.waitNS(a.NowNS, cost)
		if wait == cell.Never {
			return false, nil
		}
		if wait > 0 && wait >= longest {
			longest, binding = wait, i
		}
		if by.waiter == nil && r.Terms.Mode == Wait {
			wait = c.surelyNS(a.NowNS, cost, wait)
		}
		known = max(known, wait)
		behind = behind || c.ahead != nil
	}
	terms := r.Terms
	if binding < 0 {
		return false, nil
	}
	if by.waiter != nil {
		by.waiter.keepOthers(&r.Calls[binding], a.NowNS, longest, cost)
		by.waiter.goTo(&r.Calls[binding], a.NowNS, longest, cost)
		return false, errWaits
	}
	var first *waiter
	if terms.Mode == Wait && by.waker != nil {
		first = r.sameThatWaits()
	}
	switch {
	case first != nil:
	case known > uint64(max(terms.MaxNS, 0)):
		return false, nil
	case terms.Mode == Reserve && behind && terms.LeaseNS > 0: // what it would hold has not been taken yet
		return false, nil
	case terms.Mode == Reserve:
		return true, s.reserveBehind(r, cost, a, longest)
	case by.waker == nil:
		return false, nil
	}
	return false, s.enqueue(r, &r.Calls[binding], first, a, by.waker, longest, cost)
}

// adopt stores the states that were carried over, as a denied call does: carried over anew at each look, they would never pass.
func (s *Store) adopt(calls []Call, a Access, paid *prepaid) error {
	var more need
	for i := range calls {
		c := &calls[i]
		c.changes, c.blocks, c.adopts = false, false, c.carried && !c.ruled
		if c.adopts {
			more.add(c.needs(calls[:i], a.NowNS))
		}
	}
	if !paid.claim(more) {
		return errNoRoom
	}
	for i := range calls {
		if c := &calls[i]; c.adopts {
			c.change(calls[:i], 0, cell.Take, a.NowNS)
			c.settle(false, a.NowNS)
			c.carried = false
		}
	}
	return nil
}

// newWaiter is one that is in no queue yet. The error is ErrTooManyWaiters. A reservation always finds a place: its caller has been
// told a time.
func (s *Store) newWaiter(r *TakeRequest, a Access, w Waker) (*waiter, error) {
	switch {
	case w == nil:
		s.waiting.held.Add(1)
	case !addUpTo(&s.waiting.held, 1, s.waiting.most.Load()):
		return nil, ErrTooManyWaiters
	default:
		s.waiting.callers.Add(1)
	}
	return &waiter{store: s, request: r, waker: w, access: a, ticket: s.waiting.tickets.Add(1), deadlineNS: math.MaxInt64}, nil
}

// enqueue has a new call wait for one of its limits, or with one that waits for the same.
func (s *Store) enqueue(r *TakeRequest, c *Call, first *waiter, a Access, waker Waker, waitNS uint64, cost int64) error {
	version := s.PoliciesVersion()
	names, changed, err := s.policiesOf(r.Calls)
	if err != nil {
		return err
	}
	w, err := s.newWaiter(r, a, waker)
	if err != nil {
		return err
	}
	w.policies, w.version = names, version
	for i := range r.Calls {
		w.locks |= s.shardSetOf(r.Calls[i].hash)
		r.Calls[i].Key = bytes.Clone(r.Calls[i].Key)
	}
	w.deadlineNS = a.NowNS + min(r.Terms.MaxNS, math.MaxInt64-a.NowNS)
	r.Terms.waiter = w
	if first != nil {
		w.join(first)
	} else {
		w.goTo(c, a.NowNS, waitNS, cost)
		w.makeKnown()
	}
	if changed {
		w.version = math.MaxUint64
	}
	if changed && first == nil {
		w.queue.poke(a.NowNS)
	}
	w.timer = time.AfterFunc(time.Duration(max(w.deadlineNS-s.now(), 0)), w.expire)
	return errWaits
}

// goTo has a waiter wait for a state, in its queue, for waitNS at least.
func (w *waiter) goTo(c *Call, nowNS int64, waitNS uint64, cost int64) {
	s := w.store
	q := c.sh.queueOf(c)
	if q == nil || q != w.queue {
		if was := w.queue; was != nil {
			was.remove(s, w, nowNS)
			was.ahead.stale = true
		}
		if q == nil {
			q = s.newQueue(c)
			q.ahead.stale = true
		}
		if q.last == nil || q.last.ticket < w.ticket {
			q.book(c, nowNS, cost*c.times)
		} else {
			q.ahead.stale = true
		}
		q.insert(w, cost*c.times)
	}
	if q.first == w {
		q.setTimer(s, min(nowNS+int64(min(waitNS, uint64(math.MaxInt64-1-nowNS))), c.nextDueNS()))
	}
}

// reserveBehind has reservations stand in the queues that the call stands behind. Each is spent when its turn comes. The call
// itself then takes what it asks of the others.
func (s *Store) reserveBehind(r *TakeRequest, cost int64, a Access, waitNS uint64) error {
	behind := int64(0)
	for i := range r.Calls {
		if c := &r.Calls[i]; c.books(r.Calls[i+1:]) && c.ahead != nil {
			behind++
		}
	}
	if behind > 0 && s.waiting.held.Load()+behind > s.waiting.most.Load() {
		return ErrTooManyWaiters
	}
	r.Terms.WaitNS = waitNS
	return nil
}

// standIn is the reservation of a call behind a queue.
func (c *Call) standIn(s *Store, cost int64, a Access) {
	key := bytes.Clone(c.Key)
	r := &TakeRequest{Calls: []Call{{Key: key, Limit: c.Limit, Policy: c.Policy}}, TakeOptions: TakeOptions{Cost: cost * c.times}}
	names, _, err := s.policiesOf(r.Calls)
	if err != nil {
		return
	}
	w, err := s.newWaiter(r, a, nil)
	if err != nil {
		return
	}
	w.policies, w.version, w.locks = names, math.MaxUint64, s.start(&r.Calls[0])
	c.ahead.book(c, a.NowNS, cost*c.times)
	c.ahead.insert(w, cost*c.times)
}

// books reports whether a call that is booked takes from its state itself. Of several that share it the last does, for all.
func (c *Call) books(after []Call) bool {
	for i := range after {
		if b := &after[i]; !b.ruled && b.sameKey(c) && b.sharesState(c) {
			return false
		}
	}
	return !c.ruled && !c.Limit.Shadow
}

// serve has those take whose moment has come.
func (s *Store) serve(q *queue) {
	for s.serveSome(q) {
	}
}

// serveSome serves a few, all under the same locks, and reports whether there are more to look at.
func (s *Store) serveSome(q *queue) (more bool) {
	now := s.now()
	q.sh.lock(now)
	w := q.first
	q.dueNS = notDue
	q.sh.unlock()
	if w == nil {
		return false
	}
	paid := prepaid{store: s, shard: q.sh}
	locks := w.locks
	err := paid.run(locks, now, func() (err error) {
		more = false
		for range perLock {
			if w = q.first; w == nil {
				return nil
			}
			if more = w.locks != locks; more {
				return nil
			}
			if more, err = s.serveFirst(q, now, &paid); !more || err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil { // there is no room
		s.lockAll(w.locks, now)
		defer s.unlockAll(w.locks)
		if w.queue != nil {
			w.answer(Taken{}, err, now)
		}
		return true
	}
	return more
}

// serveFirst has the first of a queue take, if its moment has come, and reports whether the next is to be looked at. All its
// shards are locked. The error is errNoRoom.
func (s *Store) serveFirst(q *queue, nowNS int64, paid *prepaid) (next bool, err error) {
	w := q.first
	if !w.refresh() {
		w.answer(Taken{}, ErrNoPolicy, nowNS)
		return true, nil
	}
	if q.keeps(nowNS) {
		q.setTimer(s, q.keptUntil)
		return false, nil
	}
	at := nowNS
	if c := &w.request.Calls[0]; len(w.request.Calls) == 1 && q.is(c) {
		if at = q.momentNS(c, w); c.carried {
			at = nowNS
		} else if at > nowNS {
			q.setTimer(s, at)
			return false, nil
		} else if at > w.deadlineNS {
			return false, nil // it is about to be refused
		}
	}
	q.quiet = true
	a := w.access
	a.NowNS = at
	t, err := s.takeLocked(w.request, a, paid, turn{waiter: w})
	q.quiet = false
	switch err {
	case errNoRoom:
		return false, err
	case errWaits:
		return w.queue != q && q.first != nil, nil
	}
	w.answer(t, err, at)
	return true, nil
}

// momentNS is when a call of one limit passes, that is the first of its queue, or may pass as a lease flows back.
func (q *queue) momentNS(c *Call, w *waiter) int64 {
	from := max(w.access.NowNS, q.seenNS)
	if c.carried = false; c.Limit.Shadow || c.ruledBy(w.store, from) {
		return from
	}
	c.n, c.e = c.sh.meet(c.hash, c.Key, Access{NowNS: from, NoTouch: true})
	if c.e != nil && !c.e.holdsLimits() {
		return from
	}
	c.findTally()
	c.fetch(from)
	wait := c.Limit.Forecast(&c.st, c.sh.timeOf(c.Limit, from), w.cost)
	if wait == cell.Never {
		return from
	}
	return max(from, min(from+int64(min(wait, uint64(math.MaxInt64-1-from))), c.nextDueNS()))
}

func (c *Call) ruledBy(s *Store, nowNS int64) bool {
	return s.HasRules() && s.Rule(c.Key, nowNS) != nil
}

// answer ends a wait. It is over at nowNS.
func (w *waiter) answer(t Taken, err error, nowNS int64) {
	w.leave(nowNS)
	joined := w.joined
	w.joined = nil
	for _, j := range joined {
		j.tellJoined(w.request, t, err)
	}
	w.tell(t, err)
}

// leave takes a waiter out of its queue, and of the store.
func (w *waiter) leave(nowNS int64) {
	w.queue.remove(w.store, w, nowNS)
	if calls := w.request.Calls; len(calls) > 1 {
		for i := range calls {
			if q := calls[i].sh.queueOf(&calls[i]); q != nil && q.kept == w {
				q.poke(nowNS)
			}
		}
	}
	w.makeUnknown()
	w.gone()
}

// gone notes that a waiter waits no longer.
func (w *waiter) gone() {
	w.store.waiting.held.Add(-1)
	if w.waker != nil {
		w.store.waiting.callers.Add(-1)
	}
	if w.timer != nil {
		w.timer.Stop()
	}
}

// goAway is leave of one whose turn has not come, and reports whether it still waited. All its shards are locked.
func (w *waiter) goAway(nowNS int64) bool {
	if w.with != nil {
		w.part()
		w.gone()
		return true
	}
	q := w.queue
	if q == nil {
		return false
	}
	if w.handOver() {
		w.gone()
		return true
	}
	wasFirst := q.first == w
	w.leave(nowNS)
	q.ahead.stale = true
	if wasFirst && q.first != nil {
		q.poke(nowNS)
	}
	return true
}

// expire is what a waiter's timer calls at its deadline.
func (w *waiter) expire() {
	s := w.store
	s.lockAll(w.locks, 0)
	q, early := w.queue, w.deadlineNS-s.now()
	if w.with != nil {
		q = w.with.queue
	}
	if q != nil && early > 0 {
		w.timer.Reset(time.Duration(early))
	}
	s.unlockAll(w.locks)
	if q == nil || early > 0 {
		return
	}
	s.serve(q) // its moment may have come together with its deadline
	s.refuse(w, w.deadlineNS)
}

// refuse answers a waiter as a call that does not wait.
func (s *Store) refuse(w *waiter, nowNS int64) bool {
	r, waited := w.request, false
	paid := prepaid{store: s}
	var t Taken
	err := paid.run(w.locks, nowNS, func() (err error) {
		if waited = waited || w.goAway(nowNS); !waited {
			return nil
		}
		paid.shard = r.Calls[0].sh
		if !w.refresh() {
			return ErrNoPolicy
		}
		a := w.access
		a.NowNS = nowNS
		r.Terms.Mode = DontWait
		t, err = s.takeLocked(r, a, &paid, turn{})
		r.Terms.Mode = Wait
		return err
	})
	if waited {
		r.Taken, r.Err = t, err
		w.waker.Wake()
	}
	return waited
}

// Leave ends the wait of a request for which TakeBatch has returned false, and reports whether it still waited. With nil its caller
// has gone: it is not answered, and its Waker is not woken. With ErrRefused it is answered as a call that does not wait, and with
// another error it is answered with that.
func (s *Store) Leave(r *TakeRequest, why error) bool {
	if r.Terms == nil || r.Terms.waiter == nil {
		return false
	}
	w, now := r.Terms.waiter, s.now()
	if why == ErrRefused {
		return s.refuse(w, now)
	}
	s.lockAll(w.locks, now)
	defer s.unlockAll(w.locks)
	if !w.goAway(now) {
		return false
	}
	if why != nil {
		r.Taken, r.Err = Taken{}, why
		w.waker.Wake()
	}
	return true
}

// bookable reports whether all calls can be booked ahead.
func bookable(calls []Call) bool {
	for i := range calls {
		if !calls[i].Limit.Bookable() {
			return false
		}
	}
	return true
}

// wasBooked lets reservations wait for the states that are waited for, and makes the decisions those of calls that are granted.
func (s *Store) wasBooked(calls []Call, cost int64, a Access) {
	for i := range calls {
		c := &calls[i]
		if c.booked && c.ahead != nil {
			c.standIn(s, cost, a)
		}
		if !c.ruled && !c.Limit.Shadow {
			c.Decision.Limited, c.Decision.RetryAfterNS = false, cell.Never
		}
	}
}
