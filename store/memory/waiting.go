package memory

import (
	"errors"
	"math"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
	"celld/store/waiting"
)

// errWaits says that the call waits, and belongs to a line from now on.
var errWaits = errors.New("the call waits")

// caller is for whom a call is decided.
type caller struct {
	waker     store.Waker   // of a new call that may wait; nil: it may not
	waiter    *shard.Waiter // the first of its line; nil: it is a new call
	elsewhere *lookahead    // of a call that may wait elsewhere
}

// lookahead is what TakeAhead asks of a call that may wait elsewhere.
type lookahead struct {
	aheadNS uint64
	binding int    // out
	againNS uint64 // out
}

// first reports whether the call comes before all of a line.
func (t caller) first(q *shard.Line) bool {
	return t.waiter != nil && t.waiter.Ticket <= q.First().Ticket
}

// Waiting is how many callers wait, and for how many keys.
func (s *takes) Waiting() (callers, keys int64) { return s.waits.Callers(), s.WaitedKeys() }

// SetMaxWaiters changes Options.MaxWaiters. Those who wait already stay.
func (s *takes) SetMaxWaiters(most int64) { s.waits.SetMost(most) }

// waitNS is how long a call has to wait for this limit, at nowNS: 0 if it does not.
func (c *call) waitNS(nowNS, cost int64) uint64 {
	switch {
	case c.paused != nil:
		return c.paused.LeftNS(nowNS)
	case c.Ruled || c.idle || c.Limit.Shadow:
		return 0
	case c.ahead != nil:
		return c.ahead.WaitNS(c.Limit, c.st, nowNS, c.total(cost))
	}
	return c.Limit.Forecast(&c.st, c.sh.TimeOf(c.Limit, nowNS), c.total(cost))
}

// surelyNS is how much of a call's wait is sure, whatever leases are released meanwhile.
func (c *call) surelyNS(nowNS, cost int64, waitNS uint64) uint64 {
	l := c.Limit
	switch {
	case c.paused != nil && c.paused.UntilNS != 0:
		return waitNS
	case waitNS == 0 || c.paused != nil || l.HoldsLeases():
		return 0
	}
	_, p := c.companion()
	if p == nil {
		return waitNS
	}
	held := c.sh.Limits.State(p)
	if !l.Additive() { // what flows back is not known as easily
		if held.Leases().Cost() > 0 {
			return 0
		}
		return waitNS
	}
	was := c.st
	l.Give(&c.st, c.sh.TimeOf(l, nowNS), held.Leases().Cost())
	waitNS = c.waitNS(nowNS, cost)
	c.st = was
	return waitNS
}

// standBehind makes the decision that of a call behind the line.
func (c *call) standBehind(nowNS, cost int64) {
	wait := uint64(0)
	if cost = c.total(cost); cost != 0 {
		wait = c.ahead.WaitNS(c.Limit, c.st, nowNS, cost)
	}
	waiting.StandBehind(&c.Decision, wait)
}

// delay makes a denied take wait, or books it, as its terms say. Otherwise the take stays denied. It returns errWaits for a take that
// waits. A take that is booked takes at once what it will use when WaitNS has passed.
func (t *take) delay() error {
	if !t.mayWait() {
		return nil
	}
	if err := t.adopt(); err != nil {
		return err
	}
	binding, waitNS, surelyNS := t.forecast()
	if binding < 0 {
		return nil
	}
	c := &t.calls[binding]
	if w := t.from.waiter; w != nil {
		if !t.paused {
			t.keepOthers(w, c, waitNS)
		}
		t.goTo(w, c, waitNS)
		return errWaits
	}
	wait := t.Terms.Mode == store.Wait && t.from.waker != nil
	if wait {
		if first := t.of.waits.Leader(t.TakeRequest); first != nil {
			return t.enqueue(func(w *shard.Waiter, _ bool) { t.of.waits.Coalesce(w, first) })
		}
	}
	switch {
	case surelyNS > uint64(t.Terms.MaxNS):
		return nil
	case t.from.elsewhere != nil:
		return t.waitElsewhere(binding, waitNS)
	case t.Terms.Mode == store.Reserve:
		return t.reserve(waitNS)
	case !wait:
		return nil
	}
	return t.enqueue(func(w *shard.Waiter, changed bool) {
		t.goTo(w, c, waitNS)
		t.of.waits.Register(w)
		if changed {
			w.Line.Poke(t.a.NowNS)
		}
	})
}

