package store

import (
	"slices"
	"strconv"
	"strings"

	"celld/cell"
	"celld/store/policy"
)

// Limits are all limits under a key that holds limits.
type Limits []LimitState

// LimitState is a limit and its state.
type LimitState struct {
	Policy *policy.Limit // nil: a literal
	Limit  cell.Limit
	State  cell.State
	Told   cell.Told // of a log in a Change: what was told of it before
}

// AppendName appends the name that tools see: @api/gcra/1m for a policy's limit, the shape for a literal. Leases that were taken from a
// limit are named by the limit and " leases".
func (l *LimitState) AppendName(b []byte) []byte {
	if l.Policy != nil {
		b = l.Policy.AppendName(b)
	} else {
		b = l.Limit.Shape.AppendText(b)
	}
	if l.Limit.Leases {
		b = append(append(b, ' '), leasesName...)
	}
	return b
}

// leasesName follows the name of the limit from which leases were taken.
const leasesName = "leases"

// Clone copies the rings as well.
func (l Limits) Clone() Limits {
	l = slices.Clone(l)
	for i := range l {
		l[i].State.Ring = slices.Clone(l[i].State.Ring)
	}
	return l
}

// Shift returns a copy with ns added to every instant, for a clock that was set while celld did not run.
func (l Limits) Shift(ns int64) Limits {
	l = l.Clone()
	for i := range l {
		l[i].Limit.Shift(&l[i].State, ns)
	}
	return l
}

// EndNS is when the last of them has nothing left to remember, in Unix ns of wall time; 0: they are over already.
func (l Limits) EndNS() (end uint64) {
	for i := range l {
		end = max(end, l[i].Limit.EndNS(&l[i].State))
	}
	return end
}

// Field is a field of the hash that tools see in place of a key with limits: a limit and its state, or a part of a log.
type Field struct {
	LimitState
	Part    bool  // the state holds only the calls of a log after AfterNS
	AfterNS int64 // Unix ns
}

// EndBound ends the leases that are bound, as nobody has the connections any more.
func (f *Field) EndBound(wallNS int64) {
	if f.Limit.HoldsLeases() {
		f.State.Leases().EndBound(wallNS)
	}
}

// CutName cuts off what follows the limit's name: what AppendName adds for leases, or the number of a part, which sets Part. The error is
// ErrField.
func (f *Field) CutName(name string) (limit string, leases bool, err error) {
	limit, rest, more := strings.Cut(name, " ")
	leases = rest == leasesName
	if f.Part = more && !leases; f.Part {
		if _, err := strconv.ParseUint(rest, 10, 32); err != nil {
			return "", false, ErrField
		}
	}
	return limit, leases, nil
}
