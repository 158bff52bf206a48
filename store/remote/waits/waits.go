package waits

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/failure"
	"celld/store/remote/link"
	"celld/store/remote/view"
	"celld/store/waiting"
)

// Waits are the calls with WAIT of this process. Those for one state stand in a line, first come first served; what they take is
// decided by changes, on the engine.
//
//	first ─▶ second ─▶ third ─▶ … ─▶ last          slots: the first of them are booked, and go ahead in time
//	  │         │        └── the next try is for these: it books all that pass within the lookahead
//	slot 1    slot 2
//
// A state is the engine's, so lines of several processes have to share it. Where a limit can be booked (gcra, window, warmup), a try books
// ahead: so a plain call of another process, which can be granted only when its time has come, does not overtake those who wait. It books
// for a lookahead only, as what is booked cannot be moved any more: a process that dies loses so much of the rate, and those who wait move
// up at once when something is given back. A line whose tries find that others were quicker looks further ahead each time, so that it is
// not starved by those nearer to the engine. What cannot be booked (conc, slide, log) goes to who asks first when it is free.
//
// Measured with 4 processes of 50 callers each on one state of 200/1s for 10 s, on 2 loaded cores: each had 23 to 27 % of the grants,
// nobody was overtaken in its own process, and answers were late by 0.6 ms (p50) and 1.4 to 100 ms (p99, as the load was 4 to 14).
//
// Who leaves gives its slot to the next. The last slot is given back, if nobody has booked behind it: else two would pass at one moment.
type Waits struct {
	Options
	room waiting.Room[*waiter]

	mu    sync.Mutex
	lines waiting.Lines[*line]
	asks  []*view.Change
	news  news

	lookahead, lookAgain time.Duration // the constants; tests have others
}

// Options say whom Waits ask. All must be set.
type Options struct {
	Link     *link.Link
	Prefix   string
	Timeout  time.Duration
	Policies *policy.Set
	Views    *view.Views
	Ask      func(c *view.Change)
	Failure  *failure.Decider
	Settings func() // reads policies and rules: another process has changed some
	Log      *slog.Logger
}

// New returns Waits of nobody.
func New(o Options) *Waits {
	w := &Waits{Options: o, lookahead: lookahead, lookAgain: lookAgain}
	w.room.Init(o.Policies)
	return w
}

// stateName is what a line is for. The policy's name is that at the call's arrival.
type stateName struct {
	key, policy string
	shape       cell.Shape // of a literal
}

// waiter is a call that waits. It has a copy of the request, as a try may still work on it when its caller has gone.
type waiter struct {
	waiting.Waiter[*waiter]
	ask     store.TakeRequest
	terms   store.Terms // of ask, before it is decided
	decided store.Terms // of ask

	states   []stateName // of the calls
	arrived  time.Time
	deadline time.Time
	line     *line
	reserves bool // it is one with RESERVE, behind others
	looked   bool // it may wait: its wait was not known to be too long
	tried    bool // a try is under way for it
	refused  bool // it is to be refused after that
	expired  bool // it is to be refused after that, unless that books it: its moment has come by then
	refusing bool // it is answered as one that does not wait

	heir *waiter // that has taken its place
}

// unlock asks what was decided to be asked under the lock: that may be answered at once.
func (w *Waits) unlock() {
	asks := w.asks
	w.asks = nil
	w.mu.Unlock()
	for _, c := range asks {
		w.Ask(c)
	}
}

