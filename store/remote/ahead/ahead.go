// Package ahead decides calls of hot keys without a request to the engine, by units that this process has taken there before. It knows
// neither who waits nor what is answered while the engine is away.
//
//	h := ahead.New(ahead.Options{…})
//	h.SetAhead(times)                       // units end so long after they were taken; 0: nothing is taken ahead
//	decided, grant := h.Throttle(&req, access, false)
//	if !decided {
//		…                                   // the engine decides, and grants units for the calls that follow if grant is not nil
//	}
//	h.Drop(key)                             // what was taken of a key is void
//
// # Why no limit admits more
//
// Units are taken for the latest moment at which they may be used, and are used only when each would pass by itself. The model in
// model_test.go visits each order of events of a small world, and docs/explanation/ahead.md has the proof.
//
//   - A bucket charges n units at t for t + H: TAT' = max(TAT, t + H) + n·interval. Unit i is good from TAT_i - tolerance on, until t + H.
//   - A window and a slide count units at t. They end with the window, or the sub-window, and after H.
//   - The units of several limits are taken together, or none, and end when the first of them ends.
//
// Units that are left over go back, in the same change that any other is: of a bucket only if nobody has taken from it since. A change that
// has no answer is not sent again, so nothing goes back twice.
package ahead

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote/link"
)

// Options are what it needs. All must be set.
type Options struct {
	Prefix   string
	Policies *policy.Set
	Renew    func(g *Grant)               // sends a request without a call
	Clock    func(key string) *link.Clock // of a key on the engine
	Waits    func(key string) bool        // callers wait for a key, as clients name it, and go first
	Counts   *Counts
}

// Counts count units.
type Counts struct {
	Decisions atomic.Int64 // calls that units have decided
	Taken     atomic.Int64 // units
	GivenBack atomic.Int64
	Ended     atomic.Int64 // units that nobody has used
}

// Ahead keeps the units of all keys. Its methods may be called by many goroutines at once.
type Ahead struct {
	Options
	since  time.Time
	times  atomic.Pointer[Times] // nil: nothing is taken ahead
	seed   maphash.Seed
	shards [shards]shard
	held   atomic.Int64  // keys
	table  *memory.Store // keys as they would be if nothing were taken ahead: replies come from it
}

const (
	shards   = 64
	mostKeys = 1 << 14 // that have units
)

type shard struct {
	mu   sync.Mutex
	keys map[string]*holding // by their names as clients give them
	heat [256]heat
}

// many reports whether there are so many keys that their requests go together.
func (h *Ahead) many() bool { return h.held.Load() >= 32 }

// New returns one that takes nothing ahead.
func New(o Options) *Ahead {
	h := &Ahead{Options: o, since: time.Now(), seed: maphash.MakeSeed()}
	h.table = memory.New(memory.Options{MaxKeys: mostKeys, Shards: 16, Policies: o.Policies})
	for i := range h.shards {
		h.shards[i].keys = make(map[string]*holding)
	}
	return h
}

// Times are how long units last: for all calls, and for those under some policies.
type Times = policy.Per[Ms]

// Ms is a time in ms.
type Ms int64

// MostMs is the longest time for which units last.
const MostMs = 1000

// Parse reads a time in ms, 0 to MostMs, followed by those of policies that have another: 20,login=0. See policy.ParsePer.
func Parse(text string) (Times, error) {
	return policy.ParsePer(text, "ms", func(word string) (Ms, error) {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil || n > MostMs {
			return 0, fmt.Errorf("argument must be ms from 0 to %d, not '%s'", MostMs, word)
		}
		return Ms(n), nil
	})
}

// SetAhead says how long units last that are taken from now on. 0: none are.
func (h *Ahead) SetAhead(t Times) {
	if slices.Max(t.Values()) == 0 {
		h.times.Store(nil)
	} else {
		h.times.Store(&t)
	}
}

// On reports whether units are taken for some calls.
func (h *Ahead) On() bool { return h.times.Load() != nil }

// Lasts is how long units last of a policy; "": of none. 0: there are none. The rest of the time is for what is not given back.
func (h *Ahead) Lasts(policy string) time.Duration {
	if t := h.times.Load(); t != nil {
		return time.Duration(t.Of(policy)) * time.Millisecond * flowsIn / (flowsIn + 1)
	}
	return 0
}

// lasts is how long units last of an ask: the shortest time of its policies.
func (h *Ahead) lasts(k *ask) time.Duration {
	if k.calls == nil {
		return h.Lasts("")
	}
	lasts := time.Duration(math.MaxInt64)
	for i := range k.calls {
		name := ""
		if p := k.calls[i].Policy; p != nil {
			name = p.Policy.Name
		}
		lasts = min(lasts, h.Lasts(name))
	}
	return lasts
}

