package waits

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link"
	"celld/store/remote/queue"
	"celld/store/remote/view"
)

// try is a change that grants to the first of a line what passes now, or within the lookahead. It also decides whether those who came since
// the last try may wait.
type try struct {
	line    *line
	waiters []*waiter // the first without a grant, of the same keys
	between int64     // the cost of those between them and fresh
	fresh   []*waiter // new ones: it is not decided whether they may wait
	ahead   time.Duration
	timed   bool // it was expected to grant something

	began    time.Time
	view     atomic.Pointer[view.View] // of the last decision; nil: there was none
	read     time.Time                 // when the answer with the engine's time had come
	nowNS    int64
	outcomes []outcome
	againNS  uint64
	binding  int // of the first that waits
	tailNS   int64
}

type outcome struct {
	v     *waiter
	kind  outcomeKind
	grant grant // of granted, and the answer of answered
}

type outcomeKind uint8

const (
	standing outcomeKind = iota // it waits on
	granted
	answered // at once
)

// try starts a try, if anybody waits without a grant.
func (l *line) try() {
	w := l.waits
	l.poked = false
	t := &try{line: l, began: time.Now(), timed: l.exact && !l.next.After(time.Now())}
	t.ahead = l.ahead()
	l.moveOthers()
	i := len(l.grants)
	for i < len(l.Waiters) && len(t.waiters) < queue.Most {
		v := l.Waiters[i]
		if !w.refresh(v) {
			l.remove(v)
			w.room.Answer(v, &store.TakeRequest{Calls: v.own.Calls, Err: policy.ErrNoPolicy})
			continue
		}
		if len(t.waiters) == 0 {
			if other := l.before(v); other != nil {
				l.remove(v)
				other.insert(v)
				continue
			}
		} else if !slices.Equal(v.states, t.waiters[0].states) {
			break
		}
		v.trial = tried
		t.waiters = append(t.waiters, v)
		i++
	}
	if len(t.waiters) == 0 {
		return
	}
	for ; i < len(l.Waiters); i++ {
		if v := l.Waiters[i]; v.looked {
			t.between += v.cost(l.state)
		} else if w.refresh(v) {
			v.trial = tried
			t.fresh = append(t.fresh, v)
		}
	}
	l.current = t
	w.change(t.waiters[0], w.deadline(), t.decide, t.done)
}

// moveOthers takes out those who do not take from the line's state any more, as their policy has other limits now.
func (l *line) moveOthers() {
	w := l.waits
	for i := len(l.grants); i < len(l.Waiters); {
		v := l.Waiters[i]
		if !w.refresh(v) || slices.Contains(v.states, l.state) {
			i++
			continue
		}
		l.remove(v)
		other := w.lineOf(v.states[0])
		other.insert(v)
		other.poked = true
		other.serve()
	}
}

// before is another line in which one who came earlier waits for one of a waiter's states.
func (l *line) before(v *waiter) *line {
	for _, state := range v.states {
		if o := l.waits.find(state); o != nil && o != l && len(o.Waiters) > 0 && o.Waiters[0].Ticket < v.Ticket {
			return o
		}
	}
	return nil
}

