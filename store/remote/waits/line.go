package waits

import (
	"maps"
	"slices"
	"time"

	"celld/store"
	"celld/store/remote/view"
	"celld/store/waiting"
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
	waiting.Line[*waiter]
	waits *Waits
	state stateName
	slots []slot // of the first of them

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
func (w *Waits) lineFor(v *waiter) *line {
	for _, state := range v.states {
		if l := w.find(state); l != nil {
			return l
		}
	}
	return w.lineOf(v.states[0])
}

// find is the line of a state, nil if nobody waits for it.
func (w *Waits) find(state stateName) *line {
	for _, l := range w.lines.OfKey[state.key] {
		if l.state == state {
			return l
		}
	}
	return nil
}

func (w *Waits) lineOf(state stateName) *line {
	l := w.find(state)
	if l == nil {
		l = &line{waits: w, state: state}
		l.timer = time.AfterFunc(time.Hour, l.wake)
		w.lines.Add(state.key, l)
	}
	return l
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
		v := l.Waiters[0]
		s := l.slots[0]
		l.Waiters, l.slots = l.Waiters[1:], l.slots[1:]
		v.line = nil
		l.waits.room.Answer(v, &s.ask)
	}
	if !l.trying && len(l.slots) < len(l.Waiters) && (l.poked || !l.next.After(now)) {
		l.try()
	}
	if len(l.Waiters) == 0 && !l.trying {
		l.timer.Stop()
		l.waits.lines.Remove(l.state.key, l)
		return
	}
	var at time.Time
	if !l.trying && len(l.slots) < len(l.Waiters) {
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
	return l != nil && slices.Contains(l.Waiters[:min(len(l.slots), len(l.Waiters))], v)
}

// insert puts a waiter where its ticket belongs, behind those that are booked.
func (l *line) insert(v *waiter) {
	l.Insert(v, len(l.slots))
	v.line = l
}

// remove takes a waiter out. Those behind it move up.
func (l *line) remove(v *waiter) {
	l.Remove(v)
	v.line = nil
	l.align()
}

// align gives each slot to the waiter in its place. One that does not fit is given up.
func (l *line) align() {
	for i := 0; i < len(l.slots); {
		if i < len(l.Waiters) && l.slots[i].fits(l.Waiters[i]) {
			l.slots[i].by = l.Waiters[i]
			i++
			continue
		}
		l.waits.giveBack(&l.slots[i])
		l.slots = slices.Delete(l.slots, i, i+1)
	}
}

// fits reports whether a slot can be a waiter's. One with a lease's name is its own.
func (s *slot) fits(v *waiter) bool {
	return s.by == v || s.by.terms.Name == "" && v.terms.Name == "" && s.by.AsksAs(&v.Waiter)
}

// poke tries all who wait for a key at once, as something has been given back.
func (w *Waits) poke(key string) {
	w.pokeEach(func() []*line { return slices.Clone(w.lines.OfKey[key]) })
}

// pokeAll tries all who wait at once.
func (w *Waits) pokeAll() {
	w.pokeEach(func() []*line { return slices.Concat(slices.Collect(maps.Values(w.lines.OfKey))...) })
}

func (w *Waits) pokeEach(lines func() []*line) {
	if w.room.Callers() == 0 {
		return
	}
	w.mu.Lock()
	defer w.unlock()
	for _, l := range lines() {
		l.poked = true
		l.serve()
	}
}

// giveBack gives back what a slot has taken that nobody uses. What lies ahead is given back only where nobody has booked behind it: who
// comes next would get the last moment that is booked, at which another goes ahead.
func (w *Waits) giveBack(s *slot) {
	r, after, v := s.ask, s.after, s.by
	if !waiting.GivesBack(&r) {
		return
	}
	ahead := s.at.After(time.Now())
	decide := func(of *view.View) {
		a := v.Access
		a.NowNS = of.NowNS
		waiting.GiveBack(&r, !ahead || after != "" && stateText(of, &r) == after, of, a)
	}
	w.change(v, w.deadline(), decide, func(error) {})
}
