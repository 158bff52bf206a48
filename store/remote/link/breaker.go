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
	// doubt.
	failuresToOpen = 5

	// probePause is between probes. One probe is under way at a time, so with its own timeout the engine is found within probePause
	// and Options.Timeout of its return.
	probePause = 150 * time.Millisecond
)

// breaker keeps calls from an engine that does not answer. It opens after some failures in a row, or a doubt that was right. Then nothing
// is sent but a probe now and then, and the first that is answered closes it. Each lane has one: so a master of a Cluster that is away
// does not stop the others.
//
// While all is well it costs each answer an atomic load, and has no timer.
type breaker struct {
	link  *Link
	lane  *lane
	row   atomic.Int32              // failures since the last answer; set under the lock, except 0
	cause atomic.Pointer[DownError] // of calls while it is open; nil: it is closed

	mu    sync.Mutex
	since time.Time // the first of these failures
	probe string    // the key that probes are about, of the lane
	doubt *doubt    // nil: there is none
}

// answered notes the outcome of a request. Answers to what only reads say nothing of writes: a master that has become a replica goes on to
// give them. While it is open nothing but a probe changes it.
func (b *breaker) answered(r *Request, err error) {
	var down *DownError
	if !errors.As(err, &down) || Is(err, CauseMoving) {
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

// open answers calls by a cause from now on. key is any of the lane.
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

// Break opens the breaker of a key, as calls that fail for a cause do.
func (l *Link) Break(key string, why *DownError) { l.lanes.of(key).breaker.open(why, key) }

func (b *breaker) probeLater() {
	b.link.options.After(probePause, func() {
		if b.link.ctx.Err() == nil {
			b.link.Send(b.newProbe(b.probed))
		}
	})
}

// probed goes by the outcome of a probe while the breaker is open.
func (b *breaker) probed(err error) {
	if down := (*DownError)(nil); errors.As(err, &down) {
		b.cause.Store(&DownError{Cause: down.Cause}) // it may be lost at first, and not be reached then
		b.probeLater()
		return
	}
	b.row.Store(0)
	b.cause.Store(nil)
	b.link.closed()
}

// probeScript sets a key only where it is there, and that of probes never is. So it changes nothing, but counts as a write that takes
// memory: an engine refuses it that refuses calls.
var probeScript = NewScript(`return redis.call('SET', KEYS[1], '', 'XX')`)

// newProbe returns a request that fails where calls do: on a replica, in a Cluster that is down, on an engine that cannot save, lacks
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

// findProbe finds the key that probes are about, if there is none or its slot has moved. other is any key of the lane.
func (b *breaker) findProbe(other string) {
	if b.probe == "" || b.link.lanes.of(b.probe) != b.lane {
		b.probe = b.link.probeKey(b.lane, other)
	}
}

// probeKey returns a key of a lane that nobody else uses. other is any key of that lane.
func (l *Link) probeKey(at *lane, other string) string {
	const tries = 100 * laneCount // one of laneCount fits, unless the lane has few slots: then the key is in the slot of the other
	for i := range tries {
		key := l.options.Prefix + "{\x00" + strconv.Itoa(i) + "}celld:probe"
		if l.lanes.of(key) == at {
			return key
		}
	}
	const ending = "\x00celld:probe"
	return cmp.Or(l.Beside(other, ending), other+ending)
}

// DownAt returns the error of a key's calls while it is known that they would not be answered, nil else.
func (l *Link) DownAt(key string) error { return l.lanes.of(key).breaker.down() }

func (b *breaker) down() error {
	if down := b.cause.Load(); down != nil {
		return down
	}
	return nil
}

// Down returns why the engine does not answer: why one of its lanes does not, where none that has been asked does. nil: it does.
func (l *Link) Down() (down error) {
	for i := range l.lanes.all {
		one := &l.lanes.all[i]
		if why := one.breaker.down(); why != nil {
			down = why
		} else if one.asked.Load() {
			return nil
		}
	}
	return down
}

// askRest asks the lanes that are not known to be down: so the part of a Cluster that nobody has called lately is known to answer, or
// not to.
func (l *Link) askRest() {
	for i := range l.lanes.all {
		at := &l.lanes.all[i]
		key := l.probeKey(at, l.options.Prefix)
		if at.breaker.down() == nil && l.lanes.of(key) == at {
			l.Send(&Request{Script: probeScript, Keys: []string{key}, Deadline: l.deadline(), Done: Ignore})
		}
	}
}

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
