package link

import (
	"cmp"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// failuresToOpen are in a row. Fewer do where the first was a timeout ago, however few callers there are. Timeouts do not count: see
	// healthProbe.
	failuresToOpen = 5

	// probePause is between probes. One probe is under way at a time, so with its own timeout the engine is found within probePause
	// and Options.Timeout of its return.
	probePause = 150 * time.Millisecond
)

// breaker keeps calls from an engine that does not answer. It opens after some failures in a row, or when a health probe fails. Then only
// a probe is sent now and then, and the first that is answered closes the breaker. Each pipeline has one: so a master of a Cluster that is
// away does not stop the others.
//
// While all is well, it costs each answer an atomic load, and needs no timer.
type breaker struct {
	link     *Link
	pipeline *pipeline
	row      atomic.Int32              // failures since the last answer; set under the lock, except 0
	cause    atomic.Pointer[DownError] // of calls while it is open; nil: it is closed

	mu     sync.Mutex
	since  time.Time    // the first of these failures
	probe  string       // the key of probes, which the pipeline serves
	health *healthProbe // nil: there is none
}

// answered notes the outcome of a request. Answers to requests that only read tell nothing about writes: a master that has become a replica
// goes on giving them. Only a probe closes an open breaker.
func (b *breaker) answered(r *Request, err error) {
	var down *DownError
	if !errors.As(err, &down) || Is(err, CauseMoving) || Is(err, causeMoved) {
		if !r.ReadOnly && b.row.Load() != 0 {
			b.row.Store(0)
		}
		return
	}
	b.mu.Lock()
	now := b.link.options.Now()
	if b.row.Load() == 0 {
		b.since = now
	}
	opens := b.row.Add(1) >= failuresToOpen || now.Sub(b.since) >= b.link.options.Timeout
	b.mu.Unlock()
	if opens {
		b.open(down, r.Keys[0])
	}
}

// open answers calls with a cause from now on. key is any key of the pipeline.
func (b *breaker) open(down *DownError, key string) {
	b.mu.Lock()
	opens := b.cause.Load() == nil
	if opens {
		b.cause.Store(&DownError{Cause: down.Cause})
		b.findProbe(key)
	}
	b.mu.Unlock()
	if opens {
		b.link.opened(down)
		b.probeLater()
	}
}

// Break opens the breaker of a key, as failing calls do.
func (l *Link) Break(key string, why *DownError) { l.pipelines.of(key).breaker.open(why, key) }

func (b *breaker) probeLater() {
	b.link.options.After(probePause, func() {
		if b.link.ctx.Err() == nil {
			b.link.Send(b.newProbe(b.probed))
		}
	})
}

// probed handles the outcome of a probe while the breaker is open.
func (b *breaker) probed(err error) {
	if down := (*DownError)(nil); errors.As(err, &down) {
		// the first cause may be a lost connection, and the next that the engine cannot be reached
		b.cause.Store(&DownError{Cause: down.Cause})
		b.probeLater()
		return
	}
	b.row.Store(0)
	b.cause.Store(nil)
	b.link.closed()
}

// probeScript sets a key only if it is there, and the key of probes never is. So it changes nothing, but counts as a write that takes
// memory: an engine that refuses calls refuses the probe, too.
var probeScript = NewScript(`return redis.call('SET', KEYS[1], '', 'XX')`)

// newProbe returns a request that fails when calls do: on a replica, in a Cluster that is down, on an engine that cannot save or lacks
// replicas or memory, and for a user without the right to write or to run scripts.
func (b *breaker) newProbe(done func(error)) *Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.findProbe(b.probe)
	return &Request{
		Script: probeScript, Keys: []string{b.probe}, Deadline: b.link.deadline(), probe: true,
		Done: func(_ rueidis.RedisMessage, err error) { done(err) },
	}
}

// findProbe finds the key of probes, if there is none or its hash slot has moved. other is any key of the pipeline.
func (b *breaker) findProbe(other string) {
	if b.probe == "" || b.link.pipelines.of(b.probe) != b.pipeline {
		b.probe = b.link.probeKey(b.pipeline, other)
	}
}

