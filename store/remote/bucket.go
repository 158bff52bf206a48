package remote

import (
	"errors"
	"slices"
	"time"

	"celld/cell"
	"celld/store"
	"celld/store/remote/ahead"
	"celld/store/remote/queue"
	"celld/store/remote/view"
)

// exactNS is the longest debt and tolerance that the scripts compute with, 52 days: Lua's numbers are exact below 2^53, and so are sums of
// two of these. A call with a longer one is decided as a change.
const exactNS = 1 << 52

// call is a call on a bucket, which a script decides. One of throttle and take is set.
type call struct {
	queue.Common
	store    *Store
	throttle *store.Request
	take     *store.TakeRequest // of one limit with algo=gcra
	field    string             // of take: the limit's in the hash
	access   store.Access
	pending  *pending
	grant    *ahead.Grant // units that it asks for, too; nil: none
	renews   bool         // it is for the units only: nobody waits for its answer
	byUnit   bool         // units have decided it
	shown    bool         // units were granted after it, so that what replies tell counts it already
}

// throttle decides on a CL.THROTTLE.
func (s *Store) throttle(r *store.Request, a store.Access, deadline time.Time, b *pending) {
	r.Err = nil
	if s.policies.HasRules() {
		if rule := s.policies.Rule(r.Key, nil, a.NowNS); rule != nil {
			r.Decision = rule.Decision(r.Bucket.Capacity(), a.NowNS)
			b.answered()
			return
		}
	}
	o := &call{Common: queue.Common{Key: s.options.Prefix + string(r.Key), Deadline: deadline}, store: s, throttle: r,
		access: a, pending: b}
	if _, _, err := r.Bucket.Throttle(0, a.NowNS, r.Quantity); err != nil {
		s.refuseQuantity(o, err)
		return
	}
	if o.gives() && s.ahead.On() {
		s.ahead.GiveBackOf(r.Key)
	}
	decided, grant := s.ahead.Throttle(r, a, false)
	if decided {
		b.answered()
		return
	}
	o.grant = grant
	s.decideBucket(o)
}

// refuseQuantity answers a call that can never be decided. It first looks at the key, as redis-cell does: for another type it answers
// ErrWrongType.
func (s *Store) refuseQuantity(o *call, why error) {
	r := o.throttle
	c := o.AsChange()
	c.Done = func(err error) {
		switch {
		case errors.Is(err, store.ErrWrongType):
			r.Decision, r.Err = cell.Decision{}, err
		case err != nil: // no --store-failure decides on such a call
			r.Decision, r.Err = cell.Decision{}, why
		}
		o.pending.answered()
	}
	s.enqueueChange(c)
}

// take decides on a Take.
func (s *Store) take(r *store.TakeRequest, a store.Access, deadline time.Time, b *pending) {
	r.Err = nil
	decided, grant := s.takeAhead(r, a, false)
	if decided {
		b.answered()
		return
	}
	if scripted(r) && (!s.policies.HasRules() || r.Calls[0].Rule(s.policies, a.NowNS) == nil) {
		c := &r.Calls[0]
		if field := s.fieldOf(c); field != "" {
			key := queue.Common{Key: s.options.Prefix + string(c.Key), Deadline: deadline}
			s.decideBucket(&call{Common: key, store: s, take: r, field: field, access: a, pending: b, grant: grant})
			return
		}
	}
	if grant == nil && (!s.ahead.On() || !ahead.Suits(r)) {
		s.waits.Take(r, a, deadline, s.enqueueChange, b.answered)
		return
	}
	t := &takenAhead{store: s, request: r, access: a, grant: grant}
	s.waits.Take(r, a, deadline, t.enqueue, func() {
		if t.Change == nil && grant != nil { // a rule has come meanwhile, and has decided
			grant.Done(nil)
		}
		if r.Err == nil && !t.units && !r.Taken.Limited {
			s.ahead.PassedTake(r, t.grant != nil && t.grant.Has())
		}
		b.answered()
	})
}

// takeAhead decides on a Take by units, if there are some and no rule applies.
func (s *Store) takeAhead(r *store.TakeRequest, a store.Access, again bool) (decided bool, grant *ahead.Grant) {
	if s.policies.HasRules() && slices.ContainsFunc(r.Calls, func(c store.Call) bool { return c.Rule(s.policies, a.NowNS) != nil }) {
		return false, nil
	}
	return s.ahead.Take(r, a, again)
}

