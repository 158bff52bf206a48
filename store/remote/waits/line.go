package waits

import (
	"slices"
	"time"

	"celld/store"
	"celld/store/remote/view"
	"celld/store/waiting"
)

const (
	// lookahead is how far ahead a try books. If a process dies, so much of the rate is lost. Booked calls do not move up.
	// mostAhead is how far a line looks ahead if others were often quicker.
	lookahead = 50 * time.Millisecond
	mostAhead = time.Second

	// lookAgain is how often a line tries at least, as an invalidation may be lost.
	lookAgain = time.Second
)

// line holds the calls that wait for a state.
type line struct {
	waiting.Line[*waiter]
	waits  *Waits
	state  stateName
	grants []grant // of the first waiters

	current *try      // the try that is under way; nil: none is
	poked   bool      // there was a change after current began
	next    time.Time // of the next try
	exact   bool      // a call passes by then, if no other process is quicker
	losses  int       // tries since the last booking in which others were quicker
	timer   *time.Timer
	tailNS  int64 // the engine's time at which the last of those who wait may pass; 0: unknown
}

// grant is what a waiter was granted for an instant, at which it goes ahead. A waiter that moves up gets the grant before its own.
type grant struct {
	by     *waiter
	at     time.Time
	from   time.Time         // no later than the engine's instant of at: an answer may be late
	answer store.TakeRequest // answered
	after  string            // the state after it; "": unknown
}

// lineFor is the line for a new waiter: that of the first of its states for which others wait.
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
	return w.lines.Find([]byte(state.key), func(l *line) bool { return l.state == state })
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

// serve answers those whose moment has come, starts the next try if it is due, and sets the timer.
func (l *line) serve() {
	now := time.Now()
	for len(l.grants) > 0 && !l.grants[0].at.After(now) {
		v := l.Waiters[0]
		s := l.grants[0]
		l.Waiters, l.grants = l.Waiters[1:], l.grants[1:]
		v.line = nil
		l.waits.room.Answer(v, &s.answer)
	}
	if l.current == nil && len(l.grants) < len(l.Waiters) && (l.poked || !l.next.After(now)) {
		l.try()
	}
	if len(l.Waiters) == 0 && l.current == nil {
		l.timer.Stop()
		l.waits.lines.Remove(l.state.key, l)
		return
	}
	var at time.Time
	if l.current == nil && len(l.grants) < len(l.Waiters) {
		at = l.next
	}
	if len(l.grants) > 0 && (at.IsZero() || l.grants[0].at.Before(at)) {
		at = l.grants[0].at
	}
	if !at.IsZero() {
		l.timer.Reset(time.Until(at))
	}
}

// booked reports whether a waiter has a grant.
func (l *line) booked(v *waiter) bool {
	return l != nil && slices.Contains(l.Waiters[:min(len(l.grants), len(l.Waiters))], v)
}

// due reports whether a waiter has a grant whose moment has come.
func (l *line) due(v *waiter) bool {
	return l.booked(v) && !l.grants[slices.Index(l.Waiters, v)].at.After(time.Now())
}

// insert puts a waiter where its ticket belongs, behind those that are booked.
func (l *line) insert(v *waiter) {
	l.Insert(v, len(l.grants))
	v.line = l
}

// remove takes a waiter out. Those behind it move up.
func (l *line) remove(v *waiter) {
	l.Remove(v)
	v.line = nil
	l.align()
}

// replace puts a waiter's heir in its place.
func (l *line) replace(v, heir *waiter) {
	l.Replace(v, heir)
	for i := range l.grants {
		if l.grants[i].by == v {
			l.grants[i].by = heir
		}
	}
	heir.looked, heir.line = v.looked, l
	v.heir, v.line = heir, nil
}

// align gives each grant to the waiter in its place. It gives back a grant that does not fit.
func (l *line) align() {
	for i := 0; i < len(l.grants); {
		if i < len(l.Waiters) && l.grants[i].fits(l.Waiters[i]) {
			l.grants[i].by = l.Waiters[i]
			i++
			continue
		}
		l.waits.giveBack(&l.grants[i])
		l.grants = slices.Delete(l.grants, i, i+1)
	}
}

// fits reports whether a grant can go to a waiter. A grant with a lease's name fits only its own waiter. One whose instant was over before
// the waiter came has begun to flow back: with it, more would pass now than the limit allows.
func (s *grant) fits(v *waiter) bool {
	return s.by == v || s.by.terms.Name == "" && v.terms.Name == "" && !v.arrived.After(s.from) && s.by.AsksAs(&v.Waiter)
}

// poke tries all who wait for a key at once, as something has been given back.
func (w *Waits) poke(key string) {
	w.pokeEach(func() []*line { return slices.Clone(w.lines.OfKey[key]) })
}

// pokeAll tries all who wait at once.
func (w *Waits) pokeAll() {
	w.pokeEach(w.lines.All)
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

// giveBack gives back a grant that nobody uses. If it lies ahead, it is given back only if nobody has booked behind it: otherwise whoever
// comes next would get the last booked moment, at which another goes ahead.
func (w *Waits) giveBack(s *grant) {
	r, after, v := s.answer, s.after, s.by
	if !waiting.GivesBack(&r) {
		return
	}
	ahead := s.at.After(time.Now())
	decide := func(of *view.View) {
		waiting.GiveBack(&r, !ahead || after != "" && stateText(of, &r) == after, of, of.At(v.Access))
	}
	w.change(v, w.deadline(), decide, func(error) {})
}
