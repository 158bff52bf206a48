package remote

import (
	"errors"
	"time"

	"celld/cell"
	"celld/store"
)

// exactNS is the longest debt and tolerance that the scripts compute with, 52 days: Lua's numbers are exact below 2^53, and sums of two
// of these are. What is longer is a change.
const exactNS = 1 << 52

// throttle has a call decided.
func (s *Store) throttle(r *store.Request, a store.Access, deadline time.Time, b *batch) {
	r.Err = nil
	if s.policies.HasRules() {
		if rule := s.policies.Rule(r.Key, a.NowNS); rule != nil {
			r.Decision = rule.Decision(r.Bucket.Capacity(), a.NowNS)
			b.answered()
			return
		}
	}
	o := &operation{key: s.options.Prefix + string(r.Key), throttle: r, access: a, deadline: deadline, batch: b}
	if _, _, err := r.Bucket.Throttle(0, a.NowNS, r.Quantity); err != nil {
		s.refuseQuantity(o, err)
		return
	}
	s.askBucket(o)
}

// refuseQuantity answers a call that can never be decided. What the key holds is looked at first, as redis-cell does: another type is that error.
func (s *Store) refuseQuantity(o *operation, why error) {
	r := o.throttle
	c := s.asChange(o)
	c.change.done = func(err error) {
		switch {
		case errors.Is(err, store.ErrWrongType):
			r.Decision, r.Err = cell.Decision{}, err
		case err != nil: // no --store-failure decides on such a call
			r.Decision, r.Err = cell.Decision{}, why
		}
		o.batch.answered()
	}
	s.ask(c)
}

// take has a call decided.
func (s *Store) take(r *store.TakeRequest, a store.Access, deadline time.Time, b *batch) {
	r.Err = nil
	if !isBucket(r) || s.policies.HasRules() && s.policies.Rule(r.Calls[0].Key, a.NowNS) != nil {
		s.takeChange(r, a, deadline, b)
		return
	}
	c := &r.Calls[0]
	o := &operation{key: s.options.Prefix + string(c.Key), take: r, access: a, deadline: deadline, batch: b}
	if o.field = s.fieldOf(c); o.field == "" {
		s.takeChange(r, a, deadline, b)
		return
	}
	s.askBucket(o)
}

// isBucket reports a Take that a script decides: of one limit with algo=gcra that just passes or not.
func isBucket(r *store.TakeRequest) bool {
	if len(r.Calls) > 1 || r.Cost <= 0 || r.Mode != cell.Take || r.UpTo || r.Terms != nil {
		return false
	}
	return r.Calls[0].Limit.IsBucket()
}

// sameState reports whether one script can decide on both, which have one key.
func sameState(r, first *store.TakeRequest) bool {
	c, f := &r.Calls[0], &first.Calls[0]
	return c.Policy == f.Policy && c.Limit.Shape == f.Limit.Shape && c.Limit.Params == f.Limit.Params
}

// bucket is what an operation asks, in ns. incrementNS is negative for a refund.
func (o *operation) bucket() (toleranceNS, incrementNS int64) {
	if o.throttle != nil {
		return o.throttle.Bucket.ToleranceNS(), o.throttle.Bucket.IntervalNS() * o.throttle.Quantity
	}
	b := o.take.Calls[0].Limit.Bucket()
	if o.take.Cost > b.Capacity() { // it never passes, and its cost may not fit
		return b.ToleranceNS(), b.ToleranceNS() + 1
	}
	return b.ToleranceNS(), b.IntervalNS() * o.take.Cost
}

// params are those of the limit, nothing for a TAT.
func (o *operation) params() cell.Params {
	if o.take == nil {
		return cell.Params{}
	}
	return o.take.Calls[0].Limit.Params
}

// exact reports whether a script can compute with it.
func (o *operation) exact() bool {
	tolerance, increment := o.bucket()
	return tolerance < exactNS && increment < exactNS && increment > -exactNS
}

