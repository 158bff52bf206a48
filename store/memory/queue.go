package memory

import (
	"math"
	"sync/atomic"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
)

// Those who wait for a state stand in its queue, first come first served, and take nothing before their turn. A queue belongs to
// the shard of its key, and not to its slot: so it outlives the key.
//
//	queue ─▶ first waiter ─▶ … ─▶ last       timer: at the first's moment, the queue is served
//
// The first of a queue takes at the moment at which its call passes, whenever the timer comes: a timer that is late costs no
// rate. Until somebody waits no longer, a call that comes later is denied, as if all who wait had taken already. Whatever may
// have changed the moment pokes the queue: then the first is looked at again.
//
// A call of several limits stands in the queue of the one that it waits for longest. When that passes, it asks all of them, and
// if another denies it goes to that one's queue, to the place of its ticket. It holds nothing meanwhile. So nobody waits for one
// with a later ticket, and there is no deadlock.
type queue struct {
	sh     *shard
	hash   uint64
	key    string
	policy uint32     // Policy.ID; 0: of literals
	shape  cell.Shape // of literals

	first, last *waiter
	waiters     int
	cost        int64 // of all waiters

	seenNS int64 // nobody who waits can have passed before
	timer  *time.Timer
	dueNS  int64 // of the timer; 0: at once, notDue: it is not set
	quiet  bool  // its first is being served: what that changes pokes nobody

	kept      *waiter // in another queue, for which those with later tickets leave this state alone
	keptUntil int64

	ahead forecast
}

const notDue = math.MaxInt64

// waiter is a call that waits, or a reservation behind such calls: that has been answered, and spends when its turn comes. It has
// some 200 bytes, and as many for its timer.
type waiter struct {
	store      *Store
	request    *pending
	waker      store.Waker // nil: a reservation
	access     store.Access
	locks      shardSet
	ticket     uint64
	deadlineNS int64
	timer      *time.Timer // at the deadline
	policies   []string    // of the calls, in their order; "" for a literal. nil: there is none
	version    uint64      // PoliciesVersion when they were looked up

	queue      *queue // nil: it waits no longer, or with another
	next, prev *waiter
	cost       int64 // of its queue's state

	with    *waiter   // that it has joined
	joined  []*waiter // that have joined it
	knownIn *shard    // where it can be joined, nil: nowhere
	known   namedWait
}

// waiting is what a store knows of those who wait.
type waiting struct {
	tickets atomic.Uint64
	most    atomic.Int64 // waiters and reservations behind them
	held    atomic.Int64 // of them
	callers atomic.Int64
	keys    atomic.Int64
}

const defaultMaxWaiters = 10_000

// Waiting is how many callers wait, and for how many keys.
func (s *Store) Waiting() (callers, keys int64) {
	return s.waiting.callers.Load(), s.waiting.keys.Load()
}

// SetMaxWaiters changes Options.MaxWaiters. Those who wait already stay.
func (s *Store) SetMaxWaiters(most int64) {
	if most <= 0 {
		most = defaultMaxWaiters
	}
	s.waiting.most.Store(most)
}

// queueOf is the queue of a call's state, nil if nobody waits for it.
func (sh *shard) queueOf(c *call) *queue {
	if len(sh.waited) == 0 {
		return nil
	}
	for _, q := range sh.waited[string(c.Key)] {
		if q.is(c) {
			return q
		}
	}
	return nil
}

// is reports whether a call of the queue's key shares its state.
func (q *queue) is(c *call) bool {
	return c.Policy == q.policy && (c.Policy != 0 || c.Limit.Shape == q.shape)
}

// newQueue makes the queue of a call's state.
func (s *Store) newQueue(c *call) *queue {
	sh := c.sh
	q := &queue{sh: sh, hash: c.hash, key: string(c.Key), policy: c.Policy, shape: c.Limit.Shape, dueNS: notDue}
	q.timer = time.AfterFunc(math.MaxInt64, func() { s.serve(q) })
	if sh.waited == nil {
		sh.waited = make(map[string][]*queue)
	}
	of := sh.waited[q.key]
	if len(of) == 0 {
		s.waiting.keys.Add(1)
		sh.flagWaited(q.hash, c.Key, table.FlagWaited)
	}
	sh.waited[q.key] = append(of, q)
	return q
}