// scripted reports whether a script can decide a Take: it is of one bucket or window, and just passes or not.
func scripted(r *store.TakeRequest) bool {
	c := &r.Calls[0]
	return len(r.Calls) == 1 && !c.Own && r.Cost > 0 && r.Mode == cell.Take && !r.UpTo && r.Terms == nil && ahead.HasScript(c.Limit)
}

// GoesWith is queue.Operation's: one script can decide on both. It grants and takes back the units of one operation.
func (o *call) GoesWith(other queue.Operation) bool {
	first, ok := other.(*call)
	if ok && o != first && (o.renews || first.renews) {
		return false
	}
	if !ok || o.throttle != nil || first.throttle != nil {
		return ok && o.throttle != nil && first.throttle != nil
	}
	c, f := &o.take.Calls[0], &first.take.Calls[0]
	return c.PolicyID() == f.PolicyID() && c.Limit.Shape == f.Limit.Shape && c.Limit.Params == f.Limit.Params
}

// Send is queue.Operation's.
func (o *call) Send(b *queue.Group) {
	o.store.useUnits(b)
	if len(b.Operations) == 0 {
		b.Next()
		return
	}
	d := &deciding{Store: o.store, group: b, calls: make([]*call, len(b.Operations))}
	for i, one := range b.Operations {
		d.calls[i] = one.(*call)
		if g := d.calls[i].grant; g != nil {
			d.grant = g
		}
	}
	if d.grant != nil || d.calls[0].throttle == nil || !d.setNew() && !d.expect() {
		d.byScript()
	}
}

// useUnits answers those of a group that units decide which have come since they were asked.
func (s *Store) useUnits(b *queue.Group) {
	if !s.ahead.On() {
		return
	}
	b.Operations = slices.DeleteFunc(b.Operations, func(o queue.Operation) bool {
		used := o.(interface{ byUnits() bool }).byUnits()
		if used {
			b.Answer(o, nil)
		}
		return used
	})
}

// byUnits decides on a call by units, and reports whether it has.
func (o *call) byUnits() (used bool) {
	o.ownKey()
	switch {
	case o.grant != nil:
	case o.throttle != nil:
		used, _ = o.store.ahead.Throttle(o.throttle, o.access, true)
	default:
		used, _ = o.store.takeAhead(o.take, o.access, true)
	}
	o.byUnit = used
	return used || o.grant == nil && !o.renews && o.store.deniedStill(o)
}

// Answer is queue.Operation's.
func (o *call) Answer(err error) {
	if err != nil && !o.renews {
		o.ownKey()
		if o.throttle != nil {
			o.store.failure.Throttle(o.throttle, err, o.access)
		} else {
			o.store.failure.Take(o.take, err, o.access)
		}
	} else if err == nil && o.store.ahead.On() && !o.byUnit && !o.renews && !o.limited() {
		o.passed(o.shown || o.grant != nil && o.grant.Has())
	}
	if o.grant != nil {
		o.grant.Done(err)
	}
	o.pending.answered()
}

// ownKey gives the request a copy of its key: the caller may have changed its own since.
func (o *call) ownKey() {
	key := []byte(o.Key[len(o.store.options.Prefix):])
	if o.throttle != nil {
		o.throttle.Key = key
	} else {
		o.take.Calls[0].Key = key
	}
}

// passed tells what is held ahead of a call that has passed.
func (o *call) passed(shown bool) {
	o.ownKey()
	if o.throttle == nil {
		o.store.ahead.PassedTake(o.take, shown)
	} else if o.throttle.Err == nil && o.throttle.Quantity > 0 {
		o.store.ahead.Passed(o.throttle, shown)
	}
}

// asks is what a call asks for, in ns, and of a window the count and the cost. increment is negative for a refund.
func (o *call) asks() (tolerance, increment int64) {
	if o.throttle != nil {
		return o.throttle.Bucket.ToleranceNS(), o.throttle.Bucket.IntervalNS() * o.throttle.Quantity
	}
	l := o.take.Calls[0].Limit
	if ahead.IsWindow(l) {
		return l.Count, o.take.Cost
	}
	b := l.Bucket()
	if o.take.Cost > b.Capacity() { // it never passes, and its cost may not fit
		return b.ToleranceNS(), b.ToleranceNS() + 1
	}
	return b.ToleranceNS(), b.IntervalNS() * o.take.Cost
}

// params are those of the limit, nothing for a TAT.
func (o *call) params() cell.Params {
	if o.take == nil {
		return cell.Params{}
	}
	return o.take.Calls[0].Limit.Params
}

