package world

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"celld/integration_test/simulation/check"
)

// turns are the configurations that a world has had, one after the other: each call obeys one that it may have met.
type turns struct {
	w       *world
	forgets bool // a crash may bring back an earlier one

	mu  sync.Mutex
	all []turn
}

// turn is when a configuration came. Until it has come, calls may obey it or the one before.
type turn struct {
	began, came int64 // numbers of events; came 0: it has not yet
	cameNS      int64 // when, at the latest
}

// change makes a change, which begins and ends a turn.
func (t *turns) change(make func()) {
	t.mu.Lock()
	t.all = append(t.all, turn{began: t.w.event("turn", "%d begins", len(t.all))})
	last := &t.all[len(t.all)-1]
	t.mu.Unlock()
	make()
	t.mu.Lock()
	last.came = t.w.event("turn", "%d has come", len(t.all)-1)
	_, last.cameNS = t.w.nowNS()
	t.mu.Unlock()
}

// until makes a change now and then until all callers have ended.
func (t *turns) until(all *sync.WaitGroup, rnd *rand.Rand, set func(turn int)) {
	over := make(chan struct{})
	go func() {
		all.Wait()
		close(over)
	}()
	for turn := 1; ; turn++ {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(rnd.Int64N(int64(t.w.plan.turns)))):
		}
		t.change(func() { set(turn) })
	}
}

// lost reports whether anything of what was so at one event may have been forgotten at another.
func (w *world) lost(at, then int64) bool {
	return w.forgot(turn{came: at, cameNS: math.MaxInt64}, then)
}

// forgot reports whether a turn that has come may have been forgotten at an event. A crash keeps what is older than its bound; an engine
// may forget that, too.
func (w *world) forgot(is turn, then int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.history.Losses, func(l check.Loss) bool {
		return l.Ended > is.came && l.Began < then && (w.fleet != nil || l.FromNS <= is.cameNS)
	})
}

// setBetween reports whether a turn has begun and come between two events.
func (t *turns) setBetween(from, to int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.all, func(is turn) bool { return is.began > from && is.came > 0 && is.came < to })
}

// obeys checks that a call may have met a turn of which explains is true.
func (t *turns) obeys(c *caller, a answer, explains func(turn int) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, is := range t.all {
		gone := i+1 < len(t.all) && t.all[i+1].came > 0 && t.all[i+1].came < a.began
		gone = gone && !(t.forgets && t.w.forgot(t.all[i+1], a.ended))
		if is.began < a.ended && !gone && explains(i) {
			return
		}
	}
	c.w.wrong("%s was answered %v between events %d and %d, which no configuration explains: %v", c.name, a.value, a.began, a.ended, t.all)
}
