// Package queue sends one request to the engine at a time for each key. What is asked of the key meanwhile waits, and is decided by the
// next request, in its order: so 50 clients on one key cost the engine one script and not 50.
//
//	q := queue.New(mostBytes, link.DownAt)
//	q.Ask(o)      // o.Send is called with a Batch once o's turn has come, or o.Answer with an error
//
// Send ends each operation of its Batch by Batch.Answer, and then calls Batch.Next, from any goroutine.
package queue

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"celld/store/remote/link"
)

// Common is what every Operation has. It is embedded.
type Common struct {
	Key      string // on the engine
	Deadline time.Time
}

func (c *Common) common() *Common { return c }

// Operation is what is asked of one key.
type Operation interface {
	common() *Common
	GoesWith(first Operation) bool // one request can decide both, which have the same key
	Send(b *Batch)                 // sends the request for a Batch whose first operation it is
	Answer(err error)              // ends it; nil: it was decided
}

// Most is how many operations of a key one request decides.
const Most = 256

// operationBytes is what an operation takes while it waits, beside its key.
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
	keys map[string]*Batch // for which a request is under way
	_    [40]byte
}

// New returns Queues. Operations of more than most bytes are refused with link.ErrBusy, and those of a key that is down with that error.
func New(most int64, down func(key string) error) *Queues {
	q := &Queues{most: most, down: down, seed: maphash.MakeSeed()}
	for i := range q.shards {
		q.shards[i].keys = make(map[string]*Batch)
	}
	return q
}

func (q *Queues) shardOf(key string) *shard {
	return &q.shards[maphash.String(q.seed, key)%shards]
}

// Bytes is what all operations take that are not answered.
func (q *Queues) Bytes() int64 { return q.bytes.Load() }

// Busy reports whether a request for a key is under way.
func (q *Queues) Busy(key string) bool {
	sh := q.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.keys[key] != nil
}

// Ask sends an operation after those of its key that wait already.
func (q *Queues) Ask(o Operation) {
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
	b := &Batch{queues: q, key: key, Operations: []Operation{o}}
	sh.keys[key] = b
	sh.mu.Unlock()
	b.send()
}

func (q *Queues) answer(o Operation, err error) {
	o.Answer(err)
	q.bytes.Add(-bytesOf(o)) // after what the answer has asked: who drains a store waits for that, too
}

// Batch is operations that go together, for which a request is under way.
type Batch struct {
	queues     *Queues
	key        string
	Operations []Operation
	waiting    []Operation // for the next; under the lock of the key's shard
}

// Answer ends an operation of the batch.
func (b *Batch) Answer(o Operation, err error) { b.queues.answer(o, err) }

// End ends all operations, and sends what waits.
func (b *Batch) End(err error) {
	for _, o := range b.Operations {
		b.Answer(o, err)
	}
	b.Next()
}

// Next sends what has gathered meanwhile. It is called once.
func (b *Batch) Next() {
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

// send answers those that have waited too long unsent.
func (b *Batch) send() {
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
