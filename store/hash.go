package store

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"celld/cell"
)

// ErrNoPolicy reports a state of a policy that is not there, and a call whose policy has gone while it waited.
var ErrNoPolicy = errors.New("no such policy")

var errField = errors.New("not a limit and its state")

// Field is a field of the hash as which tools see a key with limits: a limit and its state, or a part of a log.
type Field struct {
	LimitState
	Part    bool  // the state has only the calls of a log after AfterNS
	AfterNS int64 // Unix ns
}

// ParseField is ReadField for files: leases that are bound have ended, as nobody has the connections any more.
func (s *Store) ParseField(name, text string) (f Field, err error) {
	if f, err = s.ReadField(name, text); err == nil && f.Limit.HoldsLeases() {
		cell.EndBound(&f.State)
	}
	return f, err
}

// ReadField reads a field: a name that AppendName writes, and a state that cell.Limit.AppendState writes. No ID of a lease will be
// lower than those that it has. In the field of a
// part, a space and a number follow the name, and the text is what AppendPart writes. The error is ErrNoPolicy only when nothing
// else is wrong.
func (s *Store) ReadField(name, text string) (f Field, err error) {
	name, number, more := strings.Cut(name, " ")
	leases := number == leasesName
	if f.Part = more && !leases; f.Part {
		if _, err := strconv.ParseUint(number, 10, 32); err != nil {
			return Field{}, errField
		}
		f.Limit, f.State, f.AfterNS, err = cell.ParsePart(text)
	} else {
		f.Limit, f.State, err = cell.ParseState(text)
		if err == nil && f.Limit.Leases != leases {
			err = errField
		}
	}
	if err != nil {
		return Field{}, err
	}
	if policy, isPolicy := strings.CutPrefix(name, "@"); isPolicy {
		if f.Policy = s.PolicyNamed(policy); f.Policy == nil {
			return Field{}, ErrNoPolicy
		}
	} else if string(f.Limit.Shape.AppendText(nil)) != name {
		return Field{}, errField
	}
	if f.Limit.HoldsLeases() {
		s.RaiseID(cell.HighestLease(&f.State))
	}
	return f, nil
}

// Fields are those of one command, or of one key.
type Fields []Field

// Join adds the fields to limits, or replaces those that share a state. A part follows the calls that its log has. Limits with
// nothing left to remember are removed. added is how many limits are new. The errors are ErrTooManyLimits, and one for a log
// whose costs would be over 2^53. Unless apart is set, Join changes the rings of logs in place, even when it returns an error.
//
// nowNS is limit time; the wall time is aheadNS more.
func (fields Fields) Join(limits Limits, apart bool, nowNS, aheadNS int64) (joined Limits, added int, err error) {
	over := func(l *LimitState) bool {
		if l.Limit.Leases { // those that have ended are still to be given back
			return cell.Leases(&l.State) == 0
		}
		return limitEndNS(&l.Limit, &l.State, aheadNS) <= uint64(nowNS)
	}
	joined = slices.DeleteFunc(slices.Clone(limits), func(l LimitState) bool { return over(&l) })
	if slices.ContainsFunc(fields, func(f Field) bool { return f.Part }) {
		fields = slices.SortedStableFunc(slices.Values(fields), byOrder)
		if apart {
			joined = joined.Clone()
		}
	}
	for i := range fields {
		f := &fields[i]
		l := f.LimitState
		at := joined.find(&l)
		if f.Part && at >= 0 && joined[at].Limit.Shape == l.Limit.Shape {
			st := joined[at].State
			if !l.Limit.Join(&st, &l.State, f.AfterNS) {
				return nil, 0, errField
			}
			l.State = st
		}
		switch {
		case over(&l):
			if at >= 0 {
				joined = slices.Delete(joined, at, at+1)
			}
		case at >= 0:
			joined[at] = l
		case len(joined) == MaxLimits:
			return nil, 0, ErrTooManyLimits
		default:
			joined = append(joined, l)
			added++
		}
	}
	return joined, added, nil
}

// byOrder has parts follow what they are parts of, the earliest first. A hash of redis-server has them in any order.
func byOrder(f, g Field) int {
	switch {
	case f.Part && g.Part:
		return cmp.Compare(f.AfterNS, g.AfterNS)
	case f.Part:
		return 1
	case g.Part:
		return -1
	}
	return 0
}

// PutFields makes a key hold what Join says, and returns how many limits are new. The errors are Join's, ErrFull, ErrWrongType and those
// of LimitState.Reach.
func (s *Store) PutFields(key []byte, fields Fields, apart bool, a Access) (added int, err error) {
	for i := range fields {
		if err := fields[i].Reach(a.May, false, true); err != nil {
			return 0, err
		}
	}
	ahead := s.wall.Load()
	fields = fields.fromWall(ahead)
	refused := error(nil)
	err = s.update(key, a, func(old Value, ok bool) (Value, Action) {
		added, refused = 0, nil
		if ok && old.Kind != HoldsLimits {
			refused = ErrWrongType
			return old, Leave
		}
		var limits Limits
		if ok {
			limits = *old.Limits
		}
		if limits, added, refused = fields.Join(limits, apart, a.NowNS, ahead); refused != nil {
			return old, Leave
		}
		if len(limits) == 0 {
			return old, Delete
		}
		return Value{TAT: limits.endNS(ahead), ExpiryNS: old.ExpiryNS, Kind: HoldsLimits, Limits: &limits}, Put
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		added = 0
	}
	return added, err
}

func (fields Fields) fromWall(aheadNS int64) Fields {
	if aheadNS == 0 {
		return fields
	}
	fields = slices.Clone(fields)
	for i := range fields {
		f := &fields[i]
		f.State.Ring = cloneRing(f.State.Ring)
		f.LimitState.fromWall(aheadNS)
		f.AfterNS = int64(cell.ShiftInstant(uint64(f.AfterNS), -aheadNS))
	}
	return fields
}

// find returns where the limit is that shares its state with that one, or -1.
func (l Limits) find(of *LimitState) int {
	for i := range l {
		switch {
		case (l[i].Policy == nil) != (of.Policy == nil) || l[i].Limit.Leases != of.Limit.Leases:
		case of.Policy != nil && l[i].Policy.ID == of.Policy.ID, of.Policy == nil && l[i].Limit.Shape == of.Limit.Shape:
			return i
		}
	}
	return -1
}
