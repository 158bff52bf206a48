package remote

import (
	"log/slog"
	"sync"
	"time"
)

// outage is a time in which the engine, or a part of a Cluster, does not answer. It ends when it has answered for a while: the log tells
// of its beginning and its end, and not of each breath that a dying engine takes.
type outage struct {
	mu    sync.Mutex
	open  int       // breakers
	turns int       // how often one has opened or closed
	since time.Time // open is 0, or is not, since then

	told    bool      // of its beginning
	began   time.Time // then
	ended   time.Time // the last one
	without [2]int64  // DecidedWithout and Refused when it began
}

// An outage ends when all breakers have been closed for settled, or for flapping if the last one ended less than a minute before.
const (
	settled  = time.Second
	flapping = 10 * time.Second
)

// opened notes that a breaker has opened.
func (f *failure) opened(why *DownError) {
	o := &f.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open++
	o.turns++
	if o.open > 1 {
		return
	}
	o.since = f.now()
	if o.told {
		return
	}
	o.told, o.began = true, o.since
	f.store.ownersAgain()
	st := &f.store.stats
	o.without = [2]int64{st.DecidedWithout.Load(), st.Refused.Load()}
	f.log().Warn("the engine does not answer, calls go by --store-failure", "mode", f.modes.Load().String(), "why", why.Cause)
}

// closed notes that a breaker has closed.
func (f *failure) closed() {
	o := &f.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open--
	o.turns++
	if o.open > 0 {
		return
	}
	o.since = f.now()
	wait, turns := settled, o.turns
	if o.began.Sub(o.ended) < time.Minute {
		wait = flapping
	}
	f.after(wait, func() { f.settle(turns) })
}

// settle ends the outage if nothing has opened since. The table of FailLocal lives until then, so that an engine that comes and goes does
// not make its limits full again each time.
func (f *failure) settle(turns int) {
	o := &f.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	if turns != o.turns {
		return
	}
	o.told, o.ended = false, o.since
	st := &f.store.stats
	f.log().Info("the engine answers again", "after", o.since.Sub(o.began).Round(time.Millisecond),
		"decided_without", st.DecidedWithout.Load()-o.without[0], "refused", st.Refused.Load()-o.without[1])
	f.forget()
	f.store.ownersAgain()
}

func (f *failure) log() *slog.Logger {
	if log := f.store.options.Log; log != nil {
		return log
	}
	return slog.New(slog.DiscardHandler)
}

// Mode is who decides on calls, and since when: engine, or error, allow, deny or local while a part of it or all of it is known not to
// answer. Policies may have others.
func (s *Store) Mode() (name string, since time.Time) {
	o := &s.failure.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == 0 && s.client.Load() != nil {
		return "engine", o.since
	}
	return s.failure.modes.Load().all.String(), o.since
}
