package remote

import (
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/view"
)

// setNewState says whether to try keys by SET NX GET. So a call on one of 1M keys, few of which are in use, takes 4.5 µs of the engine's
// CPU and not 11.1. If all are in use, it takes 13.3 µs; without counting the share of those in use, it took 17.5.
type setNewState struct {
	unknown atomic.Bool  // the engine does not know it: it came with Redis 7.0
	refused atomic.Int32 // share of those that were in use, of 1024, lately
	skipped atomic.Uint32
}

// A script costs the engine 6.1 µs and a SET NX GET 1.1 µs (README of bench), so trying pays while less than 80 % of the keys are in use.
// Above that share, one in 16 is tried, to see whether the share has changed.
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

// expiryMs is when the engine removes a key that holds a TAT, in Unix ms: see view.Linger.
func expiryMs(tatNS uint64) string {
	return strconv.FormatInt(view.CeilMs(tatNS)+view.Linger.Milliseconds(), 10)
}

// mostEarly is how far ahead of the engine's time a key may be decided without a script. Its answer is held back for so long at most.
const mostEarly = 5 * time.Millisecond

// setNew decides calls of a key that is not known to be in use as calls of a new key, and reports whether it does.
//
// It decides them for an instant that the engine's time may not have reached: so no call is early, and the stored TAT and the answers
// agree. The engine's time must have reached that instant when the caller gets its answer. Otherwise the next call would come before this
// one: a peek after a call that took all was denied so, when the clock was known only to 0.7 ms. So an early answer is held back, and now
// and then a script asks for the time. The engine may store the TAT later. Whoever has taken from the key by then has left a trace: see
// view.Linger.
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
	if d.tatCache.inUse(d.key(), now) {
		return false
	}
	st := cell.State{}
	for _, o := range d.calls {
		st = o.decideAt(st, now)
	}
	tat := st.A
	if tat == 0 { // nothing to store, so the key must be read
		return false
	}
	d.sent = &link.Request{
		Keys: []string{d.key()}, Deadline: d.calls[0].Deadline,
		Args: []string{"SET", strconv.FormatUint(tat, 10), "NX", "GET", "PXAT", expiryMs(tat)},
	}
	d.sent.Done = func(answer rueidis.RedisMessage, err error) {
		switch {
		case errors.Is(err, link.ErrSyntax):
			d.newKeys.unknown.Store(true)
			d.byScript()
		case errors.Is(err, store.ErrWrongType):
			d.byScript()
		case err != nil:
			d.group.End(err)
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

// taken answers calls that came at this time and have taken a new key, for an instant that may be so far ahead of the engine's time.
func (d *deciding) taken(tat uint64, now int64, asked time.Time, ahead time.Duration) {
	took := time.Since(asked)
	switch {
	case took > store.CommitWithin:
		d.again(tat)
	case ahead > took:
		time.AfterFunc(ahead-took, func() { d.decided(cell.State{}, now) })
	default:
		d.decided(cell.State{}, now)
	}
}

// againText takes back what was stored as the TAT of a new key, ARGV[2], and then decides as the script whose arguments follow. What others
// have taken since stays: it lies behind that TAT, or the key does not hold that any more.
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

// again decides calls again that were stored as those of a new key with this TAT, but too late: others may have taken from the key before
// without leaving a trace.
func (d *deciding) again(tat uint64) {
	d.run(againScript, []string{d.timeArg(), strconv.FormatUint(tat, 10)}, func(answer rueidis.RedisMessage, err error) {
		if down := (*DownError)(nil); errors.As(err, &down) {
			err = &DownError{Cause: down.Cause, Sent: true} // it was sent, whatever became of this script
		}
		d.ran(answer, err)
	})
}

// expectText stores a TAT if the key still holds the one that it was computed from, and answers 1. Otherwise it decides as the script whose
// arguments follow. What it saves stands at tatCache.
var expectText = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
	redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
	return 1
end
for _ = 1, 3 do table.remove(ARGV, 1) end
` + throttleText

var expectScript = link.NewScript(expectText)

// expect decides calls here, by the cached TAT of the key, and reports whether it does. The engine stores the outcome if the key still
// holds that TAT. expect decides nothing if the outcome depends on when exactly the engine decides.
func (d *deciding) expect() bool {
	clock := d.link.Clock(d.key())
	from, ok := clock.Lower()
	now, fresh := clock.Upper()
	tat := d.tatCache.tat(d.key())
	if !ok || !fresh || tat <= uint64(now) {
		return false
	}
	early := cell.State{A: tat}
	st := early
	for _, o := range d.calls {
		early = o.decideAt(early, from)
		limited := o.limited()
		if st = o.decideAt(st, now); st.A != early.A || limited != o.limited() {
			return false
		}
	}
	next := st.A
	if next == tat || next == 0 {
		return false
	}
	args := append(make([]string, 0, 7), strconv.FormatUint(tat, 10), strconv.FormatUint(next, 10), expiryMs(next), d.timeArg())
	d.run(expectScript, args, func(answer rueidis.RedisMessage, err error) {
		switch {
		case err == nil && answer.IsInt64():
			d.stats.Expected.Add(1)
			d.decided(cell.State{A: tat}, now)
			return
		case err == nil:
			d.stats.ExpectedMissed.Add(1)
		}
		d.ran(answer, err)
	})
	return true
}
