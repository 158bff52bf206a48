package remote

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"celld/cell"
	"celld/store"
)

// waits are the calls with WAIT of this process. Those for one state stand in a line, first come first served; what they take is
// decided by changes, on the engine.
//
//	first ─▶ second ─▶ third ─▶ … ─▶ last          slots: the first of them are booked, and go ahead in time
//	  │         │        └── the next try is for these: it books all that pass within the lookahead
//	slot 1    slot 2
//
// A state is the engine's, so lines of several processes have to share it. Where a limit can be booked (gcra, window, warmup), a try
// books ahead: so a plain call of another process, which can be granted only when its time has come, does not overtake those who wait. It
// books for a lookahead only, as what is booked cannot be moved any more: a process that dies loses so much of the rate, and those who
// wait move up at once when something is given back. A line whose tries find that others were quicker looks further ahead each time, so that it
// is not starved by those nearer to the engine. What cannot be booked (conc, slide, log) goes to who asks first when it is free.
//
// Measured with 4 processes of 50 callers each on one state of 200/1s for 10 s, on 2 loaded cores: each had 23 to 27 % of the grants, nobody
// was overtaken in its own process, and answers were late by 0.6 ms (p50) and 1.4 to 100 ms (p99, as the load was 4 to 14).
//
// Who leaves gives its slot to the next. The last slot is given back, if nobody has booked behind it: else two would pass at one moment.
type waits struct {
	store   *Store
	waiting atomic.Int64 // calls in lines; read without the lock
	most    atomic.Int64

	mu        sync.Mutex
	lines     map[stateName]*line
	ofKey     map[string][]*line
	calls     map[*store.TakeRequest]*waiter
	named     map[waitName]*waiter
	tickets   uint64
	deadlines deadlines
	timer     *time.Timer // at the first deadline
	asks      []*operation
	news      news

	lookahead, lookAgain time.Duration       // the constants; tests have others
	late                 func(time.Duration) // for tests: how late a call is answered
}

// stateName is what a line is for. The policy's name is that at the call's arrival.
type stateName struct {
	key, policy string
	shape       cell.Shape // of a literal
}

// waitName is what a repeat of a call that waits is known by.
type waitName struct{ name, key string }

// waiter is a call that waits. It has a copy of the request, as a try may still work on it when its caller has gone.
type waiter struct {
	request *store.TakeRequest
	waker   store.Waker
	access  store.Access
	ask     store.TakeRequest
	terms   store.Terms // of ask, before it is decided
	decided store.Terms // of ask

	states   []stateName // of the calls
	policies []string    // their policies' names; "": a literal
	version  uint64      // of the policies, when they were looked up

	ticket   uint64
	arrived  time.Time
	deadline time.Time
	place    int // in deadlines
	line     *line
	reserves bool // it is one with RESERVE, behind others
	looked   bool // it may wait: its wait was not known to be too long
	tried    bool // a try is under way for it
	refused  bool // it is to be refused after that
	expired  bool // it is to be refused after that, unless that books it: its moment has come by then
	refusing bool // it is answered as one that does not wait
	silent   bool // its caller has gone

	with   *waiter   // that it has joined
	joined []*waiter // that have joined it
	heir   *waiter   // that has taken its place
}

const defaultMaxWaiters = 10_000

func (w *waits) init(s *Store) {
	w.store, w.lookahead, w.lookAgain = s, lookahead, lookAgain
	w.most.Store(defaultMaxWaiters)
	w.lines, w.ofKey = make(map[stateName]*line), make(map[string][]*line)
	w.calls, w.named = make(map[*store.TakeRequest]*waiter), make(map[waitName]*waiter)
	w.timer = time.AfterFunc(time.Hour, w.expire)
}

// unlock asks what was decided to be asked under the lock: that may be answered at once.
func (w *waits) unlock() {
	asks := w.asks
	w.asks = nil
	w.mu.Unlock()
	for _, o := range asks {
		w.store.ask(o)
	}
}

// Waiting is how many callers wait here, and for how many keys.
func (s *Store) Waiting() (callers, keys int64) {
	s.waits.mu.Lock()
	defer s.waits.mu.Unlock()
	return int64(len(s.waits.calls)), int64(len(s.waits.ofKey))
}

