package remote

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/remote/view"
)

// Release and Give are store.Leases's. Where the answer counts, they are done in a transaction.
func (s *Store) Release(key []byte, id int64, a store.Access) (bool, error) {
	key = slices.Clone(key)
	s.later(key, true, func(v *view.View) { _, _ = v.Release(key, id, at(v, a)) })
	return true, nil
}

func (s *Store) Give(key []byte, l *cell.Limit, policy uint32, n int64, a store.Access) (int64, error) {
	key = slices.Clone(key)
	s.later(key, false, func(v *view.View) { _, _ = v.Give(key, l, policy, n, at(v, a)) })
	return n, nil
}

// at is an Access at the view's time.
func at(v *view.View, a store.Access) store.Access {
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
		for s.drain.left.Load() > 0 || s.queues.Bytes() > 0 {
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
func (s *Store) later(key []byte, twice bool, decide func(v *view.View)) {
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
		s.askChange(s.views.NewChange([]string{name}, s.deadline(), decide, done))
	}
	d.left.Add(1)
	ask()
}
