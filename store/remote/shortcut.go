package remote

import (
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/view"
)

// setNewState says whether keys are tried by SET NX GET. A call on one of 1M keys, few of which are in use, takes 4.5 µs of the engine's
// CPU so, in place of 11.1. Where all are in use it takes 13.3 µs, in place of 17.5 if the share of those in use were not known.
type setNewState struct {
	unknown atomic.Bool  // the engine does not have it: it came with Redis 7.0
	refused atomic.Int32 // share of those that were in use, of 1024, lately
	skipped atomic.Uint32
}

// A script costs the engine 6.1 µs and a SET NX GET 1.1 µs (README of bench), so trying pays while less than 80 % of the keys are in
// use. Above that share, one in 16 is tried, to see whether it still holds.
const (
	mostRefused = 1024 * 8 / 10
	tryOneIn    = 16
)

func (n *setNewState) pays() bool {
	return !n.unknown.Load() && (n.refused.Load() < mostRefused || n.skipped.Add(1)%tryOneIn == 0)
}

// note moves the share by a 64th.
func (n *setNewState) note(refused bool) {
	was := n.refused.Load()
	is := was - was/64
	if refused {
		is = was + (1024-was+63)/64
	}
	n.refused.CompareAndSwap(was, is)
}

// expiryMs is when the engine removes a key that holds a TAT, in Unix ms: see linger.
func expiryMs(tatNS uint64, nowNS int64) string {
	return strconv.FormatInt(max(view.CeilMs(tatNS), view.CeilMs(uint64(nowNS)+uint64(view.Linger))), 10)
}

// mostEarly is how far ahead of the engine's time a key may be decided without a script, and for how long its answer is held back at most.
const mostEarly = 5 * time.Millisecond

// setNew decides calls of a key that is not known to be in use as those of a new key, and reports whether it does. They are
// decided for an instant that the engine's time may not have reached: so none is early, and what is stored and what is answered agree. It
// has reached it when the caller has its answer, or else the next call would find itself before this one: a peek after a call that took all
// was denied so, once the clock was known to 0.7 ms only. So the answer is held back where it comes earlier, and a script asks for the time
// now and then. The engine may store it later.
// Whoever has taken from the key by then has left it there: see linger.
//
// On a machine with a load of 20, 34 to 92 % of new keys went by the script, as the clock was not known to a round trip. With mostEarly it
// is 5 %, and a decision takes 4.1 µs of the engine's CPU and not 6.4 to 9.3.
func (d *deciding) setNew() bool {
	clock, asked := d.link.Clock(d.key()), time.Now()
	now, ok := clock.Upper()
	ahead := clock.Span()
	if !ok || ahead > mostEarly || !d.newKeys.pays() {
		return false
	}
	if ahead <= d.link.Soon(d.key()) {
		ahead = 0
	} else if clock.Asks(asked) {
		return false
	}
	if d.tats.inUse(d.key(), now) {
		return false
	}
	tat := uint64(0)
	for _, o := range d.calls {
		tat = o.decideAt(tat, now)
	}
	if tat == 0 { // nothing to store, so the key must be read
		return false
	}
	d.sent = &link.Request{
		Keys: []string{d.key()}, Deadline: d.calls[0].Deadline,
		Args: []string{"SET", strconv.FormatUint(tat, 10), "NX", "GET", "PXAT", expiryMs(tat, now)},
	}
	d.sent.Done = func(answer rueidis.RedisMessage, err error) {
		switch {
		case errors.Is(err, link.ErrSyntax):
			d.newKeys.unknown.Store(true)
			d.byScript()
		case errors.Is(err, store.ErrWrongType):
			d.byScript()
		case err != nil:
			d.batch.End(err)
		case !answer.IsNil():
			d.stats.SetNewRefused.Add(1)
			d.newKeys.note(true)
			d.byScript()
		default:
			d.newKeys.note(false)
			d.taken(tat, now, asked, ahead)
		}
	}
	d.stats.SetNew.Add(1)
	d.link.Send(d.sent)
	return true
}

// taken answers calls that were asked at this time and have taken a new key, for an instant that may be ahead of the engine's time by so
// much.
func (d *deciding) taken(tat uint64, now int64, asked time.Time, ahead time.Duration) {
	took := time.Since(asked)
	switch {
	case took > view.Held:
		d.again(tat)
	case ahead > took:
		time.AfterFunc(ahead-took, func() { d.decided(0, now) })
	default:
		d.decided(0, now)
	}
}

// againText takes back what was stored as the TAT of a new key, ARGV[2], and decides as the script does, whose arguments follow. What
// others have taken since stays: it lies behind that TAT, or the key has nothing of it any more.
var againText = scriptTime + `
local first, tat, ours = 3, redis.call('GET', KEYS[1]), ARGV[2]
if tat and #tat == #ours and string.find(tat, '^%d+$') then
	local function debt(from, ns) return (string.sub(tat, 1, -10) - from) * 1e9 + string.sub(tat, -9) - ns end
	local theirs = debt(string.sub(ours, 1, -10), string.sub(ours, -9))
	if theirs == 0 then
		redis.call('DEL', KEYS[1])
		tat = false
	elseif theirs > 0 and theirs < debt(s, n) then
		local ns = (n + theirs) % 1e9
		tat = string.format('%d%09d', s + (n + theirs - ns) / 1e9, ns)
		redis.call('SET', KEYS[1], tat, 'KEEPTTL')
	end
end
` + throttleRuns

var againScript = link.NewScript(againText)

// again decides calls again that were stored as those of a new key with this TAT, but too late: others may have taken from the key before,
// and have left no trace of it.
func (d *deciding) again(tat uint64) {
	d.run(againScript, []string{d.timeArg(), strconv.FormatUint(tat, 10)}, func(answer rueidis.RedisMessage, err error) {
		if down := (*DownError)(nil); errors.As(err, &down) {
			err = &DownError{Cause: down.Cause, Sent: true} // it has been, whatever became of this script
		}
		d.ran(answer, err)
	})
}

// expectText stores a TAT where the key holds the one that it was computed from, and answers 1. Else it decides as the script does, whose
// arguments follow. What it saves stands at versions.
var expectText = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
	redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
	return 1
end
for _ = 1, 3 do table.remove(ARGV, 1) end
` + throttleText

var expectScript = link.NewScript(expectText)

// expect decides calls here, with the TAT that the key had after the last request, and reports whether it does. The
// engine stores the outcome if it still has that TAT. It does not where the outcome depends on when exactly the engine decides.
func (d *deciding) expect() bool {
	clock := d.link.Clock(d.key())
	from, ok := clock.Lower()
	now, fresh := clock.Upper()
	tat := d.tats.tat(d.key())
	if !ok || !fresh || tat <= uint64(now) {
		return false
	}
	early, next := tat, tat
	for _, o := range d.calls {
		early = o.decideAt(early, from)
		limited := o.limited()
		if next = o.decideAt(next, now); next != early || limited != o.limited() {
			return false
		}
	}
	if next == tat || next == 0 {
		return false
	}
	args := append(make([]string, 0, 7), strconv.FormatUint(tat, 10), strconv.FormatUint(next, 10), expiryMs(next, now), d.timeArg())
	d.run(expectScript, args, func(answer rueidis.RedisMessage, err error) {
		switch {
		case err == nil && answer.IsInt64():
			d.stats.Expected.Add(1)
			d.decided(tat, now)
			return
		case err == nil:
			d.stats.ExpectedMissed.Add(1)
		}
		d.ran(answer, err)
	})
	return true
}
