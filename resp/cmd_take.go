package resp

import (
	"bytes"
	"math"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/limit"
	"celld/resp/wire"
	"celld/store"
)

// takeCall is the options of a CL.TAKE or CL.MTAKE.
type takeCall struct {
	store.TakeOptions
	us   bool // times in microseconds
	full bool // the reply also has each limit's decision

	terms    store.Terms
	max      int64 // of WAIT or RESERVE, as it was given
	hasTerms bool  // it may wait or hold a lease
	leases   bool  // the reply has the lease's id
}

// mode sets the mode, which may be set only once.
func (t *takeCall) mode(mode cell.Mode, upTo bool, wait store.WaitMode) string {
	if t.Mode != cell.Take || t.UpTo || t.terms.Mode != store.DontWait {
		return errTakeModes
	}
	t.Mode, t.UpTo, t.terms.Mode = mode, upTo, wait
	return ""
}

// takeWords are the options of CL.TAKE and CL.MTAKE.
var takeWords = command.Options{Flags: []string{"PEEK", "UPTO", "FORCE", "BIND", "US", "FULL"}, Valued: []string{"COST", "WAIT", "RESERVE", "LEASE", "ID"}}

// set notes an option. It returns the text of an error, or "".
func (t *takeCall) set(option string, value []byte) (text string) {
	switch option {
	case "PEEK":
		return t.mode(cell.Peek, false, store.DontWait)
	case "UPTO":
		return t.mode(cell.Take, true, store.DontWait)
	case "FORCE":
		return t.mode(cell.Force, false, store.DontWait)
	case "BIND":
		t.terms.Bound = true
	case "US":
		t.us = true
	case "FULL":
		t.full = true
	case "ID":
		if len(value) < 1 || len(value) > maxLeaseName {
			return formatError(errLeaseName, maxLeaseName)
		}
		t.terms.Name = string(value)
	default:
		return t.setNumber(option, value)
	}
	return ""
}

// setNumber notes an option that is a number.
func (t *takeCall) setNumber(option string, value []byte) (text string) {
	n, ok := command.ParseInt(value)
	if !ok {
		return errNotInteger
	}
	switch option {
	case "COST":
		if n < 0 || n > cell.MaxCost {
			return errCost
		}
		t.Cost = n
	case "LEASE":
		if n < 1 || n > limit.MaxLeaseMS {
			return formatError(errLease, limit.MaxLeaseMS)
		}
		t.terms.LeaseNS = n * 1e6
	case "RESERVE":
		t.max = n
		return t.mode(cell.Take, false, store.Reserve)
	case "WAIT":
		t.max = n
		return t.mode(cell.Take, false, store.Wait)
	}
	return ""
}

// readOptions reads the options of a form that has its limits, and checks them together.
func (f *form) readOptions(s *Session, args [][]byte) (text string) {
	t, terms := &f.call, &f.call.terms
	t.Cost = 1
	if text = takeWords.Read(args, t.set); text != "" {
		return text
	}
	conc, bookable := false, true
	for _, l := range f.limits {
		conc = conc || l.HoldsLeases()
		bookable = bookable && l.Bookable()
	}
	t.leases = conc || terms.LeaseNS > 0
	unitNS, mostMS := int64(t.unitNS()), s.srv.cfg.WaitMax.Get()
	switch {
	case conc && terms.LeaseNS > 0:
		return errLeaseConc
	case !t.leases && (terms.Bound || terms.Name != ""):
		return errNoLease
	case terms.Mode == store.Reserve && !bookable:
		return errReserve
	case t.max < 0 || t.max > mostMS*(1e6/unitNS):
		return formatError(errWaitMax, mostMS)
	}
	terms.MaxNS = t.max * unitNS
	if t.Cost == 0 {
		t.Mode, t.UpTo = cell.Peek, false
	}
	if t.Mode == cell.Peek {
		*terms = store.Terms{}
		return ""
	}
	t.hasTerms = t.leases || terms.Mode != store.DontWait
	return ""
}

// maxLeaseName is the longest name of a lease, in bytes.
const (
	maxLeaseName = 64
)

// isLimit tells a limit from an option: a limit begins with a digit or @, or has a slash.
func isLimit(arg []byte) bool {
	return len(arg) > 0 && ('0' <= arg[0] && arg[0] <= '9' || arg[0] == '@') || bytes.IndexByte(arg, '/') >= 0
}

// readTake reads a CL.TAKE.
func readTake(s *Session, f *form, args [][]byte) (text string) {
	rest := args[2:]
	for first := true; len(rest) > 0 && (first || isLimit(rest[0])); first, rest = false, rest[1:] {
		if text = f.readLimit(s, rest[0]); text != "" {
			return text
		}
	}
	f.reply = (*Session).replyTaken
	return f.readOptions(s, rest)
}

// replyTaken answers with an array in RESP3 as well. ioredis and go-redis turn a map into a value that callers would take for
// "limited".
func (s *Session) replyTaken(f *form, r *store.TakeRequest) {
	taken, unitNS := &r.Taken, f.call.unitNS()
	binding := &r.Calls[taken.Binding].Decision
	head := "*7\r\n"
	switch {
	case f.call.full && f.call.leases:
		head = "*9\r\n"
	case f.call.full || f.call.leases:
		head = "*8\r\n"
	}
	out := wire.AppendBool(append(s.call.Out, head...), taken.Limited, false)
	out = wire.AppendInt(out, binding.Limit)
	out = wire.AppendInt(out, binding.Remaining)
	out = wire.AppendInt(out, wait(taken.RetryAfterNS, unitNS))
	out = wire.AppendInt(out, wait(taken.ResetAfterNS, unitNS))
	out = wire.AppendInt(out, taken.Granted)
	if r.Terms == nil {
		out = append(out, ":0\r\n"...)
	} else {
		out = wire.AppendInt(out, wait(r.Terms.WaitNS, unitNS))
	}
	if s.call.Out = out; f.call.leases {
		s.replyLease(r)
	}
	if f.call.full {
		s.call.Array(len(r.Calls))
		for i := range r.Calls {
			s.replyDecision(&r.Calls[i].Decision, unitNS)
		}
	}
}

// replyLease answers with the id of the lease, or 0.
func (s *Session) replyLease(r *store.TakeRequest) {
	if r.Terms == nil {
		s.call.Int(0)
	} else {
		s.call.Int(r.Terms.Lease)
	}
}

// replyDecision answers with one limit's decision, with times in units of unitNS.
func (s *Session) replyDecision(d *cell.Decision, unitNS uint64) {
	s.call.Array(5)
	s.call.Bool(d.Limited)
	s.call.Int(d.Limit)
	s.call.Int(d.Remaining)
	s.call.Int(wait(d.RetryAfterNS, unitNS))
	s.call.Int(wait(d.ResetAfterNS, unitNS))
}

// unitNS is the unit of the times in the reply: ms or µs.
func (t *takeCall) unitNS() uint64 {
	if t.us {
		return 1_000
	}
	return 1_000_000
}

// wait rounds up, so that a caller who waits this long has waited enough. It is -1 for never.
func wait(ns, unitNS uint64) int64 {
	if ns == cell.Never {
		return -1
	}
	n := ns / unitNS
	if ns%unitNS > 0 {
		n++
	}
	return int64(min(n, math.MaxInt64))
}
