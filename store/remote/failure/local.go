package failure

import (
	"errors"

	"celld/cell"
	"celld/store"
	"celld/store/memory"
)

// defaultLocalShare is Options.LocalShare's.
const defaultLocalShare = 20

// Local returns the table that decides while the engine does not answer. It is nil if the engine answers, or if no call has met the mode
// Local since it stopped. The leases in it were granted meanwhile.
func (f *Decider) Local() *memory.Store { return f.table.Load() }

// local is the table of Local, made when it is first needed. Its keys hold what this process has granted, in shares, by its own clock.
func (f *Decider) local() *memory.Store {
	if t := f.table.Load(); t != nil {
		return t
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.table.Load()
	if t == nil {
		o := &f.options
		t = memory.New(memory.Options{MaxKeys: o.LocalKeys, MaxBytes: o.LocalBytes, Policies: o.Policies, NewID: o.NewID})
		f.table.Store(t)
	}
	return t
}

func (f *Decider) shares() int64 {
	if n := f.options.LocalShare; n > 0 {
		return int64(n)
	}
	return defaultLocalShare
}

// throttleLocally decides by a share of the limit. The reply tells the whole limit, as clients show it.
func (f *Decider) throttleLocally(r *store.Request, a store.Access) {
	one := [1]store.Request{{Key: r.Key, Bucket: r.Bucket.Share(f.shares()), Quantity: r.Quantity}}
	share := &one[0]
	never := false
	if _, _, err := share.Bucket.Throttle(0, a.NowNS, r.Quantity); errors.As(err, new(*cell.RangeError)) {
		// It is far more than the share, of which a quantity costs too much to compute, as the interval is longer.
		if never = r.Quantity > 0; never {
			share.Quantity = 0
		} else {
			share.Quantity = -share.Bucket.Capacity()
		}
	}
	f.local().ThrottleBatch(one[:], a, nil)
	r.Decision, r.Err = whole(share.Decision, share.Bucket.Capacity(), r.Bucket.Capacity()), share.Err
	if never {
		r.Decision.Limited, r.Decision.RetryAfterNS = true, cell.Never
	}
	if r.Err == nil && r.Decision.Limited && r.Decision.RetryAfterNS == cell.Never {
		if _, d, err := r.Bucket.Throttle(0, a.NowNS, r.Quantity); err == nil && !d.Limited {
			r.Decision.RetryAfterNS = deniedNS // the share never lets pass what the engine would
		}
	}
}

// takeLocally decides by shares of the limits. A WAIT does not wait: it passes at once, or is denied. The table keeps the leases.
func (f *Decider) takeLocally(r *store.TakeRequest, a store.Access) {
	calls, limits := make([]store.Call, len(r.Calls)), make([]cell.Limit, len(r.Calls))
	for i := range calls {
		c := &r.Calls[i]
		limits[i] = c.Limit.Share(f.shares())
		calls[i] = store.Call{Key: c.Key, Limit: &limits[i], Policy: c.Policy, Own: c.Own, Cost: c.Cost, Seen: c.Seen}
	}
	r.Taken, r.Err = f.local().Take(calls, r.TakeOptions, a)
	retryNS := uint64(0)
	for i := range calls {
		c := &r.Calls[i]
		d := whole(calls[i].Decision, limits[i].Capacity(), c.Limit.Capacity())
		if d.Limited && d.RetryAfterNS == cell.Never && !calls[i].Ruled &&
			!c.Limit.Decide(&cell.State{}, a.NowNS, c.CostOf(r.Cost), cell.Peek).Limited {
			d.RetryAfterNS = deniedNS // as in throttleLocally
		}
		c.Answer(d)
		if r.Taken.Limited && d.Limited && d.RetryAfterNS > retryNS && (calls[i].Ruled || !c.Limit.Shadow) {
			retryNS = d.RetryAfterNS
			r.Taken.Binding, r.Taken.RetryAfterNS = i, retryNS
		}
	}
}

// whole puts the whole limit into a decision on a share. That of a rule tells the limit already.
func whole(d cell.Decision, share, capacity int64) cell.Decision {
	if d.Limit == share {
		d.Limit = capacity
	}
	return d
}
