package waiting

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"celld/store"
	"celld/store/policy"
)

// defaultMost is how many may wait by default.
const defaultMost = 10_000

// Room counts those who wait, and finds them by the names of their leases.
type Room[W Member[W]] struct {
	policies *policy.Set
	tickets  atomic.Uint64
	most     atomic.Int64
	held     atomic.Int64 // callers, and reservations behind them
	callers  atomic.Int64

	mu    sync.Mutex
	calls map[*store.TakeRequest]W
	named map[name]W
}

// Init prepares a Room for calls under these policies. It holds up to 10,000.
func (r *Room[W]) Init(policies *policy.Set) {
	r.policies, r.calls, r.named = policies, make(map[*store.TakeRequest]W), make(map[name]W)
	r.SetMost(0)
}

// SetMost changes how many may wait at once; 0 or less: 10,000. Those who wait already stay.
func (r *Room[W]) SetMost(most int64) {
	if most <= 0 {
		most = defaultMost
	}
	r.most.Store(most)
}

// Callers is how many callers wait. It needs no lock.
func (r *Room[W]) Callers() int64 { return r.callers.Load() }

// HasRoom reports whether so many more may wait.
func (r *Room[W]) HasRoom(n int64) bool { return r.held.Load()+n <= r.most.Load() }

// Enter gives a waiter its ticket. The waiter's Request, Calls, Access and Waker are set; Enter copies its keys. changed reports a policy
// whose limit is another by now. The errors are store.ErrTooManyWaiters and policy.ErrNoPolicy.
//
// A waiter without a Waker is a reservation, for which there is always room: its caller has been told a time already. Find does not find
// it.
func (r *Room[W]) Enter(as W) (changed bool, err error) {
	w, version := as.waiter(), r.policies.PoliciesVersion()
	w.named = slices.ContainsFunc(w.Calls, func(c store.Call) bool { return c.Policy != nil })
	_, same, err := r.present(w.Calls)
	if err != nil {
		return false, err
	}
	if held := r.held.Add(1); w.Waker != nil {
		if held > r.most.Load() {
			r.held.Add(-1)
			return false, store.ErrTooManyWaiters
		}
		r.callers.Add(1)
		r.mu.Lock()
		r.calls[w.Request] = as
		r.mu.Unlock()
	}
	if w.version = version; !same {
		w.version-- // Refresh is to look again
	}
	for i := range w.Calls {
		key := bytes.Clone(w.Calls[i].Key)
		w.Calls[i].Key, w.Request.Calls[i].Key = key, key
	}
	w.Ticket, w.want = r.tickets.Add(1), wantOf(w.Request)
	return !same, nil
}

// present returns calls under the present limits of their policies: other calls, where a policy has other limits by now. same: these are
// the calls that were given. The errors are policy.ErrNoPolicy and store.ErrTooManyLimits.
func (r *Room[W]) present(calls []store.Call) (now []store.Call, same bool, err error) {
	same = true
	for rest := calls; len(rest) > 0; {
		c := rest[0]
		if c.Policy == nil {
			now, rest = append(now, c), rest[1:]
			continue
		}
		old := c.Policy.Policy
		limits, n := []*policy.Limit{r.policies.LimitOf(c.Policy.ID)}, 1
		if isWhole(rest, old) {
			p := r.policies.Policy([]byte(old.Name))
			if p == nil {
				return nil, false, policy.ErrNoPolicy
			}
			limits, n = p.Limits, len(old.Limits)
		}
		if limits[0] == nil { // a reservation for one limit of a policy
			return nil, false, policy.ErrNoPolicy
		}
		same = same && limits[0] == c.Policy
		for _, l := range limits {
			call := store.CallOf(c.Key, l)
			call.Seen = c.Seen
			named := func(o store.Call) bool { return o.Own && o.Limit.Name == l.Limit.Name }
			if at := slices.IndexFunc(rest[:n], named); at >= 0 {
				call.Own, call.Cost = true, rest[at].Cost
			}
			now = append(now, call)
		}
		rest = rest[n:]
	}
	if len(now) > store.MaxLimits {
		return nil, false, store.ErrTooManyLimits
	}
	return now, same, nil
}

// isWhole reports whether calls begin with all limits of a policy.
func isWhole(calls []store.Call, p *policy.Policy) bool {
	if len(calls) < len(p.Limits) {
		return false
	}
	for i, l := range p.Limits {
		if calls[i].Policy != l {
			return false
		}
	}
	return true
}

// Refresh gives a waiter the present limits of its policies, and reports whether one may have changed. Then it may have other Calls. The
// errors are policy.ErrNoPolicy, for a policy that has gone, and store.ErrTooManyLimits.
func (r *Room[W]) Refresh(as W) (changed bool, err error) {
	w, version := as.waiter(), r.policies.PoliciesVersion()
	if !w.named || w.version == version {
		return false, nil
	}
	calls, same, err := r.present(w.Calls)
	if err != nil {
		return false, err
	}
	if w.version = version; !same {
		if &w.Request.Calls[0] == &w.Calls[0] {
			w.Request.Calls = calls
		}
		w.Calls = calls
	}
	return true, nil
}

// Leave removes a waiter that is in no Line any more, without an answer.
func (r *Room[W]) Leave(as W) {
	w := as.waiter()
	w.left = true
	if w.Timer != nil {
		w.Timer.Stop()
	}
	r.held.Add(-1)
	if w.Waker == nil {
		return
	}
	r.callers.Add(-1)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, w.Request)
	r.unregister(w)
}

// Find is the waiter of a request; nil: the request waits no longer, or has never waited. Any goroutine may call it.
func (r *Room[W]) Find(req *store.TakeRequest) W {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[req]
}

// Answer ends the wait of a waiter that is in no Line any more, and of its followers, with the answer of a request.
func (r *Room[W]) Answer(as W, answer *store.TakeRequest) {
	w := as.waiter()
	r.Leave(as)
	followers := w.Followers
	w.Followers = nil
	for _, j := range followers {
		j.waiter().Leader = *new(W)
		r.Answer(j, answer)
	}
	w.tell(answer)
}