func (sh *shard) heatOf(hash uint64) *heat { return &sh.heat[hash/shards%uint64(len(sh.heat))] }

func (h *Ahead) shardOf(hash uint64) *shard { return &h.shards[hash%shards] }

// ask is what calls of one kind ask for: CL.THROTTLE with a bucket, or CL.TAKE with some limits of one key.
type ask struct {
	bucket cell.Bucket
	calls  []store.Call // of CL.TAKE; nil: CL.THROTTLE
}

// same reports whether another asks for the same.
func (k *ask) same(o *ask) bool {
	return len(k.calls) == len(o.calls) && k.bucket == o.bucket && slices.EqualFunc(k.calls, o.calls, func(a, b store.Call) bool {
		return a.PolicyID() == b.PolicyID() && a.Limit.Shape == b.Limit.Shape && a.Limit.Params == b.Limit.Params
	})
}

// own is a copy that callers do not change.
func (k *ask) own(key []byte) ask {
	o := ask{bucket: k.bucket, calls: slices.Clone(k.calls)}
	for i := range o.calls {
		c := &o.calls[i]
		limit := *c.Limit
		*c = store.Call{Key: key, Limit: &limit, Policy: c.Policy}
		if c.Policy != nil {
			c.Limit = &c.Policy.Limit
		}
	}
	return o
}

// Suits reports whether units may decide a Take: it takes the same from limits of one key, and is answered at once.
func Suits(r *store.TakeRequest) bool {
	if r.Mode != cell.Take || r.Cost <= 0 || r.UpTo || r.Look || r.Terms != nil {
		return false
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.Own || c.Limit.WholeNS(&cell.State{}, 0) == 0 || i > 0 && !bytes.Equal(c.Key, r.Calls[0].Key) {
			return false
		}
	}
	return true
}

// HasScript reports whether a script decides on a limit, if a key has no other.
func HasScript(l *cell.Limit) bool { return l.IsBucket() || IsWindow(l) }

// IsWindow reports that a limit is a window of which two numbers are remembered: when it ends, and what was used.
func IsWindow(l *cell.Limit) bool {
	return l.Algo == cell.Window && !l.Leases && l.BlockNS == 0 && !l.Shadow && l.Count <= math.MaxUint32
}

// scripted reports whether a script decides on what is asked for.
func (k *ask) scripted() bool {
	return k.calls == nil || len(k.calls) == 1 && HasScript(k.calls[0].Limit)
}

// Throttle decides on a CL.THROTTLE to which no rule applies, and reports whether it has. Where it has not and g is not nil, the request of
// the call to the engine asks for units, too. again: the call has been asked before, and is not counted.
func (h *Ahead) Throttle(r *store.Request, a store.Access, again bool) (decided bool, g *Grant) {
	if r.Quantity <= 0 || !h.On() {
		return false, nil
	}
	k := ask{bucket: r.Bucket}
	return h.use(r.Key, &k, r.Quantity, a.NowNS, again, func(nowNS int64, passes bool) (right bool) {
		var d cell.Decision
		var err error
		if a.NowNS = nowNS; passes {
			d, err = h.table.Throttle(r.Key, r.Bucket, r.Quantity, a)
		} else {
			value, _ := h.table.Get(r.Key, a)
			_, d, err = r.Bucket.Throttle(value.TAT, nowNS, r.Quantity)
		}
		if right = err == nil && d.Limited != passes; right {
			r.Decision, r.Err = d, nil
		}
		return right
	})
}

// Take decides on a Take to which no rule applies, as Throttle does.
func (h *Ahead) Take(r *store.TakeRequest, a store.Access, again bool) (decided bool, g *Grant) {
	if !h.On() || !Suits(r) {
		return false, nil
	}
	k := ask{calls: r.Calls}
	return h.use(r.Calls[0].Key, &k, r.Cost, a.NowNS, again, func(nowNS int64, passes bool) (right bool) {
		o := r.TakeOptions
		if a.NowNS = nowNS; !passes {
			o.Mode = cell.Peek
		}
		taken, err := h.table.Take(r.Calls, o, a)
		if right = err == nil && taken.Limited != passes; right {
			r.Taken, r.Err = taken, nil
		}
		return right
	})
}

