// Package queue sends one request at a time for each key of the engine. It knows no limits.
//
//	q := queue.New(mostBytes, link.DownAt)
//	q.Enqueue(o)      // calls o.Send with a Group when o is first, or o.Answer with an error
//
// Operations on the key meanwhile wait. The next request decides them together, in their order: so 50 clients on one key cost the engine
// one script and not 50. Send ends each operation of its Group by Group.Answer, and then calls Group.Next, from any goroutine.
//
//	key ─▶ Group under way ─▶ waiting operations ─ Next ─▶ Group under way ─▶ …
package queue

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"celld/store/remote/link"
)

// Common is what operations have in common. They embed it.
type Common struct {
	Key      string // on the engine
	Deadline time.Time
}

func (c *Common) common() *Common { return c }

// Operation is a question about one key, or a change of it.
type Operation interface {
	common() *Common
	GoesWith(first Operation) bool // one request can decide both, which have the same key
	Send(b *Group)                 // sends the request for a Group whose first operation it is
	Answer(err error)              // ends it; nil: it was decided
}

// Most is how many operations of a key one request decides.
const Most = 256

// operationBytes is how much memory an operation takes while it waits, beside its key.
const operationBytes = 256

func bytesOf(o Operation) int64 { return int64(len(o.common().Key)) + operationBytes }

const shards = 64

// Queues hold the operations of each key that are not answered.
type Queues struct {
	most   int64
	down   func(key string) error
	seed   maphash.Seed
	bytes  atomic.Int64
	shards [shards]shard
}

type shard struct {
	mu   sync.Mutex
	keys map[string]*Group // for which a request is under way
	_    [40]byte
}

// New returns Queues. Operations of more than most bytes are refused with link.ErrBusy, and those of a key that is down with that error.
func New(most int64, down func(key string) error) *Queues {
	q := &Queues{most: most, down: down, seed: maphash.MakeSeed()}
	for i := range q.shards {
		q.shards[i].keys = make(map[string]*Group)
	}
	return q
}

func (q *Queues) shardOf(key string) *shard {
	return &q.shards[maphash.String(q.seed, key)%shards]
}

// Bytes is how much memory all unanswered operations take.
func (q *Queues) Bytes() int64 { return q.bytes.Load() }

// Busy reports whether a request for a key is under way.
func (q *Queues) Busy(key string) bool {
	sh := q.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.keys[key] != nil
}

// Enqueue sends an operation after those of its key that wait already.
func (q *Queues) Enqueue(o Operation) {
	key := o.common().Key
	if q.bytes.Add(bytesOf(o)) > q.most {
		q.answer(o, link.ErrBusy)
		return
	}
	if err := q.down(key); err != nil {
		q.answer(o, err)
		return
	}
	sh := q.shardOf(key)
	sh.mu.Lock()
	if b := sh.keys[key]; b != nil {
		b.waiting = append(b.waiting, o)
		sh.mu.Unlock()
		return
	}
	b := &Group{queues: q, key: key, Operations: []Operation{o}}
	sh.keys[key] = b
	sh.mu.Unlock()
	b.send()
}

func (q *Queues) answer(o Operation, err error) {
	o.Answer(err)
	q.bytes.Add(-bytesOf(o)) // after what the answer has enqueued: a store that is drained waits for that, too
}

// Group is operations that go together, for which a request is under way.
type Group struct {
	queues     *Queues
	key        string
	Operations []Operation
	waiting    []Operation // for the next; under the lock of the key's shard
}

// Answer ends an operation of the group.
func (b *Group) Answer(o Operation, err error) { b.queues.answer(o, err) }

// End ends all operations, and sends those that wait.
func (b *Group) End(err error) {
	for _, o := range b.Operations {
		b.Answer(o, err)
	}
	b.Next()
}

// Next sends the operations that have gathered meanwhile. It is called once for each Send.
func (b *Group) Next() {
	sh := b.queues.shardOf(b.key)
	sh.mu.Lock()
	waiting, n := b.waiting, 0
	for n < len(waiting) && n < Most && waiting[n].GoesWith(waiting[0]) {
		n++
	}
	if n == 0 {
		delete(sh.keys, b.key)
		sh.mu.Unlock()
		return
	}
	b.Operations, b.waiting = waiting[:n:n], waiting[n:]
	sh.mu.Unlock()
	b.send()
}

// send sends the operations, and answers those that have waited too long.
func (b *Group) send() {
	if now := time.Now(); b.Operations[0].common().Deadline.Before(now) {
		b.Operations = slices.DeleteFunc(b.Operations, func(o Operation) bool {
			late := o.common().Deadline.Before(now)
			if late {
				b.Answer(o, link.ErrLate)
			}
			return late
		})
	}
	if len(b.Operations) == 0 {
		b.Next()
		return
	}
	b.Operations[0].Send(b)
}
