package remote

import (
	"log/slog"
	"sync/atomic"
	"time"

	"celld/store"
	"celld/store/policy"
	"celld/store/remote/ahead"
	"celld/store/remote/failure"
	"celld/store/remote/keyspace"
	"celld/store/remote/link"
	"celld/store/remote/queue"
	"celld/store/remote/settings"
	"celld/store/remote/view"
	"celld/store/remote/waits"
)

// DownError is store's.
type DownError = store.DownError

// Failures say what is answered while the engine does not answer. The zero value is an error for all.
type Failures = failure.Modes

// ParseFailures reads --store-failure: see failure.Parse.
func ParseFailures(text string) (Failures, error) { return failure.Parse(text) }

// AheadTimes say how long units last that are taken ahead. The zero value takes none.
type AheadTimes = ahead.Times

// ParseAhead reads --store-ahead: see ahead.Parse.
func ParseAhead(text string) (AheadTimes, error) { return ahead.Parse(text) }

// Store keeps states on an engine. Its methods may be called by many goroutines at once.
type Store struct {
	policy.Keeper // those of settings
	*keyspace.Keyspace

	options  Options
	policies *policy.Set
	link     *link.Link
	settings *settings.Settings
	views    *view.Views
	queues   *queue.Queues
	waits    *waits.Waits
	ahead    *ahead.Ahead
	failure  *failure.Decider
	stats    Stats

	tatCache tatCache
	newKeys  setNewState
	drain    drain
}

// Open returns a Store of an engine. The error is for what no waiting mends: a URL that cannot be read, a file that is not there, a
// password that is refused. An engine that is away is asked again and again, in the background.
func Open(o Options) (*Store, error) {
	s := newStore(o)
	if err := s.link.Connect(); err != nil {
		return nil, err
	}
	s.settings.Start()
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
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{options: o, policies: o.Policies}
	s.tatCache.init(o.Denials)
	s.failure = failure.New(failure.Options{
		Modes: o.Failures, LocalShare: o.LocalShare, LocalKeys: o.LocalKeys, LocalBytes: o.LocalBytes,
		Policies: o.Policies, NewID: func(us int64) uint64 { return s.views.NewID(us) }, Log: o.Log, Counts: &s.stats.Counts,
	})
	s.link = link.New(s.linkOptions())
	s.settings = settings.New(settings.Options{
		Link: s.link, Prefix: o.Prefix, Timeout: o.Timeout, Policies: o.Policies, Time: o.Time, Log: o.Log,
		Changed: func(here bool) { s.waits.FreedAll(here) }, Poll: func() { s.views.RequestNumber() },
	})
	s.Keeper = s.settings
	s.views = view.New(view.Options{
		Link: s.link, Prefix: o.Prefix, Timeout: o.Timeout, Policies: o.Policies, Time: o.Time, Counts: &s.stats.ViewCounts,
		EpochOf: s.settings.EpochOf, Changed: s.tatCache.forget, Freed: func(key string) { s.waits.Freed(key) },
	})
	s.queues = queue.New(o.MaxWaiting, s.link.DownAt)
	s.waits = waits.New(waits.Options{
		Link: s.link, Prefix: o.Prefix, Timeout: o.Timeout, Policies: o.Policies, Log: o.Log,
		Views: s.views, Enqueue: s.enqueueChange, Failure: s.failure, Settings: s.settings.Read,
	})
	s.ahead = ahead.New(ahead.Options{
		Prefix: o.Prefix, Policies: o.Policies, Renew: s.renew, Clock: s.link.Clock, Waits: s.waits.For, Counts: &s.stats.Ahead,
	})
	s.ahead.SetAhead(o.Ahead)
	s.Keyspace = keyspace.New(keyspace.Options{
		Link: s.link, Prefix: o.Prefix, Timeout: o.Timeout, Shows: s.views.Shows,
		Own: func(key string) bool { return settings.Own(key) || view.Own(key) },
		Flushed: func(names []string) {
			s.tatCache.forget(names...)
			s.views.Forget(names)
			for _, name := range names {
				s.ahead.Drop(name[len(o.Prefix):])
			}
		},
	})
	return s
}

// linkOptions are those of the link.
func (s *Store) linkOptions() link.Options {
	o := &s.options
	of := link.Options{
		URL: o.URL, Prefix: o.Prefix, PerHashSlot: o.Prefix + view.IDsKey, Username: o.Username, Password: o.Password,
		TLSCertFile: o.TLSCertFile, TLSKeyFile: o.TLSKeyFile, TLSCACertFile: o.TLSCACertFile,
		Timeout: o.Timeout, Log: o.Log, Time: o.Time, Dial: o.Dial, Stats: &s.stats.Stats,
		OutageBegins: s.failure.Begins, OutageEnds: s.failure.Ends,
	}
	if o.link != nil {
		o.link(&of)
	}
	return of
}

