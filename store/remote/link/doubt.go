package link

import (
	"errors"
	"sync/atomic"
	"time"
)

// doubt is whether an engine answers at all. A call that was late may have waited here, in a queue or for a CPU: on a loaded machine that
// took longer than the engine. So the engine is asked at once by a probe, which waits behind no call, and gets all of Options.Timeout
// from its sending. The breaker opens if that is not answered, nor any write.
//
// The time is counted in turns. A turn begins when the one before has ended: so a process that has not run for a while has used up one,
// and has the others to read the answer.
type doubt struct {
	breaker *breaker
	key     string // any of the lane
	left    int    // turns
	asks    atomic.Bool
}

// doubtTurns are of a doubt.
const doubtTurns = 10

// late notes that a request was not answered in time since it was asked for. key is one of its keys.
func (b *breaker) late(key string) {
	b.mu.Lock()
	begins := b.doubt == nil && b.cause.Load() == nil
	d := &doubt{breaker: b, key: key, left: doubtTurns}
	if begins {
		b.doubt = d
		b.findProbe(key)
		if b.row.Load() == 0 {
			b.row.Store(1)
			b.since = b.link.options.Now()
		}
	}
	b.mu.Unlock()
	if begins {
		d.turn()
	}
}

// turn gives the engine, and this process, a part of the time to answer.
func (d *doubt) turn() {
	k := d.breaker.link
	k.options.After(k.options.Timeout/doubtTurns, func() {
		if d.left--; d.left == 0 {
			d.end(&DownError{Cause: CauseTimeout})
		} else if d.lasts() {
			d.turn()
		}
	})
	if !d.asks.Swap(true) {
		go d.ask()
	}
}

// ask sends the probe. Where another call that is late takes the connection with it, the next turn sends it again.
func (d *doubt) ask() {
	b := d.breaker
	probe := b.newProbe(func(err error) {
		if down := (*DownError)(nil); errors.As(err, &down) && down.Cause == CauseTimeout {
			d.asks.Store(false)
			return
		}
		d.end(err)
	})
	probe.Deadline = time.Now().Add(2 * doubtTurns * b.link.options.Timeout) // nobody waits for that
	b.lane.pipeline([]*Request{probe}, func() {})
}

func (d *doubt) lasts() bool {
	d.breaker.mu.Lock()
	defer d.breaker.mu.Unlock()
	return d.breaker.doubt == d
}

// end ends a doubt by the probe's outcome. Only the first end counts.
func (d *doubt) end(err error) {
	b := d.breaker
	b.mu.Lock()
	first := b.doubt == d
	if first {
		b.doubt = nil
	}
	b.mu.Unlock()
	if down := (*DownError)(nil); first && errors.As(err, &down) && !Is(err, CauseMoving) && b.row.Load() > 0 {
		b.open(down, d.key)
	}
}