// use decides on a call of a cost by units, if answer says the same. Where it does not, the engine decides.
func (h *Ahead) use(key []byte, k *ask, cost, nowNS int64, again bool, answer answer) (decided bool, g *Grant) {
	hash := maphash.Bytes(h.seed, key)
	sh, now, lasts := h.shardOf(hash), time.Now(), h.lasts(k)
	if lasts == 0 {
		return false, nil
	}
	sh.mu.Lock()
	heat, lately := sh.heatOf(hash), counts{}
	if !again {
		lately = heat.note(hash, nowNS, lasts, 1)
	}
	held, asks, passes := sh.keys[string(key)], false, false
	switch {
	case held != nil && held.ask.same(k):
		if !h.Waits(string(key)) {
			decided, passes = held.use(cost, now, answer)
		}
		asks = !again && held.renews(now, decided) && !(decided && heat.crowded())
	case held == nil && lately.calls >= hot && len(sh.keys) < mostKeys/shards && k.lasts(lasts):
		own := bytes.Clone(key)
		held, asks = &holding{ahead: h, shard: sh, key: own, hash: hash, name: h.Prefix + string(own), ask: k.own(own)}, true
		held.clock = h.Clock(held.name)
		sh.keys[string(own)] = held
		h.held.Add(1)
	}
	if passes {
		heat.pass(hash, cost)
	}
	if asks {
		g = held.request(lately, cost, lasts)
	}
	sh.mu.Unlock()
	if decided {
		h.Counts.Decisions.Add(1)
	}
	if decided && g != nil {
		h.Renew(g)
		g = nil
	}
	return decided, g
}

// lasts reports whether units last for a short time, beside what the buckets hold.
func (k *ask) lasts(lasts time.Duration) bool {
	if k.calls == nil {
		return k.bucket.ToleranceNS() >= 2*int64(lasts)
	}
	return !slices.ContainsFunc(k.calls, func(c store.Call) bool {
		return c.Limit.WholeNS(&cell.State{}, 0) == cell.Never && c.Limit.Bucket().ToleranceNS() < 2*int64(lasts)
	})
}

// answer answers a call as if nothing were taken ahead, and reports whether it passes, or not, as the units say.
type answer func(nowNS int64, passes bool) (right bool)

// use decides on a call by units: it passes, or is denied until they are good.
func (held *holding) use(cost int64, now time.Time, answer answer) (decided, passes bool) {
	lower, upper, known := held.clock.Bounds()
	nowNS := max(lower, held.nowNS)
	p := held.portionFor(cost, now, upper)
	if !known || p == nil {
		return false, false
	}
	passes = p.good(cost, nowNS)
	if !answer(nowNS, passes) {
		return false, false
	}
	if held.nowNS = nowNS; passes {
		p.left -= cost
	}
	return true, passes
}

// Passed notes a CL.THROTTLE, or a Take, that the engine has let pass. What replies tell follows it, unless it is shown already.
func (h *Ahead) Passed(r *store.Request, shown bool) {
	k := ask{bucket: r.Bucket}
	h.note(r.Key, &k, r.Quantity, shown, func(nowNS int64) { _, _ = h.table.Throttle(r.Key, r.Bucket, r.Quantity, at(nowNS)) })
}

// PassedTake is Passed for a Take.
func (h *Ahead) PassedTake(r *store.TakeRequest, shown bool) {
	k := ask{calls: slices.Clone(r.Calls)} // their decisions stay
	h.note(r.Calls[0].Key, &k, r.Cost, shown, func(nowNS int64) {
		_, _ = h.table.Take(k.calls, store.TakeOptions{Mode: cell.Force, Cost: r.Cost}, at(nowNS))
	})
}

// note counts what has passed, and changes what replies tell of a key, if it has units of the same ask.
func (h *Ahead) note(key []byte, k *ask, cost int64, shown bool, change func(nowNS int64)) {
	hash := maphash.Bytes(h.seed, key)
	sh := h.shardOf(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.heatOf(hash).pass(hash, cost)
	if held := sh.keys[string(key)]; !shown && held != nil && held.ask.same(k) && len(held.portions) > 0 {
		change(held.nowNS)
	}
}

// of does something with what is held of a key, if something is.
func (h *Ahead) of(key []byte, do func(held *holding)) {
	sh := h.shardOf(maphash.Bytes(h.seed, key))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if held := sh.keys[string(key)]; held != nil {
		do(held)
	}
}

// Drop makes the units of a key void: it was deleted, or something was given back to it.
func (h *Ahead) Drop(key string) {
	h.of([]byte(key), func(held *holding) {
		h.Counts.Ended.Add(held.left())
		held.end()
	})
}

// GiveBackOf gives back what is held of a key, before the engine is asked about it in another way.
func (h *Ahead) GiveBackOf(key []byte) {
	var portions []portion
	h.of(key, func(held *holding) { portions = held.end() })
	giveBackAll(portions)
}

// GiveBack gives back all that is held.
func (h *Ahead) GiveBack() {
	var all []portion
	for i := range h.shards {
		sh := &h.shards[i]
		sh.mu.Lock()
		for _, held := range sh.keys {
			all = append(all, held.end()...)
		}
		sh.mu.Unlock()
	}
	giveBackAll(all)
}

// Held is how many units of a key are held.
func (h *Ahead) Held(key []byte) (n int64) {
	h.of(key, func(held *holding) { n = held.left() })
	return n
}
