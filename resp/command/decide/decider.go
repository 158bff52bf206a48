package decide

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"slices"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/decisions"
	"celld/resp/wire"
	"celld/store"
)

// Decider reads calls that the limiter decides, and answers them. One goroutine at a time may use it.
type Decider struct {
	limits
	Decided decisions.Batch // what was decided, until the caller adds it to the totals

	lane   uint8
	shapes shapes
	single Shape            // of the running command
	came   []decisions.Came // for CL.TOP
	late   int64            // calls that the next one of them counts as well
	drawn  uint64           // the state of what draws one call of a batch
}

// New returns a Decider that counts in this lane.
func New(s *Server, lane uint8) *Decider {
	none := &Shape{}
	none.next = none
	seed := maphash.MakeSeed()
	return &Decider{limits: limits{Server: s, seed: seed}, lane: lane, drawn: rand.Uint64() | 1,
		shapes: shapes{seed: seed, last: none, prev: none}}
}

// Gather puts the calls at the start of data into a batch, as far as they go together, and returns their bytes. Where a command follows
// that does not belong to them, it may have been read: then args has it, and next is its length.
func (d *Decider) Gather(b *Batch, data []byte, args *[][]byte, limits wire.Limits) (used, next int) {
	s := &d.shapes
	for used < len(data) && len(b.shapes) < store.MaxTakes {
		f := s.last.next
		key, n := f.match(data[used:], limits.MaxBulk)
		if n == 0 {
			f = s.other(f)
			key, n = f.match(data[used:], limits.MaxBulk)
		}
		if n == 0 || d.stale(f) {
			var words [][]byte
			if words, n = wire.Whole(data[used:], *args, limits); n == 0 {
				return used, 0
			}
			*args = words
			if f = d.find(data[used:used+n], words); f == nil {
				return used, n
			}
			key = words[1]
		}
		if !b.fits(f) {
			return used, 0
		}
		s.met(f)
		b.Add(f, key)
		used += n
	}
	return used, 0
}

// Ask asks the limiter for a batch. It reports whether that is decided, and otherwise wakes w later. Until then the batch is the limiter's.
func (d *Decider) Ask(b *Batch, limiter store.Limiter, a store.Access, w store.Waker) (decided bool) {
	b.hashed = limiter == store.Limiter(d.Table)
	if !b.hashed || b.shapes[0].hasTerms {
		b.keepKeys()
	}
	switch {
	case len(b.takes) > 0:
		return limiter.TakeBatch(b.takes, a, w)
	case len(b.counts) > 0:
		return limiter.CountBatch(b.counts, a, w)
	}
	return limiter.ThrottleBatch(b.throttles, a, w)
}

// Answer replies to the calls of a batch that is decided, and counts them. The batch is empty afterwards.
func (d *Decider) Answer(c *command.Call, b *Batch) {
	switch {
	case len(b.takes) > 0:
		d.answerTakes(c, b)
	case len(b.counts) > 0:
		d.answerCounts(c, b)
	default:
		d.answerThrottles(c, b)
	}
	if len(d.came) > 0 {
		d.countCame(c, b)
	}
	b.reset()
}

func (d *Decider) answerThrottles(c *command.Call, b *Batch) {
	n := d.Decided.In(d.Counts.Literal(cell.GCRA), d.lane)
	var limited, near, counted uint64 // a bit for each call
	for i := range b.throttles {
		r, f := &b.throttles[i], b.shapes[i]
		if r.Err != nil {
			d.fail(c, f, cmp.Or(bucketError(r.Err), c.ErrorText(r.Err)))
			continue
		}
		if r.Quantity > 0 {
			counted |= 1 << i
			if n.Throttle(&r.Decision, r.Bucket.Capacity(), &d.Counts.NearLimit) {
				near |= 1 << i
			}
			if r.Decision.Limited {
				limited |= 1 << i
			}
		}
		c.Out = f.appendThrottled(c.Out, &r.Decision)
	}
	if limited != 0 {
		d.noteThrottles(b, decisions.ByDenied, limited)
	}
	if near != 0 {
		d.noteThrottles(b, decisions.ByNear, near)
	}
	if i := d.draw(len(b.throttles)); counted>>i&1 != 0 {
		d.note(decisions.ByCalls, int64(len(b.throttles)), b.hashed, b.throttles[i].Hash, 0, b.throttles[i].Key)
	}
}