// decideAt decides on a call for a key with a TAT, and returns the next TAT. 0 stands for none.
func (o *operation) decideAt(tatNS uint64, nowNS int64) (next uint64) {
	if r := o.throttle; r != nil {
		next, r.Decision, r.Err = r.Bucket.Throttle(tatNS, nowNS, r.Quantity)
	} else {
		r, c, st := o.take, &o.take.Calls[0], cell.State{A: tatNS}
		c.Decision = c.Limit.Decide(&st, nowNS, r.Cost, cell.Take)
		next = st.A
		if d := &c.Decision; d.Limited && !c.Limit.Shadow {
			r.Taken = store.Taken{Limited: true, RetryAfterNS: d.RetryAfterNS, ResetAfterNS: d.ResetAfterNS}
		} else {
			r.Taken = store.Taken{Granted: r.Cost, RetryAfterNS: cell.Never, ResetAfterNS: d.ResetAfterNS}
		}
	}
	if next <= uint64(nowNS) {
		return 0
	}
	return next
}

// limited reports whether decideAt has denied it.
func (o *operation) limited() bool {
	if o.throttle != nil {
		return o.throttle.Decision.Limited
	}
	return o.take.Calls[0].Decision.Limited
}

// askBucket answers a call that is known to be denied, and has any other asked.
func (s *Store) askBucket(o *operation) {
	if s.waitedFor(o.key) { // who waits goes first, which a change sees to
		s.ask(s.asChange(o))
		return
	}
	if s.options.Denials > 0 && s.deniedAgain(o) {
		s.stats.DenialsAnswered.Add(1)
		o.batch.answered()
		return
	}
	s.ask(o)
}

// deniedAgain decides on a call by the TAT with which the last one was denied, at a time that the engine has reached, and reports
// whether it is denied, too. Others may have given back meanwhile, for which it waits a second at most.
func (s *Store) deniedAgain(o *operation) bool {
	sh := s.queues.shardOf(o.key)
	sh.mu.Lock()
	tat, ok := sh.versions.denied(o.key, o.field, o.params())
	switch {
	case !ok:
	case o.gives():
		sh.versions.forget(o.key)
		ok = false
	case sh.keys[o.key] != nil: // what is asked already goes first, and may change it
		ok = false
	}
	sh.mu.Unlock()
	if !ok {
		return false
	}
	now, ok := s.link.Clock(o.key).Lower()
	if !ok {
		return false
	}
	_, increment := o.bucket()
	if increment == 0 { // a peek is never denied
		return false
	}
	o.decideAt(tat, now)
	return o.limited()
}

func (o *operation) gives() bool { return o.throttle != nil && o.throttle.Quantity < 0 }

// answerThrottle and answerTake end a call that is decided, or was not for this reason.
func (s *Store) answerThrottle(o *operation, err error) {
	if err != nil {
		o.throttle.Key = []byte(o.key[len(s.options.Prefix):]) // the caller may have changed its own
		s.failure.Throttle(o.throttle, err, o.access)
	}
}

func (s *Store) answerTake(o *operation, err error) {
	if err != nil {
		o.take.Calls[0].Key = []byte(o.key[len(s.options.Prefix):])
		s.failure.Take(o.take, err, o.access)
	}
}

// asChange returns a bucket's call as a change, for what a script does not decide.
func (s *Store) asChange(o *operation) *operation {
	c := *o
	c.throttle, c.take = nil, nil
	key := []byte(o.key[len(s.options.Prefix):])
	c.change = &change{
		keys: []string{o.key},
		decide: func(v *View) {
			a := o.access
			a.NowNS = v.NowNS
			if o.throttle != nil {
				o.throttle.Decision, o.throttle.Err = v.Throttle(key, o.throttle.Bucket, o.throttle.Quantity, a)
			} else {
				o.take.Calls[0].Key = key
				if v.takeBehind(o.take, a) {
					return
				}
				o.take.Taken, o.take.Err = v.Take(o.take.Calls, o.take.TakeOptions, a)
			}
		},
		done: func(err error) {
			if o.throttle != nil {
				s.answerThrottle(o, err)
			} else {
				s.answerTake(o, err)
			}
			o.batch.answered()
		},
	}
	return &c
}

func (s *Store) asChanges(ops []*operation) []*operation {
	changes := make([]*operation, len(ops))
	for i, o := range ops {
		changes[i] = s.asChange(o)
	}
	return changes
}