// SetMaxWaiters changes how many calls may wait here at once; 0 or less: 10,000. Those who wait already stay.
func (s *Store) SetMaxWaiters(most int64) {
	if most <= 0 {
		most = defaultMaxWaiters
	}
	s.waits.most.Store(most)
}

// takeWaiting decides on a call with RESERVE or WAIT. It returns false for one that is answered later.
func (s *Store) takeWaiting(r *store.TakeRequest, a store.Access, waker store.Waker) bool {
	if r.Terms.Mode == store.Reserve && !s.waits.comesBehind(r) || s.ruled(r, a) {
		b := newBatch(1, waker)
		s.takeChange(r, a, s.deadline(), b)
		return b.done()
	}
	w := &s.waits
	w.mu.Lock()
	defer w.unlock()
	v, err := w.newWaiter(r, a, waker)
	if err != nil {
		r.Taken, r.Err = store.Taken{}, err
		return true
	}
	w.calls[r] = v
	w.waiting.Store(int64(len(w.calls)))
	first := w.sameThatWaits(v)
	if !v.reserves {
		if first == nil {
			v.deadline = v.deadline.Add(s.options.Timeout) // until it is looked at
		}
		w.deadlines.add(v)
		w.setTimer()
	}
	if first != nil {
		v.with = first
		first.joined = append(first.joined, v)
		return false
	}
	l := w.lineFor(v)
	l.waiters = append(l.waiters, v)
	v.line = l
	l.poked = true
	l.serve()
	w.news.listen(w)
	return false
}

// comesBehind reports whether a call with RESERVE of one limit comes behind calls that are not booked yet. Then it stands in their line
// for the next try, which books these first. One of several limits books at once.
func (w *waits) comesBehind(r *store.TakeRequest) bool {
	return w.waiting.Load() > 0 && len(r.Calls) == 1 && w.behind(r, 0) > 0
}

// ruled reports whether rules decide on all calls.
func (s *Store) ruled(r *store.TakeRequest, a store.Access) bool {
	return s.policies.HasRules() && !slices.ContainsFunc(r.Calls, func(c store.Call) bool { return s.policies.Rule(c.Key, a.NowNS) == nil })
}

// newWaiter returns one that stands nowhere yet.
func (w *waits) newWaiter(r *store.TakeRequest, a store.Access, waker store.Waker) (*waiter, error) {
	if int64(len(w.calls)) >= w.most.Load() {
		return nil, store.ErrTooManyWaiters
	}
	r.Terms.Lease, r.Terms.WaitNS = 0, 0
	w.tickets++
	v := &waiter{request: r, waker: waker, access: a, ask: *r, terms: *r.Terms, ticket: w.tickets}
	v.reserves, v.place = r.Terms.Mode == store.Reserve, -1
	v.version = w.store.policies.PoliciesVersion()
	v.arrived = time.Now()
	v.deadline = v.arrived.Add(v.patience())
	v.ask.Calls = slices.Clone(r.Calls)
	v.states, v.policies = make([]stateName, len(r.Calls)), make([]string, len(r.Calls))
	for i := range r.Calls {
		c := &r.Calls[i]
		c.Key = bytes.Clone(c.Key)
		v.ask.Calls[i].Key = c.Key
		v.states[i] = stateName{key: string(c.Key), shape: c.Limit.Shape}
		if c.Policy != 0 {
			p := w.store.policies.PolicyOf(c.Policy)
			if p == nil {
				return nil, store.ErrNoPolicy
			}
			v.states[i] = stateName{key: string(c.Key), policy: p.Name}
			v.policies[i] = p.Name
			v.version = 0 // its limit may be another already
		}
	}
	return v, nil
}

// refresh gives the calls the limits that their policies have by now. It returns false where one has gone.
func (v *waiter) refresh(s *Store) bool {
	version := s.policies.PoliciesVersion()
	if v.version == version {
		return true
	}
	for i, name := range v.policies {
		if name == "" {
			continue
		}
		c := &v.ask.Calls[i]
		p := s.policies.PolicyOf(c.Policy)
		if p == nil {
			p = s.policies.Policy([]byte(name))
		}
		if p == nil {
			return false
		}
		c.Limit, c.Policy = &p.Limit, p.ID
	}
	v.version = version
	return true
}

