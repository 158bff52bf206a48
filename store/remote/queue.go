package remote

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"celld/store"
	"celld/store/remote/link"
)

// operation is what is asked of one key: a bucket's call, or a change. One of throttle, take and change is set.
type operation struct {
	key      string // on the engine
	throttle *store.Request
	take     *store.TakeRequest // of one limit with algo=gcra
	field    string             // of take: the limit's in the hash
	change   *change
	access   store.Access
	deadline time.Time
	batch    *batch // of throttle and take
}

// change is decided on by a table of this process that has its keys.
type change struct {
	keys []string // on the engine; the first names the queue. Those that decide finds missing may be added by it

	// decide decides. After a conflict it is called again: what it set before is void. It is called from any goroutine.
	decide func(v *View)

	// done is called once, from any goroutine, after decide's outcome is stored. It must not block. The error is a *DownError, or one
	// of the engine's, and nothing was decided then.
	done func(err error)
}

// mostTogether is how many operations of a key one request decides.
const mostTogether = 256

// operationBytes is what an operation takes while it waits, beside its key.
const operationBytes = 256

const queueShards = 64

// queues have the operations of each key that are not answered. For each key one request is under way.
type queues struct {
	seed   maphash.Seed
	bytes  atomic.Int64
	shards [queueShards]queueShard
}

type queueShard struct {
	mu       sync.Mutex
	keys     map[string]*queue
	versions versions
	_        [32]byte
}

// queue is a key's. It is there as long as a request is under way.
type queue struct {
	key     string
	waiting []*operation
}

func (q *queues) init(o *Options) {
	q.seed = maphash.MakeSeed()
	for i := range q.shards {
		q.shards[i].keys = make(map[string]*queue)
		q.shards[i].versions.init(max(o.Denials, versionsKept) / queueShards)
	}
}

func (q *queues) shardOf(key string) *queueShard {
	return &q.shards[maphash.String(q.seed, key)%uint64(len(q.shards))]
}

// ask has an operation decided after those of its key that wait already.
func (s *Store) ask(o *operation) {
	if s.queues.bytes.Add(o.bytes()) > s.options.MaxWaiting {
		s.answer(o, ErrBusy)
		return
	}
	if err := s.link.DownAt(o.key); err != nil {
		s.answer(o, err)
		return
	}
	sh := s.queues.shardOf(o.key)
	sh.mu.Lock()
	if o.change != nil {
		sh.versions.forgetTAT(o.key)
	}
	q := sh.keys[o.key]
	if q != nil {
		q.waiting = append(q.waiting, o)
		sh.mu.Unlock()
		return
	}
	q = &queue{key: o.key}
	sh.keys[o.key] = q
	sh.mu.Unlock()
	s.decide(q, []*operation{o})
}

// versionsOf calls a function with the versions of each key, which are locked.
func (s *Store) versionsOf(keys []string, do func(v *versions, key string)) {
	for _, key := range keys {
		sh := s.queues.shardOf(key)
		sh.mu.Lock()
		do(&sh.versions, key)
		sh.mu.Unlock()
	}
}

func (o *operation) bytes() int64 { return int64(len(o.key)) + operationBytes }

// answer ends an operation.
func (s *Store) answer(o *operation, err error) {
	defer s.queues.bytes.Add(-o.bytes()) // after what the answer has asked: see Drain
	switch {
	case o.change != nil:
		o.change.done(err)
		return
	case o.throttle != nil:
		s.answerThrottle(o, err)
	default:
		s.answerTake(o, err)
	}
	o.batch.answered()
}

// next sends the request for what has gathered in a queue. It is called once when the request before it is answered.
func (s *Store) next(q *queue) {
	sh := s.queues.shardOf(q.key)
	sh.mu.Lock()
	n := 0
	for n < len(q.waiting) && n < mostTogether && q.waiting[n].goesWith(q.waiting[0]) {
		n++
	}
	if n == 0 {
		delete(sh.keys, q.key)
		sh.mu.Unlock()
		return
	}
	ops := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	sh.mu.Unlock()
	s.decide(q, ops)
}

// goesWith reports whether one request can decide both.
func (o *operation) goesWith(first *operation) bool {
	switch {
	case first.change != nil || o.change != nil:
		return first.change != nil && o.change != nil
	case o.exact() != first.exact():
		return false
	case first.throttle != nil:
		return o.throttle != nil
	}
	return o.take != nil && sameState(o.take, first.take)
}

// decide sends the request for operations that go together, and then the next. Those that have waited too long are answered unsent.
func (s *Store) decide(q *queue, ops []*operation) {
	if now := time.Now(); ops[0].deadline.Before(now) {
		ops = slices.DeleteFunc(ops, func(o *operation) bool {
			late := o.deadline.Before(now)
			if late {
				s.answer(o, link.ErrLate)
			}
			return late
		})
	}
	switch {
	case len(ops) == 0:
		s.next(q)
	case ops[0].change != nil:
		s.changes(q, ops)
	case !ops[0].exact():
		s.changes(q, s.asChanges(ops))
	case ops[0].throttle != nil && (s.setNew(q, ops) || s.expect(q, ops)):
	default:
		s.decideBuckets(q, ops)
	}
}
