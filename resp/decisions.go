package resp

import (
	"bytes"
	"math/bits"
	"slices"

	"celld/resp/decisions"
	"celld/store"
)

// countTake counts a call that could take, and what it was denied for CL.TOP. allowed is its kind if it was allowed; the kind after
// that is for limited calls.
func (s *Session) countTake(b *batch, f *form, r *store.TakeRequest, allowed decisions.Kind) {
	d, lane, binding := &s.scratch.decided, s.scratch.lane, r.Taken.Binding
	n := d.In(f.limits[binding].row, lane)
	switch {
	case r.Taken.Limited:
		n[allowed+1]++
		c := &r.Calls[binding]
		switch {
		case ruled(r.Calls):
			n[decisions.RuleDenied]++
		case c.Limit.BlockNS > 0:
			n[decisions.Blocked]++
		}
		if binding > 0 && b.row.Keys.Counted { // another key than the first
			s.noteDenied(c.Policy, c.Key, s.srv.store.Hash(c.Key))
		} else {
			s.noteDenied(c.Policy, c.Key, s.hashOf(b, c.Key, r.Hash))
		}
	default:
		n[allowed]++
		if r.UpTo && r.Taken.Granted < r.Cost {
			n[decisions.PartlyGranted]++
		}
	}
	for i := range r.Calls {
		switch c := &r.Calls[i]; {
		case !c.Limit.Shadow:
		case c.Decision.Limited:
			d.In(f.limits[i].row, lane)[decisions.ShadowLimited]++
		default:
			d.In(f.limits[i].row, lane)[decisions.ShadowAllowed]++
		}
	}
}

// ruled reports whether a rule denied one of the calls, of which one was denied.
func ruled(calls []store.Call) bool {
	for i := range calls {
		if calls[i].Decision.Limit == 0 { // only a rule decides so: no limit has capacity 0
			return true
		}
	}
	return false
}

// countDecisions adds the batch's decisions so far to the totals, or to the session's round where replies wait for the disk. Those of a
// visit count when it is stored, as it may have to run again.
func (s *Session) countDecisions() {
	d := &s.scratch.decided
	switch {
	case s.scratch.visit != nil:
		return
	case s.srv.synchronous:
		s.inRound().decided.AddAll(d, s.scratch.lane)
		d.Clear()
	default:
		d.Settle(s.scratch.lane, nil)
	}
}

// noteDenied notes a denial until countDenied counts it. Inlined, it would slow down calls that pass.
//
//go:noinline
func (s *Session) noteDenied(policy uint32, key []byte, hash uint64) {
	s.scratch.denied = append(s.scratch.denied, decisions.Denial{Hash: hash, Policy: policy, Key: key})
}

// countDenied counts what a batch has noted, while its keys are there.
func (s *Session) countDenied() {
	list, srv := s.scratch.denied, s.srv
	if s.scratch.visit == nil {
		srv.denied.Add(list)
	} else {
		kept := slices.Clone(list)
		for i := range kept {
			kept[i].Key = bytes.Clone(kept[i].Key)
		}
		s.once(func() { srv.denied.Add(kept) })
	}
	clear(list)
	s.scratch.denied = list[:0]
}

// countDeniedThrottles counts the denied calls of a batch, whose bits are set. It notes them only where it must, as that takes 3 ns each.
func (s *Session) countDeniedThrottles(b *batch, limited uint64) {
	if b.hashed {
		s.srv.denied.AddThrottles(b.throttles, limited)
		return
	}
	for ; limited != 0; limited &= limited - 1 {
		r := &b.throttles[bits.TrailingZeros64(limited)]
		s.noteDenied(0, r.Key, s.srv.store.Hash(r.Key))
	}
	s.countDenied()
}