// sameThatWaits is a call that waits under the same name for the same, and makes the waiter known by its name if there is none.
func (w *waits) sameThatWaits(v *waiter) *waiter {
	if v.terms.Name == "" || v.reserves {
		return nil
	}
	name := waitName{v.terms.Name, v.states[0].key}
	first := w.named[name]
	if first == nil {
		w.named[name] = v
		return nil
	}
	if first.refusing || !first.asksAs(v) {
		return nil
	}
	return first
}

// asksAs reports whether both ask for the same.
func (v *waiter) asksAs(as *waiter) bool {
	if v.ask.Cost != as.ask.Cost || v.ask.UpTo != as.ask.UpTo || v.terms.LeaseNS != as.terms.LeaseNS || v.terms.Bound != as.terms.Bound || !slices.Equal(v.states, as.states) {
		return false
	}
	for i := range v.ask.Calls {
		if v.policies[i] == "" && *v.ask.Calls[i].Limit != *as.ask.Calls[i].Limit {
			return false
		}
	}
	return true
}

// tell answers a waiter that stands nowhere any more, and those that have joined it.
func (w *waits) tell(v *waiter, as *store.TakeRequest) {
	w.forget(v)
	for _, j := range v.joined {
		j.with = nil
		w.tell(j, as)
	}
	v.joined = nil
	if v.silent {
		return
	}
	r := v.request
	copy(r.Calls, as.Calls)
	r.Taken, r.Err = as.Taken, as.Err
	r.Terms.WaitNS, r.Terms.Lease = 0, 0
	if as.Terms != nil {
		r.Terms.Lease = as.Terms.Lease
		if v.reserves {
			r.Terms.WaitNS = as.Terms.WaitNS
		}
	}
	v.waker.Wake()
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
func (w *waits) look(v *waiter, at time.Time) {
	if !v.looked && v.place >= 0 {
		w.deadlines.remove(v)
		v.deadline = at.Add(v.patience())
		w.deadlines.add(v)
		w.setTimer()
	}
	v.looked = true
}

// forget has a waiter wait no longer. It stands in no line.
func (w *waits) forget(v *waiter) {
	delete(w.calls, v.request)
	w.waiting.Store(int64(len(w.calls)))
	w.deadlines.remove(v)
	if v.terms.Name != "" {
		if name := (waitName{v.terms.Name, v.states[0].key}); w.named[name] == v {
			delete(w.named, name)
		}
	}
}

// Leave ends the wait of a request for which TakeBatch has returned false, and reports whether it still waited: see store.Store.
func (s *Store) Leave(r *store.TakeRequest, why error) bool {
	w := &s.waits
	w.mu.Lock()
	defer w.unlock()
	v := w.calls[r]
	switch {
	case v == nil:
		return false
	case why == store.ErrRefused:
		w.refuse(v)
		return true
	case v.refusing: // its answer is on its way
		if why == nil {
			delete(w.calls, r)
			v.silent = true
		}
		return why == nil
	}
	w.goAway(v)
	if why != nil {
		r.Taken, r.Err = store.Taken{}, why
		v.waker.Wake()
	}
	return true
}

// goAway takes a waiter out. One that has joined it takes its place.
func (w *waits) goAway(v *waiter) {
	if first := v.with; first != nil {
		first.joined = slices.DeleteFunc(first.joined, func(j *waiter) bool { return j == v })
		v.with = nil
		w.forget(v)
		return
	}
	l := v.line
	if w.handOver(v) {
		w.forget(v)
		l.serve()
		return
	}
	w.forget(v)
	l.remove(v)
	l.serve()
}

// handOver gives the place of a waiter to one that has joined it, and reports whether there is one.
func (w *waits) handOver(v *waiter) bool {
	if len(v.joined) == 0 {
		return false
	}
	next, l := v.joined[0], v.line
	next.with, next.joined, v.joined = nil, v.joined[1:], nil
	for _, j := range next.joined {
		j.with = next
	}
	next.ticket, next.looked, next.line = v.ticket, v.looked, l
	l.waiters[slices.Index(l.waiters, v)] = next
	for i := range l.slots {
		if l.slots[i].by == v {
			l.slots[i].by = next
		}
	}
	v.heir, v.line = next, nil
	w.named[waitName{next.terms.Name, next.states[0].key}] = next
	return true
}

// keys are those of a waiter on the engine.
func (v *waiter) keys(s *Store) (keys []string) {
	for _, state := range v.states {
		if key := s.options.Prefix + state.key; !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