// exact reports whether a script can compute with the call's numbers.
func (o *call) exact() bool {
	tolerance, increment := o.asks()
	return tolerance < exactNS && increment < exactNS && increment > -exactNS
}

// decideAt decides on a call for a key with a state, of CL.THROTTLE a TAT, and returns the next. The zero value stands for none.
func (o *call) decideAt(st cell.State, nowNS int64) (next cell.State) {
	if r := o.throttle; r != nil {
		st.A, r.Decision, r.Err = r.Bucket.Throttle(st.A, nowNS, r.Quantity)
	} else {
		r, c := o.take, &o.take.Calls[0]
		c.Decision = c.Limit.Decide(&st, nowNS, r.Cost, cell.Take)
		if d := &c.Decision; d.Limited && !c.Limit.Shadow {
			r.Taken = store.Taken{Limited: true, RetryAfterNS: d.RetryAfterNS, ResetAfterNS: d.ResetAfterNS}
		} else {
			r.Taken = store.Taken{Granted: r.Cost, RetryAfterNS: cell.Never, ResetAfterNS: d.ResetAfterNS}
		}
	}
	if st.A <= uint64(nowNS) {
		return cell.State{}
	}
	return st
}

// limited reports whether decideAt has denied it.
func (o *call) limited() bool {
	if o.throttle != nil {
		return o.throttle.Decision.Limited
	}
	return o.take.Calls[0].Decision.Limited
}

// decideBucket answers a call that is known to be denied, and asks the engine about any other.
func (s *Store) decideBucket(o *call) {
	switch {
	case !o.exact(), s.waits.For(o.Key[len(s.options.Prefix):]): // those who wait go first, which a change sees to
		s.enqueueChange(o.AsChange())
	case s.deniedAgain(o):
		if o.grant != nil {
			o.grant.Done(nil)
		}
		o.pending.answered()
	default:
		s.queues.Enqueue(o)
	}
}

// deniedAgain decides on a call by the state with which the last one was denied, at a time that the engine has reached, and reports whether
// it is denied, too. Others may have given something back meanwhile: the call notices that after a second at most.
func (s *Store) deniedAgain(o *call) bool {
	if s.queues.Busy(o.Key) { // what is asked already goes first, and may change it
		return false
	}
	return s.deniedStill(o)
}

// deniedStill is deniedAgain for a call that has no other before it.
func (s *Store) deniedStill(o *call) bool {
	if s.options.Denials == 0 {
		return false
	}
	last, ok := s.tatCache.denied(o.Key, o.field, o.params(), o.denialLasts())
	if ok && o.gives() {
		s.tatCache.forget(o.Key)
		return false
	}
	now, known := s.link.Clock(o.Key).Lower()
	if _, increment := o.asks(); !ok || !known || increment == 0 { // a peek is never denied
		return false
	}
	st := cell.State{A: last.tatNS, B: last.used}
	if last.pause != nil {
		st.A = last.pause.TAT(o.bucket(), st.A)
	}
	o.decideAt(st, now)
	if !o.limited() {
		return false
	}
	s.stats.DenialsAnswered.Add(1)
	return true
}

// bucket is that of a call which does not ask for a window.
func (o *call) bucket() cell.Bucket {
	if o.throttle != nil {
		return o.throttle.Bucket
	}
	return o.take.Calls[0].Limit.Bucket()
}

// denialLasts is for how long a denial is remembered. What others hold may come back after the time for which units last.
func (o *call) denialLasts() time.Duration {
	policy := ""
	if o.take != nil && o.take.Calls[0].Policy != nil {
		policy = o.take.Calls[0].Policy.Policy.Name
	}
	if ahead := o.store.ahead.Lasts(policy); ahead > 0 {
		return min(ahead, denialLasts)
	}
	return denialLasts
}

func (o *call) gives() bool { return o.throttle != nil && o.throttle.Quantity < 0 }

// AsChange returns a call as a change, where no script can decide it.
func (o *call) AsChange() *view.Change {
	key := []byte(o.Key[len(o.store.options.Prefix):])
	return o.store.views.NewChange([]string{o.Key}, o.Deadline, func(v *view.View) {
		if o.take != nil {
			o.take.Calls[0].Key = key
			o.store.waits.Decide(v, o.take, o.access)
		} else {
			o.throttle.Decision, o.throttle.Err = v.Throttle(key, o.throttle.Bucket, o.throttle.Quantity, v.At(o.access))
		}
		if o.grant != nil {
			o.grant.Decide(v)
		}
	}, o.Answer)
}