// decide decides on one waiter after the other until one has to wait.
func (t *try) decide(v *view.View) {
	t.read, t.nowNS = time.Now(), v.NowNS
	t.outcomes, t.againNS, t.tailNS = t.outcomes[:0], 0, 0
	var f forecast
	waiting := false
	last := -1
	reserved := t.reserved(v)
	v.Table() // a policy that is still there after this was there when the table was filled
	for i, one := range t.waiters {
		o := outcome{v: one}
		switch reset, gone := t.line.waits.unsettled(one); {
		case reset && waiting:
		case reset: // to be tried again at once
			waiting, t.binding, t.againNS = true, 0, 1
		case gone:
			one.decided, one.own.Taken, one.own.Err = one.terms, store.Taken{}, policy.ErrNoPolicy
			o = t.answer(one)
		case waiting:
			o = t.behind(v, &f, one)
		case one.reserves(): // all before it are booked
			one.decided = one.terms
			one.own.Taken, one.own.Err = v.Take(one.own.Calls, one.own.TakeOptions, v.At(one.Access))
			o = t.answer(one)
		default:
			left := one.left()
			one.decided = one.terms
			if one.decided.MaxNS = int64(left); one.looked {
				one.decided.MaxNS = math.MaxInt64
			}
			ahead := left
			if i > reserved {
				ahead = min(t.ahead, left)
			}
			binding, again, waits := v.TakeAhead(&one.own, uint64(ahead), v.At(one.Access))
			switch {
			case waits:
				waiting, t.binding, t.againNS = true, binding, again
				f = t.forecast(v, one, binding)
				f.book(one.cost(t.line.state))
			case one.own.Err != nil || one.own.Taken.Limited:
				o = t.answer(one)
			default:
				o, last = outcome{v: one, kind: granted, grant: t.grantOf(one)}, len(t.outcomes)
			}
		}
		t.outcomes = append(t.outcomes, o)
	}
	if last >= 0 && t.outcomes[last].v.decided.WaitNS > 0 {
		t.outcomes[last].grant.after = stateText(v, &t.outcomes[last].v.own)
	}
	f.skip(t.between)
	for _, one := range t.fresh {
		t.outcomes = append(t.outcomes, t.behind(v, &f, one))
	}
	if f.known {
		t.tailNS = f.tailNS
	}
	t.view.Store(v)
}

// unsettled reports whether a policy was reset, has lost a limit, or has gone, since refresh.
func (w *Waits) unsettled(v *waiter) (reset, gone bool) {
	for _, c := range v.own.Calls {
		if c.Policy != nil && w.Policies.LimitOf(c.Policy.ID) == nil {
			reset = true
			gone = gone || w.Policies.Policy([]byte(c.Policy.Policy.Name)) == nil
		}
	}
	return reset && !gone, gone
}

// reserved is the place of the last waiter with RESERVE whose wait is known to be short enough: all before it are booked, too. -1: there is
// none.
func (t *try) reserved(v *view.View) int {
	last := -1
	if !slices.ContainsFunc(t.waiters, func(one *waiter) bool { return one.reserves() }) {
		return last
	}
	f := t.forecast(v, t.waiters[0], 0)
	for i, one := range t.waiters {
		if wait := f.book(one.cost(t.line.state)); one.reserves() && f.known && wait <= uint64(max(one.terms.MaxNS, 0)) {
			last = i
		}
	}
	return last
}

// answer is the outcome of a waiter that is answered at once.
func (t *try) answer(v *waiter) outcome { return outcome{v: v, kind: answered, grant: t.grantOf(v)} }

// grantOf is what a waiter has been granted.
func (t *try) grantOf(v *waiter) grant {
	ask, terms := v.own, v.decided
	ask.Calls, ask.Terms = slices.Clone(ask.Calls), &terms
	wait := time.Duration(min(terms.WaitNS, math.MaxInt64))
	return grant{by: v, at: t.read.Add(wait), from: t.began.Add(wait), answer: ask}
}

// behind decides whether a call behind those who wait may wait, too. A call of several limits may.
func (t *try) behind(v *view.View, f *forecast, one *waiter) outcome {
	wait := f.book(one.cost(t.line.state))
	if !one.reserves() && (one.looked || len(one.own.Calls) > 1 || !f.known || wait <= uint64(one.left())) {
		return outcome{v: one}
	}
	f.unbook()
	one.decided = one.terms
	refuse(v, &one.own, one.Access, max(wait, 1))
	return t.answer(one)
}

