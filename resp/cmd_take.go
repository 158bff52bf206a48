package resp

import (
	"bytes"
	"math"
	"strings"

	"celld/cell"
	"celld/resp/wire"
	"celld/store"
)

// takeCall is what a CL.TAKE or CL.MTAKE says beside keys and limits.
type takeCall struct {
	store.TakeOptions
	cost bool // COST was given
	us   bool // times in microseconds
	full bool // the reply tells each limit's decision, too
}

// takeOption reads the option at the start of args. It returns how many arguments that is, or the text of an error.
func (t *takeCall) takeOption(args [][]byte) (words int, text string) {
	switch strings.ToUpper(string(args[0])) {
	case "COST":
		if len(args) < 2 || t.cost {
			return 0, errSyntax
		}
		n, ok := parseInt(args[1])
		if !ok {
			return 0, errNotInteger
		}
		if n < 0 || n > cell.MaxCost {
			return 0, errCost
		}
		t.Cost, t.cost = n, true
		return 2, ""
	case "PEEK":
		return 1, t.mode(cell.Peek, false)
	case "UPTO":
		return 1, t.mode(cell.Take, true)
	case "FORCE":
		return 1, t.mode(cell.Force, false)
	case "US":
		t.us = true
	case "FULL":
		t.full = true
	default:
		return 0, errSyntax
	}
	return 1, ""
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
func (t *takeCall) parseOptions(args [][]byte) string {
	for len(args) > 0 {
		n, text := t.takeOption(args)
		if text != "" {
			return text
		}
		args = args[n:]
	}
	if t.Cost == 0 {
		t.Mode, t.UpTo = cell.Peek, false
	}
	return ""
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

// replyTaken answers with an array in RESP3, too: callers would mistake what ioredis and go-redis make of a map for "limited".
func (s *Session) replyTaken(f *form, r *store.TakeRequest) {
	t, taken := &f.call, &r.Taken
	binding := &r.Calls[taken.Binding].Decision
	head := "*7\r\n"
	if t.full {
		head = "*8\r\n"
	}
	out := wire.AppendBool(append(s.out, head...), taken.Limited, false)
	out = wire.AppendInt(out, binding.Limit)
	out = wire.AppendInt(out, binding.Remaining)
	out = wire.AppendInt(out, t.wait(taken.RetryAfterNS))
	out = wire.AppendInt(out, t.wait(taken.ResetAfterNS))
	out = wire.AppendInt(out, taken.Granted)
	s.out = append(out, ":0\r\n"...)
	if t.full {
		s.replyArray(len(r.Calls))
		for i := range r.Calls {
			s.replyDecision(t, &r.Calls[i].Decision)
		}
	}
}

func (s *Session) replyDecision(t *takeCall, d *cell.Decision) {
	s.replyArray(5)
	s.replyBool(d.Limited)
	s.replyInt(d.Limit)
	s.replyInt(d.Remaining)
	s.replyInt(t.wait(d.RetryAfterNS))
	s.replyInt(t.wait(d.ResetAfterNS))
}

// wait is a time in the unit of the reply, ms or µs, rounded up so that a caller who waits this long has waited enough; -1 for
// never.
func (t *takeCall) wait(ns uint64) int64 {
	unit := uint64(1_000_000)
	if t.us {
		unit = 1_000
	}
	if ns == cell.Never {
		return -1
	}
	n := ns / unit
	if ns%unit > 0 {
		n++
	}
	return int64(min(n, math.MaxInt64))
}
