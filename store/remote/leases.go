package remote

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/view"
)

// Release and GiveBack are store.Leases's. Callers that need the answer use a transaction.
func (s *Store) Release(key []byte, id int64, a store.Access) (bool, error) {
	key = slices.Clone(key)
	s.later(key, true, func(v *view.View) { _, _ = v.Release(key, id, v.At(a)) })
	return true, nil
}

func (s *Store) GiveBack(key []byte, l *cell.Limit, p *policy.Limit, n int64, takenNS uint64, a store.Access) (int64, error) {
	key = slices.Clone(key)
	s.later(key, false, func(v *view.View) { _, _ = v.GiveBack(key, l, p, n, takenNS, v.At(a)) })
	return n, nil
}

const (
	drainPause = 10 * time.Millisecond  // between looks at what is left
	drainAgain = 150 * time.Millisecond // between attempts at what the engine has not taken
)

// drain counts the changes that nobody waits for.
type drain struct {
	left  atomic.Int64
	again atomic.Pointer[context.Context] // until it ends, changes that the engine has not taken are sent again; nil: they are not
}

// Drain is called before the Store is closed. From now on until ctx ends, it sends changes that nobody waits for again if the engine does
// not take them: those that end leases of sessions that have gone. drained waits until nothing is left, or returns false when ctx has
// ended.
func (s *Store) Drain(ctx context.Context) (drained func() bool) {
	s.drain.again.Store(&ctx)
	s.ahead.SetAhead(AheadTimes{})
	s.ahead.GiveBack()
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

// later makes a change of one key that nobody waits for. If the engine does not take it, the leases end by themselves; while the Store is
// drained, later sends it again. twice: it may be sent again even if the first may have been done.
func (s *Store) later(key []byte, twice bool, decide func(v *view.View)) {
	d, name := &s.drain, s.options.Prefix+string(key)
	var ask func()
	done := func(err error) {
		down := (*DownError)(nil)
		failed := errors.Is(err, store.ErrBusy) || errors.As(err, &down) && (twice || !down.Sent)
		if ctx := d.again.Load(); failed && ctx != nil && (*ctx).Err() == nil {
			time.AfterFunc(drainAgain, ask)
			return
		}
		d.left.Add(-1)
	}
	ask = func() {
		s.enqueueChange(s.views.NewChange([]string{name}, s.deadline(), decide, done))
	}
	d.left.Add(1)
	ask()
}
