package memory

import (
	"errors"
	"math"
	"time"

	"celld/cell"
	"celld/store"
)

// errWaits says that the call waits, and is the queue's from now on.
var errWaits = errors.New("the call waits")

// turn is on whose behalf a call is decided.
type turn struct {
	waker  store.Waker // of a new call that may wait; nil: it may not
	waiter *waiter     // whose turn has come; nil: it is a new call
	look   *look       // of one that waits elsewhere
}

// look is what is asked of a call that may wait elsewhere.
type look struct {
	aheadNS uint64
	binding int    // out
	againNS uint64 // out
}

// first reports whether the call comes before all of a queue.
func (t turn) first(q *queue) bool { return t.waiter != nil && t.waiter.Ticket <= q.First().Ticket }

// waitNS is how long this limit has a call wait, at nowNS: 0 if it does not.
func (c *call) waitNS(nowNS, cost int64) uint64 {
	switch {
	case c.Ruled || c.Limit.Shadow:
		return 0
	case c.ahead != nil:
		return c.ahead.waitNS(c, nowNS, cost*c.times)
	}
	return c.Limit.Forecast(&c.st, c.sh.TimeOf(c.Limit, nowNS), cost*c.times)
}

// surelyNS is how much of a call's wait is sure, whatever leases are released meanwhile.
func (c *call) surelyNS(nowNS, cost int64, waitNS uint64) uint64 {
	l := c.Limit
	if waitNS == 0 || l.HoldsLeases() {
		return 0
	}
	_, p := c.companion()
	if p == nil {
		return waitNS
	}
	held := c.sh.Tallies.State(p)
	if !l.Additive() { // what flows back is not known as easily
		if cell.Leased(&held) > 0 {
			return 0
		}
		return waitNS
	}
	was := c.st
	l.Give(&c.st, c.sh.TimeOf(l, nowNS), cell.Leased(&held))
	waitNS = c.waitNS(nowNS, cost)
	c.st = was
	return waitNS
}

// standBehind makes the decision of a call that of one behind the queue.
func (c *call) standBehind(nowNS, cost int64) {
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
func (s *Store) delay(r *pending, cost int64, a store.Access, paid *prepaid, by turn) (booked bool, err error) {
	if err := s.adopt(r.calls, a, paid); err != nil {
		return false, err
	}
	var longest, known uint64
	binding, behind := -1, false
	for i := range r.calls {
		c := &r.calls[i]
		wait := c.waitNS(a.NowNS, cost)
		if wait == cell.Never {
			return false, nil
		}
		if wait > 0 && wait >= longest {
			longest, binding = wait, i
		}
		if by.waiter == nil && r.Terms.Mode == store.Wait {
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
		by.waiter.keepOthers(&r.calls[binding], a.NowNS, longest, cost)
		by.waiter.goTo(&r.calls[binding], a.NowNS, longest, cost)
		return false, errWaits
	}
	var first *waiter
	if terms.Mode == store.Wait && by.waker != nil {
		first = s.waits.Same(r.TakeRequest)
	}
	switch {
	case first != nil:
	case known > uint64(max(terms.MaxNS, 0)):
		return false, nil
	case by.look != nil:
		return by.look.wait(r, binding, a.NowNS, longest)
	case terms.Mode == store.Reserve && behind && terms.LeaseNS > 0: // what it would hold has not been taken yet
		return false, nil
	case terms.Mode == store.Reserve:
		return true, s.reserveBehind(r, cost, a, longest)
	case by.waker == nil:
		return false, nil
	}
	return false, s.enqueue(r, &r.calls[binding], first, a, by.waker, longest, cost)
}

// adopt stores the states that were carried over, as a denied call does: carried over anew at each look, they would never pass.
func (s *Store) adopt(calls []call, a store.Access, paid *prepaid) error {
	var more need
	for i := range calls {
		c := &calls[i]
		c.changes, c.blocks, c.adopts = false, false, c.carried && !c.Ruled
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

// newWaiter is one that is in no queue yet: see waiting.Room.Enter.
func (s *Store) newWaiter(r *pending, a store.Access, waker store.Waker) (w *waiter, changed bool, err error) {
	w = &waiter{store: s, asked: r, deadlineNS: math.MaxInt64}
	w.Request, w.Calls, w.Access, w.Waker = r.TakeRequest, r.Calls, a, waker
	for i := range r.calls {
		w.locks |= s.shardSetOf(r.calls[i].hash)
	}
	changed, err = s.waits.Enter(w)
	return w, changed, err
}

// enqueue has a new call wait for one of its limits, or with one that waits for the same.
func (s *Store) enqueue(r *pending, c *call, first *waiter, a store.Access, waker store.Waker, waitNS uint64, cost int64) error {
	w, changed, err := s.newWaiter(r, a, waker)
	if err != nil {
		return err
	}
	w.deadlineNS = a.NowNS + min(r.Terms.MaxNS, math.MaxInt64-a.NowNS)
	if first != nil {
		s.waits.Join(w, first)
	} else {
		w.goTo(c, a.NowNS, waitNS, cost)
		s.waits.Know(w)
		if changed {
			w.queue.poke(a.NowNS)
		}
	}
	w.Timer = time.AfterFunc(time.Duration(max(w.deadlineNS-s.now(), 0)), w.expire)
	return errWaits
}

// goTo has a waiter wait for a state, in its queue, for waitNS at least.
func (w *waiter) goTo(c *call, nowNS int64, waitNS uint64, cost int64) {
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
		if len(q.Waiters) == 0 || q.Waiters[len(q.Waiters)-1].Ticket < w.Ticket {
			q.book(c, nowNS, cost*c.times)
		} else {
			q.ahead.stale = true
		}
		q.insert(w, cost*c.times)
	}
	if q.First() == w {
		q.setTimer(s, min(nowNS+int64(min(waitNS, uint64(math.MaxInt64-1-nowNS))), c.nextDueNS()))
	}
}

// wait has a call wait elsewhere, or books it.
func (l *look) wait(r *pending, binding int, nowNS int64, waitNS uint64) (booked bool, err error) {
	r.Terms.WaitNS = waitNS
	if waitNS <= l.aheadNS && bookable(r.calls) {
		return true, nil
	}
	l.binding, l.againNS = binding, min(waitNS, uint64(max(r.calls[binding].nextDueNS()-nowNS, 0)))
	return false, errWaits
}