// Check says what Open would find wrong in the options and their files. It connects to nothing.
func Check(o Options) error { return link.Check((&Store{options: o}).linkOptions()) }

// Close ends the connection. Calls that wait for the engine are answered with an error, and so are those that come later.
func (s *Store) Close() {
	s.settings.Close()
	s.waits.Close()
	s.link.Close()
}

// Mode is what decides on calls, and since when: engine, or error, allow, deny or local while the engine or a part of it is known not to
// answer. Policies may have modes of their own.
func (s *Store) Mode() (name string, since time.Time) {
	all, since := s.link.Answers()
	if all {
		return "engine", since
	}
	return s.failure.Mode().String(), since
}

// SetAhead says how long units last that are taken ahead from now on; 0: none are taken.
func (s *Store) SetAhead(t AheadTimes) { s.ahead.SetAhead(t) }

// SetFailures says what is answered from now on while the engine does not answer.
func (s *Store) SetFailures(f Failures) { s.failure.SetModes(f) }

// UsePassword and RenewCertificates are for connections from now on: see link.Link.
func (s *Store) UsePassword(password string) { s.link.UsePassword(password) }
func (s *Store) RenewCertificates() error    { return s.link.RenewCertificates() }

// Away returns why the engine does not answer, nil if it does: see link.Link.
func (s *Store) Away() error { return s.link.Away() }

// deadline is when a call that arrives now has waited long enough.
func (s *Store) deadline() time.Time { return time.Now().Add(s.options.Timeout) }

// enqueueChange sends a change after the other operations of its key. The cached TAT of the key is void then.
func (s *Store) enqueueChange(c *view.Change) {
	s.tatCache.forget(c.Key)
	s.queues.Enqueue(c)
}

// ThrottleBatch is store.Limiter's.
func (s *Store) ThrottleBatch(reqs []store.Request, a store.Access, w store.Waker) bool {
	b := newPending(len(reqs), w)
	deadline := s.deadline()
	for i := range reqs {
		s.throttle(&reqs[i], a, deadline, b)
	}
	return b.done()
}

// TakeBatch is store.Limiter's.
func (s *Store) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	for i := range reqs {
		s.changesOtherwise(&reqs[i])
	}
	if len(reqs) == 1 && s.waits.Waits(&reqs[0], a.NowNS) {
		return s.waits.Enter(&reqs[0], a, w)
	}
	b := newPending(len(reqs), w)
	deadline := s.deadline()
	for i := range reqs {
		s.take(&reqs[i], a, deadline, b)
	}
	return b.done()
}

// AheadOf is store.Store's.
func (s *Store) AheadOf(c *store.Call) int64 { return s.ahead.Held(c.Key) }

// Leave is store.Leases's, as are Waiting, WaitingFor and SetMaxWaiters.
func (s *Store) Leave(r *store.TakeRequest, why error) bool { return s.waits.Leave(r, why) }

func (s *Store) Waiting() (callers, keys int64) { return s.waits.Waiting() }

func (s *Store) WaitingFor(c *store.Call) int64 { return s.waits.WaitingFor(c) }

func (s *Store) SetMaxWaiters(most int64) { s.waits.SetMost(most) }

// ChangeAlone is settings.Settings's.
func (s *Store) ChangeAlone(begin func() (end func())) { s.settings.ChangeAlone(begin) }

// Flush removes all keys: see keyspace.Keyspace.
func (s *Store) Flush(done func(err error)) {
	s.Keyspace.Flush(func(err error) {
		s.waits.FreedAll(true)
		done(err)
	})
}

// pending counts the requests of a ThrottleBatch or TakeBatch that are not answered yet.
type pending struct {
	open  atomic.Int32
	waker store.Waker
}

// newPending counts n requests, and one more that done ends: so nobody is woken before all are sent.
func newPending(n int, w store.Waker) *pending {
	b := &pending{waker: w}
	b.open.Store(int32(n) + 1)
	return b
}

// answered ends one request. The last one wakes the caller.
func (b *pending) answered() {
	if b.open.Add(-1) == 0 {
		b.waker.Wake()
	}
}

// done reports whether all are answered already. Then nobody is woken.
func (b *pending) done() bool { return b.open.Add(-1) == 0 }
