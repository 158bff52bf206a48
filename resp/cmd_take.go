package resp

import (
	"bytes"
	"math"
	"strings"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/wire"
	"celld/store"
)

// takeCall is the options of a CL.TAKE or CL.MTAKE.
type takeCall struct {
	store.TakeOptions
	cost bool // COST was given
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

// parseOptions reads all options. It returns the text of an error, or "".
func (t *takeCall) parseOptions(args [][]byte) (text string) {
	for ; len(args) > 0 && text == ""; args = args[1:] {
		switch option := strings.ToUpper(string(args[0])); option {
		case "COST", "RESERVE", "WAIT", "LEASE", "ID":
			if len(args) < 2 {
				return errSyntax
			}
			args = args[1:]
			text = t.parseValue(option, args[0])
		case "PEEK":
			text = t.mode(cell.Peek, false, store.DontWait)
		case "UPTO":
			text = t.mode(cell.Take, true, store.DontWait)
		case "FORCE":
			text = t.mode(cell.Force, false, store.DontWait)
		case "BIND":
			if t.terms.Bound {
				return errSyntax
			}
			t.terms.Bound = true
		case "US":
			t.us = true
		case "FULL":
			t.full = true
		default:
			return errSyntax
		}
	}
	return text
}

// parseValue reads the value of an option.
func (t *takeCall) parseValue(option string, arg []byte) (text string) {
	terms := &t.terms
	if option == "COST" && t.cost || option == "LEASE" && terms.LeaseNS > 0 || option == "ID" && terms.Name != "" {
		return errSyntax
	}
	if option == "ID" {
		if len(arg) < 1 || len(arg) > maxLeaseName {
			return formatError(errLeaseName, maxLeaseName)
		}
		terms.Name = string(arg)
		return ""
	}
	n, ok := command.ParseInt(arg)
	if !ok {
		return errNotInteger
	}
	switch option {
	case "COST":
		if n < 0 || n > cell.MaxCost {
			return errCost
		}
		t.Cost, t.cost = n, true
	case "LEASE":
		if n < 1 || n > maxLeaseMS {
			return formatError(errLease, maxLeaseMS)
		}
		terms.LeaseNS = n * 1e6
	case "RESERVE":
		t.max, text = n, t.mode(cell.Take, false, store.Reserve)
	case "WAIT":
		t.max, text = n, t.mode(cell.Take, false, store.Wait)
	}
	return text
}

// readOptions reads the options of a form that has its limits, and checks them together.
func (f *form) readOptions(s *Session, args [][]byte) (text string) {
	t, terms := &f.call, &f.call.terms
	t.Cost = 1
	if text = t.parseOptions(args); text != "" {
		return text
	}
	conc, bookable := false, true
	for _, l := range f.limits {
		conc = conc || l.HoldsLeases()
		bookable = bookable && l.Bookable()
	}
	t.leases = conc || terms.LeaseNS > 0
	unitNS, mostMS := int64(t.unitNS()), s.srv.cfg.waitMax.Get()
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

// maxLeaseName is the longest name of a lease, in bytes, and maxLeaseMS its longest life: that of a limit's period.
const (
	maxLeaseName = 64
	maxLeaseMS   = cell.MaxPeriodNS / 1_000_000
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
		s.replyArray(len(r.Calls))
		for i := range r.Calls {
			s.replyDecision(&r.Calls[i].Decision, unitNS)
		}
	}
}

// replyLease answers with the id of the lease, or 0.
func (s *Session) replyLease(r *store.TakeRequest) {
	if r.Terms == nil {
		s.replyInt(0)
	} else {
		s.replyInt(r.Terms.Lease)
	}
}

// replyDecision answers with one limit's decision, with times in units of unitNS.
func (s *Session) replyDecision(d *cell.Decision, unitNS uint64) {
	s.replyArray(5)
	s.replyBool(d.Limited)
	s.replyInt(d.Limit)
	s.replyInt(d.Remaining)
	s.replyInt(wait(d.RetryAfterNS, unitNS))
	s.replyInt(wait(d.ResetAfterNS, unitNS))
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