// change asks for a change of a waiter's keys, once the lock is free.
func (w *Waits) change(of *waiter, deadline time.Time, decide func(v *view.View), done func(err error)) {
	var keys []string
	for _, state := range of.states {
		if key := w.Prefix + state.key; !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	w.asks = append(w.asks, w.Views.NewChange(keys, deadline, decide, done))
}

// deadline is when a call that arrives now has waited long enough for the engine.
func (w *Waits) deadline() time.Time { return time.Now().Add(w.Timeout) }

// Waiting is how many callers wait here, and for how many keys.
func (w *Waits) Waiting() (callers, keys int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.room.Callers(), int64(len(w.lines.OfKey))
}

// SetMost changes how many calls may wait here at once; 0 or less: 10,000. Those who wait already stay.
func (w *Waits) SetMost(most int64) { w.room.SetMost(most) }

// Waits reports whether a call with WAIT or RESERVE may have to stand in a line. Any other is decided at once.
func (w *Waits) Waits(r *store.TakeRequest, nowNS int64) bool {
	t := r.Terms
	return t != nil && t.Mode != store.DontWait && r.Cost > 0 && (t.Mode == store.Wait || w.comesBehind(r)) && !w.ruled(r, nowNS)
}

// Enter puts a call for which Waits is true into its line, and wakes when it is answered. It returns false then, or true where it is
// refused at once.
func (w *Waits) Enter(r *store.TakeRequest, a store.Access, waker store.Waker) bool {
	w.mu.Lock()
	defer w.unlock()
	v, err := w.newWaiter(r, a, waker)
	if err != nil {
		r.Taken, r.Err = store.Taken{}, err
		return true
	}
	first := w.room.Same(r)
	joins := first != nil && !first.refusing
	if !v.reserves {
		if !joins {
			v.deadline = v.deadline.Add(w.Timeout) // until it is looked at
		}
		v.Timer = time.AfterFunc(time.Until(v.deadline), func() { w.expire(v) })
	}
	if joins {
		w.room.Join(v, first)
		return false
	}
	w.room.Know(v)
	l := w.lineFor(v)
	l.insert(v)
	l.poked = true
	l.serve()
	w.listen()
	return false
}

// comesBehind reports whether a call with RESERVE of one limit comes behind calls that are not booked yet. Then it stands in their line
// for the next try, which books these first. One of several limits books at once.
func (w *Waits) comesBehind(r *store.TakeRequest) bool {
	return w.room.Callers() > 0 && len(r.Calls) == 1 && w.behind(r, 0) > 0
}

// ruled reports whether rules decide on all calls.
func (w *Waits) ruled(r *store.TakeRequest, nowNS int64) bool {
	return w.Policies.HasRules() && !slices.ContainsFunc(r.Calls, func(c store.Call) bool { return w.Policies.Rule(c.Key, nowNS) == nil })
}

// newWaiter returns one that stands nowhere yet: see waiting.Room.Enter.
func (w *Waits) newWaiter(r *store.TakeRequest, a store.Access, waker store.Waker) (*waiter, error) {
	r.Terms.Lease, r.Terms.WaitNS = 0, 0
	v := &waiter{ask: *r, terms: *r.Terms, reserves: r.Terms.Mode == store.Reserve, arrived: time.Now()}
	v.deadline = v.arrived.Add(v.patience())
	v.ask.Calls = slices.Clone(r.Calls)
	v.Request, v.Calls, v.Access, v.Waker = r, v.ask.Calls, a, waker
	if _, err := w.room.Enter(v); err != nil {
		return nil, err
	}
	v.states = make([]stateName, len(v.Calls))
	for i, c := range v.Calls {
		if c.Policy != 0 {
			v.states[i] = stateName{key: string(c.Key), policy: v.Policies[i]}
		} else {
			v.states[i] = stateName{key: string(c.Key), shape: c.Limit.Shape}
		}
	}
	return v, nil
}

// refresh gives the calls the limits that their policies have by now. It returns false where one has gone.
func (w *Waits) refresh(v *waiter) bool {
	_, err := w.room.Refresh(v)
	return err == nil
}

// patience is how long it may wait, as memory counts it: from the moment it is decided that it must, without the way to the engine.
func (v *waiter) patience() time.Duration { return time.Duration(max(v.terms.MaxNS, 0)) }

// left is how much of its patience is left.
func (v *waiter) left() time.Duration {
	if !v.looked {
		return v.patience()
	}
	return max(time.Until(v.deadline), 0)
}

// look notes that it was looked at.
func (w *Waits) look(v *waiter, at time.Time) {
	if !v.looked && v.Timer != nil && !v.Left() {
		v.deadline = at.Add(v.patience())
		v.Timer.Reset(time.Until(v.deadline))
	}
	v.looked = true
}

// expire refuses a waiter whose deadline has come.
func (w *Waits) expire(v *waiter) {
	w.mu.Lock()
	defer w.unlock()
	switch {
	case v.Left() || v.deadline.After(time.Now()):
	case v.tried:
		v.expired = true
	case v.With != nil || !v.line.booked(v): // else its moment has come together with its deadline
		w.refuse(v)
	}
}

// Leave ends the wait of a request for which TakeBatch has returned false, and reports whether it still waited: see store.Store.
func (w *Waits) Leave(r *store.TakeRequest, why error) bool {
	w.mu.Lock()
	defer w.unlock()
	v := w.room.Find(r)
	switch {
	case v == nil:
		return false
	case why == store.ErrRefused:
		w.refuse(v)
		return true
	case v.refusing: // its answer is on its way
		if why == nil {
			w.room.Leave(v)
		}
		return why == nil
	}
	w.goAway(v)
	if why != nil {
		r.Taken, r.Err = store.Taken{}, why
		v.Waker.Wake()
	}
	return true
}

// goAway takes a waiter out. One that has joined it takes its place.
func (w *Waits) goAway(v *waiter) {
	l := v.line
	if v.With != nil {
		w.room.Part(v)
	} else if !w.handOver(v) {
		l.remove(v)
	}
	w.room.Leave(v)
	if l != nil {
		l.serve()
	}
}

// handOver gives the place of a waiter to one that has joined it, and reports whether there is one.
func (w *Waits) handOver(v *waiter) bool {
	next, l := w.room.HandOver(v), v.line
	if next == nil {
		return false
	}
	next.looked, next.line = v.looked, l
	l.Waiters[l.Index(v)] = next
	for i := range l.slots {
		if l.slots[i].by == v {
			l.slots[i].by = next
		}
	}
	v.heir, v.line = next, nil
	return true
}
