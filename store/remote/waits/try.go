package waits

import (
	"math"
	"slices"
	"time"

	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/queue"
	"celld/store/remote/view"
)

// try is a change that grants to the first of a line what passes now, or within the lookahead. It also tells those who came since the
// last one whether they may wait.
type try struct {
	line    *line
	waiters []*waiter // the first without a slot, of the same keys
	between int64     // what those between them and fresh ask for
	fresh   []*waiter // have not been told
	ahead   time.Duration
	timed   bool // it was expected to grant something

	read     time.Time // when the engine had told its time
	nowNS    int64
	outcomes []outcome
	againNS  uint64
	binding  int // of the first that waits
	tailNS   int64
}

type outcome struct {
	v    *waiter
	kind outcomeKind
	slot slot // of granted, and the answer of answered
}

type outcomeKind uint8

const (
	standing outcomeKind = iota // it waits on
	granted
	answered // at once
)

// try starts a try, if there is anyone to try for.
func (l *line) try() {
	w := l.waits
	l.poked = false
	t := &try{line: l, timed: l.exact && !l.next.After(time.Now())}
	t.ahead = l.ahead()
	i := len(l.slots)
	for i < len(l.Waiters) && len(t.waiters) < queue.Most {
		v := l.Waiters[i]
		if !w.refresh(v) {
			l.remove(v)
			w.room.Answer(v, &store.TakeRequest{Calls: v.ask.Calls, Err: store.ErrNoPolicy})
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
		v.tried = true
		t.waiters = append(t.waiters, v)
		i++
	}
	if len(t.waiters) == 0 {
		return
	}
	for ; i < len(l.Waiters); i++ {
		if v := l.Waiters[i]; v.looked {
			t.between += v.ask.Cost
		} else if w.refresh(v) {
			v.tried = true
			t.fresh = append(t.fresh, v)
		}
	}
	l.trying = true
	w.change(t.waiters[0], w.deadline(), t.decide, t.done)
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

// decide asks for one after the other until one has to wait.
func (t *try) decide(v *view.View) {
	t.read, t.nowNS = time.Now(), v.NowNS
	t.outcomes, t.againNS, t.tailNS = t.outcomes[:0], 0, 0
	var f forecast
	waiting := false
	last := -1
	reserved := t.reserved(v)
	v.Table() // a policy that is there after this was there when its states were put into it
	for i, one := range t.waiters {
		switch reset, gone := t.line.waits.unsettled(one); {
		case reset: // to be tried again at once
			if t.outcomes = append(t.outcomes, outcome{v: one}); !waiting {
				waiting, t.binding, t.againNS = true, 0, 1
			}
			continue
		case gone:
			one.decided, one.ask.Taken, one.ask.Err = one.terms, store.Taken{}, store.ErrNoPolicy
			t.outcomes = append(t.outcomes, outcome{v: one, kind: answered, slot: t.slotOf(one)})
			continue
		}
		if waiting {
			t.outcomes = append(t.outcomes, t.behind(v, &f, one))
			continue
		}
		if one.reserves {
			o := t.reserve(v, one)
			t.outcomes = append(t.outcomes, o)
			continue
		}
		left := one.left()
		one.decided = one.terms
		if one.decided.MaxNS = int64(left); one.looked {
			one.decided.MaxNS = math.MaxInt64
		}
		one.ask.Terms = &one.decided
		a := one.Access
		a.NowNS = v.NowNS
		ahead := left
		if i > reserved {
			ahead = min(t.ahead, left)
		}
		binding, again, waits := v.TakeAhead(&one.ask, uint64(ahead), a)
		if waits {
			waiting, t.binding, t.againNS = true, binding, again
			f = t.forecast(v, one, binding)
			f.book(one.ask.Cost)
			t.outcomes = append(t.outcomes, outcome{v: one})
			continue
		}
		o := outcome{v: one, kind: granted, slot: t.slotOf(one)}
		if one.ask.Err != nil || one.ask.Taken.Limited {
			o.kind = answered
		} else {
			last = len(t.outcomes)
		}
		t.outcomes = append(t.outcomes, o)
	}
	if last >= 0 && t.outcomes[last].v.decided.WaitNS > 0 {
		t.outcomes[last].slot.after = stateText(v, &t.outcomes[last].v.ask)
	}
	f.skip(t.between)
	for _, one := range t.fresh {
		t.outcomes = append(t.outcomes, t.behind(v, &f, one))
	}
	if f.known {
		t.tailNS = f.tailNS
	}
}

// unsettled reports whether a policy was reset, or has gone, since refresh.
func (w *Waits) unsettled(v *waiter) (reset, gone bool) {
	for i, c := range v.ask.Calls {
		if c.Policy != 0 && w.Policies.PolicyOf(c.Policy) == nil {
			reset = true
			gone = gone || w.Policies.Policy([]byte(v.Policies[i])) == nil
		}
	}
	return reset && !gone, gone
}

// reserved is the last of those that stand in line with RESERVE and are known to wait short enough: all before it are booked, too. -1:
// there is none.
func (t *try) reserved(v *view.View) int {
	last := -1
	if !slices.ContainsFunc(t.waiters, func(one *waiter) bool { return one.reserves }) {
		return last
	}
	f := t.forecast(v, t.waiters[0], 0)
	for i, one := range t.waiters {
		if wait := f.book(one.ask.Cost); one.reserves && f.known && wait <= uint64(max(one.terms.MaxNS, 0)) {
			last = i
		}
	}
	return last
}

// reserve books for one with RESERVE, before which nobody waits that is not booked.
func (t *try) reserve(v *view.View, one *waiter) outcome {
	one.decided = one.terms
	one.ask.Terms = &one.decided
	a := one.Access
	a.NowNS = v.NowNS
	r := [1]store.TakeRequest{one.ask}
	v.TakeBatch(r[:], a, nil)
	one.ask = r[0]
	return outcome{v: one, kind: answered, slot: t.slotOf(one)}
}

// slotOf is what has been granted to a waiter.
func (t *try) slotOf(v *waiter) slot {
	ask, terms := v.ask, v.decided
	ask.Calls, ask.Terms = slices.Clone(ask.Calls), &terms
	return slot{by: v, at: t.read.Add(time.Duration(min(terms.WaitNS, math.MaxInt64))), ask: ask}
}

// behind says whether one behind those who wait may wait, too. One of several limits may.
func (t *try) behind(v *view.View, f *forecast, one *waiter) outcome {
	wait := f.book(one.ask.Cost)
	if !one.reserves && (one.looked || len(one.ask.Calls) > 1 || !f.known || wait <= uint64(one.left())) {
		return outcome{v: one}
	}
	f.unbook()
	one.decided = one.terms
	refuse(v, &one.ask, one.Access, max(wait, 1))
	return outcome{v: one, kind: answered, slot: t.slotOf(one)}
}

// done tells the outcome.
func (t *try) done(err error) {
	l := t.line
	w := l.waits
	w.mu.Lock()
	defer w.unlock()
	l.trying = false
	for _, one := range append(t.waiters, t.fresh...) {
		one.tried = false
	}
	if err != nil {
		l.fail(err, t.decided())
		return
	}
	var slots []slot
	booked := false
	for i := range t.outcomes {
		o := &t.outcomes[i]
		o.v = o.v.successor()
		w.look(o.v, t.read)
		switch {
		case o.kind == granted:
			o.slot.by = o.v
			slots, booked = append(slots, o.slot), true
		case o.v.line != l: // it has gone
		case o.kind == answered:
			l.remove(o.v)
			w.room.Answer(o.v, &o.slot.ask)
		}
	}
	l.slots = append(l.slots, slots...)
	l.align()
	l.plan(t, booked)
	for _, one := range append(t.waiters, t.fresh...) {
		refused := one.refused || one.expired && !one.line.booked(one)
		one.refused, one.expired = false, false
		if refused && !one.Left() { // else it has been answered, or has gone
			w.refuse(one)
		}
	}
	l.serve()
}

// plan says when to try again. Half of the lookahead is left to gather, so that a try books several calls.
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
	if len(l.slots) == len(l.Waiters) {
		l.next = time.Time{}
		return
	}
	if t.againNS == 0 { // there are more than a try has
		l.next = t.read
		return
	}
	v := l.Waiters[len(l.slots)]
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

// until is how long the first that waits is not tried.
func (l *line) until(t *try, v *waiter) time.Duration {
	again := time.Duration(min(t.againNS, uint64(l.waits.lookAgain)))
	l.exact = uint64(again) == t.againNS
	if l.exact && !slices.ContainsFunc(v.ask.Calls, func(c store.Call) bool { return !c.Limit.Bookable() }) {
		again -= l.ahead() / 2
	}
	return max(again, 0)
}

// ahead is for how long the next try books.
func (l *line) ahead() time.Duration {
	base := l.waits.lookahead
	return max(base, min(base<<min(l.losses, 10), mostAhead))
}

// decided are those who have more than to wait on by the try. The engine may have that if the try was sent.
func (t *try) decided() map[*waiter]bool {
	all := make(map[*waiter]bool)
	for i := range t.outcomes {
		if o := &t.outcomes[i]; o.kind != standing {
			all[o.v.successor()] = true
		}
	}
	return all
}

// successor is who has its place by now.
func (v *waiter) successor() *waiter {
	for v.heir != nil {
		v = v.heir
	}
	return v
}

// fail answers all who are not booked yet as the engine's failure has it. Of those that the try has not decided on, nothing was sent.
func (l *line) fail(err error, decided map[*waiter]bool) {
	w := l.waits
	failed := slices.Clone(l.Waiters[len(l.slots):])
	l.Waiters = l.Waiters[:len(l.slots)]
	for _, v := range failed {
		why := err
		if !decided[v] {
			why = link.Unsent(err)
		}
		v.line = nil
		v.decided = v.terms
		v.ask.Terms = &v.decided
		w.Failure.Take(&v.ask, why, v.Access)
		w.room.Answer(v, &v.ask)
	}
	l.serve()
}