// mayWait reports a take that limits deny and that would wait.
func (t *take) mayWait() bool {
	would := t.from.waiter != nil || t.Terms != nil && t.Terms.Mode != store.DontWait && t.Terms.MaxNS > 0
	return would && t.Taken.Limited && !t.ruled && t.Mode == cell.Take
}

// forecast is how long the take has to wait, and for which of its calls: -1 if one never passes, or none has to wait. surelyNS is how much
// of that is sure.
func (t *take) forecast() (binding int, waitNS, surelyNS uint64) {
	binding = -1
	for i := range t.calls {
		c := &t.calls[i]
		wait := c.waitNS(t.a.NowNS, t.cost)
		if wait == cell.Never {
			return -1, 0, 0
		}
		if wait > 0 && wait >= waitNS {
			waitNS, binding = wait, i
		}
		if t.from.waiter == nil && t.Terms.Mode == store.Wait {
			wait = c.surelyNS(t.a.NowNS, t.cost, wait)
		}
		surelyNS = max(surelyNS, wait)
	}
	return binding, waitNS, surelyNS
}

// adopt stores the states that were carried over, as a denied call does. Carried over anew at each look, a state would never let pass.
func (t *take) adopt() error {
	var more shard.Need
	for i := range t.calls {
		c := &t.calls[i]
		c.changes, c.blocks, c.adopts = false, false, c.carried && !c.Ruled
		if c.adopts {
			more.Add(c.needs(t.calls[:i], t.cost, t.a.NowNS))
		}
	}
	if !t.paid.Claim(more) {
		return shard.ErrNoRoom
	}
	for i := range t.calls {
		if c := &t.calls[i]; c.adopts {
			c.change(t.calls[:i], 0, cell.Take, t.a.NowNS)
			c.settle(false, t.a.NowNS)
			c.carried = false
		}
	}
	return nil
}

// newWaiter returns a waiter that is in no line yet: see waiting.Room.Enter.
func (s *takes) newWaiter(r *store.TakeRequest, a store.Access, waker store.Waker) (w *shard.Waiter, changed bool, err error) {
	w = &shard.Waiter{DeadlineNS: math.MaxInt64}
	w.Request, w.Calls, w.Access, w.Waker = r, r.Calls, a, waker
	for i := range r.Calls {
		w.Locks |= s.ShardSetOf(s.Hash(r.Calls[i].Key))
	}
	changed, err = s.waits.Enter(w)
	return w, changed, err
}

// enqueue makes a new take wait where stand puts it. changed reports a limit that is another by now.
func (t *take) enqueue(stand func(w *shard.Waiter, changed bool)) error {
	s := t.of
	w, changed, err := s.newWaiter(t.TakeRequest, t.a, t.from.waker)
	if err != nil {
		return err
	}
	w.DeadlineNS = int64(shard.LaterNS(t.a.NowNS, t.Terms.MaxNS))
	stand(w, changed)
	w.Timer = time.AfterFunc(time.Duration(max(w.DeadlineNS-s.now(), 0)), func() { s.expire(w) })
	return errWaits
}

// goTo puts a waiter into a state's line, for waitNS at least.
func (t *take) goTo(w *shard.Waiter, c *call, waitNS uint64) {
	q, cost, nowNS := c.sh.LineOf(c.Call), c.total(t.cost), t.a.NowNS
	if q == nil || q != w.Line {
		if was := w.Line; was != nil {
			was.Withdraw(w, nowNS)
			was.Spoil()
		}
		if q == nil {
			q = c.sh.NewLine(c.Call, c.hash, t.of.now, t.of.serve)
		}
		if len(q.Waiters) == 0 || q.Waiters[len(q.Waiters)-1].Ticket < w.Ticket {
			q.Book(c.Limit, c.st, nowNS, cost)
		} else {
			q.Spoil()
		}
		q.Add(w, cost)
	}
	if q.First() == w {
		q.SetTimer(min(nowNS+int64(min(waitNS, uint64(math.MaxInt64-1-nowNS))), c.nextExpiryNS()))
	}
}

// waitElsewhere answers a take that waits elsewhere, or books it.
func (t *take) waitElsewhere(binding int, waitNS uint64) error {
	l := t.from.elsewhere
	t.Terms.WaitNS = waitNS
	if waitNS <= l.aheadNS && !t.paused && t.bookable() {
		t.book()
		return nil
	}
	l.binding, l.againNS = binding, min(waitNS, uint64(max(t.calls[binding].nextExpiryNS()-t.a.NowNS, 0)))
	return errWaits
}
