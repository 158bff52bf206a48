package remote

import (
	"slices"
	"time"

	"celld/store"
)

const (
	// lookahead is for how long a try books. A process that dies loses so much of the rate, and what is booked does not move up.
	// mostAhead is for how long one does that others were often quicker than.
	lookahead = 50 * time.Millisecond
	mostAhead = time.Second

	// lookAgain is how often a line tries at least, as a message that something was given back may be lost.
	lookAgain = time.Second
)

// line is the calls that wait for a state.
type line struct {
	waits   *waits
	state   stateName
	waiters []*waiter // in the order of their tickets
	slots   []slot    // of the first of them

	trying bool      // a try is under way
	poked  bool      // something has changed since it began
	next   time.Time // of the next try
	exact  bool      // by then something passes, if nobody else takes it
	losses int       // tries since the last booking for which others were quicker
	timer  *time.Timer
	tailNS int64 // the engine's time at which the last of those who wait may pass; 0: unknown
}

// slot is what was granted to a waiter that goes ahead at an instant. A waiter that moves up gets the slot before.
type slot struct {
	by    *waiter
	at    time.Time
	ask   store.TakeRequest // answered
	after string            // the state that it left behind; "": unknown
}

// lineFor is the line where a new waiter stands: that of the first of its states for which others wait.
func (w *waits) lineFor(v *waiter) *line {
	for _, state := range v.states {
		if l := w.lines[state]; l != nil {
			return l
		}
	}
	return w.lineOf(v.states[0])
}

func (w *waits) lineOf(state stateName) *line {
	l := w.lines[state]
	if l == nil {
		l = &line{waits: w, state: state}
		l.timer = time.AfterFunc(time.Hour, l.wake)
		w.lines[state] = l
		w.ofKey[state.key] = append(w.ofKey[state.key], l)
	}
	return l
}

// drop removes a line in which nobody waits.
func (l *line) drop() {
	w := l.waits
	l.timer.Stop()
	delete(w.lines, l.state)
	of := slices.DeleteFunc(w.ofKey[l.state.key], func(o *line) bool { return o == l })
	if w.ofKey[l.state.key] = of; len(of) == 0 {
		delete(w.ofKey, l.state.key)
	}
}

func (l *line) wake() {
	l.waits.mu.Lock()
	defer l.waits.unlock()
	l.serve()
}

// serve answers those whose time has come, has the next tried if it is time, and sets the timer.
func (l *line) serve() {
	now := time.Now()
	for len(l.slots) > 0 && !l.slots[0].at.After(now) {
		v := l.waiters[0]
		s := l.slots[0]
		l.waiters, l.slots = l.waiters[1:], l.slots[1:]
		v.line = nil
		if l.waits.late != nil {
			l.waits.late(now.Sub(s.at))
		}
		l.waits.tell(v, &s.ask)
	}
	if !l.trying && len(l.slots) < len(l.waiters) && (l.poked || !l.next.After(now)) {
		l.try()
	}
	if len(l.waiters) == 0 && !l.trying {
		if l.waits.lines[l.state] == l {
			l.drop()
		}
		return
	}
	var at time.Time
	if !l.trying && len(l.slots) < len(l.waiters) {
		at = l.next
	}
	if len(l.slots) > 0 && (at.IsZero() || l.slots[0].at.Before(at)) {
		at = l.slots[0].at
	}
	if !at.IsZero() {
		l.timer.Reset(time.Until(at))
	}
}

// booked reports whether a waiter has a slot.
func (l *line) booked(v *waiter) bool {
	return l != nil && slices.Contains(l.waiters[:min(len(l.slots), len(l.waiters))], v)
}

// insert puts a waiter where its ticket belongs, behind those that are booked.
func (l *line) insert(v *waiter) {
	at := len(l.waiters)
	for at > len(l.slots) && l.waiters[at-1].ticket > v.ticket {
		at--
	}
	l.waiters = slices.Insert(l.waiters, at, v)
	v.line = l
}

// remove takes a waiter out. Those behind it move up.
func (l *line) remove(v *waiter) {
	at := slices.Index(l.waiters, v)
	l.waiters = slices.Delete(l.waiters, at, at+1)
	v.line = nil
	l.align()
}

// align has each slot be of the waiter in its place. One that does not fit is given up.
func (l *line) align() {
	for i := 0; i < len(l.slots); {
		if i < len(l.waiters) && l.slots[i].fits(l.waiters[i]) {
			l.slots[i].by = l.waiters[i]
			i++
			continue
		}
		l.waits.giveBack(&l.slots[i])
		l.slots = slices.Delete(l.slots, i, i+1)
	}
}

// fits reports whether a slot can be a waiter's. One with a lease's name is its own.
func (s *slot) fits(v *waiter) bool {
	return s.by == v || s.by.terms.Name == "" && v.terms.Name == "" && s.by.asksAs(v)
}

// pokeKey has all who wait for a key tried at once, as something has been given back.
func (w *waits) pokeKey(key string) {
	if w.waiting.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.unlock()
	for _, l := range slices.Clone(w.ofKey[key]) {
		l.poked = true
		l.serve()
	}
}

// pokeAll has all who wait tried at once: a policy or a rule has changed.
func (w *waits) pokeAll() {
	if w.waiting.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.unlock()
	lines := make([]*line, 0, len(w.lines))
	for _, l := range w.lines {
		lines = append(lines, l)
	}
	for _, l := range lines {
		l.poked = true
		l.serve()
	}
}
