package bound

import (
	"sync"
	"sync/atomic"
	"time"

	"celld/store"
)

// Releaser ends the leases of connections that have gone, one connection after the other: 10,000 leases take 50 ms.
type Releaser struct {
	Store   func() store.Leases
	Clock   func() int64                     // ns
	Hurries func() bool                      // it makes no pauses, as the process ends
	Survive func(where string, about ...any) // deferred: it recovers a panic

	mu      sync.Mutex
	left    []ending // the first is being ended
	running sync.WaitGroup

	givingBack atomic.Int64
}

// ending are leases that are being ended.
type ending struct {
	byID map[int64]lease
	ids  []int64
}

// stepNS is how long leases are ended at a time.
const stepNS = 1_000_000

// some ends leases for stepNS, and reports whether there are more.
func (r *Releaser) some(of *ending) (more bool) {
	for untilNS := r.Clock() + stepNS; len(of.ids) > 0; of.ids = of.ids[1:] {
		nowNS := r.Clock()
		if nowNS >= untilNS {
			return true
		}
		id := of.ids[0]
		l := of.byID[id]
		_, _ = r.Store().Release([]byte(l.key), id, store.Access{NowNS: nowNS, May: l.may})
	}
	return false
}

// end ends leases: at once those for which there is time, the others later.
func (r *Releaser) end(all ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) == 0 && !r.some(&all) {
		return
	}
	if r.left = append(r.left, all); len(r.left) == 1 {
		r.running.Go(r.run)
	}
}

func (r *Releaser) run() {
	defer r.Survive("release of leases")
	for {
		r.mu.Lock()
		if len(r.left) == 0 {
			r.left = nil
			r.mu.Unlock()
			return
		}
		next := r.left[0]
		r.mu.Unlock()
		for r.some(&next) {
			if !r.Hurries() {
				time.Sleep(stepNS)
			}
		}
		r.mu.Lock()
		r.left = r.left[1:]
		r.mu.Unlock()
	}
}

// GiveBack gives back, in a goroutine, what a call was granted whose connection had gone: its caller may hold the limiter's locks.
func (r *Releaser) GiveBack(give func()) {
	r.givingBack.Add(1)
	go func() {
		defer r.givingBack.Add(-1)
		give()
	}()
}

// GivesBack reports whether a GiveBack has not ended.
func (r *Releaser) GivesBack() bool { return r.givingBack.Load() > 0 }

// Wait returns when all leases have ended that were to be ended.
func (r *Releaser) Wait() { r.running.Wait() }
