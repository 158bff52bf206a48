package store

import (
	"errors"
	"slices"
	"strings"

	"celld/cell"
)

// ErrNoPolicy reports a state of a policy that is not there.
var ErrNoPolicy = errors.New("no such policy")

var errField = errors.New("not a limit and its state")

// ParseLimit reads a field of the hash that a key with limits is to tools: a name, as AppendName writes it, and a state, as
// cell.Literal.AppendState does. ErrNoPolicy is all that may be wrong with it where the error is that.
func (s *Store) ParseLimit(name, text string) (LimitState, error) {
	literal, st, err := cell.ParseState(text)
	if err != nil {
		return LimitState{}, err
	}
	l := LimitState{Literal: literal, State: st}
	if policy, isPolicy := strings.CutPrefix(name, "@"); isPolicy {
		if l.Policy = s.PolicyNamed(policy); l.Policy == nil {
			return LimitState{}, ErrNoPolicy
		}
	} else if string(literal.Slot.AppendText(nil)) != name {
		return LimitState{}, errField
	}
	return l, nil
}

// PutLimits makes a key hold these limits beside those that it holds, and returns how many are new. One that has nothing left
// to remember is removed. The errors are ErrFull, ErrWrongType and ErrTooManyLimits.
func (s *Store) PutLimits(key []byte, limits Limits, a Access) (added int, err error) {
	refused := error(nil)
	err = s.Update(key, a, func(old State, ok bool) (State, Action) {
		added, refused = 0, nil
		if ok && old.Kind != HoldsLimits {
			refused = ErrWrongType
			return old, Leave
		}
		var merged Limits
		if ok {
			merged = old.Limits.live(a.NowNS)
		}
		for i := range limits {
			if limits[i].Literal.EndNS(&limits[i].State) <= uint64(a.NowNS) {
				merged.remove(&limits[i])
				continue
			}
			before := len(merged)
			if !merged.Put(limits[i]) {
				refused = ErrTooManyLimits
				return old, Leave
			}
			added += len(merged) - before
		}
		if len(merged) == 0 {
			return old, Delete
		}
		return State{TAT: merged.EndNS(), ExpiryNS: old.ExpiryNS, Kind: HoldsLimits, Limits: &merged}, Put
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		added = 0
	}
	return added, err
}

func (l Limits) live(nowNS int64) (live Limits) {
	for i := range l {
		if l[i].Literal.EndNS(&l[i].State) > uint64(nowNS) {
			live = append(live, l[i])
		}
	}
	return live
}

// Put adds a limit, or puts it in the place of the one that shares its state. It returns false where there are MaxLimits
// others.
func (l *Limits) Put(limit LimitState) bool {
	at := l.find(&limit)
	switch {
	case at >= 0:
		(*l)[at] = limit
	case len(*l) == MaxLimits:
		return false
	default:
		*l = append(*l, limit)
	}
	return true
}

func (l *Limits) remove(limit *LimitState) {
	if at := l.find(limit); at >= 0 {
		*l = slices.Delete(*l, at, at+1)
	}
}

// find returns where the limit is that shares its state with that one, or -1.
func (l Limits) find(of *LimitState) int {
	for i := range l {
		switch {
		case (l[i].Policy == nil) != (of.Policy == nil):
		case of.Policy != nil && l[i].Policy.ID == of.Policy.ID, of.Policy == nil && l[i].Literal.Slot == of.Literal.Slot:
			return i
		}
	}
	return -1
}
