package link

import (
	"sync"
	"time"
)

// outage is a time in which the engine, or a part of a Cluster, does not answer. It ends when the engine has answered for a while: so
// Options.OutageBegins and OutageEnds are not called for each moment in which a failing engine answers.
type outage struct {
	mu      sync.Mutex
	open    int       // breakers
	changes int       // how often one has opened or closed
	since   time.Time // open is 0, or is not, since then

	told  bool      // of its beginning
	began time.Time // then
	ended time.Time // the last one
}

// An outage ends when all breakers have been closed for settled, or for flapping if the last one ended less than a minute before.
const (
	settled  = time.Second
	flapping = 10 * time.Second
)

// opened notes that a breaker has opened.
func (l *Link) opened(why *DownError) {
	o := &l.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open++
	o.changes++
	if o.open > 1 {
		return
	}
	o.since = l.options.Now()
	if o.told {
		return
	}
	o.told, o.began = true, o.since
	l.readOwnersAgain()
	if tell := l.options.OutageBegins; tell != nil {
		tell(why.Cause)
	}
}

// closed notes that a breaker has closed.
func (l *Link) closed() {
	o := &l.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open--
	o.changes++
	if o.open > 0 {
		return
	}
	o.since = l.options.Now()
	wait, turns := settled, o.changes
	if o.began.Sub(o.ended) < time.Minute {
		wait = flapping
	}
	l.options.After(wait, func() { l.settle(turns) })
}

// settle ends the outage if nothing has opened since.
func (l *Link) settle(turns int) {
	o := &l.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	if turns != o.changes {
		return
	}
	o.told, o.ended = false, o.since
	if tell := l.options.OutageEnds; tell != nil {
		tell(o.since.Sub(o.began))
	}
	l.readOwnersAgain()
}

// Answers reports whether there is a connection and all of the engine answers, and since when that is so or not.
func (l *Link) Answers() (all bool, since time.Time) {
	o := &l.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open == 0 && l.client.Load() != nil, o.since
}
