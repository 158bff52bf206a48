package decide

import (
	"bytes"
	"slices"

	"celld/resp/decisions"
	"celld/store"
	"celld/store/policy"
)

// Ask is a CL.TAKE, CL.MTAKE or CL.GIVE by its values, as callers ask who do not write it in RESP.
type Ask struct {
	Key     string   // of all limits, where there are no Keys
	Keys    []string // of each limit; nil: it is a CL.TAKE
	Limits  []string // literals, or @ and the name of a policy
	Options []Option
	Seen    *policy.Seen // what rules see beside the keys; nil: nothing
}

// Option is an option of CL.TAKE in upper case, and its value, which is a number except for ID, and for OF, which follows COST. GIVE makes
// it a CL.GIVE of so much.
type Option struct {
	Name string
	N    int64
	Text string
}

// Command is the name of what asks so.
func (a *Ask) Command() string {
	switch {
	case a.Keys != nil:
		return "cl.mtake"
	case slices.ContainsFunc(a.Options, func(o Option) bool { return o.Name == "GIVE" }):
		return "cl.give"
	}
	return "cl.take"
}

// Read makes the request of an Ask. It also returns the text of an error, or "", and which of the limits is wrong by itself, or -1.
func (d *Decider) Read(a *Ask) (r store.TakeRequest, wrong int, text string) {
	f := &d.single
	f.reset(d.Commands.Find([]byte(a.Command())))
	for i, limit := range a.Limits {
		if text = f.readLimit(&d.limits, []byte(limit), i); text != "" {
			return r, i, text
		}
	}
	f.begin()
	for _, o := range a.Options {
		if text = f.put(o.Name, o.N, o.Text); text != "" {
			return r, -1, text
		}
	}
	if text = f.check(&d.limits); text != "" {
		return r, -1, text
	}
	r.Calls, r.TakeOptions = make([]store.Call, len(f.limits)), f.TakeOptions
	key := []byte(a.Key)
	for i := range f.limits {
		l := &f.limits[i]
		if a.Keys != nil {
			key = []byte(a.Keys[l.pair])
		}
		r.Calls[i] = store.Call{Key: key, Limit: l.Limit, Policy: l.policy, Own: l.own, Cost: l.cost, Seen: a.Seen}
	}
	if f.hasTerms {
		terms := f.terms
		r.Terms = &terms
	}
	return r, -1, ""
}

// CountTaken counts requests that Read has made, and that a limiter has decided, which says whether it hashed keys.
func (d *Decider) CountTaken(requests []store.TakeRequest, hashed bool) {
	f := &d.single
	for i := range requests {
		if r := &requests[i]; r.Err == nil {
			f.limits, f.counted = d.appendLimits(f.limits[:0], r.Calls), decisions.TakeAllowed
			d.count(hashed, f, r)
			if r.Takes() {
				d.noteTake(decisions.ByCalls, 1, hashed, r)
			}
		}
	}
	d.addCame()
}

// addCame counts for CL.TOP what was noted.
func (d *Decider) addCame() {
	if len(d.came) > 0 {
		d.late += d.Top.AddSoon(d.came)
		clear(d.came)
		d.came = d.came[:0]
	}
}

// otherKey reports whether the call that binds is for another key than the first.
func otherKey(r *store.TakeRequest) bool {
	return r.Taken.Binding > 0 && !bytes.Equal(r.Calls[r.Taken.Binding].Key, r.Calls[0].Key)
}
