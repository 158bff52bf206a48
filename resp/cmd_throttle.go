package resp

import (
	"bytes"
	"errors"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/wire"
	"celld/store"
)

// throttleCall is the parameters of one CL.THROTTLE.
type throttleCall struct{ maxBurst, count, period, quantity int64 }

// parseThrottle reads CL.THROTTLE key max_burst count period [quantity]. Its checks, their order and their errors are those of
// redis-cell 0.5.0. It also returns the text of an error, or "".
func parseThrottle(args [][]byte) (call throttleCall, text string) {
	if len(args) != 5 && len(args) != 6 {
		return call, errThrottleUsage
	}
	params := [4]int64{3: 1}
	for i, arg := range args[2:] {
		if params[i], text = parseParam(arg); text != "" {
			return call, text
		}
	}
	return throttleCall{params[0], params[1], params[2], params[3]}, ""
}

// parseParam reads a number. The text of its error ends at the first NUL, because redis-cell passes it on as a C string.
func parseParam(arg []byte) (n int64, text string) {
	n, ok := command.ParseSigned(arg)
	if !ok {
		shown, _, _ := bytes.Cut(arg, []byte{0})
		return 0, errThrottleParse + string(shown)
	}
	return n, ""
}

// readThrottle reads a CL.THROTTLE.
func readThrottle(s *Session, f *form, args [][]byte) (text string) {
	if (len(args) == 3 || len(args) == 4) && len(args[2]) > 0 && args[2][0] == '@' {
		return readThrottleByPolicy(s, f, args)
	}
	call, text := parseThrottle(args)
	if text != "" {
		return text
	}
	limit, err := cell.NewBucket(call.maxBurst, call.count, call.period)
	if err != nil {
		return throttleError(err)
	}
	f.limit, f.quantity = limit, call.quantity
	f.allowed = appendReplyStart(f.allowed, false, limit.Capacity())
	f.limited = appendReplyStart(f.limited, true, limit.Capacity())
	return ""
}

// readThrottleByPolicy is CL.THROTTLE key @name [quantity]: a CL.TAKE with the reply of CL.THROTTLE.
func readThrottleByPolicy(s *Session, f *form, args [][]byte) (text string) {
	quantity := int64(1)
	if len(args) == 4 {
		if quantity, text = parseParam(args[3]); text != "" {
			return text
		}
	}
	if text = f.readLimit(s, args[2]); text != "" {
		return text
	}
	if quantity > cell.MaxCost || quantity < -cell.MaxCost {
		return formatError(errThrottleRange, "quantity", quantity)
	}
	f.call.Cost, f.call.Look, f.reply = quantity, quantity < 0, (*Session).replyThrottled
	if quantity == 0 {
		f.call.Mode = cell.Peek
	}
	return ""
}

// replyThrottled answers a Take with the reply of CL.THROTTLE.
func (s *Session) replyThrottled(_ *form, r *store.TakeRequest) {
	d := r.Calls[0].Decision
	d.RetryAfterNS = r.Taken.RetryAfterNS
	s.call.Out = appendReplyStart(s.call.Out, r.Taken.Limited, d.Limit)
	s.call.Out = appendReplyEnd(s.call.Out, &d)
}

// appendReply writes the reply to a CL.THROTTLE.
func (f *form) appendReply(out []byte, d *cell.Decision) []byte {
	if d.Limited && d.Limit != f.limit.Capacity() { // a rule denied it
		out = appendReplyStart(out, true, d.Limit)
	} else if d.Limited {
		out = append(out, f.limited...)
	} else {
		out = append(out, f.allowed...)
	}
	return appendReplyEnd(out, d)
}

// appendReplyStart writes the part that the form knows: whether the call is limited, and the limit.
func appendReplyStart(out []byte, limited bool, capacity int64) []byte {
	out = wire.AppendBool(wire.AppendArray(out, 5), limited, false)
	return wire.AppendInt(out, capacity)
}

// appendReplyEnd writes the part that each decision has: remaining, retry after, reset after.
func appendReplyEnd(out []byte, d *cell.Decision) []byte {
	out = wire.AppendInt(out, d.Remaining)
	if d.RetryAfterNS == cell.Never {
		out = append(out, ":-1\r\n"...)
	} else {
		out = wire.AppendInt(out, retrySeconds(d.RetryAfterNS))
	}
	return wire.AppendInt(out, wholeSeconds(d.ResetAfterNS))
}

// retrySeconds is at least 1. redis-cell answers 0 for a wait below 1 ms, which makes callers retry without a pause.
func retrySeconds(ns uint64) int64 { return max(1, wholeSeconds(ns)) }

// wholeSeconds rounds nanoseconds to seconds as redis-cell 0.5.0 does: up if the fraction has at least one whole millisecond.
func wholeSeconds(ns uint64) int64 {
	seconds := int64(ns / 1e9)
	if ns%1e9 >= 1e6 {
		seconds++
	}
	return seconds
}

// throttleError returns the text of an error of CL.THROTTLE or GCRA.
func throttleError(err error) string {
	var outOfRange *cell.RangeError
	switch {
	case errors.Is(err, cell.ErrZeroRate):
		return errThrottleZero
	case errors.As(err, &outOfRange):
		return formatError(errThrottleRange, outOfRange.Param, outOfRange.Value)
	}
	return storeError(err)
}