// done applies the outcome of the try.
func (t *try) done(err error) {
	l := t.line
	w := l.waits
	w.mu.Lock()
	defer w.unlock()
	l.current = nil
	all := append(t.waiters, t.fresh...)
	trials := make([]trial, len(all))
	for i, one := range all {
		trials[i], one.trial = one.trial, untried
	}
	if err != nil {
		l.fail(err, t.decided())
		return
	}
	var slots []grant
	booked := false
	for i := range t.outcomes {
		o := &t.outcomes[i]
		o.v = o.v.successor()
		w.look(o.v, t.read)
		switch {
		case o.kind == granted:
			o.grant.by = o.v
			slots, booked = append(slots, o.grant), true
		case o.v.line != l: // it has gone
		case o.kind == answered:
			l.remove(o.v)
			w.room.Answer(o.v, &o.grant.answer)
		}
	}
	l.grants = append(l.grants, slots...)
	l.align()
	l.plan(t, booked)
	for i, one := range all {
		if trials[i] == refused || trials[i] == late && !one.line.booked(one) {
			w.refuse(one)
		}
	}
	l.serve()
}

// plan sets when to try again. Calls gather during half of the lookahead, so that a try books several.
func (l *line) plan(t *try, booked bool) {
	switch {
	case booked:
		l.losses = 0
	case t.timed && t.againNS > uint64(t.ahead):
		l.losses++
	}
	if t.tailNS != 0 {
		l.tailNS = t.tailNS
	}
	if len(l.grants) == len(l.Waiters) {
		l.next = time.Time{}
		return
	}
	if t.againNS == 0 { // there are more waiters than one try takes
		l.next = t.read
		return
	}
	v := l.Waiters[len(l.grants)]
	if t.binding < len(v.states) && v == t.firstThatWaits() && v.states[t.binding] != l.state {
		l.remove(v)
		other := l.waits.lineOf(v.states[t.binding])
		other.insert(v)
		other.next = t.read.Add(l.until(t, v))
		other.serve()
		l.poked = true
		return
	}
	l.next = t.read.Add(l.until(t, v))
}

func (t *try) firstThatWaits() *waiter {
	for _, o := range t.outcomes {
		if o.kind == standing {
			return o.v
		}
	}
	return nil
}

// until is how long to wait before the first that waits is tried again.
func (l *line) until(t *try, v *waiter) time.Duration {
	again := time.Duration(min(t.againNS, uint64(l.waits.lookAgain)))
	l.exact = uint64(again) == t.againNS
	if l.exact && !slices.ContainsFunc(v.own.Calls, func(c store.Call) bool {
		return !c.Limit.Bookable() || l.waits.pause(&c, t.nowNS) != nil // which is not booked ahead
	}) {
		// It may have less time left than the lookahead. Without regard to that, a line asked again and again, thousands of times a second,
		// for a waiter who could only be refused.
		again -= min(l.ahead(), v.left()) / 2
	}
	return max(again, 0)
}

// ahead is how far ahead the next try books.
func (l *line) ahead() time.Duration {
	base := l.waits.lookahead
	return max(base, min(base<<min(l.losses, 10), mostAhead))
}

// decided returns the waiters for which the try did more than let them wait. The engine may have stored that if the try was sent.
func (t *try) decided() map[*waiter]bool {
	all := make(map[*waiter]bool)
	for i := range t.outcomes {
		if o := &t.outcomes[i]; o.kind != standing {
			all[o.v.successor()] = true
		}
	}
	return all
}

// successor is the waiter that stands in its place now.
func (v *waiter) successor() *waiter {
	for v.heir != nil {
		v = v.heir
	}
	return v
}

// fail answers all waiters without a grant with the engine's failure. For those on which the try has not decided, nothing was sent.
func (l *line) fail(err error, decided map[*waiter]bool) {
	w := l.waits
	failed := slices.Clone(l.Waiters[len(l.grants):])
	l.Waiters = l.Waiters[:len(l.grants)]
	for _, v := range failed {
		why := err
		if !decided[v] {
			why = link.Unsent(err)
		}
		v.line = nil
		v.decided = v.terms
		w.Failure.Take(&v.own, why, v.Access)
		w.room.Answer(v, &v.own)
	}
	l.serve()
}
