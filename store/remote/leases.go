package remote

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"celld/cell"
	"celld/store"
)

// Leases of a Take of several keys have links to these: a view must have all of them before one ends.

// Renew, Release and Settle are store.Store's. Where the view does not have all keys of a lease, Commit reads these, and it must be done
// again.
func (v *View) Renew(key []byte, id, ns int64, a store.Access) (bool, error) {
	if lacks, err := v.lacksLinks(key, id, a); lacks || err != nil {
		return lacks, err
	}
	return v.Table().Renew(key, id, ns, a)
}

func (v *View) Release(key []byte, id int64, a store.Access) (bool, error) {
	return v.Settle(key, id, 0, a)
}

func (v *View) Settle(key []byte, id, n int64, a store.Access) (bool, error) {
	if lacks, err := v.lacksLinks(key, id, a); lacks || err != nil {
		return lacks, err
	}
	return v.Table().Settle(key, id, n, a)
}

// Give is store.Store's.
func (v *View) Give(key []byte, l *cell.Limit, policy uint32, n int64, a store.Access) (int64, error) {
	return v.Table().Give(key, l, policy, n, a)
}

// lacksLinks reports whether a lease leads to keys that the view does not have. The error is a *store.NoRightError: none of them is read
// then.
func (v *View) lacksLinks(key []byte, id int64, a store.Access) (bool, error) {
	had := len(v.missing)
	linked, err := v.Table().Linked(key, id, a)
	if err != nil {
		return false, err
	}
	for _, key := range linked {
		v.miss([]string{v.store.options.Prefix + string(key)})
	}
	return len(v.missing) > had, nil
}

// Renew, Release, Settle and Give are store.Store's, but nobody waits for them: they return as if there were what they ask for. Where
// the answer counts, they are done on a View.
func (s *Store) Renew(key []byte, id, ns int64, a store.Access) (bool, error) {
	key = slices.Clone(key)
	s.later(key, true, func(v *View) { _, _ = v.Renew(key, id, ns, v.at(a)) })
	return true, nil
}

func (s *Store) Release(key []byte, id int64, a store.Access) (bool, error) {
	return s.Settle(key, id, 0, a)
}

func (s *Store) Settle(key []byte, id, n int64, a store.Access) (bool, error) {
	key = slices.Clone(key)
	s.later(key, true, func(v *View) { _, _ = v.Settle(key, id, n, v.at(a)) })
	return true, nil
}

func (s *Store) Give(key []byte, l *cell.Limit, policy uint32, n int64, a store.Access) (int64, error) {
	key = slices.Clone(key)
	s.later(key, false, func(v *View) { _, _ = v.Give(key, l, policy, n, v.at(a)) })
	return n, nil
}

// at is an Access at the view's time.
func (v *View) at(a store.Access) store.Access {
	a.NowNS = v.NowNS
	return a
}

const (
	drainPause = 10 * time.Millisecond  // between looks at what is left
	drainAgain = 150 * time.Millisecond // between attempts at what the engine has not taken
)

// drain is about the changes that nobody waits for.
type drain struct {
	left  atomic.Int64
	again atomic.Pointer[context.Context] // until it ends, what the engine has not taken is asked again; nil: nothing is
}

// Drain is called before the Store is closed. From now on until ctx ends, the changes that nobody waits for are asked again where the
// engine does not take them: the ends of leases whose sessions have gone. drained waits until nothing is left, or returns false when
// ctx has ended.
func (s *Store) Drain(ctx context.Context) (drained func() bool) {
	s.drain.again.Store(&ctx)
	return func() bool {
		for s.drain.left.Load() > 0 || s.queues.bytes.Load() > 0 {
			select {
			case <-ctx.Done():
				return false
			case <-time.After(drainPause):
			}
		}
		return true
	}
}

// later makes a change of one key that nobody waits for. If the engine does not take it, its leases end by themselves, except while the
// Store is drained. twice: it may be done again where it is not known whether it was done.
func (s *Store) later(key []byte, twice bool, decide func(v *View)) {
	d, name := &s.drain, s.options.Prefix+string(key)
	var ask func()
	done := func(err error) {
		down := (*DownError)(nil)
		failed := errors.Is(err, ErrBusy) || errors.As(err, &down) && (twice || !down.Sent)
		if ctx := d.again.Load(); failed && ctx != nil && (*ctx).Err() == nil {
			time.AfterFunc(drainAgain, ask)
			return
		}
		d.left.Add(-1)
	}
	ask = func() {
		s.ask(&operation{key: name, deadline: s.deadline(), change: &change{keys: []string{name}, decide: decide, done: done}})
	}
	d.left.Add(1)
	ask()
}