func (d *Decider) answerTakes(c *command.Call, b *Batch) {
	for i := range b.takes {
		r, f := &b.takes[i], b.shapes[i]
		if r.Err != nil {
			d.fail(c, f, c.ErrorText(r.Err))
			continue
		}
		d.count(b.hashed, f, r)
		f.reply(&c.Reply, f, r)
	}
	if r := &b.takes[d.draw(len(b.takes))]; r.Err == nil && r.Takes() {
		d.noteTake(decisions.ByCalls, int64(len(b.takes)), b.hashed, r)
	}
}

// draw returns one of n by chance, by a generator of Marsaglia's (xorshift64): counts need no better one.
func (d *Decider) draw(n int) int {
	if n == 1 {
		return 0
	}
	d.drawn ^= d.drawn << 13
	d.drawn ^= d.drawn >> 7
	d.drawn ^= d.drawn << 17
	return int(d.drawn % uint64(n))
}

// fail answers a call with an error.
func (d *Decider) fail(c *command.Call, f *Shape, text string) {
	mark := len(c.Out)
	c.Error("%s", text)
	c.Host.(Host).Failed(f.row, c.Out[mark:])
}

// count counts a call that could take, and what it was denied for CL.TOP.
func (d *Decider) count(hashed bool, f *Shape, r *store.TakeRequest) {
	if r.Takes() {
		d.countTaken(hashed, f, r)
	}
}

func (d *Decider) countTaken(hashed bool, f *Shape, r *store.TakeRequest) {
	if len(r.Calls) > 1 {
		d.countSeveral(hashed, f, r)
		return
	}
	d.countUnder(f.limits[0].row, hashed, f, r)
	d.countShadows(f.limits, r)
}

// countUnder counts a call in a row.
func (d *Decider) countUnder(row *decisions.Row, hashed bool, f *Shape, r *store.TakeRequest) {
	n := d.Decided.In(row, d.lane)
	if r.Taken.Limited {
		d.countLimited(n, hashed, f, r)
		return
	}
	n[f.counted]++
	if d.Counts.NearLimit.IsNear(&r.Calls[r.Taken.Binding].Decision) {
		n[decisions.Near]++
		d.noteTake(decisions.ByNear, 1, hashed, r)
	}
	if grantsPart(r) {
		n[decisions.PartlyGranted]++
	}
}

func grantsPart(r *store.TakeRequest) bool { return r.UpTo && r.Taken.Granted < r.Cost }

// countSeveral counts a call of several limits once, under the limit that binds, and once more under each further policy that it names.
func (d *Decider) countSeveral(hashed bool, f *Shape, r *store.TakeRequest) {
	limits := f.limits
	if len(limits) != len(r.Calls) { // its policies have changed while it waited
		limits = d.appendLimits(nil, r.Calls)
	}
	at := r.Taken.Binding
	binding := limits[at].policy
	for binding != nil && !r.Taken.Limited && at > 0 && !limits[at].beginsPolicy() {
		at--
	}
	d.countUnder(limits[at].row, hashed, f, r)
	also, more, counts := decisions.AlsoAllowed, decisions.PartlyGranted, grantsPart(r)
	if r.Taken.Limited {
		also, more, counts = decisions.LimitedByOther, decisions.AlsoRuleDenied, ruled(r.Calls)
	}
	for i := range limits {
		l := &limits[i]
		counted := func(before limit) bool { return before.policy == l.policy } // the policy is named twice
		if l.beginsPolicy() && (binding == nil || l.policy.Policy != binding.Policy) && !slices.ContainsFunc(limits[:i], counted) {
			n := d.Decided.In(l.row, d.lane)
			if n[also]++; counts {
				n[more]++
			}
		}
	}
	d.countShadows(limits, r)
}

