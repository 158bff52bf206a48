package memory

import (
	"cmp"
	"slices"
	"strings"

	"celld/cell"
	"celld/store"
	"celld/store/memory/shard"
	"celld/store/memory/table"
	"celld/store/policy"
)

// ParseField reads a field: a name that AppendName writes, and a state that cell.Limit.AppendState writes. In the field of a part, a space
// and a number follow the name, and AppendPart writes the text. IDs of new leases will be above those that it reads. The error is
// policy.ErrNoPolicy only when nothing else is wrong.
func (s *Store) ParseField(name, text string) (f store.Field, err error) {
	name, leases, err := f.CutName(name)
	if err != nil {
		return store.Field{}, err
	}
	if f.Part {
		f.Limit, f.State, f.AfterNS, err = cell.ParsePart(text)
	} else {
		f.Limit, f.State, err = cell.ParseState(text)
		if err == nil && f.Limit.Leases != leases {
			err = store.ErrField
		}
	}
	if err != nil {
		return store.Field{}, err
	}
	if named, isPolicy := strings.CutPrefix(name, "@"); isPolicy {
		if f.Policy = s.LimitNamed(named, f.Limit.Shape); f.Policy == nil {
			return store.Field{}, policy.ErrNoPolicy
		}
	} else if string(f.Limit.Shape.AppendText(nil)) != name {
		return store.Field{}, store.ErrField
	}
	if f.Limit.HoldsLeases() {
		s.RaiseID(f.State.Leases().HighestID())
	}
	return f, nil
}

// Merge adds the fields to limits, and replaces those that share a state. It appends a part to the calls of its log. It removes limits with
// nothing left to remember. added is how many limits are new. The errors are ErrTooManyLimits, and one for a log whose costs would exceed
// 2^53. Unless apart is set, Merge changes the rings of logs in place, even when it returns an error.
//
// nowNS is limit time; the wall time is aheadNS more.
func Merge(fields []store.Field, limits store.Limits, apart bool, nowNS, aheadNS int64) (merged store.Limits, added int, err error) {
	over := func(l *store.LimitState) bool {
		if l.Limit.Leases { // what expired leases held must still be given back
			return l.State.Leases().Len() == 0
		}
		return table.LimitEndNS(&l.Limit, &l.State, aheadNS) <= uint64(nowNS)
	}
	merged = slices.DeleteFunc(slices.Clone(limits), func(l store.LimitState) bool { return over(&l) })
	if slices.ContainsFunc(fields, func(f store.Field) bool { return f.Part }) {
		fields = slices.SortedStableFunc(slices.Values(fields), byOrder)
		if apart {
			merged = merged.Clone()
		}
	}
	for i := range fields {
		f := &fields[i]
		l := f.LimitState
		at := find(merged, &l)
		if f.Part && at >= 0 && merged[at].Limit.Shape == l.Limit.Shape {
			st := merged[at].State
			if !l.Limit.Join(&st, &l.State, f.AfterNS) {
				return nil, 0, store.ErrField
			}
			l.State = st
		}
		switch {
		case over(&l):
			if at >= 0 {
				merged = slices.Delete(merged, at, at+1)
			}
		case at >= 0:
			merged[at] = l
		case len(merged) == store.MaxLimits:
			return nil, 0, store.ErrTooManyLimits
		default:
			merged = append(merged, l)
			added++
		}
	}
	return merged, added, nil
}

// byOrder sorts parts behind what they are parts of, the earliest first. A hash of redis-server has them in any order.
func byOrder(f, g store.Field) int {
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

// PutFields merges fields into a key, and returns how many limits are new. Leases that are bound end now. The errors are Merge's,
// ErrFull, ErrWrongType and those of LimitState.Reach.
func (s *Store) PutFields(key []byte, fields []store.Field, apart bool, a store.Access) (added int, err error) {
	for i := range fields {
		f := &fields[i]
		if err := f.Reach(a.May, false, true); err != nil {
			return 0, err
		}
		f.EndBound(s.WallNS(a.NowNS))
	}
	ahead := s.Wall.Load()
	fields = fieldsFromWall(fields, ahead)
	refused := error(nil)
	err = s.Replace(key, a, func(old store.Value, ok bool) (store.Value, bool) {
		added, refused = 0, nil
		if ok && !old.HoldsLimits {
			refused = store.ErrWrongType
			return old, false
		}
		var limits store.Limits
		if ok {
			limits = *old.Limits
		}
		if limits, added, refused = Merge(fields, limits, apart, a.NowNS, ahead); refused != nil {
			return old, false
		}
		if len(limits) == 0 {
			return store.Value{}, true // deletes the key
		}
		return store.Value{TAT: table.EndNS(limits, ahead), ExpiryNS: old.ExpiryNS, HoldsLimits: true, Limits: &limits}, true
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		added = 0
	}
	return added, err
}

func fieldsFromWall(fields []store.Field, aheadNS int64) []store.Field {
	if aheadNS == 0 {
		return fields
	}
	fields = slices.Clone(fields)
	for i := range fields {
		f := &fields[i]
		f.State.Ring = table.CloneRing(f.State.Ring)
		shard.StateFromWall(&f.LimitState, aheadNS)
		f.AfterNS = int64(cell.ShiftInstant(uint64(f.AfterNS), -aheadNS))
	}
	return fields
}

// find returns the index of the limit that shares its state with that one, or -1.
func find(l store.Limits, of *store.LimitState) int {
	for i := range l {
		switch {
		case (l[i].Policy == nil) != (of.Policy == nil) || l[i].Limit.Leases != of.Limit.Leases:
		case of.Policy != nil && l[i].Policy.ID == of.Policy.ID, of.Policy == nil && l[i].Limit.Shape == of.Limit.Shape:
			return i
		}
	}
	return -1
}