// drop removes a queue in which nobody waits.
func (q *queue) drop(s *Store) {
	q.timer.Stop()
	of := q.sh.waited[q.key]
	for i := range of {
		if of[i] == q {
			of[i] = of[len(of)-1]
			of[len(of)-1] = nil
			of = of[:len(of)-1]
			break
		}
	}
	if q.sh.waited[q.key] = of; len(of) == 0 {
		delete(q.sh.waited, q.key)
		s.waiting.keys.Add(-1)
		q.sh.flagWaited(q.hash, []byte(q.key), 0)
	}
}

// FlagWaited sets the flag of a key's slot, if the key is there.
func (sh *shard) flagWaited(hash uint64, key []byte, value uint64) {
	if _, e := sh.Slot(hash, key); e != nil {
		e.SetInfo(table.FlagWaited, value)
	}
}

// insert puts a waiter where its ticket belongs.
func (q *queue) insert(w *waiter, cost int64) {
	w.queue, w.cost = q, cost
	q.waiters++
	q.cost += cost
	before := q.last
	if before != nil && before.ticket > w.ticket { // it comes from another queue, and has waited longer than most
		before = nil
		for v := q.first; v.ticket < w.ticket; v = v.next {
			before = v
		}
	}
	w.prev = before
	if before == nil {
		w.next, q.first = q.first, w
	} else {
		w.next, before.next = before.next, w
	}
	if w.next == nil {
		q.last = w
	} else {
		w.next.prev = w
	}
}

// remove takes a waiter out, and drops the queue with the last one. After its first the next is looked at from nowNS on.
func (q *queue) remove(s *Store, w *waiter, nowNS int64) {
	if w.prev == nil {
		q.first = w.next
		q.seenNS = max(q.seenNS, nowNS)
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.queue, w.next, w.prev = nil, nil, nil
	q.waiters--
	q.cost -= w.cost
	if q.first == nil {
		q.drop(s)
	}
}

// poke has the first looked at again at once, as something has changed at nowNS.
func (q *queue) poke(nowNS int64) {
	if q.quiet {
		return
	}
	q.seenNS = max(q.seenNS, nowNS)
	q.ahead.stale = true
	if q.dueNS != 0 {
		q.dueNS = 0
		q.timer.Reset(0)
	}
}

// setTimer has the queue served at an instant. A poke is not put off.
func (q *queue) setTimer(s *Store, atNS int64) {
	if q.dueNS != 0 && q.dueNS != atNS {
		q.dueNS = atNS
		q.timer.Reset(time.Duration(max(atNS-s.now(), 0)))
	}
}

// pokeKey pokes the queues of a key.
func (sh *shard) pokeKey(key []byte, nowNS int64) {
	for _, q := range sh.waited[string(key)] {
		q.poke(nowNS)
	}
}

// pokeAll pokes the shard's queues.
func (sh *shard) pokeAll(nowNS int64) {
	for _, of := range sh.waited {
		for _, q := range of {
			q.poke(nowNS)
		}
	}
}

// pokeAll pokes all queues: a policy or a rule has changed.
func (s *Store) pokeAll() {
	if s.waiting.keys.Load() == 0 {
		return
	}
	now := s.now()
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.pokeAll(now)
		sh.unlock()
	}
}

// refresh gives a waiter's calls the limits that their policies have by now. It returns false where one has gone.
func (w *waiter) refresh() bool {
	s := w.store
	version := s.PoliciesVersion()
	if w.policies == nil || w.version == version {
		return true
	}
	for i, name := range w.policies {
		c := &w.request.calls[i]
		if c.Policy == 0 {
			continue
		}
		p := s.PolicyOf(c.Policy)
		if p == nil {
			p = s.Policy([]byte(name))
		}
		if p == nil {
			return false
		}
		c.Limit, c.Policy = &p.Limit, p.ID
		s.start(c)
	}
	w.version = version
	return true
}

// policiesOf are the names of the policies of calls, nil if all are literals. changed reports one whose limit is another by now; the
// error is ErrNoPolicy.
func (s *Store) policiesOf(calls []call) (names []string, changed bool, err error) {
	for i := range calls {
		c := &calls[i]
		if c.Policy == 0 {
			continue
		}
		p := s.PolicyOf(c.Policy)
		if p == nil {
			return nil, false, store.ErrNoPolicy
		}
		if names == nil {
			names = make([]string, len(calls))
		}
		names[i] = p.Name
		changed = changed || p.Limit != *c.Limit
	}
	return names, changed, nil
}
