package view

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote/link"
)

// Options say where views are read and stored. All except Time must be set.
type Options struct {
	Link     *link.Link
	Prefix   string
	Timeout  time.Duration
	Policies *policy.Set
	EpochOf  func(l *policy.Limit) uint64 // states under another are void: see cutEpoch
	Changed  func(names ...string)        // keys that have been stored
	Freed    func(key string)             // a key, as clients name it, of which something may have been given back
	Counts   *Counts

	Time func() int64 // limit time in Unix ns, for tests; nil: the engine's
}

// Counts count what views do.
type Counts struct {
	Changes   atomic.Int64 // decisions by package memory
	Conflicts atomic.Int64 // of these, those decided again
}

// Views are views of one engine.
type Views struct {
	Options
	process process
	own     func() int64 // this process's clock in Unix ns; nil: the system's
	tables  sync.Pool    // of views that are closed
	cache   *lru.Cache[string, *cachedContent]
}

// New returns Views.
func New(o Options) *Views {
	s := &Views{Options: o, own: o.Time}
	s.process.number.Store(rand.Uint64N(processes))
	s.cache, _ = lru.New[string, *cachedContent](cacheSize)
	return s
}

func (s *Views) deadline() time.Time { return time.Now().Add(s.Timeout) }

// Open reads keys, and then wakes w, from any goroutine. Keys are as clients name them, without the prefix.
func (s *Views) Open(keys [][]byte, w store.Waker) *View {
	v := s.newView(s.deadline())
	for _, key := range keys {
		v.add(s.Prefix + string(key))
	}
	v.open(v.give(w))
	return v
}

// Blank is a view without keys, at the caller's time.
func (s *Views) Blank(nowNS int64) *View {
	v := s.newView(s.deadline())
	v.NowNS = nowNS
	v.Table()
	return v
}

// Shows tells whether callers see a key on the engine, which they do not if it lingers. If the engine does not answer, Shows tells true.
func (s *Views) Shows(name string, deadline time.Time, done func(shows bool)) {
	v := s.newView(deadline)
	v.add(name)
	v.open(func() {
		defer v.Close()
		if v.Err == nil {
			v.Table()
		}
		done(v.Err != nil || v.keys[0].shown)
	})
}

func (s *Views) newView(deadline time.Time) *View {
	return &View{views: s, deadline: deadline, places: make(map[string]int)}
}

// table holds a view's keys. It gives leases their IDs.
type table struct {
	*memory.Store
	first, last uint64 // of those that it gave for this view; 0: none
}

// mostKeys is how many keys a view has room for.
const mostKeys = 1 << 16

func (s *Views) table() *table {
	if t, ok := s.tables.Get().(*table); ok {
		return t
	}
	t := &table{}
	t.Store = memory.New(memory.Options{MaxKeys: mostKeys, Shards: 1, Policies: s.Policies, NewID: func(us int64) uint64 {
		t.last = s.NewID(us)
		if t.first == 0 {
			t.first = t.last
		}
		return t.last
	}})
	return t
}
