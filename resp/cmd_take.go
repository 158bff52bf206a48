package resp

import (
	"bytes"
	"math"
	"strings"

	"celld/cell"
	"celld/resp/wire"
	"celld/store"
)

// takeCall is the options of a CL.TAKE or CL.MTAKE.
type takeCall struct {
	store.TakeOptions
	cost bool // COST was given
	us   bool // times in microseconds
	full bool // the reply also has each limit's decision
}

// mode sets the mode, which may be set only once.
func (t *takeCall) mode(mode cell.Mode, upTo bool) string {
	if t.Mode != cell.Take || t.UpTo {
		return errTakeModes
	}
	t.Mode, t.UpTo = mode, upTo
	return ""
}

// parseOptions reads all options. It returns the text of an error, or "".
func (t *takeCall) parseOptions(args [][]byte) (text string) {
	for ; len(args) > 0 && text == ""; args = args[1:] {
		switch strings.ToUpper(string(args[0])) {
		case "COST":
			if len(args) < 2 || t.cost {
				return errSyntax
			}
			args = args[1:]
			n, ok := parseInt(args[0])
			if !ok {
				return errNotInteger
			}
			if n < 0 || n > cell.MaxCost {
				return errCost
			}
			t.Cost, t.cost = n, true
		case "PEEK":
			text = t.mode(cell.Peek, false)
		case "UPTO":
			text = t.mode(cell.Take, true)
		case "FORCE":
			text = t.mode(cell.Force, false)
		case "US":
			t.us = true
		case "FULL":
			t.full = true
		default:
			return errSyntax
		}
	}
	if t.Cost == 0 {
		t.Mode, t.UpTo = cell.Peek, false
	}
	return text
}

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
	f.call.Cost, f.reply = 1, (*Session).replyTaken
	return f.call.parseOptions(rest)
}

// replyTaken answers with an array in RESP3 as well. ioredis and go-redis turn a map into a value that callers would take for
// "limited".
func (s *Session) replyTaken(f *form, r *store.TakeRequest) {
	taken, unitNS := &r.Taken, f.call.unitNS()
	binding := &r.Calls[taken.Binding].Decision
	head := "*7\r\n"
	if f.call.full {
		head = "*8\r\n"
	}
	out := wire.AppendBool(append(s.out, head...), taken.Limited, false)
	out = wire.AppendInt(out, binding.Limit)
	out = wire.AppendInt(out, binding.Remaining)
	out = wire.AppendInt(out, wait(taken.RetryAfterNS, unitNS))
	out = wire.AppendInt(out, wait(taken.ResetAfterNS, unitNS))
	out = wire.AppendInt(out, taken.Granted)
	s.out = append(out, ":0\r\n"...)
	if f.call.full {
		s.replyArray(len(r.Calls))
		for i := range r.Calls {
			s.replyDecision(&r.Calls[i].Decision, unitNS)
		}
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