// appendLimits appends the limits of calls.
func (d *Decider) appendLimits(limits []limit, calls []store.Call) []limit {
	for i := range calls {
		c := &calls[i]
		limits = append(limits, limit{Limit: c.Limit, policy: c.Policy, row: d.rowOf(c)})
	}
	return limits
}

// rowOf is the row that counts the decisions under a call's limit.
func (d *Decider) rowOf(c *store.Call) *decisions.Row {
	if c.Policy != nil {
		return d.Counts.Of(c.Policy)
	}
	return d.Counts.Literal(c.Limit.Algo)
}

// countShadows counts what limits with shadow would have decided.
func (d *Decider) countShadows(limits []limit, r *store.TakeRequest) {
	for i := range r.Calls {
		switch c := &r.Calls[i]; {
		case !c.Limit.Shadow:
		case c.Decision.Limited:
			d.Decided.In(limits[i].row, d.lane)[decisions.ShadowLimited]++
		default:
			d.Decided.In(limits[i].row, d.lane)[decisions.ShadowAllowed]++
		}
	}
}

// countLimited counts a call that was denied. Inlined, it would slow down calls that pass.
//
//go:noinline
func (d *Decider) countLimited(n *decisions.Counts, hashed bool, f *Shape, r *store.TakeRequest) {
	n[f.counted+1]++
	countWhy(n, r)
	d.noteTake(decisions.ByDenied, 1, hashed, r)
}

// noteTake notes a call for CL.TOP, under the limit that binds.
func (d *Decider) noteTake(by decisions.By, n int64, hashed bool, r *store.TakeRequest) {
	c := &r.Calls[r.Taken.Binding]
	d.note(by, n, hashed && !otherKey(r), r.Hash, c.PolicyID(), c.Key)
}

// note notes a call for CL.TOP. hash is of the key where it is hashed.
func (d *Decider) note(by decisions.By, n int64, hashed bool, hash uint64, policy uint32, key []byte) {
	if !hashed {
		hash = d.Table.Hash(key)
	}
	if by == decisions.ByCalls {
		n, d.late = n+d.late, 0
	}
	d.came = append(d.came, decisions.Came{By: by, N: n, Hash: hash, Policy: policy, Key: key})
}

// countWhy counts that a rule denied a call, or a limit that has block=.
func countWhy(n *decisions.Counts, r *store.TakeRequest) {
	switch {
	case ruled(r.Calls):
		n[decisions.RuleDenied]++
	case r.Calls[r.Taken.Binding].Limit.BlockNS > 0:
		n[decisions.Blocked]++
	}
}

// ruled reports whether a rule denied one of the calls, of which one was denied.
func ruled(calls []store.Call) bool {
	for i := range calls {
		if denies(&calls[i].Decision) {
			return true
		}
	}
	return false
}

// denies reports the decision of a rule that denies: no limit has capacity 0.
func denies(d *cell.Decision) bool { return d.Limit == 0 }

// noteThrottles counts those calls of a batch whose bits are set. It notes them only where it must, as that takes 3 ns each.
func (d *Decider) noteThrottles(b *Batch, by decisions.By, set uint64) {
	if b.hashed {
		d.Top.AddThrottles(by, b.throttles, set)
		return
	}
	for ; set != 0; set &= set - 1 {
		d.note(by, 1, false, 0, 0, b.throttles[bits.TrailingZeros64(set)].Key)
	}
}

// countCame counts for CL.TOP what a batch has noted, while its keys are there. Those of a transaction on an engine's keys count when it
// is stored, as it may run again.
func (d *Decider) countCame(c *command.Call, b *Batch) {
	if !b.hashed && c.Inside() {
		kept := slices.Clone(d.came)
		for i := range kept {
			kept[i].Key = bytes.Clone(kept[i].Key)
		}
		top := d.Top
		c.Once(func() { top.Add(kept) }) // maybe on another event loop, which has a Decider of its own
		clear(d.came)
		d.came = d.came[:0]
	}
	d.addCame()
}