// probeKey returns a key of a pipeline that nobody else uses. other is any key of that pipeline.
func (l *Link) probeKey(at *pipeline, other string) string {
	// one of pipelineCount fits, unless the pipeline has few hash slots: then the key is in the hash slot of other
	const tries = 100 * pipelineCount
	for i := range tries {
		key := l.options.Prefix + "{\x00" + strconv.Itoa(i) + "}celld:probe"
		if l.pipelines.of(key) == at {
			return key
		}
	}
	const ending = "\x00celld:probe"
	return cmp.Or(l.Beside(other, ending), other+ending)
}

// DownAt returns why calls of a key would not be answered; nil if nothing is known against it.
func (l *Link) DownAt(key string) error { return l.pipelines.of(key).breaker.down() }

func (b *breaker) down() error {
	if down := b.cause.Load(); down != nil {
		return down
	}
	return nil
}

// Down returns why the engine does not answer: why one of its pipelines does not, if none that has been used does. nil: it answers.
func (l *Link) Down() (down error) {
	for i := range l.pipelines.all {
		one := &l.pipelines.all[i]
		if why := one.breaker.down(); why != nil {
			down = why
		} else if one.asked.Load() {
			return nil
		}
	}
	return down
}

// probeRest sends a probe by each pipeline that is not known to be down: so it is known whether the part of a Cluster answers that nobody
// has called lately.
func (l *Link) probeRest() {
	for i := range l.pipelines.all {
		at := &l.pipelines.all[i]
		key := l.probeKey(at, l.options.Prefix)
		if at.breaker.down() == nil && l.pipelines.of(key) == at {
			l.Send(&Request{Script: probeScript, Keys: []string{key}, Deadline: l.deadline(), Done: Ignore})
		}
	}
}

// healthProbe finds out whether an engine answers at all. A call that was late may have waited here, in a queue or for a CPU: on a loaded
// machine that took longer than the engine. So a probe is sent at once. It waits behind no call, and gets all of Options.Timeout from its
// sending. The breaker opens if neither the probe nor any write is answered.
//
// The time is counted in slices. A slice begins when the one before has ended: so a process that has not run for a while has used up one
// slice, and has the others to read the answer.
type healthProbe struct {
	breaker *breaker
	key     string // any key of the pipeline
	left    int    // slices
	sending atomic.Bool
}

// probeSlices is how many slices a health probe gets.
const probeSlices = 10

// late notes that a request, which was sent, was not answered in time. key is one of its keys.
func (b *breaker) late(key string) {
	b.mu.Lock()
	begins := b.health == nil && b.cause.Load() == nil
	d := &healthProbe{breaker: b, key: key, left: probeSlices}
	if begins {
		b.health = d
		b.findProbe(key)
		if b.row.Load() == 0 {
			b.row.Store(1)
			b.since = b.link.options.Now()
		}
	}
	b.mu.Unlock()
	if begins {
		d.nextSlice()
	}
}

// nextSlice gives the engine, and this process, a part of the time to answer.
func (d *healthProbe) nextSlice() {
	k := d.breaker.link
	k.options.After(k.options.Timeout/probeSlices, func() {
		if d.left--; d.left == 0 {
			d.end(&DownError{Cause: CauseTimeout})
		} else if d.lasts() {
			d.nextSlice()
		}
	})
	if !d.sending.Swap(true) {
		go d.send()
	}
}

// send sends the probe. If another late call takes the connection with it, the next slice sends it again.
func (d *healthProbe) send() {
	b := d.breaker
	probe := b.newProbe(func(err error) {
		if down := (*DownError)(nil); errors.As(err, &down) && down.Cause == CauseTimeout {
			d.sending.Store(false)
			return
		}
		d.end(err)
	})
	probe.Deadline = time.Now().Add(2 * probeSlices * b.link.options.Timeout) // nobody waits for that
	b.pipeline.roundTrip([]*Request{probe}, func() {})
}

func (d *healthProbe) lasts() bool {
	d.breaker.mu.Lock()
	defer d.breaker.mu.Unlock()
	return d.breaker.health == d
}

// end ends a health probe by its outcome. Only the first end counts.
func (d *healthProbe) end(err error) {
	b := d.breaker
	b.mu.Lock()
	first := b.health == d
	if first {
		b.health = nil
	}
	b.mu.Unlock()
	if down := (*DownError)(nil); first && errors.As(err, &down) && !Is(err, CauseMoving) && b.row.Load() > 0 {
		b.open(down, d.key)
	}
}
