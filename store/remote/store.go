package remote

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"celld/store"
	"celld/store/policy"
)

// ErrBusy reports that too much waits for the engine already. Nothing was sent.
var ErrBusy = errors.New("too many calls wait for the engine")

// DownError reports that the engine has not decided.
type DownError struct {
	Cause string
	Sent  bool // the call may have been counted
}

func (e *DownError) Error() string { return e.Cause }

// Store keeps states on an engine. Its methods may be called by many goroutines at once.
type Store struct {
	options  Options
	policies *policy.Set
	client   atomic.Pointer[rueidis.Client] // nil: there has been no connection yet
	cluster  atomic.Bool                    // keys of one request must share a slot
	link     link

	lanes   lanes
	queues  queues
	failure failure
	waits   waits
	drain   drain
	tables  tables
	seen    seen
	stats   Stats

	process  process
	markKeys markKeys
	own      func() int64 // this process's clock in Unix ns, for tests; nil: the system's

	newKeys  setNewState
	expected setNewState

	settings settings
	keyspace keyspace
	coverage coverage
}

// Open returns a Store of an engine. The error is for what no waiting mends: a URL that cannot be read, a file that is not there, a
// password that is refused. An engine that is away is asked again and again, in the background.
func Open(o Options) (*Store, error) {
	s := newStore(o)
	if err := s.connect(); err != nil {
		return nil, err
	}
	s.settings.start()
	return s, nil
}

// newStore is Open without a connection.
func newStore(o Options) *Store {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxWaiting <= 0 {
		o.MaxWaiting = defaultMaxWaiting
	}
	s := &Store{options: o, policies: o.Policies}
	s.own = o.Time
	s.process.init()
	s.queues.init(&s.options)
	s.failure.init(s)
	s.lanes.init(s)
	s.waits.init(s)
	s.seen.init()
	s.settings.init(s)
	s.coverage.init()
	return s
}

// deadline is when a call that arrives now has waited long enough.
func (s *Store) deadline() time.Time { return time.Now().Add(s.options.Timeout) }

// ThrottleBatch is store.Limiter's.
func (s *Store) ThrottleBatch(reqs []store.Request, a store.Access, w store.Waker) bool {
	b := newBatch(len(reqs), w)
	deadline := s.deadline()
	for i := range reqs {
		s.throttle(&reqs[i], a, deadline, b)
	}
	return b.done()
}

// TakeBatch is store.Limiter's.
func (s *Store) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	if t := reqs[0].Terms; len(reqs) == 1 && t != nil && t.Mode != store.DontWait && reqs[0].Cost > 0 {
		return s.takeWaiting(&reqs[0], a, w)
	}
	b := newBatch(len(reqs), w)
	deadline := s.deadline()
	for i := range reqs {
		s.take(&reqs[i], a, deadline, b)
	}
	return b.done()
}

// batch counts the requests of a ThrottleBatch or TakeBatch that are not answered yet.
type batch struct {
	open  atomic.Int32
	waker store.Waker
}

// newBatch returns a batch of n, and one more that done ends: so nobody is woken before all have been asked.
func newBatch(n int, w store.Waker) *batch {
	b := &batch{waker: w}
	b.open.Store(int32(n) + 1)
	return b
}

// answered ends one request. The last wakes who waits.
func (b *batch) answered() {
	if b.open.Add(-1) == 0 {
		b.waker.Wake()
	}
}

// done reports whether all are answered already. Then nobody is woken.
func (b *batch) done() bool { return b.open.Add(-1) == 0 }
