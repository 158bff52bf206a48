package remote

import (
	"sync/atomic"
	"time"

	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote/failure"
	"celld/store/remote/link"
)

// Errors of calls that the engine has not decided: see package link.
type (
	DownError   = link.DownError
	EngineError = link.EngineError
)

// Failures say what is answered while the engine does not answer. The zero value is an error for all.
type Failures = failure.Modes

// ParseFailures reads --store-failure: see failure.Parse.
func ParseFailures(text string) (Failures, error) { return failure.Parse(text) }

// ErrBusy and ErrCrossSlot are link's.
var (
	ErrBusy      = link.ErrBusy
	ErrCrossSlot = link.ErrCrossSlot
)

// Store keeps states on an engine. Its methods may be called by many goroutines at once.
type Store struct {
	options  Options
	policies *policy.Set
	link     *link.Link
	send     func(*link.Request) // link's

	queues  queues
	failure *failure.Decider
	waits   waits
	drain   drain
	tables  tables
	stats   Stats

	process process
	own     func() int64 // this process's clock in Unix ns, for tests; nil: the system's

	newKeys setNewState

	settings settings
	keyspace keyspace
}

// Open returns a Store of an engine. The error is for what no waiting mends: a URL that cannot be read, a file that is not there, a
// password that is refused. An engine that is away is asked again and again, in the background.
func Open(o Options) (*Store, error) {
	s := newStore(o)
	if err := s.link.Connect(); err != nil {
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
	s.failure = failure.New(failure.Options{
		Modes: o.Failures, LocalShare: o.LocalShare, LocalKeys: o.LocalKeys, LocalBytes: o.LocalBytes,
		Policies: o.Policies, NewID: s.newID, Log: o.Log, Counts: &s.stats.Counts,
	})
	s.link = link.New(s.linkOptions())
	s.send = s.link.Send
	s.own = o.Time
	s.process.init()
	s.queues.init(&s.options)
	s.waits.init(s)
	s.settings.init(s)
	return s
}

// linkOptions are those of the link.
func (s *Store) linkOptions() link.Options {
	o := &s.options
	return link.Options{
		URL: o.URL, Prefix: o.Prefix, PerSlot: o.Prefix + idsKey, Username: o.Username, Password: o.Password,
		TLSCertFile: o.TLSCertFile, TLSKeyFile: o.TLSKeyFile, TLSCACertFile: o.TLSCACertFile,
		Timeout: o.Timeout, Log: o.Log, Time: o.Time, Stats: &s.stats.Stats,
		OutageBegins: s.failure.Begins, OutageEnds: s.failure.Ends,
	}
}

// Check says what Open would find wrong in the options and their files. It connects to nothing.
func Check(o Options) error { return link.Check((&Store{options: o}).linkOptions()) }

// Close ends the connection. Calls that wait for the engine are answered with an error, and so are those that come later.
func (s *Store) Close() {
	s.settings.close()
	s.waits.close()
	s.link.Close()
}

// Mode is who decides on calls, and since when: engine, or error, allow, deny or local while a part of it or all of it is known not to
// answer. Policies may have others.
func (s *Store) Mode() (name string, since time.Time) {
	all, since := s.link.Answers()
	if all {
		return "engine", since
	}
	return s.failure.Mode().String(), since
}

// SetFailures says what is answered from now on while the engine does not answer.
func (s *Store) SetFailures(f Failures) { s.failure.SetModes(f) }

// Local returns the table that decides while the engine does not, nil where it does not decide now: either the engine answers, or no call
// has met the mode local since it stopped to. The leases in it are those that were granted meanwhile.
func (s *Store) Local() *memory.Store { return s.failure.Local() }

// Away returns why the engine does not answer, nil if it does: see link.Link.
func (s *Store) Away() error { return s.link.Away() }

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
